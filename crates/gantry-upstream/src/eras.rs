//! Remembers in a file which protocol era each server spoke last, so that it need not be probed at every start.
//!
//! Only a hint: a server that speaks another era by now is probed again, so a failure here costs time and nothing else.

use crate::options::ServerSettings;
use crate::pins::write_atomically;
use gantry_core::digest::Digest;
use gantry_mcp::Version;
use gantry_mcp::client::Protocol;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::spawn_blocking;

const MAX_SERVERS: usize = 1000;

/// The size of a file that is still read.
const MAX_BYTES: u64 = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Eras {
    file: PathBuf,
    /// Held while the file is changed.
    changing: Mutex<()>,
}

impl Eras {
    /// The eras in this file, which need not be there.
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, changing: Mutex::default() }
    }

    /// Whether each server spoke the modern era, by the digest of its id and how it is reached.
    fn read(&self) -> BTreeMap<String, bool> {
        let is_small = fs::metadata(&self.file).is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
        let text = is_small.then(|| fs::read_to_string(&self.file).ok()).flatten();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    pub(crate) async fn last_spoken(self: &Arc<Self>, server: &ServerSettings) -> Protocol {
        let eras = Arc::clone(self);
        let known = spawn_blocking(move || eras.read()).await.unwrap_or_default();
        match known.get(&key(server)) {
            Some(true) => Protocol::Modern,
            Some(false) => Protocol::Legacy,
            None => Protocol::Auto,
        }
    }

    /// Remembers the era of a server, without waiting until it is written.
    pub(crate) fn remember(self: &Arc<Self>, server: &ServerSettings, version: Version) {
        let (eras, key) = (Arc::clone(self), key(server));
        spawn_blocking(move || eras.change(key, version.is_modern()));
    }

    fn change(&self, server: String, is_modern: bool) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = self.read();
        if known.insert(server, is_modern) == Some(is_modern) {
            return;
        }
        while known.len() > MAX_SERVERS {
            known.pop_first();
        }
        let text = serde_json::to_string_pretty(&known).unwrap_or_default();
        if let Err(error) = write_atomically(&self.file, &text) {
            tracing::debug!("{} cannot be written: {error}", self.file.display());
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

    #[tokio::test]
    async fn an_era_is_remembered_across_starts_for_the_same_address_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("eras.json");
        let eras = Arc::new(Eras::new(file.clone()));
        assert_eq!(eras.last_spoken(&server("http://a/")).await, Protocol::Auto);
        eras.change(key(&server("http://a/")), Version::V2025_06_18.is_modern());
        eras.change(key(&server("http://c/")), Version::MODERN.is_modern());
        let again = Arc::new(Eras::new(file.clone()));
        assert_eq!(again.last_spoken(&server("http://a/")).await, Protocol::Legacy);
        assert_eq!(again.last_spoken(&server("http://b/")).await, Protocol::Auto);
        assert_eq!(again.last_spoken(&server("http://c/")).await, Protocol::Modern);
        fs::write(&file, "nonsense").unwrap();
        assert_eq!(again.last_spoken(&server("http://a/")).await, Protocol::Auto);
    }
}
