//! Gantry's side of a job: starts the helper, hands it the job, reads the job's output, and waits until all of it is gone.
//!
//! One task per job does that, so that the job comes to its end in good order also when its caller has gone. The jail
//! lives by the control socket: when that closes, every process in it dies.

mod prepare;
mod running;

use super::probe::Backend;
use super::workspace::Workspace;
use super::{Captured, ExitReason, JailError, Job, JobOutput, Running};
pub(super) use prepare::FILES_LIMIT;
use running::{Pipes, RunningJob};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How much longer than its own limit a job may live before Gantry ends it from outside.
const WALL_RESERVE: Duration = Duration::from_secs(1);

/// How long all processes in a jail may take to die.
const END_LIMIT: Duration = Duration::from_secs(10);

const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// How much of a job's output is read at once.
const CHUNK: usize = 64 << 10;

#[derive(Debug, Clone)]
pub(crate) struct Builder {
    pub(crate) backend: Backend,
    /// The executable whose `main` calls [`crate::guard_main`].
    pub(crate) helper: PathBuf,
}

/// An executed program: its listener, and what its jail lacks, for people.
type Started = (Option<TcpListener>, Vec<String>);

/// Starts a job. Without a workspace, it sees an empty one. Also returns what the jail lacks, for people.
pub(crate) async fn start(
    builder: &Builder,
    workspace: Option<Workspace>,
    job: Job,
) -> Result<(Running, Vec<String>), JailError> {
    let (start, started) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    let task = Task { builder: builder.clone(), workspace, job: Arc::new(job), _active: ActiveJob::begin() };
    tokio::spawn(task.run(start, end));
    let stopping = |_gone| JailError::Broken("Gantry is stopping".to_owned());
    let (listener, notes) = started.await.map_err(stopping)??;
    Ok((Running { listener, ended }, notes))
}

/// Runs a program that does nothing. Returns what the jail lacks, for people.
pub(crate) fn probe(builder: &Builder) -> Result<Vec<String>, JailError> {
    let run = async {
        let (running, notes) = start(builder, None, Job::probe()).await?;
        let end = running.end().await?.end;
        if end == ExitReason::Exited(0) {
            Ok(notes)
        } else {
            Err(JailError::Broken(format!("`true` came to {end:?}")))
        }
    };
    let late = || JailError::Unavailable {
        cause: "a program that does nothing did not end in time".to_owned(),
        fix: "restart Gantry when the machine is less busy".to_owned(),
    };
    // On a thread of its own, because the caller may be part of a runtime, which must not be entered again.
    let in_thread = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| JailError::setup("the probe", &error))?;
        runtime.block_on(async { timeout(PROBE_LIMIT, run).await }).unwrap_or_else(|_elapsed| Err(late()))
    };
    let panicked = |_| JailError::Broken("the probe panicked".to_owned());
    std::thread::scope(|scope| scope.spawn(in_thread).join().map_err(panicked)?)
}

struct Task {
    builder: Builder,
    workspace: Option<Workspace>,
    job: Arc<Job>,
    _active: ActiveJob,
}

impl Task {
    /// Runs the job to its end. The caller may be gone at any time, so a result that it does not take is dropped.
    async fn run(
        mut self,
        start: oneshot::Sender<Result<Started, JailError>>,
        mut end: oneshot::Sender<Result<JobOutput, JailError>>,
    ) {
        let (mut job, pipes) = match self.begin().await {
            Ok(begun) => begun,
            Err(error) => {
                start.send(Err(error)).ok();
                return;
            }
        };
        let started = match job.started().await {
            Ok(started) => started,
            Err(error) => {
                job.end(Ok(None)).await.ok();
                start.send(Err(pipes.explain(error).await)).ok();
                return;
            }
        };
        let limits = self.job.limits;
        let mut streams = JoinSet::new();
        streams.spawn(flow(pipes, Arc::clone(&self.job.input), limits.output));
        if start.send(Ok(started)).is_err() {
            job.end(Ok(None)).await.ok();
            return;
        }
        let ended = tokio::select! {
            ended = job.ended() => ended,
            // The caller has dropped the job.
            () = end.closed() => Ok(None),
            () = sleep(limits.wall.saturating_add(WALL_RESERVE)) => Ok(Some((ExitReason::WallLimit, limits.wall))),
        };
        let output = match job.end(ended).await {
            Ok(ended) => collect(streams, ended).await,
            Err(error) => Err(error),
        };
        end.send(output).ok();
    }

    async fn begin(&mut self) -> Result<(RunningJob, Pipes), JailError> {
        let (builder, workspace, job) = (self.builder.clone(), self.workspace.take(), Arc::clone(&self.job));
        // Finding paths and forking block.
        let preparing =
            tokio::task::spawn_blocking(move || prepare::prepare(&builder, workspace.as_ref(), &job));
        preparing.await.map_err(|error| JailError::setup("starting", &error))?
    }
}

/// Feeds the job's input and reads its outputs until all of them end.
async fn flow(pipes: Pipes, input: Arc<[u8]>, limit: usize) -> (Captured, Captured) {
    let Pipes { stdin, stdout, stderr } = pipes;
    let (stdout, stderr, ()) =
        tokio::join!(capture(stdout, limit), capture(stderr, limit), feed(stdin, input));
    (stdout, stderr)
}

/// The output of a job of which no process lives any more, so that the pipes hold all of it.
async fn collect(
    mut streams: JoinSet<(Captured, Captured)>,
    (end, duration): (ExitReason, Duration),
) -> Result<JobOutput, JailError> {
    let endless = |_elapsed| JailError::Broken("its output does not end".to_owned());
    let captured = timeout(END_LIMIT, streams.join_next()).await.map_err(endless)?;
    let (stdout, stderr) = captured.and_then(Result::ok).unwrap_or_default();
    Ok(JobOutput { stdout, stderr, end, duration })
}

/// Reads to the end, and keeps the beginning.
async fn capture(stream: Option<impl AsyncRead + Unpin>, limit: usize) -> Captured {
    let mut captured = Captured::default();
    let Some(mut stream) = stream else { return captured };
    let mut chunk = vec![0; CHUNK];
    loop {
        // An error is the end as well: nothing more can be read.
        let Ok(length @ 1..) = stream.read(&mut chunk).await else { return captured };
        captured.total += length as u64;
        let room = limit.saturating_sub(captured.bytes.len());
        captured.bytes.extend(chunk.iter().take(length.min(room)));
    }
}

/// Writes the whole input, unless the job closes its end before.
async fn feed(stdin: OwnedFd, input: Arc<[u8]>) {
    if let Ok(mut pipe) = pipe::Sender::from_owned_fd(stdin) {
        pipe.write_all(&input).await.ok();
    }
}

/// The jobs of this process, counted, so that it does not end before it has tidied up after the last of them.
static COUNT: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// A job, from before its first step until nothing is left of it.
#[derive(Debug)]
struct ActiveJob(());

impl ActiveJob {
    fn begin() -> Self {
        COUNT.send_modify(|count| *count += 1);
        Self(())
    }
}

impl Drop for ActiveJob {
    fn drop(&mut self) {
        COUNT.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Waits until there is no job any more, for as long as one may take to die.
pub(crate) async fn wait_idle() {
    let mut count = COUNT.subscribe();
    if timeout(END_LIMIT, count.wait_for(|count| *count == 0)).await.is_err() {
        tracing::warn!("jobs are still ending; what they made in .git is not looked at");
    }
}
