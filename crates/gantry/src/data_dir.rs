//! The data folder: its admin key, and the file by which commands find a running server.
//!
//! A user who can read the folder is its administrator. The server holds a lock as long as it runs. The file of a server
//! that has died is therefore ignored, and the key is never sent to another process that has taken its port.

use crate::exit::UsageError;
use anyhow::Context as _;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a server tries to lock the folder, and the pause between two tries. A command that checks for a running
/// server holds the lock for a moment.
const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Clone)]
pub(crate) struct DataDir(PathBuf);

/// What a running server writes for the command line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ServerInfo {
    /// Its address for clients on this machine.
    pub(crate) address: SocketAddr,
    pub(crate) pid: u32,
}

#[derive(Debug)]
pub(crate) struct ServerLock {
    _file: File,
    info_file: PathBuf,
}

impl Drop for ServerLock {
    fn drop(&mut self) {
        // If this fails, the file is ignored, because nothing holds the lock.
        fs::remove_file(&self.info_file).ok();
    }
}

impl DataDir {
    /// Opens the folder; creates it, readable by its owner only, if it does not exist.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| {
            let shown = path.display();
            UsageError(format!("cannot create the data folder {shown}: {error}. Choose another with --data"))
        })?;
        // Keeps the folder out of git repositories.
        let ignore = path.join(".gitignore");
        if !ignore.exists() {
            fs::write(&ignore, "*\n").with_context(|| format!("cannot write {}", ignore.display()))?;
        }
        Ok(Self(path.to_owned()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The admin key of the folder, and whether it was created just now.
    pub(crate) fn admin_key(&self) -> anyhow::Result<(String, bool)> {
        let path = self.0.join("admin.key");
        match fs::read_to_string(&path) {
            Ok(key) if key.trim().len() >= 32 => return Ok((key.trim().to_owned(), false)),
            Ok(_) => {
                anyhow::bail!("{} holds no key; remove it, and Gantry creates a new one", path.display())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
        let key = format!("gantry_{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        // A temporary file that is put into place whole: no process reads half a key, and of two processes that start at
        // once one wins.
        let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
        file.write_all(key.as_bytes()).and_then(|()| file.as_file().sync_all())?;
        match file.persist_noclobber(&path).map_err(|failed| failed.error) {
            Ok(_) => Ok((key, true)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.admin_key(),
            Err(error) => Err(error).with_context(|| format!("cannot write {}", path.display())),
        }
    }

    fn lock_file(&self) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.0.join("server.lock"))
    }

    pub(crate) fn lock_for_server(&self) -> anyhow::Result<ServerLock> {
        let file = self.lock_file().context("cannot open the server's lock file")?;
        let is_locked = || flock(&file, FlockOperation::NonBlockingLockExclusive).is_err();
        if (0..LOCK_TRIES).all(|n| {
            std::thread::sleep(LOCK_PAUSE * n.min(1));
            is_locked()
        }) {
            let at = |info: ServerInfo| format!(" at http://{} (process {})", info.address, info.pid);
            let at = self.running_server().map(at).unwrap_or_default();
            let message = format!(
                "a server already runs on {}{at}; stop it first, or name another folder with --data",
                self.0.display()
            );
            return Err(UsageError(message).into());
        }
        let info_file = self.0.join("server.json");
        // The file of a server that died would be taken for this server's, now that the lock is held again.
        match fs::remove_file(&info_file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", info_file.display()));
            }
            Ok(()) | Err(_) => {}
        }
        Ok(ServerLock { _file: file, info_file })
    }

    /// Tells commands where the server listens.
    pub(crate) fn write_server_info(&self, address: SocketAddr) -> anyhow::Result<()> {
        let info = ServerInfo { address: gantry_server::reachable(address), pid: std::process::id() };
        fs::write(self.0.join("server.json"), serde_json::to_string(&info)?)
            .context("cannot write server.json")
    }

    pub(crate) fn running_server(&self) -> Option<ServerInfo> {
        let file = self.lock_file().ok()?;
        // If the lock is free, no server runs, even if a dead one left its file.
        if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
            return None;
        }
        serde_json::from_str(&fs::read_to_string(self.0.join("server.json")).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_dead_server_is_removed_when_another_starts() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(dir.path()).unwrap();
        // A server that was killed leaves its file and no lock.
        data_dir.write_server_info("127.0.0.1:9".parse().unwrap()).unwrap();
        assert!(data_dir.running_server().is_none());
        let lock = data_dir.lock_for_server().unwrap();
        assert!(data_dir.running_server().is_none(), "the new server does not listen yet");
        data_dir.write_server_info("127.0.0.1:10".parse().unwrap()).unwrap();
        assert_eq!(data_dir.running_server().unwrap().address.port(), 10);
        assert!(data_dir.lock_for_server().is_err());
        drop(lock);
        assert!(data_dir.running_server().is_none());
    }

    #[test]
    fn the_key_is_made_once_and_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(&dir.path().join("data")).unwrap();
        let (key, fresh) = data_dir.admin_key().unwrap();
        assert!(fresh && key.len() > 64);
        assert_eq!(data_dir.admin_key().unwrap(), (key, false));
        let mode = fs::metadata(data_dir.path().join("admin.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
