//! Which processes use the data folder, known by locks that the kernel releases when a process dies.
//!
//! Each process holds a lock on `nodes/node_<id>.lock` for as long as its store is open. A process that can take the lock of
//! another one has proof that it is gone, however it ended.

use crate::error::Error;
use gantry_core::id::ProcessId;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Limit: how often a lock is tried again that another process only probes.
const PROBE_RETRIES: usize = 1000;

/// How long to wait for a process that probes. It may have been put to sleep while it holds the lock, so trying again at once
/// would only use up the tries.
const PROBE_PAUSE: Duration = Duration::from_millis(1);

/// Limit: how often a new process tries to get a lock file that no other has taken for that of a dead one.
const JOIN_TRIES: usize = 16;

/// A held lock; its file is removed with it.
#[derive(Debug)]
pub(crate) struct ProcessLock {
    pub(crate) process: ProcessId,
    path: PathBuf,
    /// Closing it releases the lock.
    _file: File,
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        // Order: the file is removed while the lock is held, so that no process locks a name that is about to vanish.
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "a lock file could not be removed");
        }
    }
}

/// Makes the data folder and the folder of the locks, readable by their owner alone. Returns the latter.
pub(crate) fn prepare(folder: &Path) -> Result<PathBuf, Error> {
    let locks = folder.join("nodes");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&locks)
        .map_err(|source| Error::folder(&locks, source))?;
    refuse_network(folder)?;
    Ok(locks)
}

/// Takes a lock for this process, under a new id.
pub(crate) fn join(locks: &Path) -> Result<ProcessLock, Error> {
    for _ in 0..JOIN_TRIES {
        let process = ProcessId::generate();
        let path = lock_file(locks, process);
        let file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| Error::folder(&path, source))?;
        // Between the two steps another process may have taken the lock, and even removed the file.
        if let Some(lock) = take(process, path, file)? {
            return Ok(lock);
        }
    }
    Err(Error::Busy)
}

/// The locks of processes that have died. Holding them keeps other processes from recovering the same ones.
pub(crate) fn dead(locks: &Path) -> Result<Vec<ProcessLock>, Error> {
    let mut dead = Vec::new();
    for process in with_lock_file(locks)? {
        let path = lock_file(locks, process);
        match OpenOptions::new().write(true).open(&path) {
            Ok(file) => dead.extend(take(process, path, file)?),
            // It ended well, or another process has just recovered it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::folder(&path, source)),
        }
    }
    Ok(dead)
}

pub(crate) fn is_in_use(locks: &Path) -> Result<bool, Error> {
    Ok(with_lock_file(locks)?.into_iter().any(|process| is_alive(locks, process)))
}

/// The processes that have a lock file, alive or not.
fn with_lock_file(locks: &Path) -> Result<Vec<ProcessId>, Error> {
    let entries = fs::read_dir(locks).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let names = entries.map_err(|source| Error::folder(locks, source))?;
    Ok(names.iter().filter_map(|entry| process_of(entry.file_name().to_str()?)).collect())
}

/// The file name is that of versions that called a process a node: their locks have to be understood.
fn lock_file(locks: &Path, process: ProcessId) -> PathBuf {
    locks.join(format!("node_{}.lock", process.uuid().as_simple()))
}

fn process_of(file_name: &str) -> Option<ProcessId> {
    let digits = file_name.strip_prefix("node_")?.strip_suffix(".lock")?;
    format!("process_{digits}").parse().ok()
}

/// Whether the process has a lock file. To be asked about processes that are not in `dead`.
pub(crate) fn has_lock_file(locks: &Path, process: ProcessId) -> bool {
    // Fail closed: a file that cannot be looked for may well be there.
    lock_file(locks, process).try_exists().unwrap_or(true)
}

/// Whether the process lives: it holds its lock.
pub(crate) fn is_alive(locks: &Path, process: ProcessId) -> bool {
    let file = match OpenOptions::new().write(true).open(lock_file(locks, process)) {
        Ok(file) => file,
        // Fail closed: a process whose lock cannot be opened may well live.
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    // A lock that is got here is released with the handle. The file stays: recovery removes it.
    !is_free(&file, FlockOperation::NonBlockingLockShared).unwrap_or(false)
}

/// Locks the file, unless another process holds it or has removed it from under its name.
fn take(process: ProcessId, path: PathBuf, file: File) -> Result<Option<ProcessLock>, Error> {
    if !lock(&file).map_err(|error| Error::folder(&path, error.into()))? {
        return Ok(None);
    }
    let mine = file.metadata().map_err(|source| Error::folder(&path, source))?;
    match fs::metadata(&path) {
        Ok(named) if (named.dev(), named.ino()) == (mine.dev(), mine.ino()) => {
            Ok(Some(ProcessLock { process, path, _file: file }))
        }
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::folder(&path, source)),
    }
}

/// Locks the file, unless it has an owner. Owners hold the lock exclusively; `is_alive` shares it for a moment, and must not
/// be taken for an owner.
fn lock(file: &File) -> rustix::io::Result<bool> {
    for _ in 0..PROBE_RETRIES {
        if is_free(file, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(true);
        }
        if !is_free(file, FlockOperation::NonBlockingLockShared)? {
            return Ok(false);
        }
        flock(file, FlockOperation::Unlock)?;
        std::thread::sleep(PROBE_PAUSE);
    }
    Ok(false)
}

/// Takes the lock if it is free for that.
fn is_free(file: &File, lock: FlockOperation) -> rustix::io::Result<bool> {
    match flock(file, lock) {
        Ok(()) => Ok(true),
        Err(error) if error == Errno::WOULDBLOCK => Ok(false),
        Err(error) => Err(error),
    }
}

/// SQLite's WAL needs shared memory and honest locks, which network file systems do not give.
#[cfg(target_os = "linux")]
fn refuse_network(folder: &Path) -> Result<(), Error> {
    /// NFS, SMB, CIFS, SMB2, Ceph, AFS: the numbers of statfs(2).
    const NETWORK: [u32; 6] = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x00C3_6400, 0x5346_414F];
    let found = rustix::fs::statfs(folder).map_err(|error| Error::folder(folder, error.into()))?;
    if NETWORK.into_iter().any(|kind| i64::from(kind) == found.f_type & 0xFFFF_FFFF) {
        return Err(Error::NetworkFolder { path: folder.to_path_buf() });
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn refuse_network(_folder: &Path) -> Result<(), Error> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_living_process_is_not_dead_and_a_left_file_is() {
        let folder = tempfile::tempdir().unwrap();
        let locks = prepare(folder.path()).unwrap();
        let living = join(&locks).unwrap();
        let gone = ProcessId::generate();
        fs::write(lock_file(&locks, gone), "").unwrap();
        fs::write(locks.join("README"), "").unwrap();

        assert!(!is_alive(&locks, gone), "no process holds its lock");
        let found = dead(&locks).unwrap();
        assert!(is_alive(&locks, gone), "this process holds its lock");
        assert_eq!(found.iter().map(|lock| lock.process).collect::<Vec<_>>(), [gone]);
        assert!(dead(&locks).unwrap().is_empty(), "a held lock was taken twice");
        drop(found);
        assert!(!has_lock_file(&locks, gone));
        assert!(has_lock_file(&locks, living.process));
        assert!(is_alive(&locks, living.process));
        assert!(!is_alive(&locks, gone));
        drop(living);
        assert_eq!(fs::read_dir(&locks).unwrap().count(), 1);
    }

    #[test]
    fn probing_a_dead_process_does_not_bring_it_to_life() {
        let folder = tempfile::tempdir().unwrap();
        let locks = prepare(folder.path()).unwrap();
        let gone = ProcessId::generate();
        let path = lock_file(&locks, gone);
        fs::write(&path, "").unwrap();
        let looking = AtomicBool::new(true);
        let look = || {
            while looking.load(Ordering::Relaxed) {
                is_alive(&locks, gone);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(look);
            }
            let found = (0..200).all(|_| {
                fs::write(&path, "").unwrap();
                dead(&locks).unwrap().len() == 1
            });
            looking.store(false, Ordering::Relaxed);
            assert!(found);
        });
    }

    #[test]
    fn a_lock_on_a_file_that_lost_its_name_is_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let locks = prepare(folder.path()).unwrap();
        let process = ProcessId::generate();
        let path = lock_file(&locks, process);
        let file = File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(take(process, path.clone(), file).unwrap().is_none());
        let file = File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        File::create(&path).unwrap();
        assert!(take(process, path, file).unwrap().is_none());
    }

    #[test]
    fn folders_are_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("a/b");
        let locks = prepare(&data).unwrap();
        assert_eq!(fs::metadata(data).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(locks).unwrap().mode() & 0o777, 0o700);
    }
}
