//! Outputs that were too large for a conversation, stored whole on disk under their session.
//!
//! A handle is `session-<uuid>/<file-uuid>`. It names a file only together with the session that owns it: reading
//! takes the caller's session, and a handle of another one is answered like a handle that never was.

use gantry_core::id::SessionId;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use uuid::Uuid;

/// Bytes of outputs that one session may have stored.
const SESSION_BYTES: u64 = 1024 * 1024 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct Outputs {
    root: PathBuf,
}

impl Outputs {
    pub(crate) fn new(data: &Path) -> Self {
        Self { root: data.join("outputs") }
    }

    /// Stores an output and returns its handle. Blocks on the disk.
    pub(crate) fn store(&self, session: SessionId, text: &str) -> io::Result<String> {
        let handle = format!("{}/{}", folder(session), Uuid::now_v7());
        make_room(&self.root.join(folder(session)), text.len() as u64)?;
        let file = self.root.join(&handle);
        let mut out = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
        out.write_all(text.as_bytes())?;
        Ok(handle)
    }

    /// Makes an output of another session one of this session, after the caller has shown that it may have it. Returns its
    /// handle there and, unless the session has it already, how many bytes were added. Blocks on the disk.
    pub(crate) fn adopt(&self, session: SessionId, handle: &str) -> io::Result<(String, Option<u64>)> {
        let from = self.path(handle)?;
        let bytes = fs::metadata(&from)?.len();
        let (_, file) = handle.split_once('/').ok_or(io::ErrorKind::NotFound)?;
        // It keeps its name, so that a second request finds it.
        let own = format!("{}/{file}", folder(session));
        let to = self.path(&own)?;
        if to.is_file() {
            return Ok((own, None));
        }
        make_room(to.parent().unwrap_or(&self.root), bytes)?;
        // An output never changes, so that both can be one file.
        match fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop)) {
            Ok(()) => Ok((own, Some(bytes))),
            Err(_) if to.is_file() => Ok((own, None)),
            Err(error) => Err(error),
        }
    }

    /// Reads an output of this session. Blocks on the disk.
    pub(crate) fn read(&self, session: SessionId, handle: &str) -> io::Result<String> {
        if handle.split_once('/').is_none_or(|(of, _)| of != folder(session)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        fs::read_to_string(self.path(handle)?)
    }

    fn path(&self, handle: &str) -> io::Result<PathBuf> {
        // Only UUIDs in their usual form: no other text that was sent becomes part of a path.
        let uuid = |text: &str| Uuid::parse_str(text).ok();
        let parts = handle.strip_prefix("session-").and_then(|rest| rest.split_once('/'));
        let (session, file) = parts
            .and_then(|(session, file)| Some((uuid(session)?, uuid(file)?)))
            .ok_or(io::ErrorKind::NotFound)?;
        Ok(self.root.join(format!("session-{session}")).join(file.to_string()))
    }

    pub(crate) fn has_any(&self, session: SessionId) -> bool {
        self.root.join(folder(session)).is_dir()
    }

    /// The sessions whose outputs were last added to longer than `age` ago. Blocks on the disk.
    pub(crate) fn older_than(&self, age: Duration) -> io::Result<Vec<SessionId>> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let old = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let session = Uuid::parse_str(name.strip_prefix("session-")?).ok()?;
            let changed = entry.metadata().and_then(|metadata| metadata.modified()).ok()?;
            let since = crate::clock::age(changed)?;
            (since > age).then(|| SessionId::from_bytes(*session.as_bytes()))
        });
        Ok(old.collect())
    }

    /// Removes the outputs of a session. Blocks on the disk.
    pub(crate) fn remove(&self, session: SessionId) -> io::Result<()> {
        fs::remove_dir_all(self.root.join(folder(session)))
    }
}

fn folder(session: SessionId) -> String {
    format!("session-{}", session.uuid())
}

/// Makes the folder of a session ready for so many bytes more.
fn make_room(dir: &Path, bytes: u64) -> io::Result<()> {
    // A folder that is not there yet holds nothing.
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let stored: u64 = files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum();
    if stored.saturating_add(bytes) > SESSION_BYTES {
        let message = format!("the session has stored {SESSION_BYTES} bytes of outputs already");
        return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cal_9_an_output_is_read_by_its_own_session_only() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(dir.path());
        let (owner, other) = (SessionId::generate(), SessionId::generate());
        let handle = outputs.store(owner, "é\n").unwrap();
        assert!(outputs.has_any(owner));
        assert_eq!(outputs.read(owner, &handle).unwrap(), "é\n");
        let missing = format!("session-{}/{}", owner.uuid(), Uuid::now_v7());
        let up = format!("session-{}/../../secret", owner.uuid());
        fs::write(dir.path().join("secret"), "s3").unwrap();
        for (session, handle) in
            [(other, &*handle), (owner, &*missing), (owner, &*up), (owner, ""), (owner, "/"), (owner, "x/y")]
        {
            assert_eq!(
                outputs.read(session, handle).unwrap_err().kind(),
                io::ErrorKind::NotFound,
                "{handle}"
            );
        }
    }

    #[test]
    fn an_output_is_adopted_once_and_outlives_the_session_that_made_it() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(dir.path());
        let (maker, adopter) = (SessionId::generate(), SessionId::generate());
        let files = |of: SessionId| {
            let folder = dir.path().join("outputs").join(format!("session-{}", of.uuid()));
            fs::read_dir(folder).map_or(0, Iterator::count)
        };
        let handle = outputs.store(maker, "text").unwrap();
        assert_eq!(outputs.adopt(maker, &handle).unwrap(), (handle.clone(), None), "it has it");
        let (own, added) = outputs.adopt(adopter, &handle).unwrap();
        assert_eq!(added, Some(4));
        assert_eq!(outputs.adopt(adopter, &handle).unwrap(), (own.clone(), None), "once");
        assert_eq!((files(maker), files(adopter)), (1, 1));
        outputs.remove(maker).unwrap();
        assert_eq!(outputs.read(adopter, &own).unwrap(), "text");
        for gone in [&*handle, "", "x/y", "session-../secret"] {
            let error = outputs.adopt(adopter, gone).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{gone}");
        }
    }

    #[test]
    fn old_outputs_are_found_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(dir.path());
        assert_eq!(outputs.older_than(Duration::ZERO).unwrap(), []);
        let owner = SessionId::generate();
        outputs.store(owner, "x").unwrap();
        assert_eq!(outputs.older_than(Duration::from_secs(3600)).unwrap(), []);
        assert_eq!(outputs.older_than(Duration::ZERO).unwrap(), [owner]);
        outputs.remove(owner).unwrap();
        assert!(!outputs.has_any(owner));
    }
}
