//! The process file system of the first process of a jail: it shows all processes of the jail, also those that hide.

use super::rootfs::new_mount;
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;

/// Limit: bytes of a file that is read here; a list of children can be long.
const TEXT_LIMIT: u64 = 256 << 10;

const FIRST: u32 = 1;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An opened process file system, which no job has.
#[derive(Debug)]
pub(super) struct Proc {
    root: OwnedFd,
    /// Whether it is the machine's: there, the processes of the jail are the descendants of this process.
    is_hosts: bool,
}

impl Proc {
    /// One of its own for this process namespace, or that of the machine where that is forbidden.
    pub(super) fn open() -> io::Result<Self> {
        let own = || {
            let mount = new_mount("proc", &[], MountAttrFlags::empty())?;
            rustix::fs::openat(mount, ".", FOLDER, Mode::empty())
        };
        match own() {
            Ok(root) => Ok(Self { root, is_hosts: false }),
            Err(Errno::PERM) => Ok(Self { root: open_folder("/proc")?, is_hosts: true }),
            Err(error) => Err(error.into()),
        }
    }

    /// The one that is mounted in a jail that bubblewrap has built.
    pub(super) fn given() -> io::Result<Self> {
        Ok(Self { root: open_folder("/proc")?, is_hosts: false })
    }

    /// The list of the jail's mounts, which tells a change when it is polled.
    pub(super) fn mounts(&self) -> io::Result<OwnedFd> {
        Ok(self.file("self/mountinfo")?.into())
    }

    /// Whether it is the machine's: then jobs have none.
    pub(super) fn is_hosts(&self) -> bool {
        self.is_hosts
    }

    /// The processes of the jail, but for this one.
    pub(super) fn processes(&self) -> io::Result<Vec<u32>> {
        if !self.is_hosts {
            let mut found = numbers(Dir::read_from(&self.root)?)?;
            found.retain(|pid| *pid != FIRST);
            return Ok(found);
        }
        let mut found = self.children("thread-self")?;
        let mut next = 0;
        while let Some(pid) = found.get(next).copied() {
            // Each thread has its own. A process that has ended has none.
            for task in self.tasks(pid).unwrap_or_default() {
                found.extend(self.children(&format!("{pid}/task/{task}")).unwrap_or_default());
            }
            next += 1;
        }
        Ok(found)
    }

    pub(super) fn tasks(&self, pid: u32) -> io::Result<Vec<u32>> {
        let folder = rustix::fs::openat(&self.root, format!("{pid}/task"), FOLDER, Mode::empty())?;
        numbers(Dir::new(folder)?)
    }

    fn children(&self, task: &str) -> io::Result<Vec<u32>> {
        let list = self.text(&format!("{task}/children"))?;
        Ok(list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
    }

    pub(super) fn text(&self, path: &str) -> io::Result<String> {
        let mut text = String::new();
        self.file(path)?.take(TEXT_LIMIT).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Sets a property of the jail's own namespaces.
    pub(super) fn set(&self, path: &str, value: &str) -> io::Result<()> {
        let file = rustix::fs::openat(&self.root, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        File::from(file).write_all(value.as_bytes())
    }

    pub(super) fn file(&self, path: &str) -> io::Result<File> {
        let read = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.root, path, read, Mode::empty())?.into())
    }
}

fn numbers(folder: Dir) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in folder {
        found.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(found)
}

pub(super) fn open_folder(path: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, FOLDER, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it takes processes to find some")]
    fn descendants_are_found_in_the_process_file_system_of_the_machine() {
        let proc = Proc { root: open_folder("/proc").expect("it is there"), is_hosts: true };
        let script = "sleep 1000 & sleep 1000 & echo; wait";
        let mut command = std::process::Command::new("sh");
        let command = command.args(["-c", script]).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut out = child.stdout.take().expect("a pipe");
        out.read_exact(&mut [0]).expect("both are started");
        let found = proc.processes().expect("it can be read");
        assert!(found.contains(&child.id()) && found.len() >= 3, "{found:?}");
        for pid in found {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a process");
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is killed");
        }
        child.wait().expect("it ended");
    }
}
