//! The data folder: its key, and the note by which a running server is found.
//!
//! Who can read the folder is its administrator. The server holds a lock for as long as it lives, so the note of one
//! that died is never believed and the key is never sent to a stranger who took over its port.

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

/// How often a server tries to claim the folder, and how long after.
const CLAIM_TRIES: u32 = 5;
const CLAIM_PAUSE: Duration = Duration::from_millis(20);

/// A data data_dir.
#[derive(Debug, Clone)]
pub(crate) struct DataDir(PathBuf);

/// What a running server leaves for the command line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerInfo {
    /// Where the command line reaches it.
    pub(crate) address: SocketAddr,
    /// Its process.
    pub(crate) pid: u32,
    /// Whether agents need no key there. The address does not say: listening everywhere includes loopback.
    pub(crate) open: bool,
}

/// Held by a server for as long as it lives.
#[derive(Debug)]
pub(crate) struct ServerLock {
    _file: File,
    note: PathBuf,
}

impl Drop for ServerLock {
    fn drop(&mut self) {
        // A note that stays is not believed without the lock.
        fs::remove_file(&self.note).ok();
    }
}

impl DataDir {
    /// Makes the folder, for its owner only, if it is not there.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| {
            let shown = path.display();
            UsageError(format!("cannot make the data folder {shown}: {error}. Choose another with --data"))
        })?;
        // Nothing in here belongs into a repository.
        let ignore = path.join(".gitignore");
        if !ignore.exists() {
            fs::write(&ignore, "*\n").with_context(|| format!("cannot write {}", ignore.display()))?;
        }
        Ok(Self(path.to_owned()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The key of the folder, and whether it was made just now.
    pub(crate) fn admin_key(&self) -> anyhow::Result<(String, bool)> {
        let path = self.0.join("admin.key");
        match fs::read_to_string(&path) {
            Ok(key) if key.trim().len() >= 32 => return Ok((key.trim().to_owned(), false)),
            Ok(_) => anyhow::bail!("{} holds no key; remove it and a new one is made", path.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
        let key = format!("gantry_{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        // Written beside and linked into place, so that of two processes that start at once one wins and no reader
        // ever sees half a key.
        let fresh = self.0.join(format!("admin.key.{}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(key.as_bytes()).and_then(|()| file.sync_all())?;
        let linked = fs::hard_link(&fresh, &path);
        fs::remove_file(&fresh)?;
        match linked {
            Ok(()) => Ok((key, true)),
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

    /// Claims the folder for a server.
    pub(crate) fn lock_for_server(&self) -> anyhow::Result<ServerLock> {
        let file = self.lock_file().context("cannot open the server's lock file")?;
        // A command that looks whether a server runs holds the lock for a moment.
        let taken = || flock(&file, FlockOperation::NonBlockingLockExclusive).is_err();
        if (0..CLAIM_TRIES).all(|n| {
            std::thread::sleep(CLAIM_PAUSE * n.min(1));
            taken()
        }) {
            let where_ = self.running_server().map_or_else(String::new, |note| {
                format!(" at http://{} (process {})", note.address, note.pid)
            });
            let message = format!(
                "a server already runs on {}{where_}; stop it first, or name another folder with --data",
                self.0.display()
            );
            return Err(UsageError(message).into());
        }
        let note = self.0.join("server.json");
        // The note of a server that died must not be believed now that the lock is held again.
        match fs::remove_file(&note) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", note.display()));
            }
            Ok(()) | Err(_) => {}
        }
        Ok(ServerLock { _file: file, note })
    }

    /// Leaves the note of a server that listens.
    pub(crate) fn write_server_info(&self, address: SocketAddr) -> anyhow::Result<()> {
        let reachable = gantry_server::reachable(address);
        let note =
            ServerInfo { address: reachable, pid: std::process::id(), open: address.ip().is_loopback() };
        fs::write(self.0.join("server.json"), serde_json::to_string(&note)?)
            .context("cannot leave the server's note")
    }

    /// The server that runs on this folder, if one does.
    pub(crate) fn running_server(&self) -> Option<ServerInfo> {
        let file = self.lock_file().ok()?;
        // A lock that can be had is nobody's: the server is gone, whatever its note says.
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
    fn the_note_of_a_dead_server_is_gone_once_another_claims_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(dir.path()).unwrap();
        // A server that was killed leaves its note and no lock.
        data_dir.write_server_info("127.0.0.1:9".parse().unwrap()).unwrap();
        assert!(data_dir.running_server().is_none());
        let lock = data_dir.lock_for_server().unwrap();
        assert!(data_dir.running_server().is_none(), "the new server has not said yet where it is");
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
