//! A started program as Gantry holds it: its pipes, its end, and the control socket that keeps it alive.

use super::guard::{self, FAILED, GUARD_ARG, PROCESS_NAME, SIGNAL_BASE, STARTED, TERMINATE, VARIABLE_PREFIX};
use super::reaper::KILL_LIMIT;
use crate::{Error, Spec, sys};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fmt;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout, timeout_at};

const START_LIMIT: Duration = Duration::from_secs(10);

/// How long a tree may take to die: the limits of both guards, and some reserve.
const END_LIMIT: Duration = Duration::from_secs(2 * KILL_LIMIT.as_secs() + 2);

/// The highest number of a signal.
const LAST_SIGNAL: u8 = 64;

/// A running program. Dropped, it is killed at once with everything that it has started.
#[derive(Debug)]
pub struct Child {
    /// A caller that takes it has to close it.
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    /// A caller that takes it must read it, or the program stalls.
    pub stderr: Option<ChildStderr>,
    pid: Pid,
    guard: tokio::process::Child,
    // Invariant: while this end is open, the guards let the program live.
    control: UnixStream,
    exit: Option<Exit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(u8),
    /// By a signal. As in a shell, a code of 128 + n counts as signal n.
    Signal(u8),
}

/// Starts a program with exactly this environment, and waits until it is executed.
///
/// Cancel-safety: a start that is given up leaves nothing behind.
///
/// # Errors
/// The program is not there or cannot be executed, or something in the specification cannot be used.
pub async fn spawn(spec: &Spec) -> Result<Child, Error> {
    let deadline = Instant::now() + START_LIMIT;
    let (program, mut guard, control) = start_guard(spec, deadline).await?;
    let failure = |source| Error::Guard { program: program.clone(), source };
    let mut control = UnixStream::from_std(control).map_err(failure)?;
    let mut report = [0; 5];
    match timeout_at(deadline, control.read_exact(&mut report)).await {
        Ok(Ok(_)) => {}
        Ok(Err(_)) => return Err(lost(program, guard).await),
        Err(_) => return Err(Error::StartTimeout { program, limit: START_LIMIT }),
    }
    let [kind, number @ ..] = report;
    let number = i32::from_le_bytes(number);
    match (kind, Pid::from_raw(number)) {
        (STARTED, Some(pid)) => Ok(Child {
            stdin: guard.stdin.take(),
            stdout: guard.stdout.take(),
            stderr: guard.stderr.take(),
            pid,
            guard,
            control,
            exit: None,
        }),
        (FAILED, _) => Err(Error::Execute { program, source: io::Error::from_raw_os_error(number) }),
        _ => Err(lost(program, guard).await),
    }
}

/// The program, its guard, and the control socket that keeps the guard alive.
type Guard = (PathBuf, tokio::process::Child, StdUnixStream);

/// Finds the program and starts its guard, both on a thread for work that blocks: a file system that does not answer must
/// hold up nothing else. That thread may end at any time, so no guard may ask to die with its parent, which is a thread.
async fn start_guard(spec: &Spec, deadline: Instant) -> Result<Guard, Error> {
    let program = PathBuf::from(&spec.program);
    let too_late = || Error::StartTimeout { program: program.clone(), limit: START_LIMIT };
    let turn = Arc::clone(&spec.starts).acquire_owned();
    let Ok(turn) = timeout_at(deadline, turn).await else { return Err(too_late()) };
    let spec = spec.clone();
    let mut starting = tokio::task::spawn_blocking(move || {
        let program = spec.resolve()?;
        let failure = |source| Error::Guard { program: program.clone(), source };
        let (control, guards_end) = StdUnixStream::pair().map_err(failure)?;
        control.set_nonblocking(true).map_err(failure)?;
        let process = guard_command(&spec, &program, guards_end)?.spawn().map_err(failure)?;
        drop(turn);
        Ok((program, process, control))
    });
    match timeout_at(deadline, &mut starting).await {
        Ok(Ok(started)) => started,
        Ok(Err(error)) => Err(Error::Guard { program, source: error.into() }),
        Err(_) => {
            // A guard that was started ends, because its control socket is closed.
            starting.abort();
            Err(too_late())
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
fn guard_command(spec: &Spec, program: &Path, control: StdUnixStream) -> Result<Command, Error> {
    let mut command = Command::new(guard_executable(spec, program)?);
    command.arg0(PROCESS_NAME).arg(GUARD_ARG).arg(control.as_raw_fd().to_string());
    command.arg(program).arg(&spec.program).args(&spec.args);
    command.env_clear().envs(spec.env.iter().map(|(name, value)| {
        let mut guarded = std::ffi::OsString::from(VARIABLE_PREFIX);
        guarded.push(name);
        (guarded, value)
    }));
    if let Some(folder) = &spec.cwd {
        command.current_dir(folder);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    sys::inherit(command.as_std_mut(), control.into());
    Ok(command)
}

fn guard_executable(spec: &Spec, program: &Path) -> Result<PathBuf, Error> {
    match &spec.guard {
        Some(path) => Ok(path.clone()),
        None if !guard::is_guard_capable() => Err(Error::NoGuard),
        // It names the file that runs, even when an upgrade has put another one in its place.
        None if cfg!(target_os = "linux") => Ok("/proc/self/exe".into()),
        None => std::env::current_exe().map_err(|source| Error::Guard { program: program.into(), source }),
    }
}

async fn lost(program: PathBuf, mut guard: tokio::process::Child) -> Error {
    let exit = match timeout(END_LIMIT, guard.wait()).await {
        Ok(Ok(status)) => Exit::from(status).to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it closed its control socket, but still runs".into(),
    };
    Error::GuardLost { program, exit }
}

impl Child {
    /// The program's process id, which is also that of its process group and session.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Waits until the program has ended and all its descendants are gone.
    ///
    /// Cancel-safety: may be given up and called again.
    pub async fn wait(&mut self) -> Result<Exit, Error> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        let status = self.guard.wait().await.map_err(|source| Error::Wait { pid: self.pid(), source })?;
        if status.signal().is_some() {
            self.guard_was_killed().await;
        }
        Ok(*self.exit.insert(Exit::from(status)))
    }

    /// Ends the program: closes its input (if not taken), sends SIGTERM to its process group after half of `grace`,
    /// and kills the whole tree after the other half. Processes that it left behind are killed in any case.
    ///
    /// # Errors
    /// Something did not even end by SIGKILL.
    pub async fn stop(mut self, grace: Duration) -> Result<Exit, Error> {
        drop(self.stdin.take());
        if let Ok(result) = timeout(grace / 2, self.wait()).await {
            return result;
        }
        // Without a guard to receive it, there is nothing to wait for either.
        if self.control.write_all(&[TERMINATE]).await.is_ok()
            && let Ok(result) = timeout(grace / 2, self.wait()).await
        {
            return result;
        }
        self.control.shutdown().await.ok();
        match timeout(END_LIMIT, self.wait()).await {
            Ok(result) => result,
            Err(_) => {
                self.guard.start_kill().ok();
                self.kill_group();
                Err(Error::Stuck { pid: self.pid(), limit: END_LIMIT })
            }
        }
    }

    /// The outer guard was killed by someone else. The inner one is ending the tree; it holds its end of the control
    /// socket until it has finished. If it was killed too, the process group is what can still be reached.
    async fn guard_was_killed(&mut self) {
        tracing::warn!(pid = self.pid(), "the guard of a process was killed; ending what it guarded");
        let mut byte = [0];
        let end_of_inner = async { while matches!(self.control.read(&mut byte).await, Ok(1..)) {} };
        timeout(END_LIMIT, end_of_inner).await.ok();
        self.kill_group();
    }

    /// Kills the program's process group, which may be gone already.
    fn kill_group(&self) {
        if let Err(error) = kill_process_group(self.pid, Signal::KILL) {
            tracing::debug!(pid = self.pid(), %error, "no process group left to kill");
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        let code = status.code().or_else(|| status.signal().map(|signal| signal + i32::from(SIGNAL_BASE)));
        let code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
        match code.checked_sub(SIGNAL_BASE) {
            Some(signal @ 1..=LAST_SIGNAL) => Self::Signal(signal),
            Some(_) | None => Self::Code(code),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "ended by signal {signal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_that_a_signal_can_give_count_as_one() {
        let exit = |code: i32| Exit::from(ExitStatus::from_raw(code << 8));
        assert_eq!([exit(0), exit(128), exit(193), exit(255)], [0, 128, 193, 255].map(Exit::Code));
        assert_eq!([exit(129), exit(137), exit(192)], [1, 9, 64].map(Exit::Signal));
        assert_eq!(Exit::from(ExitStatus::from_raw(9)), Exit::Signal(9));
    }
}
