//! Remembers which protocol era each server spoke last, so that it need not be probed at every start.
//!
//! Only a hint: a server that speaks another era by now is probed again, so a failure here costs time and nothing else.

use crate::config::{ServerSettings, TransportConfig};
use crate::pins::write_atomically;
use gantry_core::digest::Digest;
use gantry_mcp::Version;
use gantry_mcp::client::Protocol;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Servers that are remembered.
const MAX_SERVERS: usize = 1000;

/// The size of a file that is still read.
const MAX_BYTES: u64 = 1024 * 1024;

/// What is remembered, by the digest of a server's id and how it is reached.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Remembered(BTreeMap<String, Era>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Era {
    Legacy,
    Modern,
}

/// The eras of the servers.
#[derive(Debug)]
pub(crate) struct Eras {
    file: PathBuf,
    known: Mutex<Remembered>,
}

impl Eras {
    /// Reads what was remembered; a file that is missing or unreadable remembers nothing.
    pub(crate) fn open(file: PathBuf) -> Self {
        let small = std::fs::metadata(&file).is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
        let text = small.then(|| std::fs::read_to_string(&file).ok()).flatten();
        let known = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Self { file, known: Mutex::new(known) }
    }

    /// The era that a server spoke last.
    pub(crate) fn of(&self, server: &ServerSettings) -> Protocol {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.0.get(&key(server)) {
            Some(Era::Legacy) => Protocol::Legacy,
            Some(Era::Modern) => Protocol::Modern,
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
        let era = if version.is_modern() { Era::Modern } else { Era::Legacy };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0.insert(key(server), era) == Some(era) {
            return false;
        }
        while known.0.len() > MAX_SERVERS {
            known.0.pop_first();
        }
        true
    }

    fn write(&self) {
        // Written under the lock, so that an older state never overwrites a newer one.
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let written = serde_json::to_string_pretty(&*known)
            .map_err(std::io::Error::from)
            .and_then(|text| write_atomically(&self.file, &text));
        if let Err(error) = written {
            tracing::debug!("{} cannot be written: {error}", self.file.display());
        }
    }
}

/// A server that is reached otherwise is another one. Arguments and headers may hold secrets, hence the digest.
fn key(server: &ServerSettings) -> String {
    let endpoint = match &server.transport {
        TransportConfig::Stdio { command, args, .. } => format!("{command}\n{args:?}"),
        TransportConfig::Http(remote) | TransportConfig::Sse(remote) | TransportConfig::WebSocket(remote) => {
            format!("{:?}", remote.urls)
        }
        TransportConfig::Tcp(addresses) => format!("{addresses:?}"),
    };
    Digest::of_parts(&[server.id.as_bytes(), server.transport.kind().as_bytes(), endpoint.as_bytes()])
        .short(32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Remote;

    fn server(url: &str) -> ServerSettings {
        let remote = Remote { urls: vec![url.into()], headers: Vec::new() };
        ServerSettings { id: "s".into(), ..crate::tests::settings(TransportConfig::Http(remote)) }
    }

    #[test]
    fn an_era_is_remembered_across_starts_for_the_same_address_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("eras.json");
        let eras = Eras::open(file.clone());
        assert_eq!(eras.of(&server("http://a/")), Protocol::Auto);
        assert!(eras.note(&server("http://a/"), Version::V2025_06_18));
        assert!(!eras.note(&server("http://a/"), Version::V2025_06_18));
        eras.write();
        let again = Eras::open(file.clone());
        assert_eq!(again.of(&server("http://a/")), Protocol::Legacy);
        assert_eq!(again.of(&server("http://b/")), Protocol::Auto);
        std::fs::write(&file, "nonsense").unwrap();
        assert_eq!(Eras::open(file).of(&server("http://a/")), Protocol::Auto);
    }
}
