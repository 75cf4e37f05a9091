//! The last steps of a process on its way to be the program: it enters its folder, gives up its rights, and is executed.

use super::{HelperJob, confine, seccomp};
use crate::jail::error::{At as _, JailError, Step};
use crate::jail::protocol;
use crate::jail::{BUILDS, HOME, Job, STORE, WORKSPACE};
use crate::sys;
use rustix::fs::{Access as Mode, FileType, Mode as Bits, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Where programs are looked for if the job's environment does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Variables of a job unless it sets them.
const DEFAULTS: [(&str, &str); 3] = [("HOME", HOME), ("TMPDIR", "/tmp"), ("LANG", "C.UTF-8")];

/// What the program tells the first process: before its execution what its jail lacks, or why it is not executed.
pub(super) type Started = Result<Vec<String>, JailError>;

/// Becomes the program. What its jail lacks is reported to the first process.
pub(super) fn run(helper: &HelperJob, first: &OwnedFd) -> Result<Infallible, JailError> {
    let job = &helper.spec.job;
    rustix::process::setsid().at(Step::Confine, "session")?;
    sys::jail::reset_signals().at(Step::Confine, "signals")?;
    enter(&job.folder).map_err(|error| no_folder(&job.folder, error))?;
    let program = find(job).ok_or_else(|| JailError::NoProgram { program: job.program.clone() })?;
    confine::limit(&helper.spec).at(Step::Limits, "")?;
    confine::give_up_capabilities().at(Step::Confine, "capabilities")?;
    let mut notes = Vec::new();
    if !confine::restrict_files(job)? {
        notes.push("the kernel has no Landlock, the second wall around files".to_owned());
    }
    sys::jail::close_extra_on_exec().at(Step::Confine, "descriptors")?;
    protocol::send(first, &Started::Ok(notes), &[]).at(Step::Confine, "report")?;
    seccomp::apply(helper.memory_is_bounded).at(Step::Confine, "system calls")?;
    Err(execute(job, &program)).at(Step::Execute, program.display())
}

#[expect(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
fn execute(job: &Job, program: &Path) -> std::io::Error {
    Command::new(program)
        .arg0(&job.program)
        .args(&job.args)
        .env_clear()
        .envs(DEFAULTS)
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .exec()
}

/// Goes to a folder of the workspace, without being led out of it.
fn enter(folder: &Path) -> rustix::io::Result<()> {
    let open = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let workspace = rustix::fs::open(WORKSPACE, open, Bits::empty())?;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    rustix::process::fchdir(rustix::fs::openat2(&workspace, folder, open, Bits::empty(), resolve)?)
}

fn no_folder(folder: &Path, error: Errno) -> JailError {
    let reason = match error {
        Errno::XDEV => "it leads outside of the workspace".to_owned(),
        Errno::NOENT => "it does not exist".to_owned(),
        Errno::NOTDIR => "it is not a folder".to_owned(),
        error => error.to_string(),
    };
    JailError::Folder { folder: folder.display().to_string(), reason }
}

/// The file to execute: a path is taken as it is, a name is looked up.
fn find(job: &Job) -> Option<PathBuf> {
    if job.program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(&job.program)).filter(|program| is_program(program));
    }
    let default = OsString::from(DEFAULT_PATH);
    let path = job.env.iter().rev().find(|(name, _)| name == "PATH").map_or(&default, |(_, value)| value);
    std::env::split_paths(path)
        .filter(|folder| is_trusted(folder))
        .map(|folder| folder.join(&job.program))
        .find(|program| !OsStr::is_empty(&job.program) && is_program(program))
}

/// Whether a folder on the PATH is one that no job can have written to.
fn is_trusted(folder: &Path) -> bool {
    let is_plain = |path: &Path| path.components().all(|part| part != Component::ParentDir);
    let is_outside =
        |path: &Path| ![WORKSPACE, STORE, BUILDS].iter().any(|written| path.starts_with(written));
    folder.is_absolute()
        && is_plain(folder)
        && is_outside(folder)
        && folder.canonicalize().is_ok_and(|real| is_outside(&real))
}

fn is_program(path: &Path) -> bool {
    let is_file = rustix::fs::stat(path)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    is_file && rustix::fs::access(path, Mode::EXEC_OK).is_ok()
}
