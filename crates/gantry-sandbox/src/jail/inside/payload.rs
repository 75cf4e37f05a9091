//! The last steps of a process on its way to be the program: it enters its folder, gives up what it must not have, and
//! is executed.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access as Mode, FileType, Mode as Bits, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{Order, confine, filter};
use crate::jail::plan::{self, At as _, Failure, Plan, Report, Step};
use crate::jail::{STORE, WORKSPACE};
use crate::sys;

/// Where programs are looked for if the job's environment does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Becomes the program. What is missing in its jail is told to the first process.
pub(super) fn run(order: &Order, first: &UnixStream) -> Result<Infallible, Failure> {
    let plan = &order.plan;
    rustix::process::setsid().at(Step::Confine, "session")?;
    sys::jail::reset_signals().at(Step::Confine, "signals")?;
    enter(&plan.folder).at(Step::Folder, plan.folder.display())?;
    let program = find(plan).at(Step::Find, "")?;
    confine::limit(&plan.limits, &plan.walls).at(Step::Limits, "")?;
    confine::give_up_capabilities().at(Step::Confine, "capabilities")?;
    let mut notes = Vec::new();
    if !confine::restrict_files(plan.access)? {
        notes.push("the kernel has no Landlock, the second wall around files".to_owned());
    }
    sys::jail::close_extra_on_exec().at(Step::Confine, "descriptors")?;
    plan::send(first, &Report::Started { notes }, &[]).at(Step::Confine, "report")?;
    filter::apply(plan.memory_is_bounded).at(Step::Confine, "system calls")?;
    Err(execute(plan, &program)).at(Step::Execute, program.display())
}

#[expect(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
fn execute(plan: &Plan, program: &Path) -> std::io::Error {
    Command::new(program)
        .arg0(&plan.program)
        .args(&plan.args)
        .env_clear()
        .envs(plan.env.iter().map(|(name, value)| (name, value)))
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

/// The file to execute: a path is taken as it is, a name is looked up.
fn find(plan: &Plan) -> rustix::io::Result<PathBuf> {
    if plan.program.as_bytes().contains(&b'/') {
        let program = PathBuf::from(&plan.program);
        return if is_program(&program) { Ok(program) } else { Err(Errno::NOENT) };
    }
    let default = OsString::from(DEFAULT_PATH);
    let path = plan.env.iter().find(|(name, _)| name == "PATH").map_or(&default, |(_, value)| value);
    std::env::split_paths(path)
        .filter(|folder| is_trusted(folder))
        .map(|folder| folder.join(&plan.program))
        .find(|program| !OsStr::is_empty(&plan.program) && is_program(program))
        .ok_or(Errno::NOENT)
}

/// Whether a folder on the PATH is one that no job can have written to.
fn is_trusted(folder: &Path) -> bool {
    let is_plain = |path: &Path| path.components().all(|part| part != Component::ParentDir);
    let is_outside = |path: &Path| ![WORKSPACE, STORE].iter().any(|written| path.starts_with(written));
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
