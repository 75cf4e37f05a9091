//! Control groups, where systemd has delegated a part of their tree to Gantry: the kernel then bounds all kinds of memory
//! of a whole job, and ends it at once.
//!
//! systemd does so for a unit with `Delegate=yes`, and marks the group. Groups without that mark belong to another program
//! even if Gantry could write to them, and are left alone. A group that has limits for its parts can have no processes of
//! its own, so Gantry moves those of its unit one level down.

use super::Limits;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CONTROLLERS: [&str; 2] = ["memory", "pids"];
const MARKS: [&str; 2] = ["user.delegate", "trusted.delegate"];
/// Where the processes of Gantry's unit go.
const OWN: &str = "gantry-own";
/// The beginning of the name of a job's group; the process id of Gantry and a number follow.
const JOB: &str = "gantry-job-";
/// Processes of the jail itself: the helper, the first process inside and one for the map of users.
const JAIL_PROCESSES: u64 = 4;
/// Limit: names in a row that are tried for a group. One is taken if a Gantry with the same process id was killed, in a
/// unit that lives on.
const NAMES_TRIED: usize = 1024;
/// Processes of the unit that are moved; with more, there are no groups.
const MOST_MOVED: usize = 1024;
/// How long the kernel may take to empty a group that was killed, and the pause between two looks.
const EMPTY_LIMIT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

/// The part of the tree that is Gantry's.
#[derive(Debug)]
pub(crate) struct Cgroups {
    base: PathBuf,
    n_made: AtomicU64,
}

/// The group of one job. When it is dropped, all processes in it are killed and it is removed.
#[derive(Debug)]
pub(crate) struct JobCgroup(PathBuf);

impl Cgroups {
    /// Gantry's part of the tree, if it has one; found once.
    pub(crate) fn find() -> Option<&'static Self> {
        static FOUND: LazyLock<Option<Cgroups>> = LazyLock::new(|| {
            let own = own_group(&fs::read_to_string("/proc/self/cgroup").ok()?)?;
            let delegated = own.ancestors().take(2).find(|group| is_delegated(group))?;
            Cgroups::open(delegated, &own)
                .inspect_err(
                    |error| tracing::debug!(%error, group = %delegated.display(), "no control groups"),
                )
                .ok()
        });
        FOUND.as_ref()
    }

    /// Prepares a delegated group, in which or right below which this process is.
    fn open(delegated: &Path, own: &Path) -> io::Result<Self> {
        let offered = fs::read_to_string(delegated.join("cgroup.controllers"))?;
        let has =
            |list: &str| CONTROLLERS.iter().all(|name| list.split_whitespace().any(|word| word == *name));
        if !has(&offered) {
            return Err(io::Error::other("the group has no limits for memory and processes"));
        }
        if delegated == own {
            move_down(delegated)?;
        }
        let control = delegated.join("cgroup.subtree_control");
        if !has(&fs::read_to_string(&control)?) {
            fs::write(&control, CONTROLLERS.map(|name| format!("+{name}")).join(" "))?;
        }
        Ok(Self { base: delegated.to_owned(), n_made: AtomicU64::new(0) })
    }

    pub(crate) fn job(&self, limits: &Limits) -> io::Result<JobCgroup> {
        let is_taken =
            |made: &io::Result<_>| made.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::AlreadyExists);
        let mut attempts = (0..NAMES_TRIED).map(|_| self.make_group());
        let made = attempts.find(|made| !is_taken(made));
        let cgroup = made.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))?;
        cgroup.set("memory.max", limits.memory)?;
        // A kernel without swap has no file for it.
        cgroup.set("memory.swap.max", 0).or_else(absent)?;
        cgroup.set("memory.oom.group", 1).or_else(absent)?;
        cgroup.set("pids.max", u64::from(limits.processes) + JAIL_PROCESSES)?;
        Ok(cgroup)
    }

    fn make_group(&self) -> io::Result<JobCgroup> {
        let number = self.n_made.fetch_add(1, Ordering::Relaxed);
        let folder = self.base.join(format!("{JOB}{}-{number}", std::process::id()));
        fs::create_dir(&folder)?;
        Ok(JobCgroup(folder))
    }
}

impl JobCgroup {
    fn set(&self, file: &str, value: u64) -> io::Result<()> {
        fs::write(self.0.join(file), value.to_string())
    }

    /// Puts a process into the group; its later descendants are in it too.
    pub(crate) fn admit(&self, pid: u32) -> io::Result<()> {
        self.set("cgroup.procs", pid.into())
    }

    /// Whether the kernel has killed the job for its memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.0.join("memory.events")).unwrap_or_default();
        events.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0"))
    }
}

impl Drop for JobCgroup {
    fn drop(&mut self) {
        // Before Linux 5.14 there is no such file; then the job has ended by other means.
        if let Ok(mut kill) = fs::OpenOptions::new().write(true).open(self.0.join("cgroup.kill")) {
            kill.write_all(b"1").ok();
        }
        let deadline = Instant::now() + EMPTY_LIMIT;
        while let Err(error) = fs::remove_dir(&self.0) {
            let is_busy = error.kind() == io::ErrorKind::ResourceBusy;
            if !is_busy || Instant::now() > deadline {
                // systemd removes it when the unit ends, which may be long after Gantry has.
                tracing::debug!(%error, group = %self.0.display(), "a control group is left");
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// The group of this process, from `/proc/self/cgroup`, where systemd mounts version 2. The root is not Gantry's.
fn own_group(membership: &str) -> Option<PathBuf> {
    let group = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
    let group = group.strip_prefix('/').filter(|group| !group.is_empty() && !group.starts_with(".."))?;
    Some(Path::new("/sys/fs/cgroup").join(group))
}

fn is_delegated(group: &Path) -> bool {
    let is_marked = |mark: &&str| {
        let mut value = [0; 1];
        rustix::fs::getxattr(group, *mark, &mut value).is_ok_and(|length| length == 1 && value == *b"1")
    };
    MARKS.iter().any(is_marked)
}

fn move_down(group: &Path) -> io::Result<()> {
    let below = group.join(OWN);
    match fs::create_dir(&below) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let processes = fs::read_to_string(group.join("cgroup.procs"))?;
    if processes.lines().count() > MOST_MOVED {
        return Err(io::Error::other("the group has too many processes to move"));
    }
    for process in processes.lines() {
        match fs::write(below.join("cgroup.procs"), process) {
            // It has ended by now.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            other => other?,
        }
    }
    Ok(())
}

/// Accepts that a file is missing: then the kernel does not let it be made.
fn absent(error: io::Error) -> io::Result<()> {
    let is_missing = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied);
    if is_missing { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests;
