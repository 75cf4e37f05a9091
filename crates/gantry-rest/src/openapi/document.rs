//! An OpenAPI document and the documents that it refers to.

mod node;
mod read;
mod ref_policy;
mod refs;
mod yaml;

pub(crate) use node::NodeRef;

use crate::openapi::import::WARNINGS;
use crate::openapi::limits::{BUNDLE_BYTES, BUNDLE_NODES, DOCUMENT_BYTES, DOCUMENTS};
use serde_json::Value;
use std::cell::Cell;
use std::collections::HashMap;
use url::Url;
use yaml::Read;

/// Bytes of text that take one step.
const STEP_BYTES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// Swagger 2.0.
    V2,
    V3,
    /// 3.1 and 3.2, whose schemas are JSON Schema.
    V31,
}

/// A root document and the documents that it refers to.
///
/// A reference may lead to another file below the folder of the root document, or, if that came from a web server, to
/// another document of the same origin. Any other reference is refused where it is used.
#[derive(Debug)]
pub struct Bundle {
    pub(crate) version: Version,
    /// The root document first, then those that are referred to and may be read, in the order of appearance.
    pub(crate) documents: Vec<Document>,
    /// The index of the document at a location.
    indexes: HashMap<Url, usize>,
    /// Bytes and values of all documents together.
    bytes: usize,
    nodes: usize,
    /// Steps that may still be taken to read values through a [`NodeRef`].
    steps: Cell<u64>,
    /// Notes for the user about the documents.
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) location: Url,
    /// The value, or why the document cannot be read; nothing while it is wanted.
    content: Option<Result<Value, String>>,
}

impl Bundle {
    /// The size limit of a document. Callers need not read more than this.
    pub const DOCUMENT_BYTES: usize = DOCUMENT_BYTES;

    /// Reads the root document.
    ///
    /// # Errors
    /// The document is too large, is neither JSON nor YAML, or is not an OpenAPI document of a known version.
    pub fn open(mut location: Url, bytes: &[u8]) -> Result<Self, String> {
        location.set_fragment(None);
        let Read { value, nodes, warnings } = read::read(bytes, BUNDLE_NODES)?;
        let mut bundle = Self {
            version: read::version(&value)?,
            documents: vec![Document { location: location.clone(), content: None }],
            indexes: HashMap::from([(location, 0)]),
            bytes: bytes.len(),
            nodes,
            steps: Cell::new(u64::MAX),
            warnings: Vec::new(),
        };
        bundle.keep(0, Ok(value), warnings);
        Ok(bundle)
    }

    /// The documents that are referred to and were not added yet. Those may refer to further ones.
    #[must_use]
    pub fn wanted(&self) -> Vec<Url> {
        let wanted = self.documents.iter().filter(|document| document.content.is_none());
        wanted.map(|document| document.location.clone()).collect()
    }

    /// Adds a wanted document, or the reason why it cannot be read. `location` is the wanted one, even after a redirect.
    /// A document that is not wanted is ignored, so that a bundle stays within its limits.
    pub fn add(&mut self, location: &Url, found: Result<&[u8], String>) {
        let Some(index) = self.indexes.get(location).copied() else { return };
        if self.documents.get(index).is_none_or(|document| document.content.is_some()) {
            return;
        }
        match found.and_then(|bytes| self.read(bytes)) {
            Ok(read) => self.keep(index, Ok(read.value), read.warnings),
            Err(reason) => self.keep(index, Err(reason), Vec::new()),
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<Read, String> {
        if self.bytes.saturating_add(bytes.len()) > BUNDLE_BYTES {
            return Err(format!("all documents of the specification have more than {BUNDLE_BYTES} bytes"));
        }
        self.bytes += bytes.len();
        let read = read::read(bytes, BUNDLE_NODES.saturating_sub(self.nodes))?;
        self.nodes += read.nodes;
        Ok(read)
    }

    /// Stores a document, and wants those that it refers to.
    fn keep(&mut self, index: usize, content: Result<Value, String>, warnings: Vec<String>) {
        let (Some(root), Some(document)) = (self.documents.first(), self.documents.get(index)) else {
            return;
        };
        let addresses = content.as_ref().map(refs::addresses).unwrap_or_default();
        let urls = addresses.into_iter().filter_map(|address| document.location.join(address).ok());
        let urls: Vec<Url> = urls.filter(|url| ref_policy::check(&root.location, url).is_ok()).collect();
        for url in urls {
            if self.documents.len() < DOCUMENTS && !self.indexes.contains_key(&url) {
                self.indexes.insert(url.clone(), self.documents.len());
                self.documents.push(Document { location: url, content: None });
            }
        }
        if let Some(document) = self.documents.get_mut(index) {
            document.content = Some(content);
        }
        let name = self.name(index);
        let room = WARNINGS.saturating_sub(self.warnings.len());
        self.warnings.extend(warnings.into_iter().take(room).map(|warning| format!("{name}: {warning}")));
    }

    /// Sets how many steps may be taken from now on.
    pub(crate) fn set_steps(&self, steps: u64) {
        self.steps.set(steps);
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Whether no step is left. Values that were read since then may be missing.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps.get() == 0
    }

    /// Takes a step, and one more for each 64 bytes of the text that is read with it. Returns whether one is left after
    /// them.
    pub(crate) fn take_steps(&self, bytes: usize) -> bool {
        let steps = u64::try_from(1 + bytes / STEP_BYTES).unwrap_or(u64::MAX);
        self.steps.set(self.steps.get().saturating_sub(steps));
        !self.is_exhausted()
    }

    pub(crate) fn root(&self) -> Option<NodeRef<'_>> {
        let value = self.documents.first()?.content.as_ref()?.as_ref().ok()?;
        Some(NodeRef { bundle: self, document: 0, value })
    }

    /// The name of a document in messages.
    fn name(&self, document: usize) -> String {
        let named = self.documents.first().zip(self.documents.get(document));
        named.map(|(root, document)| ref_policy::name(&root.location, &document.location)).unwrap_or_default()
    }

    /// The target of a reference in a document.
    pub(crate) fn find(&self, document: usize, reference: &str) -> Result<NodeRef<'_>, String> {
        if !self.take_steps(reference.len()) {
            return Err("there are too many references".to_owned());
        }
        let found = self.follow(document, reference);
        found.map_err(|reason| format!("{} {reason}", self.describe_ref(document, reference)))
    }

    /// A reference and its document, for messages.
    fn describe_ref(&self, document: usize, reference: &str) -> String {
        format!("the reference {} in {}", ref_policy::display_ref(reference), self.name(document))
    }

    fn follow(&self, document: usize, reference: &str) -> Result<NodeRef<'_>, String> {
        if refs::is_name(reference) {
            return Err("names a schema; only paths in a document (#/…) are supported".to_owned());
        }
        let (address, fragment) = refs::split(reference);
        let document = if address.is_empty() { document } else { self.index(document, address)? };
        match &self.documents.get(document).ok_or("leads nowhere")?.content {
            Some(Ok(content)) => {
                let value = refs::pointer(content, fragment).ok_or("leads nowhere")?;
                Ok(NodeRef { bundle: self, document, value })
            }
            Some(Err(reason)) => Err(format!("cannot be read: {reason}")),
            None => Err("leads to a document that was not read".to_owned()),
        }
    }

    /// The index of the document at an address that another document has.
    fn index(&self, document: usize, address: &str) -> Result<usize, String> {
        let location = |index: usize| self.documents.get(index).map(|document| &document.location);
        let (root, here) = location(0).zip(location(document)).ok_or("leads nowhere")?;
        let url = here.join(address).ok().ok_or("is no address")?;
        if let Some(index) = self.indexes.get(&url) {
            return Ok(*index);
        }
        ref_policy::check(root, &url)?;
        Err(if self.documents.len() < DOCUMENTS {
            "leads to a document that was not read".to_owned()
        } else {
            format!("leads to one document more than the {DOCUMENTS} that are read")
        })
    }
}

#[cfg(test)]
mod tests;
