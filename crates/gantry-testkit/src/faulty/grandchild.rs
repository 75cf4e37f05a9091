//! `--spawn-grandchild`: a process that leaves its parent's session, so that only a killer of whole trees finds it.

use anyhow::{Context as _, Result};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What this program is started with to be the grandchild; the marker follows.
pub(super) const SLEEPER: &str = "--be-grandchild";

/// A grandchild that nobody killed ends by itself.
const LIFETIME: Duration = Duration::from_secs(300);

/// Starts the grandchild and forgets it.
pub(super) fn start(marker: &str) -> Result<()> {
    // Of the pipes it gets none: a pipe that stays open would be a second fault.
    let mut command = Command::new(std::env::current_exe()?);
    command.args([SLEEPER, marker]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop).context("the grandchild does not start")
}

/// Is the grandchild.
pub(super) fn sleep(_marker: &str) -> Result<()> {
    rustix::process::setsid().context("the grandchild cannot leave its session")?;
    std::thread::sleep(LIFETIME);
    Ok(())
}
