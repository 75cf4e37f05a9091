//! The process that builds a jail, from its start until it gets its plan.
//!
//! Loading Gantry again takes about as long as building the jail. So after a job one helper is started for the next one
//! and waits, for a while, with nothing but the control socket: when that closes, it ends, as every helper does.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::runtime::{self, Handle};

use crate::jail::HELPER_ARG;

/// What the helper is called in a list of processes. `pkill gantry` must not end Gantry and its jobs together.
const PROCESS_NAME: &str = "sandbox-jail";

/// How long a helper waits for a job.
const IDLE_LIMIT: Duration = Duration::from_secs(60);

/// A helper without a plan.
#[derive(Debug)]
pub(super) struct Helper {
    pub(super) control: UnixStream,
    pub(super) process: Child,
}

/// One that waits.
#[derive(Debug)]
struct Spare {
    helper: Helper,
    executable: PathBuf,
    /// Only there it can be waited for.
    runtime: runtime::Id,
}

static SPARE: Mutex<Option<Spare>> = Mutex::new(None);

impl Helper {
    /// The one that waits, or a new one.
    pub(super) fn take(executable: &Path) -> io::Result<Self> {
        match take_spare(|spare| spare.executable == executable) {
            Some(helper) => Ok(helper),
            None => Self::start(native(executable)),
        }
    }

    /// Starts one by a command that has only to be told so.
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        command.arg(HELPER_ARG).stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let process = command.spawn()?;
        // It keeps its copy of the helper's end, which would keep the helper's death from being seen.
        drop(command);
        Ok(Self { control, process })
    }
}

/// Starts a helper for the next job, if none waits. A process that has run a single job is likely to be over with it, so
/// the first job leaves none.
pub(super) fn lay_by(executable: PathBuf) {
    static HAS_RUN_ONE: AtomicBool = AtomicBool::new(false);
    if !HAS_RUN_ONE.swap(true, Ordering::Relaxed) {
        return;
    }
    let runtime = Handle::current();
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    if spare.as_ref().is_some_and(|spare| spare.runtime == runtime.id() && spare.executable == executable) {
        return;
    }
    // The next job says what is wrong, if it still is.
    let Ok(helper) = Helper::start(native(&executable)) else { return };
    let process = helper.process.id();
    *spare = Some(Spare { helper, executable, runtime: runtime.id() });
    runtime.spawn(async move {
        tokio::time::sleep(IDLE_LIMIT).await;
        if let Some(Helper { control, mut process }) =
            take_spare(|spare| spare.helper.process.id() == process)
        {
            drop(control);
            process.wait().await.ok();
        }
    });
}

/// The one that waits, if it is the right one and still alive.
fn take_spare(is_right: impl FnOnce(&Spare) -> bool) -> Option<Helper> {
    let here = Handle::current().id();
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut helper = spare.take_if(|spare| spare.runtime == here && is_right(spare))?.helper;
    matches!(helper.process.try_wait(), Ok(None)).then_some(helper)
}

/// This executable again. Its standard input is the control socket: so nothing has to be done between its fork and its
/// execution, and the system need not copy the whole of Gantry for it.
#[expect(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
fn native(executable: &Path) -> Command {
    let mut command = Command::new(executable);
    command.arg0(PROCESS_NAME).env_clear();
    command
}
