//! The process file system as the first process of a jail sees it: all processes of the jail, also those that hide.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

/// The longest file that is read here; a list of children can be long.
const TEXT_LIMIT: u64 = 256 << 10;

/// The number of this process in its own namespace.
const FIRST: u32 = 1;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An opened process file system, which no job has.
#[derive(Debug)]
pub(super) struct Proc {
    root: OwnedFd,
    listing: Listing,
}

/// How the processes of the jail are found in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// It shows no others.
    All,
    /// It shows the machine's: those of the jail are the descendants of this process.
    Descendants,
}

impl Proc {
    /// One of its own for this process namespace, or that of the machine where that is forbidden.
    pub(super) fn open() -> io::Result<Self> {
        let own = || {
            let context = rustix::mount::fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
            rustix::mount::fsconfig_create(context.as_fd())?;
            let none = MountAttrFlags::empty();
            let mount = rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, none)?;
            rustix::fs::openat(mount, ".", FOLDER, Mode::empty())
        };
        match own() {
            Ok(root) => Ok(Self { root, listing: Listing::All }),
            Err(Errno::PERM) => Ok(Self { root: open_folder("/proc")?, listing: Listing::Descendants }),
            Err(error) => Err(error.into()),
        }
    }

    /// That which is mounted in a jail that somebody else has built.
    pub(super) fn given() -> io::Result<Self> {
        Ok(Self { root: open_folder("/proc")?, listing: Listing::All })
    }

    /// Something to wait for a change of the jail's mounts with.
    pub(super) fn mounts(&self) -> io::Result<OwnedFd> {
        Ok(self.file("self/mountinfo")?.into())
    }

    /// Whether there is none of its own, and so none for jobs either.
    pub(super) fn is_borrowed(&self) -> bool {
        self.listing == Listing::Descendants
    }

    /// The processes of the jail, but for this one.
    pub(super) fn processes(&self) -> io::Result<Vec<u32>> {
        match self.listing {
            Listing::All => {
                let mut found = numbers(Dir::read_from(&self.root)?)?;
                found.retain(|pid| *pid != FIRST);
                Ok(found)
            }
            Listing::Descendants => self.descendants(),
        }
    }

    fn descendants(&self) -> io::Result<Vec<u32>> {
        let mut found = self.children("thread-self")?;
        let mut next = 0;
        while let Some(pid) = found.get(next).copied() {
            // Each thread has its own. What is gone by now has none.
            for task in self.tasks(pid).unwrap_or_default() {
                found.extend(self.children(&format!("{pid}/task/{task}")).unwrap_or_default());
            }
            next += 1;
        }
        Ok(found)
    }

    /// The threads of a process.
    pub(super) fn tasks(&self, pid: u32) -> io::Result<Vec<u32>> {
        let folder = rustix::fs::openat(&self.root, format!("{pid}/task"), FOLDER, Mode::empty())?;
        numbers(Dir::new(folder)?)
    }

    fn children(&self, task: &str) -> io::Result<Vec<u32>> {
        let list = self.text(&format!("{task}/children"))?;
        Ok(list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
    }

    /// What a file says.
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

    /// Opens a file to read.
    pub(super) fn file(&self, path: &str) -> io::Result<File> {
        let read = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.root, path, read, Mode::empty())?.into())
    }
}

/// The entries of a folder that are numbers.
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
        let proc = Proc { root: open_folder("/proc").expect("it is there"), listing: Listing::Descendants };
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
