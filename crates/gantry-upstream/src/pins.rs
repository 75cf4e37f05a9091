//! `gantry.lock`: the definitions that a person has seen and accepted.
//!
//! A server that the file names is pinned: a tool that is new, or is defined otherwise than in the file, cannot be
//! called until a person accepts it. Servers that the file does not name are free. A file that cannot be read pins
//! everything: not knowing what was accepted is no reason to accept it.

use crate::context::LockTrust;
use crate::duplicate_keys;
use crate::listing::Listing;
use arc_swap::ArcSwap;
use gantry_core::digest::Digest;
use gantry_provider::{PinDiff, Pins};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

/// The form of the file that this program writes and reads.
const VERSION: u32 = 1;

/// The size of a file that is still read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pinned {
    version: u32,
    servers: BTreeMap<String, PinnedServer>,
}

impl Default for Pinned {
    fn default() -> Self {
        Self { version: VERSION, servers: BTreeMap::new() }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinnedServer {
    /// The digest of its instructions; none if it had none.
    instructions: Option<Digest>,
    tools: BTreeMap<String, PinnedTool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinnedTool {
    fingerprint: Digest,
    /// For people; the fingerprint decides.
    definition: Value,
}

/// The file as it was read last.
#[derive(Debug)]
pub(crate) struct PinFile {
    file: PathBuf,
    trust: Option<Arc<dyn LockTrust>>,
    /// What it holds, or why it cannot be used. A file that is not there pins nothing.
    read: ArcSwap<Result<Pinned, String>>,
    /// Held while the file is written.
    writing: Mutex<()>,
}

impl PinFile {
    /// The file, which need not be there. Until it is read ([`Self::refresh`]), it pins everything.
    pub(crate) fn new(file: PathBuf, trust: Option<Arc<dyn LockTrust>>) -> Self {
        let read = ArcSwap::from_pointee(Err(format!("{} has not been read yet", file.display())));
        Self { file, trust, read, writing: Mutex::default() }
    }

    pub(crate) fn read_error(&self) -> Option<String> {
        self.read.load().as_ref().as_ref().err().cloned()
    }

    /// The names of what is pinned.
    pub(crate) fn summary(&self) -> Pins {
        let file = self.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match &**self.read.load() {
            Err(error) => Pins { file, error: Some(error.clone()), ..Pins::default() },
            Ok(pinned) => {
                let tools = |server: &PinnedServer| server.tools.keys().cloned().collect();
                let servers = pinned.servers.iter().map(|(id, server)| (id.clone(), tools(server))).collect();
                Pins { file, error: None, servers }
            }
        }
    }

    /// Why a tool of a server cannot be called, as far as the file decides it.
    pub(crate) fn objection(&self, server: &str, tool: &str, fingerprint: Digest) -> Option<String> {
        let read = self.read.load();
        let pinned = match &**read {
            Err(reason) => return Some(reason.clone()),
            Ok(pinned) => pinned.servers.get(server)?,
        };
        let what = match pinned.tools.get(tool) {
            Some(known) if known.fingerprint == fingerprint => return None,
            Some(_) => "its definition is not the pinned one any more",
            None => "it is new on a pinned server",
        };
        Some(format!("{what}; look at it with `gantry lock diff {server}`, then accept it or leave it out"))
    }

    pub(crate) fn admits_instructions(&self, server: &str, instructions: &str) -> bool {
        match &**self.read.load() {
            Err(_) => false,
            Ok(pinned) => {
                let digest = Some(Digest::of(instructions.as_bytes()));
                pinned.servers.get(server).is_none_or(|server| server.instructions == digest)
            }
        }
    }

    /// The differences between the file and what a server has now.
    pub(crate) fn diff(&self, server: &Arc<str>, listing: &Listing) -> Vec<PinDiff> {
        match &**self.read.load() {
            Ok(pinned) => difference(pinned, server, listing),
            Err(_) => difference(&Pinned::default(), server, listing),
        }
    }

    /// Pins what these servers have now, or one tool of them, and returns what that changed. With `seen` (a
    /// [`PinDiff::revision`]), nothing is pinned unless the differences are still those.
    ///
    /// Blocks: it reads and writes the file.
    pub(crate) fn accept(
        &self,
        servers: &[(Arc<str>, Arc<Listing>)],
        tool: Option<&str>,
        seen: Option<&str>,
    ) -> Result<Vec<PinDiff>, String> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // Another process may have written meanwhile, and what it accepted stays accepted.
        let before = self.read_file()?;
        let mut pinned = before.clone();
        let mut accepted = Vec::new();
        for (server, listing) in servers {
            let mut found = difference(&pinned, server, listing);
            found.retain(|diff| tool.is_none_or(|tool| diff.tool.as_deref() == Some(tool)));
            pin_listing(&mut pinned, server, listing, tool);
            accepted.extend(found);
        }
        if seen.is_some_and(|seen| seen != PinDiff::revision(&accepted)) {
            return Err(
                "the definitions changed since you looked at them, so nothing is pinned; look again".into()
            );
        }
        if pinned == before {
            return Ok(accepted);
        }
        let text = serde_json::to_string_pretty(&pinned).map_err(|error| error.to_string())?;
        let write = || write_atomically(&self.file, &format!("{text}\n"));
        let written = self.trust.as_ref().map_or_else(write, |trust| trust.write(&self.file, &write));
        written.map_err(|error| {
            format!("{} cannot be written: {error}; nothing is pinned", self.file.display())
        })?;
        self.read.store(Arc::new(Ok(pinned)));
        Ok(accepted)
    }

    /// Reads the file, which another process may have changed. Blocks.
    pub(crate) fn refresh(&self) {
        self.read.store(Arc::new(self.read_file()));
    }

    /// A file that does not count is as one that is not there.
    fn read_file(&self) -> Result<Pinned, String> {
        match self.trust.as_ref().filter(|_| self.file.exists()).map(|trust| trust.counts(&self.file)) {
            Some(Ok(false)) => Ok(Pinned::default()),
            Some(Err(reason)) => Err(reason),
            Some(Ok(true)) | None => read_file(&self.file),
        }
    }
}

fn read_file(file: &Path) -> Result<Pinned, String> {
    let failed = |why: String| {
        format!(
            "{} pins tools and cannot be read: {why}. Correct it, or delete it and pin anew; until then no tool of an \
             MCP server can be called",
            file.display()
        )
    };
    let text = match fs::metadata(file).and_then(|metadata| {
        if metadata.len() > MAX_BYTES {
            return Err(io::Error::other(format!("it is larger than {MAX_BYTES} bytes")));
        }
        fs::read_to_string(file)
    }) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Pinned::default()),
        Err(error) => return Err(failed(error.to_string())),
    };
    let pinned: Pinned = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    if pinned.version != VERSION {
        return Err(failed(format!("its version is {}, and this program reads {VERSION}", pinned.version)));
    }
    Ok(pinned)
}

/// The differences between what is pinned of a server and what it has now. Digests decide; values are for people.
fn difference(pinned: &Pinned, server: &Arc<str>, listing: &Listing) -> Vec<PinDiff> {
    let known = pinned.servers.get(&**server);
    let diff =
        |tool: Option<&str>, before: Option<(Digest, Value)>, now: Option<(Digest, Value, Vec<String>)>| {
            let change = match (known, &before, &now) {
                _ if before.as_ref().map(|it| it.0) == now.as_ref().map(|it| it.0) => return None,
                (None, _, _) => "unpinned",
                (Some(_), None, _) => "added",
                (Some(_), Some(_), None) => "removed",
                (Some(_), Some(_), Some(_)) => "changed",
            };
            let (server, tool) = (Arc::clone(server), tool.map(str::to_owned));
            let pinned = before.map(|(_, value)| value);
            let now = now.map(|(digest, value, flags)| (Some(digest.to_string()), Some(value), flags));
            let (fingerprint, current, flags) = now.unwrap_or_default();
            Some(PinDiff { server, tool, change: change.into(), pinned, current, fingerprint, flags })
        };
    let pinned_tool = |name: &str| {
        let tool = known.and_then(|server| server.tools.get(name))?;
        Some((tool.fingerprint, tool.definition.clone()))
    };
    let instructions = listing.about.instructions.as_deref().map(|text| {
        let flags = crate::suspicious::scan_text(text, "instructions");
        (Digest::of(text.as_bytes()), json!({ "instructions": text }), flags)
    });
    let pinned_instructions = known.and_then(|server| server.instructions);
    let first =
        diff(None, pinned_instructions.map(|digest| (digest, json!({ "digest": digest }))), instructions);
    let present = listing.tools.iter().map(|tool| {
        let (name, value) = (tool.spec.name.as_str(), duplicate_keys::displayed(tool.raw()));
        diff(Some(name), pinned_tool(name), Some((tool.fingerprint, value, tool.flags.clone())))
    });
    let pinned_names = known.into_iter().flat_map(|server| server.tools.keys());
    let removed = pinned_names.filter(|name| listing.tool(name).is_none());
    let removed = removed.map(|name| diff(Some(name), pinned_tool(name), None));
    std::iter::once(first).chain(present).chain(removed).flatten().collect()
}

/// Pins everything, or one tool only: then the instructions, and the other tools of a server that was not pinned before,
/// wait until a person accepts them.
fn pin_listing(pinned: &mut Pinned, server: &str, listing: &Listing, only: Option<&str>) {
    if only.is_some_and(|only| {
        listing.tool(only).is_none()
            && pinned.servers.get(server).is_none_or(|server| !server.tools.contains_key(only))
    }) {
        return;
    }
    let entry = pinned.servers.entry(server.to_owned()).or_default();
    if only.is_none() {
        let instructions = listing.about.instructions.as_deref();
        entry.instructions = instructions.map(|text| Digest::of(text.as_bytes()));
    }
    let selected = |name: &str| only.is_none_or(|only| only == name);
    entry.tools.retain(|name, _| !selected(name) || listing.tool(name).is_some());
    for tool in listing.tools.iter().filter(|tool| selected(&tool.spec.name)) {
        let (fingerprint, definition) = (tool.fingerprint, duplicate_keys::displayed(tool.raw()));
        entry.tools.insert(tool.spec.name.clone(), PinnedTool { fingerprint, definition });
    }
}

/// Writes a file so that a crash leaves the old one or the new one, never a part.
pub(super) fn write_atomically(file: &Path, text: &str) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = file.with_file_name(name);
    let written = (|| {
        let mut out = fs::File::create(&beside)?;
        io::Write::write_all(&mut out, text.as_bytes())?;
        out.sync_all()?;
        fs::rename(&beside, file)
    })();
    if written.is_err() {
        fs::remove_file(&beside).ok(); // It may not even have been made; the first error is the one to tell.
    }
    written
}

#[cfg(test)]
mod tests;
