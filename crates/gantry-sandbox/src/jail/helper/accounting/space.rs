//! The space that a job takes on the file systems of its folders, as far as they show it.
//!
//! On a file system in memory nothing counts as written to disk, so there its growth does, as memory as well. On others
//! there may be ways to take space that no process is charged for, so a large loss of space counts as written, too. Other
//! programs write there at the same time: the loss has to be far beyond what the job may write, and more than most
//! neighbours would write.

use rustix::fs::{fstat, fstatfs, fstatvfs};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;

/// Loss of space that does not count: this many times what a job may write, and this many bytes at least.
const LOSS_FACTOR: u64 = 4;
const LEAST_LOSS: u64 = 1 << 30;

/// Every how many samples file systems are asked that are not in memory, because some are far away.
const DISK_INTERVAL: u64 = 16;

/// The magic numbers of file systems in memory.
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;

/// The file systems that a job can write to, as they were at its start.
#[derive(Debug)]
pub(super) struct Space {
    systems: Vec<System>,
    /// Above what loss of space it counts.
    most_loss: u64,
    samples: u64,
    /// What was found when file systems on disk were asked last.
    lost: u64,
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
    /// On others, if it is too much for anything but the job.
    pub(super) lost: u64,
}

impl Space {
    /// Takes the folders that the job can write to.
    pub(super) fn new<'a>(
        folders: impl Iterator<Item = &'a OwnedFd>,
        written_limit: u64,
    ) -> io::Result<Self> {
        let mut systems = Vec::<System>::new();
        for folder in folders {
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
        let most_loss = written_limit.saturating_mul(LOSS_FACTOR).max(LEAST_LOSS);
        Ok(Self { systems, most_loss, samples: 0, lost: 0 })
    }

    pub(super) fn taken(&mut self) -> io::Result<Taken> {
        let asks_disks = self.samples.is_multiple_of(DISK_INTERVAL);
        self.samples += 1;
        let mut in_memory: u64 = 0;
        for system in self.systems.iter().filter(|system| system.is_in_memory || asks_disks) {
            let loss = system.free_at_start.saturating_sub(free(&system.folder)?);
            if system.is_in_memory {
                in_memory = in_memory.saturating_add(loss);
            } else if loss > self.most_loss {
                self.lost = self.lost.max(loss);
            }
        }
        Ok(Taken { in_memory, lost: self.lost })
    }
}

fn free(folder: &OwnedFd) -> io::Result<u64> {
    let state = fstatvfs(folder)?;
    Ok(state.f_bfree.saturating_mul(state.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jail::helper::proc::open_folder;

    #[test]
    fn only_a_large_loss_of_space_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let opened = open_folder(folder.path().to_str().expect("a name")).expect("a folder");
        let mut space = Space::new([opened].iter(), 1 << 20).expect("it can be asked");
        assert_eq!(space.most_loss, LEAST_LOSS);
        space.systems[0].is_in_memory = false;
        assert_eq!(space.taken().expect("it can be asked").lost, 0);
        space.systems[0].free_at_start += 2 << 30;
        space.samples = 0;
        assert!(space.taken().expect("it can be asked").lost > 1 << 30);
        space.systems[0].is_in_memory = true;
        assert!(space.taken().expect("it can be asked").in_memory > 1 << 30);
    }

    #[test]
    fn folders_on_the_same_file_system_count_once() {
        let opened = || open_folder("/tmp").expect("a folder");
        let space = Space::new([opened(), opened()].iter(), 0).expect("it can be asked");
        assert_eq!(space.systems.len(), 1);
    }
}
