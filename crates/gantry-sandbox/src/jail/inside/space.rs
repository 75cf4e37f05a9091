//! The room that a job takes on the file systems of its folders, as far as they show it.
//!
//! On a file system in memory nothing counts as written to disk, so there its growth does, as memory as well. On others
//! there may be ways to take room that no process is charged for, so a large loss of room counts as written, too. Others
//! write there at the same time: it has to be far beyond what the job may write, and more than most neighbours would.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{fstat, fstatfs, fstatvfs};
use rustix::io::Errno;

use crate::jail::Access;

/// Room that may get lost: this many times what a job may write, and this many bytes at least.
const LOSS_FACTOR: u64 = 4;
const LEAST_LOSS: u64 = 1 << 30;

/// Every how many looks file systems are asked that are not in memory, because some are far away.
const DISK_INTERVAL: u64 = 16;

/// What tells file systems in memory.
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;

/// The file systems that a job can write to, as they were at its start.
#[derive(Debug)]
pub(super) struct Space {
    systems: Vec<System>,
    /// Above what loss of room it counts.
    most_loss: u64,
    looks: u64,
    /// What was found at the last look at file systems on disk.
    unseen: u64,
}

#[derive(Debug)]
struct System {
    folder: OwnedFd,
    device: u64,
    is_in_memory: bool,
    free_at_start: u64,
}

/// Bytes that were taken since the start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    /// On file systems in memory.
    pub(super) in_memory: u64,
    /// On others, if it is too much to be anything else than the job's doing.
    pub(super) unseen: u64,
}

impl Space {
    /// Takes the workspace, if there is one, and whatever else the job can write to.
    pub(super) fn new(folders: &[OwnedFd], access: Access, written_limit: u64) -> io::Result<Self> {
        let is_read_only = usize::from(access == Access::Read);
        let mut systems = Vec::<System>::new();
        for folder in folders.iter().skip(is_read_only) {
            let kind = fstatfs(folder)?.f_type.cast_unsigned() & u64::from(u32::MAX);
            if kind == RAMFS {
                // It knows no limit and shows no use.
                return Err(Errno::OPNOTSUPP.into());
            }
            let device = fstat(folder)?.st_dev;
            if systems.iter().any(|system| system.device == device) {
                continue;
            }
            let folder = folder.try_clone()?;
            let free_at_start = free(&folder)?;
            systems.push(System { folder, device, is_in_memory: kind == TMPFS, free_at_start });
        }
        Ok(Self {
            systems,
            looks: 0,
            unseen: 0,
            most_loss: written_limit.saturating_mul(LOSS_FACTOR).max(LEAST_LOSS),
        })
    }

    /// What was taken since.
    pub(super) fn taken(&mut self) -> io::Result<Taken> {
        let is_for_disks = self.looks.is_multiple_of(DISK_INTERVAL);
        self.looks += 1;
        let mut in_memory: u64 = 0;
        for system in self.systems.iter().filter(|system| system.is_in_memory || is_for_disks) {
            let loss = system.free_at_start.saturating_sub(free(&system.folder)?);
            if system.is_in_memory {
                in_memory = in_memory.saturating_add(loss);
            } else if loss > self.most_loss {
                self.unseen = self.unseen.max(loss);
            }
        }
        Ok(Taken { in_memory, unseen: self.unseen })
    }
}

fn free(folder: &OwnedFd) -> io::Result<u64> {
    let state = fstatvfs(folder)?;
    Ok(state.f_bfree.saturating_mul(state.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_large_loss_of_room_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let opened =
            super::super::proc::open_folder(folder.path().to_str().expect("a name")).expect("a folder");
        let mut space = Space::new(&[opened], Access::Write, 1 << 20).expect("it can be asked");
        assert_eq!(space.most_loss, LEAST_LOSS);
        space.systems[0].is_in_memory = false;
        assert_eq!(space.taken().expect("it can be asked").unseen, 0);
        space.systems[0].free_at_start += 2 << 30;
        space.looks = 0;
        assert!(space.taken().expect("it can be asked").unseen > 1 << 30);
        space.systems[0].is_in_memory = true;
        assert!(space.taken().expect("it can be asked").in_memory > 1 << 30);
    }

    #[test]
    fn folders_on_the_same_file_system_count_once() {
        let opened = || super::super::proc::open_folder("/tmp").expect("a folder");
        let space = Space::new(&[opened(), opened()], Access::Write, 0).expect("it can be asked");
        assert_eq!(space.systems.len(), 1);
    }

    #[test]
    fn who_only_reads_is_not_charged() {
        let opened = super::super::proc::open_folder("/tmp").expect("a folder");
        assert!(Space::new(&[opened], Access::Read, 0).expect("it can be asked").systems.is_empty());
    }
}
