//! Why a program did not start, or does not end.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "command `{}` was not found on the PATH `{}`; install it, correct its name, or give its absolute path",
        .command.display(),
        .path.display()
    )]
    CommandNotFound { command: OsString, path: OsString },
    #[error("there is no program at {}; correct the path or install it", .program.display())]
    ProgramNotFound { program: PathBuf },
    #[error(
        "{0} is not an executable file; run `chmod +x {0}`, or name its interpreter as the command",
        .program.display()
    )]
    NotExecutable { program: PathBuf },
    #[error("the working folder {} cannot be used; create it or correct `cwd`", .folder.display())]
    WorkingFolder { folder: PathBuf, source: io::Error },
    #[error(
        "`{}` cannot be the name of an environment variable; it must not be empty or contain `=` or a NUL byte",
        .name.display()
    )]
    VariableName { name: OsString },
    #[error("{what} contains a NUL byte, which cannot be handed to a process; remove it")]
    NulByte { what: String },
    #[error("this program cannot guard processes: its `main` must call `gantry_sandbox::guard_main` first")]
    NoGuard,
    #[error("the guard process for {} cannot be started", .program.display())]
    Guard { program: PathBuf, source: io::Error },
    #[error("the guard process for {} ended before the program started ({exit}); try again", .program.display())]
    GuardLost { program: PathBuf, exit: String },
    #[error(
        "{} was not started within {} s; check that its file system answers",
        .program.display(),
        .limit.as_secs()
    )]
    StartTimeout { program: PathBuf, limit: Duration },
    #[error(
        "{} cannot be executed; check the interpreter in its first line, and that it was built for this machine",
        .program.display()
    )]
    Execute { program: PathBuf, source: io::Error },
    #[error("cannot wait for process {pid}")]
    Wait { pid: i32, source: io::Error },
    #[error(
        "process {pid} or a process that it started did not end within {} s of SIGKILL; \
         look for processes in uninterruptible sleep or of another user",
        .limit.as_secs()
    )]
    Stuck { pid: i32, limit: Duration },
}
