//! The lock file of a project: which servers and tools are pinned.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// The size of a file that is still read; the runtime reads no larger one either.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The pinned tools by server. A file that cannot be read may pin everything.
pub(super) struct LockFile {
    pub(super) name: String,
    servers: Result<BTreeMap<String, PinnedServer>, String>,
}

#[derive(Deserialize)]
struct Content {
    servers: BTreeMap<String, PinnedServer>,
}

#[derive(Deserialize)]
struct PinnedServer {
    tools: BTreeMap<String, IgnoredAny>,
}

impl LockFile {
    /// Reads the file, which need not exist.
    pub(super) fn read(file: &Path) -> Self {
        let name = file.file_name().unwrap_or(file.as_os_str());
        Self { name: name.to_string_lossy().into_owned(), servers: read(file) }
    }

    /// Why the file cannot be read, if so.
    pub(super) fn error(&self) -> Option<&str> {
        self.servers.as_ref().err().map(String::as_str)
    }

    /// Whether a server is pinned.
    pub(super) fn has_server(&self, id: &str) -> bool {
        self.servers.as_ref().map_or(true, |servers| servers.contains_key(id))
    }

    /// The names of a server's pinned tools.
    pub(super) fn tools(&self, server: &str) -> impl Iterator<Item = &str> {
        let pinned = self.servers.as_ref().ok().and_then(|servers| servers.get(server));
        pinned.into_iter().flat_map(|server| server.tools.keys().map(String::as_str))
    }
}

fn read(file: &Path) -> Result<BTreeMap<String, PinnedServer>, String> {
    let text = fs::metadata(file).and_then(|metadata| match metadata.len() {
        ..=MAX_BYTES => fs::read_to_string(file),
        _ => Err(io::Error::other("it is too large")),
    });
    match text {
        Ok(text) => serde_json::from_str::<Content>(&text)
            .map(|content| content.servers)
            .map_err(|error| error.to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error.to_string()),
    }
}
