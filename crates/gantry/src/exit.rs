//! Exit codes: 0 success, 1 the call failed or was refused, 2 wrong usage, 3 internal error, 130 and 143 stopped by SIGINT and
//! SIGTERM.

use crate::term;
use std::io;
use std::process::ExitCode;

/// How a command ended without an internal error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    /// The call failed or was refused, or a check found something.
    Failure,
    /// A signal stopped it, which this exit code names.
    Interrupted(u8),
}

impl Outcome {
    /// Success, or a failure that is no error of the command itself.
    pub(crate) fn of(ok: bool) -> Self {
        if ok { Self::Success } else { Self::Failure }
    }
}

/// A mistake of the user: a bad argument or a bad configuration.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

pub(crate) fn code(done: anyhow::Result<Outcome>) -> ExitCode {
    match done {
        Ok(_)
            if let Some(error) =
                term::stdout_error().filter(|error| error.kind() != io::ErrorKind::BrokenPipe) =>
        {
            term::eprint(&format!("error: cannot write the output: {error}"));
            ExitCode::from(3)
        }
        Ok(Outcome::Success) => ExitCode::SUCCESS,
        Ok(Outcome::Failure) => ExitCode::from(1),
        Ok(Outcome::Interrupted(code)) => ExitCode::from(code),
        Err(error) => {
            term::eprint(&format!("error: {}", term::sanitize_lines(&format!("{error:#}"))));
            let usage = error.is::<UsageError>() || error.is::<crate::config::Error>();
            ExitCode::from(if usage { 2 } else { 3 })
        }
    }
}
