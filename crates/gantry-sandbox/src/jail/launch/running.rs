//! A job from the moment that its helper has it until nothing of it lives.

use super::{END_LIMIT, Started, capture};
use crate::jail::cgroup::JobCgroup;
use crate::jail::protocol::{self, Report};
use crate::jail::workspace::WorkspaceLease;
use crate::jail::{ExitReason, JailError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::{Instant, timeout};

const START_LIMIT: Duration = Duration::from_secs(10);

/// How long a helper may take to die that was killed because it did not end.
const KILL_LIMIT: Duration = Duration::from_secs(2);

/// How much is repeated of the standard error of a helper that failed, and how long that may take to come.
const STDERR_LIMIT: usize = 400;
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(1);

/// How the program ended and how long it ran. None: the helper gave no report of it.
type Ended = Option<(ExitReason, Duration)>;

/// How long the processes of a jail may take to die whose helper was killed.
const DEATH_LIMIT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// A helper with its job.
pub(super) struct RunningJob {
    pub(super) control: UnixStream,
    process: Child,
    pub(super) lease: Option<WorkspaceLease>,
    cgroup: Option<JobCgroup>,
    since: Instant,
    may_have_run: bool,
    /// The first process of the jail, if the program may have run.
    first: Option<OwnedFd>,
}

/// Gantry's ends of the job's standard streams.
pub(super) struct Pipes {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

impl Pipes {
    /// Adds to an error what the helper, which is dead, has written to its standard error.
    pub(super) async fn explain(self, error: JailError) -> JailError {
        let JailError::HelperExited { .. } = error else { return error };
        let written = timeout(LAST_WORDS_LIMIT, capture(self.stderr, STDERR_LIMIT)).await.unwrap_or_default();
        let stderr = written.text().split_whitespace().collect::<Vec<_>>().join(" ");
        JailError::HelperExited { stderr }
    }
}

impl RunningJob {
    /// In a runtime only.
    pub(super) fn new(control: OwnedFd, process: Child, cgroup: Option<JobCgroup>) -> io::Result<Self> {
        let control = StdUnixStream::from(control);
        control.set_nonblocking(true)?;
        let control = UnixStream::from_std(control)?;
        Ok(Self {
            control,
            process,
            lease: None,
            cgroup,
            since: Instant::now(),
            may_have_run: false,
            first: None,
        })
    }

    pub(super) async fn started(&mut self) -> Result<Started, JailError> {
        match timeout(START_LIMIT, self.start_reports()).await {
            Ok(started) => started,
            Err(_elapsed) => {
                Err(self.failed("starting", &"it took too long; try again when the machine is less busy"))
            }
        }
    }

    async fn start_reports(&mut self) -> Result<Started, JailError> {
        let mut listener = None;
        loop {
            let report = match next_report(&self.control).await {
                // The helper ended before it had read the job.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => None,
                report => report.map_err(|error| self.failed("the control socket", &error))?,
            };
            match report {
                Some((Report::Executing, mut descriptors)) => {
                    self.may_have_run = true;
                    self.first = descriptors.pop();
                }
                Some((Report::Listening, mut descriptors)) => {
                    listener = descriptors.pop().map(TcpListener::from);
                    let set = listener.as_ref().map_or(Ok(()), |listener| listener.set_nonblocking(true));
                    set.map_err(|error| self.failed("the listener", &error))?;
                }
                Some((Report::Started { notes }, _)) => return Ok((listener, notes)),
                Some((Report::Failed(error), _)) => return Err(error),
                Some((Report::Broken { reason }, _)) => return Err(JailError::Broken(reason)),
                Some((Report::Ended { .. }, _)) | None if self.may_have_run => {
                    return Err(JailError::Broken("it ended while the program was started".to_owned()));
                }
                Some((Report::Ended { .. }, _)) | None => {
                    return Err(JailError::HelperExited { stderr: String::new() });
                }
            }
        }
    }

    /// The error of a failure on this side. A program that may have run is never said not to have.
    fn failed(&self, step: &str, reason: &impl ToString) -> JailError {
        if self.may_have_run {
            JailError::Broken(format!("{step}: {}", reason.to_string()))
        } else {
            JailError::setup(step, reason)
        }
    }

    /// Waits for the report of the program's end, but not for one that cannot come any more: bubblewrap can be killed
    /// without the helper in it noticing.
    pub(super) async fn ended(&mut self) -> io::Result<Ended> {
        tokio::select! {
            ended = Self::end_report(&self.control) => return ended,
            _ = self.process.wait() => {}
        }
        timeout(LAST_WORDS_LIMIT, Self::end_report(&self.control)).await.unwrap_or(Ok(None))
    }

    async fn end_report(control: &UnixStream) -> io::Result<Ended> {
        loop {
            match next_report(control).await?.map(|(report, _)| report) {
                Some(Report::Ended { end, duration }) => return Ok(Some((end, duration))),
                Some(Report::Broken { reason }) => return Err(io::Error::other(reason)),
                Some(Report::Listening | Report::Executing | Report::Started { .. } | Report::Failed(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// Ends what has not ended, and waits until every process of the job is dead.
    pub(super) async fn end(self, ended: io::Result<Ended>) -> Result<(ExitReason, Duration), JailError> {
        let Self { control, mut process, lease, cgroup, since, may_have_run, first } = self;
        drop(control);
        let death = wait_for(&mut process).await;
        let lease = lease.filter(|_| may_have_run);
        // It reads files, and may have to wait.
        let releasing = tokio::task::spawn_blocking(move || release(cgroup, lease, first));
        let (is_out_of_memory, made) = releasing.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a job was not tidied up after");
            (false, None)
        });
        if let Some(made) = made {
            return Err(JailError::Broken(made));
        }
        death.map_err(JailError::Broken)?;
        match ended {
            Ok(Some(ended)) => Ok(ended),
            // The kernel ends a whole control group for its memory, the helper included.
            Ok(None) if is_out_of_memory => Ok((ExitReason::MemoryLimit, since.elapsed())),
            Ok(None) => Err(JailError::Broken("it ended without a report of how the job ended".to_owned())),
            Err(error) => Err(JailError::Broken(error.to_string())),
        }
    }
}

/// Waits for the end of a helper. One that ends by itself does so only after every other process in the jail. If a signal of
/// another process ends it, the jail goes with it, but maybe a moment later. One that does not end is killed.
async fn wait_for(process: &mut Child) -> Result<ExitStatus, String> {
    match timeout(END_LIMIT, process.wait()).await {
        Ok(status) => return status.map_err(|error| format!("its helper cannot be waited for: {error}")),
        Err(_elapsed) => {
            process.start_kill().map_err(|error| format!("its helper cannot be killed: {error}"))?
        }
    }
    // Whether or not it dies in this time: what is left of the jail is not known.
    timeout(KILL_LIMIT, process.wait()).await.ok();
    Err(format!(
        "something in it did not end within {} s, so its helper was killed; look for processes in uninterruptible sleep",
        END_LIMIT.as_secs()
    ))
}

/// The next report. None: there will be no more.
async fn next_report(control: &UnixStream) -> io::Result<Option<(Report, Vec<OwnedFd>)>> {
    control.async_io(Interest::READABLE, || protocol::receive(control)).await
}

/// Gives up the control group and the workspace. Returns whether the kernel has killed the job for its memory, and what the
/// job made that it must not, if anything.
fn release(
    cgroup: Option<JobCgroup>,
    lease: Option<WorkspaceLease>,
    first: Option<OwnedFd>,
) -> (bool, Option<String>) {
    let is_out_of_memory = cgroup.as_ref().is_some_and(JobCgroup::ran_out_of_memory);
    // It kills what still lives in it.
    drop(cgroup);
    if let Some(first) = first {
        // At once, unless the helper was killed.
        poll(&mut [PollFd::new(&first, PollFlags::IN)], Some(&DEATH_LIMIT)).ok();
    }
    let made = lease.and_then(|lease| lease.take_away());
    if let Some(made) = &made {
        tracing::warn!("{made}");
    }
    (is_out_of_memory, made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::SendFlags;

    /// The error of a start with these reports, and then a message that is no report.
    #[expect(clippy::disallowed_methods, reason = "a process to wait for")]
    async fn failed(reports: &[Report]) -> JailError {
        let (ours, theirs) = protocol::pair().unwrap();
        for report in reports {
            protocol::send(&theirs, report, &[]).unwrap();
        }
        rustix::net::send(&theirs, b"nono", SendFlags::empty()).unwrap();
        let process = tokio::process::Command::new("true").spawn().unwrap();
        RunningJob::new(ours, process, None).unwrap().started().await.unwrap_err()
    }

    #[tokio::test]
    async fn a_job_that_may_have_run_is_never_said_not_to_have() {
        assert!(!failed(&[]).await.has_run());
        assert!(failed(&[Report::Executing]).await.has_run());
    }
}
