//! What the lock file of a project names: which servers ought to be compared, and which tools can be meant.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// The size of a file that is still read; the runtime reads no larger one either.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The tools that are pinned, by server. A file that cannot be read may pin everything.
pub(super) struct Pins {
    file: String,
    servers: Result<BTreeMap<String, Pinned>, String>,
}

#[derive(Deserialize)]
struct File {
    servers: BTreeMap<String, Pinned>,
}

#[derive(Deserialize)]
struct Pinned {
    tools: BTreeMap<String, Value>,
}

impl Pins {
    /// Reads the file, which need not be there.
    pub(super) fn read(file: &Path) -> Self {
        let name = file.file_name().unwrap_or(file.as_os_str());
        Self { file: name.to_string_lossy().into_owned(), servers: servers(file) }
    }

    /// The file's name.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Why the file cannot be read, if it cannot.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.servers.as_ref().err().map(String::as_str)
    }

    /// Whether a server is pinned.
    pub(super) fn has_server(&self, id: &str) -> bool {
        self.servers.as_ref().map_or(true, |servers| servers.contains_key(id))
    }

    /// The names of the tools that are pinned of a server.
    pub(super) fn tools(&self, id: &str) -> impl Iterator<Item = &str> {
        let pinned = self.servers.as_ref().ok().and_then(|servers| servers.get(id));
        pinned.into_iter().flat_map(|server| server.tools.keys().map(String::as_str))
    }
}

fn servers(file: &Path) -> Result<BTreeMap<String, Pinned>, String> {
    let found = fs::metadata(file).and_then(|found| match found.len() {
        ..=MAX_BYTES => fs::read_to_string(file),
        _ => Err(io::Error::other("it is too large")),
    });
    match found {
        Ok(text) => {
            serde_json::from_str::<File>(&text).map(|file| file.servers).map_err(|error| error.to_string())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error.to_string()),
    }
}
