//! The guard: the process between Gantry and a program it started. See the crate's documentation for why it is two.
//!
//! Invariant: a guard has one thread, no runtime and no descriptor of the program's pipes, so that it costs next to
//! nothing, its child's death signal works (it is bound to the thread that forked), and the end of a pipe is seen.

use super::reaper;
use crate::sys::{self, Signals};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitStatus, getpid, getppid, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first argument that makes a program a guard.
pub(super) const GUARD_ARG: &str = "__guard";

/// The prefix of every variable on the way to the guard, so that the loader of the guard does not act on those of the
/// program, such as `LD_PRELOAD`.
pub(super) const VARIABLE_PREFIX: &str = "GUARDED_";

/// The guard's name in a list of processes. `pkill gantry` must not end Gantry and the guards together.
pub(super) const PROCESS_NAME: &str = "sandbox-guard";

/// From Gantry to the guard: ask the program to end.
pub(super) const TERMINATE: u8 = b'T';

/// From the guard to Gantry, each followed by a number: the program runs, with this process id.
pub(super) const STARTED: u8 = b'S';
/// It does not, with this error of the system.
pub(super) const FAILED: u8 = b'F';

/// The exit code of a guard that failed, and the base of the exit codes of signals.
const GUARD_FAILURE: u8 = 125;
pub(super) const SIGNAL_BASE: u8 = 128;

static IS_GUARD_CAPABLE: AtomicBool = AtomicBool::new(false);

/// Runs the guard if the arguments (the program's name first) ask for it, and returns its exit code.
///
/// The first thing in `main`, before any thread or runtime exists:
///
/// ```ignore
/// if let Some(code) = gantry_sandbox::guard_main(std::env::args_os()) {
///     return code;
/// }
/// ```
pub fn guard_main(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    IS_GUARD_CAPABLE.store(true, Ordering::Relaxed);
    let mut args = args.into_iter().skip(1);
    let first = args.next()?;
    let code = if first == GUARD_ARG {
        Job::parse(args).map(|job| {
            job.run().unwrap_or_else(|error| {
                report(&job.control, FAILED, error.raw_os_error().unwrap_or_default());
                GUARD_FAILURE
            })
        })
    } else if first == crate::jail::HELPER_ARG {
        crate::jail::helper_main().then_some(0)
    } else {
        return None;
    };
    if code.is_none() {
        let first = first.display();
        let complaint = format!("`{first}` is for Gantry's own use; run `gantry --help` for the commands\n");
        io::stderr().write_all(complaint.as_bytes()).ok();
    }
    Some(ExitCode::from(code.unwrap_or(GUARD_FAILURE)))
}

/// Whether this program can be its own guard.
pub(crate) fn is_guard_capable() -> bool {
    IS_GUARD_CAPABLE.load(Ordering::Relaxed)
}

/// A program to guard: the control socket, the file to execute, the name it is given, its arguments.
struct Job {
    control: UnixStream,
    program: OsString,
    name: OsString,
    args: Vec<OsString>,
}

/// Which of the two guards this process is, and the process ids of the others.
#[derive(Debug, Clone, Copy)]
enum Role {
    Outer { inner: Pid },
    Inner { outer: Pid, program: Pid },
}

enum News {
    GantryIsGone,
    Terminate,
    Signal,
}

impl Job {
    fn parse(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let control = args.next()?.to_str()?.parse().ok()?;
        let (program, name) = (args.next()?, args.next()?);
        let control = sys::adopt(control).ok()?;
        sys::close_all_but(control.as_fd());
        Some(Self { control: control.into(), program, name, args: args.collect() })
    }

    fn run(&self) -> io::Result<u8> {
        // Away from the terminal of Gantry: Ctrl-C is for Gantry, which stops its servers in good order.
        rustix::process::setsid().ok();
        sys::block_signals()?;
        sys::set_process_name(PROCESS_NAME)?;
        sys::become_subreaper()?;
        let outer = getpid();
        let role = match sys::fork()? {
            Some(inner) => Role::Outer { inner },
            None => {
                sys::become_subreaper()?;
                // It wakes the watch below, which then sees that the parent is another.
                sys::signal_on_death_of_parent(Signal::HUP)?;
                let program = self.start()?;
                report(&self.control, STARTED, program.as_raw_nonzero().get());
                Role::Inner { outer, program }
            }
        };
        sys::release_stdio(&sys::open_null()?)?;
        rustix::process::chdir("/")?;
        role.watch(&self.control)
    }

    #[expect(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
    fn start(&self) -> io::Result<Pid> {
        let mut command = Command::new(&self.program);
        command.arg0(&self.name).args(&self.args).env_clear();
        for (name, value) in std::env::vars_os() {
            if let Some(name) = name.as_bytes().strip_prefix(VARIABLE_PREFIX.as_bytes()) {
                command.env(OsStr::from_bytes(name), value);
            }
        }
        sys::detach(&mut command, getpid());
        let child = command.spawn()?;
        i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH.into())
    }
}

impl Role {
    /// Waits until the child ends or Gantry gives it up, then ends the tree; returns the exit code.
    fn watch(self, control: &UnixStream) -> io::Result<u8> {
        let signals = Signals::new()?;
        loop {
            let ended = reaper::reap(self.child())?.main;
            if ended.is_some() || self.is_abandoned() {
                return self.end(ended);
            }
            match self.news(control, &signals)? {
                News::GantryIsGone => return self.end(None),
                News::Terminate => self.signal_group(Signal::TERM),
                News::Signal => {}
            }
        }
    }

    fn child(self) -> Pid {
        match self {
            Self::Outer { inner } => inner,
            Self::Inner { program, .. } => program,
        }
    }

    /// Whether the other guard, which should outlive this one, is dead.
    fn is_abandoned(self) -> bool {
        match self {
            Self::Outer { .. } => false,
            Self::Inner { outer, .. } => getppid() != Some(outer),
        }
    }

    /// Waits for something to happen. Only the inner guard reads the control socket; the outer one sees its end.
    fn news(self, mut control: &UnixStream, signals: &Signals) -> io::Result<News> {
        let interest = match self {
            Self::Outer { .. } => sys::END_OF_INPUT,
            Self::Inner { .. } => PollFlags::IN,
        };
        if signals.or_events_of(control, interest)?.is_empty() {
            return Ok(News::Signal);
        }
        if matches!(self, Self::Outer { .. }) {
            return Ok(News::GantryIsGone);
        }
        let mut byte = [0];
        match control.read(&mut byte) {
            Ok(1) if byte == [TERMINATE] => Ok(News::Terminate),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(News::Signal),
            // Gantry sends nothing else.
            Ok(_) | Err(_) => Ok(News::GantryIsGone),
        }
    }

    fn end(self, ended: Option<WaitStatus>) -> io::Result<u8> {
        self.signal_group(Signal::KILL);
        let status = ended.or(reaper::end(self.child())?);
        Ok(status.map_or(GUARD_FAILURE, exit_code))
    }

    /// Signals the program's process group, which may be gone already.
    fn signal_group(self, signal: Signal) {
        if let Self::Inner { program, .. } = self {
            kill_process_group(program, signal).ok();
        }
    }
}

/// Reports to Gantry, which may be gone.
fn report(mut control: &UnixStream, kind: u8, number: i32) {
    let [a, b, c, d] = number.to_le_bytes();
    control.write_all(&[kind, a, b, c, d]).ok();
}

fn exit_code(status: WaitStatus) -> u8 {
    let code =
        status.exit_status().or_else(|| status.terminating_signal().map(|n| n + i32::from(SIGNAL_BASE)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(GUARD_FAILURE)
}
