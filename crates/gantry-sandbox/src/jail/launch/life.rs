//! A job from the moment that its helper has a plan until nothing of it lives.

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::{Instant, timeout};

use super::prepare::Prepared;
use super::reports::Reports;
use super::{END_LIMIT, Refused, Started, capture};
use crate::jail::cgroup::Leaf;
use crate::jail::ground::Occupied;
use crate::jail::{End, JailError};

/// How long it may take until the program is executed.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How long a helper may take to die that was killed because it did not end.
const KILL_LIMIT: Duration = Duration::from_secs(2);

/// How much is repeated of what a helper that failed has said, and how long that may take to come.
const SAID: usize = 400;
const SAID_LIMIT: Duration = Duration::from_secs(1);

/// A helper and what it lives by. Dropped before its end, it takes no stand-in away: the jail may still live then.
pub(super) struct Life {
    reports: Reports,
    process: Child,
    occupied: Option<Occupied>,
    leaf: Option<Leaf>,
    since: Instant,
}

/// The job's ends of its standard streams.
pub(super) struct Pipes {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

impl Pipes {
    /// Adds to a refusal what the helper has said about it. Everything is dead.
    pub(super) async fn complete(self, refused: Refused) -> Refused {
        let Refused::Silent(_) = refused else { return refused };
        // Should the pipe be held open all the same, then there is nothing to be told.
        let said = timeout(SAID_LIMIT, capture(self.stderr, SAID)).await.unwrap_or_default();
        Refused::Silent(said.text().split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl Life {
    pub(super) fn begin(prepared: Prepared) -> Result<(Self, Pipes), Refused> {
        let Prepared { control, mut process, stdin, occupied, leaf } = prepared;
        let pipes = Pipes { stdin, stdout: process.stdout.take(), stderr: process.stderr.take() };
        // By now it may run.
        let lost = |error| Refused::Error(JailError::Broken(format!("the control socket: {error}")));
        let reports = Reports::new(control).map_err(lost)?;
        Ok((Self { reports, process, occupied, leaf, since: Instant::now() }, pipes))
    }

    /// Waits until the program is executed.
    pub(super) async fn started(&mut self) -> Started {
        match timeout(START_LIMIT, self.reports.started()).await {
            Ok(started) => started,
            Err(_) if self.reports.may_run => {
                Err(Refused::Error(JailError::Broken("the start of the program took too long".to_owned())))
            }
            Err(_) => Err(Refused::Late),
        }
    }

    /// Waits for the report of the job's end, but not for one that cannot come any more: the walls of somebody else can
    /// fall without the helper in them noticing.
    pub(super) async fn ended(&mut self) -> io::Result<Option<(End, Duration)>> {
        tokio::select! {
            ended = self.reports.ended() => return ended,
            _ = self.process.wait() => {}
        }
        timeout(SAID_LIMIT, self.reports.ended()).await.unwrap_or(Ok(None))
    }

    /// Ends what has not ended, and waits until everything is dead.
    pub(super) async fn end(
        self,
        ended: io::Result<Option<(End, Duration)>>,
    ) -> Result<(End, Duration), JailError> {
        let Self { reports, mut process, occupied, leaf, since } = self;
        drop(reports);
        let death = Death::of(&mut process).await;
        // All of it looks at files, and may have to wait.
        let is_whole = matches!(death, Death::Whole);
        let let_go = tokio::task::spawn_blocking(move || let_go(leaf, occupied, is_whole));
        let is_out_of_memory = let_go.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a job was not tidied up after");
            false
        });
        match (death, ended) {
            (Death::Whole | Death::Killed, Ok(Some(ended))) => Ok(ended),
            // The kernel ends a whole control group for its memory, the helper included.
            (Death::Whole | Death::Killed, Ok(None)) if is_out_of_memory => {
                Ok((End::MemoryLimit, since.elapsed()))
            }
            (Death::Whole | Death::Killed, Ok(None)) => {
                Err(JailError::Broken("it ended without a report of how the job ended".to_owned()))
            }
            (Death::Whole | Death::Killed, Err(error)) => Err(JailError::Broken(error.to_string())),
            (Death::Late, _) => Err(JailError::Broken(format!(
                "something in it did not end within {} s, so its helper was killed; look for processes in \
                 uninterruptible sleep",
                END_LIMIT.as_secs()
            ))),
            (Death::Unknown(error), _) => {
                Err(JailError::Broken(format!("its helper cannot be waited for: {error}")))
            }
        }
    }
}

/// How a helper ended.
enum Death {
    /// By itself, which it does only after everything in the jail.
    Whole,
    /// By a signal that was not sent here. The jail goes with it, but maybe a moment later.
    Killed,
    /// It was killed here, because something did not end.
    Late,
    Unknown(io::Error),
}

impl Death {
    /// Waits for it.
    async fn of(process: &mut Child) -> Self {
        let by_itself = |status: ExitStatus| status.code().is_some();
        match timeout(END_LIMIT, process.wait()).await {
            Ok(Ok(status)) if by_itself(status) => return Self::Whole,
            Ok(Ok(_)) => return Self::Killed,
            Ok(Err(error)) => return Self::Unknown(error),
            Err(_elapsed) => {}
        }
        if let Err(error) = process.start_kill() {
            return Self::Unknown(error);
        }
        // Whether or not it dies in this time: what is left of the jail is not known.
        timeout(KILL_LIMIT, process.wait()).await.ok();
        Self::Late
    }
}

/// Lets go of the control group and of the workspace. Returns whether the kernel has killed the job for its memory.
fn let_go(leaf: Option<Leaf>, occupied: Option<Occupied>, is_dead: bool) -> bool {
    let is_out_of_memory = leaf.as_ref().is_some_and(Leaf::ran_out_of_memory);
    // Whatever still lives in the group dies with it.
    drop(leaf);
    match occupied {
        Some(occupied) if is_dead => occupied.leave(),
        Some(occupied) => occupied.leave_when_free(),
        None => {}
    }
    is_out_of_memory
}
