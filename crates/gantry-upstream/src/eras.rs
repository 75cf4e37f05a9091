//! Remembers which protocol era each server spoke last, so that it need not be probed at every start.
//!
//! Only a hint: a server that speaks another era by now is probed again, so a failure here costs time and nothing else.

use crate::options::ServerSettings;
use crate::pins::write_atomically;
use gantry_core::digest::Digest;
use gantry_mcp::Version;
use gantry_mcp::client::Protocol;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Servers that are remembered.
const MAX_SERVERS: usize = 1000;

/// The size of a file that is still read.
const MAX_BYTES: u64 = 1024 * 1024;

/// The eras of the servers.
#[derive(Debug, Default)]
pub(crate) struct Eras {
    /// None for servers that are never started.
    file: Option<PathBuf>,
    /// Whether a server spoke the modern era, by the digest of its id and how it is reached.
    known: Mutex<BTreeMap<String, bool>>,
}

impl Eras {
    /// Reads what was remembered; a file that is missing or unreadable remembers nothing.
    pub(crate) fn open(file: PathBuf) -> Self {
        let is_small = std::fs::metadata(&file).is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
        let text = is_small.then(|| std::fs::read_to_string(&file).ok()).flatten();
        let known = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Self { file: Some(file), known: Mutex::new(known) }
    }

    /// The era that a server spoke last.
    pub(crate) fn last_spoken(&self, server: &ServerSettings) -> Protocol {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&key(server)) {
            Some(true) => Protocol::Modern,
            Some(false) => Protocol::Legacy,
            None => Protocol::Auto,
        }
    }

    /// Remembers the era of a server, and writes it to disk without waiting for that.
    pub(crate) fn remember(self: &Arc<Self>, server: &ServerSettings, version: Version) {
        if self.note(server, version) {
            let eras = Arc::clone(self);
            tokio::task::spawn_blocking(move || eras.write());
        }
    }

    /// Remembers the era of a server. Returns whether it is another than before.
    fn note(&self, server: &ServerSettings, version: Version) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.insert(key(server), version.is_modern());
        while known.len() > MAX_SERVERS {
            known.pop_first();
        }
        before != Some(version.is_modern())
    }

    fn write(&self) {
        let Some(file) = &self.file else { return };
        // Written under the lock, so that an older state never overwrites a newer one.
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let text = serde_json::to_string_pretty(&*known).unwrap_or_default();
        if let Err(error) = write_atomically(file, &text) {
            tracing::debug!("{} cannot be written: {error}", file.display());
        }
    }
}

/// A server that is reached otherwise is another one. Arguments and addresses may hold secrets, hence the digest.
fn key(server: &ServerSettings) -> String {
    Digest::of_parts(&[server.id.as_bytes(), server.options.endpoint_digest().as_bytes()]).short(32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ServerOptions;

    fn server(url: &str) -> ServerSettings {
        crate::tests::settings(ServerOptions { url: Some(url.into()), ..ServerOptions::default() })
    }

    #[test]
    fn an_era_is_remembered_across_starts_for_the_same_address_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("eras.json");
        let eras = Eras::open(file.clone());
        assert_eq!(eras.last_spoken(&server("http://a/")), Protocol::Auto);
        assert!(eras.note(&server("http://a/"), Version::V2025_06_18));
        assert!(!eras.note(&server("http://a/"), Version::V2025_06_18));
        eras.write();
        let again = Eras::open(file.clone());
        assert_eq!(again.last_spoken(&server("http://a/")), Protocol::Legacy);
        assert_eq!(again.last_spoken(&server("http://b/")), Protocol::Auto);
        std::fs::write(&file, "nonsense").unwrap();
        assert_eq!(Eras::open(file).last_spoken(&server("http://a/")), Protocol::Auto);
    }
}
