//! Why a job was not run, or not to its end.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum JailError {
    /// No jail can be built on this machine, so no program runs that needs one.
    #[error("programs cannot be confined on this machine: {cause}; {fix}")]
    Unavailable { cause: String, fix: String },
    #[error("there is no program `{}` in the sandbox", .program.display())]
    NoProgram { program: OsString },
    /// The workspace cannot be used, or something protected in it cannot be secured.
    #[error("{what}: {reason}")]
    Workspace { what: String, reason: String },
    #[error("`{folder}` cannot be the working folder: {reason}; name a folder of the workspace")]
    Folder { folder: String, reason: String },
    /// The system refused a step of building the jail. `detail` may be empty.
    #[error("the sandbox cannot be set up: {}{}", .step.with(detail, *errno), .step.remedy())]
    Step { step: Step, detail: String, errno: i32 },
    #[error("the sandbox cannot be set up: {step}: {reason}")]
    Setup { step: String, reason: String },
    /// The helper that builds the jail ended before it executed the program.
    #[error("the sandbox cannot be set up: starting: its helper ended early: {stderr}")]
    HelperExited { stderr: String },
    /// The jail broke: whether the program ran to its end is not known. All of it is dead.
    #[error("the sandbox broke: {0}")]
    Broken(String),
}

impl JailError {
    /// Whether the program may have run.
    #[must_use]
    pub fn has_run(&self) -> bool {
        matches!(self, Self::Broken(_))
    }

    pub(crate) fn setup(step: &str, reason: &impl ToString) -> Self {
        Self::Setup { step: step.to_owned(), reason: reason.to_string() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Step {
    #[error("reading the job")]
    Job,
    #[error("making namespaces")]
    Namespaces,
    #[error("mapping the user")]
    UserMap,
    #[error("mounting a folder of root's for another user")]
    IdMap,
    #[error("making the view of the file system")]
    Rootfs,
    #[error("covering protected paths")]
    Protection,
    #[error("making the network")]
    Network,
    #[error("setting limits")]
    Limits,
    #[error("giving up rights")]
    Confine,
    #[error("executing the program")]
    Execute,
}

impl Step {
    /// The step, what it was about and the system's error.
    pub(crate) fn with(self, detail: &str, errno: i32) -> String {
        let error = io::Error::from_raw_os_error(errno);
        if detail.is_empty() { format!("{self}: {error}") } else { format!("{self} ({detail}): {error}") }
    }

    fn remedy(self) -> &'static str {
        if self == Self::IdMap {
            "; give the workspace to an ordinary user (chown -R), or run Gantry as one: its file system cannot show \
             root's files as another user's"
        } else {
            ""
        }
    }
}

/// Says at which step a system call failed.
#[cfg(target_os = "linux")]
pub(crate) trait At<T> {
    fn at(self, step: Step, detail: impl std::fmt::Display) -> Result<T, JailError>;
}

#[cfg(target_os = "linux")]
impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, step: Step, detail: impl std::fmt::Display) -> Result<T, JailError> {
        self.map_err(|error| JailError::Step {
            step,
            detail: detail.to_string(),
            errno: error.into().raw_os_error().unwrap_or(libc::EINVAL),
        })
    }
}
