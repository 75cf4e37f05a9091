//! Gantry's side of a job: starts the helper, hands it the plan, reads what the job writes, and waits until all of it is
//! gone.
//!
//! One task per job does that, so that it comes to its end in good order also when nobody waits for it any more. The
//! control socket is what the job lives by: when it closes, everything in the jail dies.

mod helper;
mod life;
mod living;
mod prepare;
mod reports;

use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::ground::Ground;
use super::ladder::Rung;
use super::plan::{Failure, Step};
use super::{Captured, End, JailError, Job, Limits, Ran, Running};
use life::{Life, Pipes};
use living::Living;
pub(super) use living::settled;

/// How much longer than its own limit a job may live before it is ended from outside.
const WALL_RESERVE: Duration = Duration::from_secs(1);

/// How long everything in a jail may take to die.
const END_LIMIT: Duration = Duration::from_secs(10);

/// How long the probe of a way to build jails may take.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// How much of a job's output is read at once.
const CHUNK: usize = 64 << 10;

/// How a jail is built.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub(crate) rung: Rung,
    /// The executable whose `main` calls [`crate::guard_main`].
    pub(crate) helper: PathBuf,
}

/// Why a job was not started.
#[derive(Debug)]
pub(crate) enum Refused {
    /// A step inside failed.
    Failed(Failure),
    /// Something outside did.
    Error(JailError),
    /// The helper ended without a word on the control socket; what it said elsewhere.
    Silent(String),
    /// It took too long.
    Late,
}

/// What becomes of a start: the listener and the notes.
type Started = Result<(Option<std::net::TcpListener>, Vec<String>), Refused>;

/// Starts a job. Without ground the workspace is empty. Also returns what is missing in the jail, for people.
pub(crate) async fn start(
    way: &Way,
    ground: Option<Ground>,
    job: Job,
) -> Result<(Running, Vec<String>), Refused> {
    let (wanted, unwanted) = oneshot::channel();
    let (start, started) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    let task = Task { way: way.clone(), limits: job.limits, unwanted, living: Living::begin() };
    tokio::spawn(task.run(ground, job, start, end));
    let stopping = |_gone| Refused::Error(JailError::Broken("Gantry is stopping".to_owned()));
    let (listener, notes) = started.await.map_err(stopping)??;
    Ok((Running { listener, ended, _wanted: wanted }, notes))
}

/// Runs a program that does nothing. Returns what is missing in the jail, for people.
pub(crate) fn probe(way: &Way) -> Result<Vec<String>, Refused> {
    let run = async {
        let (running, notes) = start(way, None, prepare::nothing()).await?;
        match running.end().await.map_err(Refused::Error)?.end {
            End::Exited(0) => Ok(notes),
            end @ (End::Exited(_)
            | End::Signalled(_)
            | End::WallLimit
            | End::CpuLimit
            | End::MemoryLimit
            | End::WriteLimit) => Err(Refused::Error(JailError::Broken(format!("`true` came to {end:?}")))),
        }
    };
    // A thread of its own, because whoever asks may be part of a runtime, which must not be entered again.
    let in_thread = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| broken("the probe", &error))?;
        runtime.block_on(async { timeout(PROBE_LIMIT, run).await }).unwrap_or(Err(Refused::Late))
    };
    let panicked = |_| Refused::Error(JailError::Broken("the probe panicked".to_owned()));
    std::thread::scope(|scope| scope.spawn(in_thread).join().map_err(panicked)?)
}

struct Task {
    way: Way,
    limits: Limits,
    unwanted: oneshot::Receiver<()>,
    living: Living,
}

impl Task {
    async fn run(
        mut self,
        ground: Option<Ground>,
        job: Job,
        start: oneshot::Sender<Started>,
        end: oneshot::Sender<Result<Ran, JailError>>,
    ) {
        let (way, input) = (self.way.clone(), Arc::clone(&job.input));
        let is_probe = ground.is_none();
        // Finding paths, locking and forking block.
        let preparing = tokio::task::spawn_blocking(move || prepare::prepare(&way, ground, &job));
        let prepared = preparing.await.unwrap_or_else(|error| Err(broken("starting", &error)));
        let begun = prepared.and_then(|(prepared, handed)| Ok((Life::begin(prepared)?, handed)));
        let ((mut life, pipes), handed) = match begun {
            Ok(begun) => begun,
            Err(refused) => {
                // Nobody may be left to hear it.
                start.send(Err(refused)).ok();
                return;
            }
        };
        let started = match handed {
            Ok(()) => life.started().await,
            Err(refused) => Err(refused),
        };
        let started = match started {
            Ok(started) => started,
            Err(refused) => {
                life.end(Ok(None)).await.ok();
                start.send(Err(pipes.complete(refused).await)).ok();
                return;
            }
        };
        let output = Streams::flow(pipes, input, self.limits.output);
        if start.send(Ok(started)).is_err() {
            life.end(Ok(None)).await.ok();
            return;
        }
        let ended = tokio::select! {
            ended = life.ended() => ended,
            // Whoever held it dropped it, unless it waits for the end: then it still holds it.
            _ = &mut self.unwanted => Ok(None),
            () = sleep(self.limits.wall.saturating_add(WALL_RESERVE)) => Ok(Some((End::WallLimit, self.limits.wall))),
        };
        let ended = life.end(ended).await;
        end.send(output.collect(ended).await).ok();
        drop(self.living);
        if self.way.rung == Rung::Native && !is_probe {
            let laid_by = tokio::task::spawn_blocking(move || helper::lay_by(self.way.helper));
            laid_by.await.ok();
        }
    }
}

/// What flows to and from a job, each in its own task, so that no stream holds up another.
struct Streams {
    stdout: JoinHandle<Captured>,
    stderr: JoinHandle<Captured>,
    stdin: JoinHandle<()>,
}

impl Streams {
    fn flow(pipes: Pipes, input: Arc<[u8]>, limit: usize) -> Self {
        Self {
            stdout: tokio::spawn(capture(pipes.stdout, limit)),
            stderr: tokio::spawn(capture(pipes.stderr, limit)),
            stdin: tokio::spawn(feed(pipes.stdin, input)),
        }
    }

    /// All writers are dead, so that what is still in the pipes is all.
    async fn collect(mut self, ended: Result<(End, Duration), JailError>) -> Result<Ran, JailError> {
        self.stdin.abort();
        let (end, duration) = ended?;
        let both = async { tokio::join!(&mut self.stdout, &mut self.stderr) };
        let (stdout, stderr) = timeout(END_LIMIT, both)
            .await
            .map_err(|_elapsed| JailError::Broken("its output does not end".to_owned()))?;
        Ok(Ran { stdout: stdout.unwrap_or_default(), stderr: stderr.unwrap_or_default(), end, duration })
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        for task in [self.stdin.abort_handle(), self.stdout.abort_handle(), self.stderr.abort_handle()] {
            task.abort();
        }
    }
}

/// Reads to the end, and keeps the beginning.
async fn capture(stream: Option<impl AsyncRead + Unpin>, limit: usize) -> Captured {
    let mut captured = Captured::default();
    let Some(mut stream) = stream else { return captured };
    let mut chunk = vec![0; CHUNK];
    loop {
        // An error is the end as well: there is nothing more to be had.
        let Ok(length @ 1..) = stream.read(&mut chunk).await else { return captured };
        captured.total += length as u64;
        let room = limit.saturating_sub(captured.bytes.len());
        captured.bytes.extend(chunk.iter().take(length.min(room)));
    }
}

/// Writes the whole input, unless the job does not want it.
async fn feed(stdin: OwnedFd, input: Arc<[u8]>) {
    if let Ok(mut pipe) = pipe::Sender::from_owned_fd(stdin) {
        pipe.write_all(&input).await.ok();
    }
}

impl Refused {
    /// The same for whoever asked for the job.
    pub(crate) fn into_error(self, program: &std::ffi::OsStr) -> JailError {
        let failure = match self {
            Self::Error(error) => return error,
            Self::Silent(said) => {
                let reason = format!("its helper ended early: {said}");
                return JailError::Setup { step: "starting".to_owned(), reason };
            }
            Self::Late => {
                let reason = "it took too long; try again when the machine is less busy".to_owned();
                return JailError::Setup { step: "starting".to_owned(), reason };
            }
            Self::Failed(failure) => failure,
        };
        let mut reason = failure.error().to_string();
        match failure.step {
            Step::Find => return JailError::NoProgram { program: program.to_owned() },
            Step::Folder => {
                reason = match Errno::from_io_error(&failure.error()) {
                    Some(Errno::XDEV) => "it leads outside of the workspace".to_owned(),
                    Some(Errno::NOENT) => "it does not exist".to_owned(),
                    Some(Errno::NOTDIR) => "it is not a folder".to_owned(),
                    _ => reason,
                };
                return JailError::Folder { folder: failure.detail, reason };
            }
            Step::IdMap => reason.push_str(
                "; give the workspace to an ordinary user (chown -R), or run Gantry as one: \
                 its file system cannot show root's files as another user's",
            ),
            Step::Plan
            | Step::Namespaces
            | Step::UserMap
            | Step::View
            | Step::Covers
            | Step::Network
            | Step::Limits
            | Step::Confine
            | Step::Execute => {}
        }
        let step = match failure.detail.as_str() {
            "" => failure.step.to_string(),
            detail => format!("{} ({detail})", failure.step),
        };
        JailError::Setup { step, reason }
    }
}

fn broken(what: &str, error: &impl std::fmt::Display) -> Refused {
    Refused::Error(JailError::Setup { step: what.to_owned(), reason: error.to_string() })
}
