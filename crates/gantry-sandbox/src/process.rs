//! Programs that are trusted to run with the user's rights, such as MCP servers.
//!
//! A program runs under two guard processes:
//!
//! ```text
//! gantry ── outer guard ── inner guard ── the program ── its descendants
//! ```
//!
//! Both guards are this same executable, re-executed (see [`guard_main`]), and hold one end of a control socket whose
//! other end only Gantry holds. They kill the whole tree when that socket closes, which the kernel does for a Gantry
//! that was killed with SIGKILL, and when the program itself ends. On Linux both are child subreapers: a daemon that
//! forks twice and calls `setsid` becomes a child of the inner guard instead of escaping to init.
//!
//! There are two because an orphan of a killed guard would escape: when the inner one is killed, the outer one inherits
//! its children; when the outer one is killed, the inner one ends the tree, and Gantry kills the program's process group.
//! The program also asks the kernel to die with the inner guard.
//!
//! Limits. This contains careless programs, not hostile ones: one that runs as the same user can kill both guards at the
//! same moment (then only its process group dies), or change its process id faster than it can be killed. A descendant
//! that runs as another user, as through `sudo`, cannot be killed. Without Linux only the process group ends.

mod child;
mod error;
mod guard;
mod reaper;
mod spec;

use std::collections::BTreeMap;
use std::ffi::OsString;

pub use child::{Child, Exit, spawn};
pub use error::Error;
pub use guard::guard_main;
pub(crate) use guard::is_guard_capable;
pub use spec::Spec;

/// The variables that a process needs to find programs and files; no other is handed on by default.
const BASE_VARIABLES: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// PATH, HOME, LANG and TMPDIR of this process, as far as they are set.
#[must_use]
pub fn base_environment() -> BTreeMap<OsString, OsString> {
    BASE_VARIABLES
        .into_iter()
        .filter_map(|name| std::env::var_os(name).map(|value| (OsString::from(name), value)))
        .collect()
}
