//! Exit codes, chosen in one place: 0 done, 1 the call failed or was refused, 2 wrong usage, 3 internal; 130 and 143 stopped
//! by SIGINT and SIGTERM.

use crate::output;
use crate::signals::Asked;
use std::io;
use std::process::ExitCode;

/// How a command ended, if nothing went wrong inside Gantry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// It did what was asked.
    Well,
    /// The call failed or was refused, or a check found something.
    Badly,
    /// It was stopped before it had done that.
    Stopped(Asked),
}

/// What the person asked for cannot be: a bad argument, a bad configuration.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// The exit code of a command.
pub(crate) fn code(done: anyhow::Result<Done>) -> ExitCode {
    match done {
        Ok(_)
            if let Some(error) = output::lost().filter(|error| error.kind() != io::ErrorKind::BrokenPipe) =>
        {
            output::talk(&format!("error: cannot write the output: {error}"));
            ExitCode::from(3)
        }
        Ok(Done::Well) => ExitCode::SUCCESS,
        Ok(Done::Badly) => ExitCode::from(1),
        Ok(Done::Stopped(asked)) => ExitCode::from(asked.exit_code()),
        Err(error) => {
            output::talk(&format!("error: {}", output::clean_lines(&format!("{error:#}"))));
            let usage = error.is::<Usage>() || error.is::<crate::config::Error>();
            ExitCode::from(if usage { 2 } else { 3 })
        }
    }
}

/// What clap has to say: help and version on standard output, mistakes on standard error.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // Nothing is left to do if the terminal is gone.
    error.print().ok();
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}
