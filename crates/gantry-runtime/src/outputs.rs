//! Outputs that were too large for a conversation, stored whole on disk under their session.
//!
//! A handle is `session-<uuid>/<file-uuid>`. It names a file only together with the session that owns it: reading
//! takes the caller's session, and a handle of another one is answered like a handle that never was.

use crate::session::Session;
use gantry_core::id::SessionId;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// The folder of stored outputs.
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
        let folder = format!("session-{}", session.uuid());
        let file = Uuid::now_v7().to_string();
        let dir = self.root.join(&folder);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let mut out =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.join(&file))?;
        out.write_all(text.as_bytes())?;
        Ok(format!("{folder}/{file}"))
    }

    /// Reads an output of this session. Blocks on the disk.
    pub(crate) fn read(&self, session: &Session, handle: &str) -> io::Result<String> {
        let own = format!("session-{}", session.id().uuid());
        let file = handle.split_once('/').filter(|(folder, _)| *folder == own).map(|(_, file)| file);
        // Only a UUID in its usual form: whatever else was sent never becomes part of a path.
        let file = file.and_then(|file| Uuid::parse_str(file).ok()).ok_or(io::ErrorKind::NotFound)?;
        fs::read_to_string(self.root.join(own).join(file.to_string()))
    }

    /// Whether something is stored for this session.
    pub(crate) fn has_any(&self, session: SessionId) -> bool {
        self.root.join(format!("session-{}", session.uuid())).is_dir()
    }

    /// Removes the outputs of sessions that are not `live` and were last added to longer than `retention` ago.
    pub(crate) fn sweep(&self, retention: Duration, live: impl Fn(&str) -> bool) -> io::Result<usize> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut removed = 0;
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let age = entry
                .metadata()
                .and_then(|m| m.modified())
                .ok()
                .and_then(|t| SystemTime::now().duration_since(t).ok());
            if name.starts_with("session-") && !live(&name) && age.is_some_and(|age| age > retention) {
                fs::remove_dir_all(entry.path())?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::toolset::{Pool, Selection};
    use gantry_core::{Caller, Door, Role, Toolset};
    use std::sync::Arc;

    fn session() -> Session {
        let caller =
            Caller { principal: "p".into(), role: Role::Agent, agent: None, project: "default".into() };
        let (toolset, _) = Toolset::resolve(&Arc::new(Pool::build(vec![])), &Selection::everything());
        Session::new(SessionId::mint(), caller, Door::Mcp, Arc::new(toolset), None)
    }

    #[test]
    fn cal_9_an_output_is_read_by_its_own_session_only() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(dir.path());
        let (owner, other) = (session(), session());
        let handle = outputs.store(owner.id(), "é\n").unwrap();
        assert!(outputs.has_any(owner.id()));
        assert_eq!(outputs.read(&owner, &handle).unwrap(), "é\n");
        let missing = format!("session-{}/{}", owner.id().uuid(), Uuid::now_v7());
        let up = format!("session-{}/../../secret", owner.id().uuid());
        fs::write(dir.path().join("secret"), "s3").unwrap();
        for (session, handle) in [
            (&other, &*handle),
            (&owner, &*missing),
            (&owner, &*up),
            (&owner, ""),
            (&owner, "/"),
            (&owner, "x/y"),
        ] {
            assert_eq!(
                outputs.read(session, handle).unwrap_err().kind(),
                io::ErrorKind::NotFound,
                "{handle}"
            );
        }
    }

    #[test]
    fn outputs_expire_with_their_session() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(dir.path());
        let (ended, live) = (session(), session());
        outputs.store(ended.id(), "x").unwrap();
        outputs.store(live.id(), "x").unwrap();
        let is_live = |name: &str| name == format!("session-{}", live.id().uuid());
        assert_eq!(outputs.sweep(Duration::from_secs(3600), is_live).unwrap(), 0);
        assert_eq!(outputs.sweep(Duration::ZERO, is_live).unwrap(), 1);
        assert!(!outputs.has_any(ended.id()) && outputs.has_any(live.id()));
    }
}
