//! The process of a stdio server: started by gantry-sandbox, its standard error read, its end noticed.

use crate::launch::Launch;
use crate::options::ServerOptions;
use gantry_core::truncate::truncate;
use gantry_mcp::client::{IoStreams, Spawn};
use gantry_provider::BoxFuture;
use gantry_provider::redact::Redactor;
use gantry_sandbox::{Child, Exit, Spec, spawn};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Bytes that are kept of one line of standard error.
const LINE_BYTES: usize = 4096;

/// Bytes that are read at once.
const PART_BYTES: u64 = 8192;

/// Lines that are logged per second; a server that writes more loses them.
const LINES_PER_SECOND: u32 = 50;

/// How long a process whose connection was closed may take to end by itself.
const GRACE: Duration = Duration::from_secs(4);

/// How long to wait for the exit code of a process whose pipes are closed.
const EXIT_CODE: Duration = Duration::from_millis(500);

/// How long after its pipes are closed the end of a process is waited for.
const NOTICE: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub(super) struct StdioProcess {
    spec: Spec,
    launch: Launch,
    server: Arc<str>,
    secrets: Arc<Redactor>,
    tasks: TaskTracker,
    /// The output and exit of the process that was started last.
    log: Mutex<Arc<ProcessLog>>,
}

#[derive(Debug, Default)]
struct ProcessLog {
    last_line: Mutex<Option<String>>,
    exit: tokio::sync::SetOnce<Option<Exit>>,
    /// Set once there is nothing more to read of its standard error.
    stderr_closed: tokio::sync::SetOnce<()>,
}

impl StdioProcess {
    pub(super) fn new(
        server: Arc<str>,
        (spec, launch): (Spec, Launch),
        secrets: Arc<Redactor>,
        tasks: TaskTracker,
    ) -> Self {
        Self { spec, launch, server, secrets, tasks, log: Mutex::default() }
    }

    /// A failure with what the process itself says about it.
    pub(super) async fn describe_exit(&self, failure: String) -> String {
        let log = Arc::clone(&self.log.lock().unwrap_or_else(PoisonError::into_inner));
        // A process that still runs has no exit code; one that has just ended gets a moment to be noticed.
        let exit = tokio::time::timeout(EXIT_CODE, log.exit.wait()).await.ok().copied().flatten();
        if exit.is_some() {
            // Its last lines may still be in the pipe, or a process that it started holds the pipe open.
            tokio::time::timeout(EXIT_CODE, log.stderr_closed.wait()).await.ok();
        }
        let last = log.last_line.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match (exit, last) {
            (Some(exit), Some(line)) => format!("{exit}: {line}"),
            (Some(exit), None) => format!("{exit}, with nothing on its standard error ({failure})"),
            (None, Some(line)) => format!("{failure}; the last line of its standard error: {line}"),
            (None, None) => failure,
        }
    }

    /// Starts the program. A start that is given up is undone by the task that runs the process: the server is closed only
    /// when that task has ended, so nothing of the process is left by then.
    async fn start(&self) -> Result<IoStreams, String> {
        let log = Arc::new(ProcessLog::default());
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&log);
        self.launch.prepare(self.spec.cwd.as_deref()).await.inspect_err(|_| drop(log.exit.set(None)))?;
        let (spec, server, secrets) =
            (self.spec.clone(), Arc::clone(&self.server), Arc::clone(&self.secrets));
        let (sender, started) = oneshot::channel();
        self.tasks.spawn(run(spec, server, secrets, log, sender));
        started.await.unwrap_or_else(|_| Err("its start broke off; the log says more".to_owned()))
    }
}

/// Runs a process to its end. Its pipes, or the reason why it did not start, go to `started`.
async fn run(
    spec: Spec,
    server: Arc<str>,
    secrets: Arc<Redactor>,
    log: Arc<ProcessLog>,
    started: oneshot::Sender<Result<IoStreams, String>>,
) {
    let mut child = match spawn(&spec).await {
        Ok(child) => child,
        Err(error) => {
            log.exit.set(None).ok(); // Nothing runs, so nothing can end.
            started.send(Err(with_causes(&error))).ok(); // The receiver may have given up.
            return;
        }
    };
    let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
    let (Some(reader), Some(writer), Some(stderr)) = pipes else {
        started.send(Err("its pipes are not there".to_owned())).ok();
        return;
    };
    let released = CancellationToken::new();
    let guard: DropGuard = released.clone().drop_guard();
    let streams = IoStreams { reader: Box::new(reader), writer: Box::new(writer), guard: Box::new(guard) };
    if started.send(Ok(streams)).is_err() {
        // The start was given up, and the program was told nothing that it could bring to an end.
        if let Err(error) = child.stop(Duration::ZERO).await {
            tracing::warn!("{server}: {}", with_causes(&error));
        }
        return;
    }
    tokio::join!(
        read_stderr(stderr, Arc::clone(&server), secrets, Arc::clone(&log)),
        reap(child, server, released, log),
    );
}

/// A program with exactly this environment, besides what a process needs to find programs and files at all.
pub(super) fn spec(options: &ServerOptions) -> Spec {
    let mut spec = Spec::new(options.command.as_deref().unwrap_or_default());
    spec.args = options.args.iter().map(|arg| arg.expose().into()).collect();
    spec.env.extend(options.env.iter().map(|(name, value)| (name.into(), value.expose().into())));
    spec.cwd.clone_from(&options.cwd);
    spec
}

impl Spawn for StdioProcess {
    fn spawn(&self) -> BoxFuture<'_, Result<IoStreams, String>> {
        Box::pin(self.start())
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Waits for the end of a process, and ends it when its connection is closed.
async fn reap(mut child: Child, server: Arc<str>, released: CancellationToken, log: Arc<ProcessLog>) {
    let exit = tokio::select! {
        biased;
        exit = child.wait() => exit,
        () = released.cancelled() => {
            // Pipes close before the end of a process is noticed, so it may have failed by itself.
            let failed = tokio::time::timeout(NOTICE, child.wait()).await;
            let failed = failed.ok().and_then(Result::ok).filter(|exit| *exit != Exit::Code(0));
            log.exit.set(failed).ok();
            child.stop(GRACE).await
        }
    };
    match exit {
        Ok(exit) => {
            tracing::debug!("{server}: the process has ended: {exit}");
            log.exit.set(Some(exit)).ok();
        }
        Err(error) => tracing::warn!("{server}: {}", with_causes(&error)),
    }
}

/// Reads standard error to its end: a process blocks when its pipe is full.
async fn read_stderr(
    stderr: impl AsyncRead + Unpin,
    server: Arc<str>,
    secrets: Arc<Redactor>,
    log: Arc<ProcessLog>,
) {
    let (mut reader, mut rate) = (BufReader::new(stderr), Rate::default());
    while let Some(line) = next_line(&mut reader).await {
        let line = secrets.mask(line.trim_end().to_owned());
        if line.is_empty() {
            continue;
        }
        *log.last_line.lock().unwrap_or_else(PoisonError::into_inner) = Some(line.clone());
        match rate.admits(Instant::now()) {
            Some(0) => tracing::debug!(target: "gantry::server", "{server}: {line}"),
            Some(dropped) => {
                tracing::debug!(target: "gantry::server", "{server}: … {dropped} lines dropped\n{server}: {line}");
            }
            None => {}
        }
    }
    log.stderr_closed.set(()).ok(); // It is set only here.
}

/// The next line without characters that could pass for lines of their own, cut at a limit; none at the end of the input.
async fn next_line(reader: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let (mut line, mut part) = (Vec::new(), Vec::new());
    while part.last() != Some(&b'\n') {
        part.clear();
        // What cannot be read any more has ended.
        let read = reader.take(PART_BYTES).read_until(b'\n', &mut part).await.unwrap_or_default();
        if read == 0 {
            break;
        }
        line.extend(part.iter().take((LINE_BYTES + 1).saturating_sub(line.len())));
    }
    let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line));
    let text = truncate(&text, LINE_BYTES).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    (!line.is_empty()).then_some(text)
}

/// How many lines may still be logged in this second.
#[derive(Debug, Default)]
struct Rate {
    second: Option<Instant>,
    logged: u32,
    dropped: u64,
}

impl Rate {
    /// Whether one more line may be logged, and how many were dropped before it.
    fn admits(&mut self, now: Instant) -> Option<u64> {
        if self.second.is_none_or(|second| now.duration_since(second) >= Duration::from_secs(1)) {
            (self.second, self.logged) = (Some(now), 0);
        }
        if self.logged >= LINES_PER_SECOND {
            self.dropped += 1;
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.dropped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn lines_are_cut_and_the_last_one_is_kept() {
        let long = "x".repeat(LINE_BYTES * 3);
        let text = format!("{long}\n\na\u{1b}[2Jb\r\n{}last", "line\n".repeat(30));
        let log = Arc::new(ProcessLog::default());
        read_stderr(text.as_bytes(), "s".into(), Arc::default(), Arc::clone(&log)).await;
        assert_eq!(log.last_line.lock().unwrap().as_deref(), Some("last"));
        let mut reader = BufReader::new(text.as_bytes());
        assert_eq!(next_line(&mut reader).await.map(|line| line.len()), Some(LINE_BYTES));
        assert_eq!(next_line(&mut reader).await.as_deref(), Some(""));
        assert_eq!(next_line(&mut reader).await.as_deref(), Some("a [2Jb "));
    }

    #[test]
    fn a_flood_of_lines_is_dropped_and_counted() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let logged = (0..200).filter(|_| rate.admits(start).is_some()).count();
        assert_eq!(logged, LINES_PER_SECOND as usize);
        assert_eq!(rate.admits(start + Duration::from_secs(1)), Some(150));
        assert_eq!(rate.admits(start + Duration::from_secs(1)), Some(0));
    }

    #[tokio::test]
    async fn a_process_that_ended_explains_itself() {
        let program = StdioProcess::new(
            "s".into(),
            (Spec::new("x"), Launch::default()),
            Arc::default(),
            TaskTracker::new(),
        );
        assert_eq!(program.describe_exit("gone".into()).await, "gone");
        let log = Arc::clone(&program.log.lock().unwrap());
        *log.last_line.lock().unwrap() = Some("no such module".into());
        assert!(program.describe_exit("gone".into()).await.ends_with("standard error: no such module"));
        log.exit.set(Some(Exit::Code(1))).unwrap();
        log.stderr_closed.set(()).unwrap();
        assert_eq!(program.describe_exit("gone".into()).await, "exit code 1: no such module");
    }

    #[tokio::test]
    async fn a_start_that_is_given_up_is_waited_for() {
        let tasks = TaskTracker::new();
        let program =
            StdioProcess::new("s".into(), (Spec::new("x"), Launch::default()), Arc::default(), tasks.clone());
        assert!(program.start().now_or_never().is_none());
        assert_eq!(tasks.len(), 1, "the server is not closed yet");
        tasks.close();
        tasks.wait().await;
    }
}
