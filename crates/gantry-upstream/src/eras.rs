//! Remembers in a file which protocol era each server spoke last, so that it need not be probed at every start.
//!
//! Only a hint: a server that speaks another era by now is probed again, so a failure here costs time and nothing else.

use crate::options::ServerSettings;
use gantry_core::digest::Digest;
use gantry_mcp::Version;
use gantry_mcp::client::Protocol;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio::fs;
use tokio::sync::Semaphore;

/// Servers that are remembered.
const MAX_SERVERS: usize = 1000;

/// The file of eras.
#[derive(Debug)]
pub(crate) struct Eras {
    file: PathBuf,
    /// Held while the file is changed.
    changing: Semaphore,
}

impl Eras {
    /// The eras in this file, which need not be there.
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, changing: Semaphore::new(1) }
    }

    /// Whether each server spoke the modern era, by the digest of its id and how it is reached.
    async fn read(&self) -> BTreeMap<String, bool> {
        let text = fs::read_to_string(&self.file).await.unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// The era that a server spoke last.
    pub(crate) async fn last_spoken(&self, server: &ServerSettings) -> Protocol {
        match self.read().await.get(&key(server)) {
            Some(true) => Protocol::Modern,
            Some(false) => Protocol::Legacy,
            None => Protocol::Auto,
        }
    }

    /// Remembers the era of a server.
    pub(crate) async fn remember(&self, server: &ServerSettings, version: Version) {
        let _changing = self.changing.acquire().await;
        let mut known = self.read().await;
        if known.insert(key(server), version.is_modern()) == Some(version.is_modern()) {
            return;
        }
        while known.len() > MAX_SERVERS {
            known.pop_first();
        }
        let text = serde_json::to_string_pretty(&known).unwrap_or_default();
        if let Err(error) = fs::write(&self.file, text).await {
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
        let eras = Eras::new(file.clone());
        assert_eq!(eras.last_spoken(&server("http://a/")).await, Protocol::Auto);
        eras.remember(&server("http://a/"), Version::V2025_06_18).await;
        eras.remember(&server("http://c/"), Version::MODERN).await;
        let again = Eras::new(file.clone());
        assert_eq!(again.last_spoken(&server("http://a/")).await, Protocol::Legacy);
        assert_eq!(again.last_spoken(&server("http://b/")).await, Protocol::Auto);
        assert_eq!(again.last_spoken(&server("http://c/")).await, Protocol::Modern);
        std::fs::write(&file, "nonsense").unwrap();
        assert_eq!(again.last_spoken(&server("http://a/")).await, Protocol::Auto);
    }
}
