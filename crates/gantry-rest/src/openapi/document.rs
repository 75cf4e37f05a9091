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

/// Why a document cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is too long.
    #[error("it has more than {0} bytes")]
    TooLarge(usize),
    /// It is neither JSON nor YAML, or more of that than is read.
    #[error("it cannot be read as JSON or YAML: {0}")]
    Syntax(String),
    /// It is no OpenAPI document, or of a version that nobody knows.
    #[error("{0}")]
    NotOpenApi(String),
}

/// The versions of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// Swagger 2.0.
    V2,
    /// 3.0.
    V3,
    /// 3.1 and 3.2, whose schemas are JSON Schema.
    V31,
}

/// A document with those that it refers to, as far as they were brought.
///
/// A reference may lead to another file below the folder of the root document, or, where that came from a web server,
/// to another document of the same origin. Anything else is refused where it is used.
#[derive(Debug)]
pub struct Bundle {
    pub(crate) version: Version,
    /// The root document first.
    pub(crate) documents: Vec<Document>,
    /// The documents that are referred to and may be read, in the order of appearance.
    asked: Vec<Url>,
    /// All of those and the root: which document it is, once it was brought.
    places: HashMap<Url, Option<usize>>,
    /// What all documents have together.
    bytes: usize,
    nodes: usize,
    /// Values that may still be read through a [`NodeRef`].
    steps: Cell<u64>,
    /// What a person should know of how they are written.
    pub(crate) warnings: Vec<String>,
}

/// One document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) location: Url,
    /// What is in it, or why that is not known.
    pub(crate) content: Result<Value, String>,
}

impl Bundle {
    /// Bytes that a document may have. More than that need not be read from anywhere.
    pub const DOCUMENT_BYTES: usize = DOCUMENT_BYTES;

    /// The document at this location, alone.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn open(mut location: Url, bytes: &[u8]) -> Result<Self, DocumentError> {
        location.set_fragment(None);
        let Read { value, nodes, warnings } = read::read(bytes, BUNDLE_NODES)?;
        let version = read::version(&value)?;
        let mut bundle = Self {
            version,
            documents: Vec::new(),
            asked: Vec::new(),
            places: HashMap::new(),
            bytes: bytes.len(),
            nodes,
            steps: Cell::new(u64::MAX),
            warnings: Vec::new(),
        };
        bundle.keep(location, Ok(value));
        bundle.warn(0, warnings);
        Ok(bundle)
    }

    /// The documents that are referred to and have not been brought yet. Ask again after bringing them.
    #[must_use]
    pub fn wanted(&self) -> Vec<Url> {
        let missing = |location: &&Url| matches!(self.places.get(*location), Some(None));
        self.asked.iter().filter(missing).cloned().collect()
    }

    /// Brings one of those, or says why it cannot be had. The location is the one that was wanted, wherever a server
    /// had the document in the end.
    pub fn add(&mut self, location: Url, found: Result<&[u8], String>) {
        // What nobody wanted is not kept, so that a bundle has no more than it may.
        if matches!(self.places.get(&location), Some(None)) {
            let read = found.and_then(|bytes| self.read(bytes));
            let (content, warnings) = match read {
                Ok(read) => (Ok(read.value), read.warnings),
                Err(reason) => (Err(reason), Vec::new()),
            };
            self.keep(location, content);
            self.warn(self.documents.len().saturating_sub(1), warnings);
        }
    }

    fn warn(&mut self, document: usize, warnings: Vec<String>) {
        let name = self.name(document);
        let room = WARNINGS.saturating_sub(self.warnings.len());
        self.warnings.extend(warnings.into_iter().take(room).map(|warning| format!("{name}: {warning}")));
    }

    fn read(&mut self, bytes: &[u8]) -> Result<Read, String> {
        if self.bytes.saturating_add(bytes.len()) > BUNDLE_BYTES {
            return Err(format!("all documents of the specification have more than {BUNDLE_BYTES} bytes"));
        }
        self.bytes += bytes.len();
        let room = BUNDLE_NODES.saturating_sub(self.nodes);
        let read = read::read(bytes, room).map_err(|error| error.to_string())?;
        self.nodes += read.nodes;
        Ok(read)
    }

    /// Keeps a document, and wants those that it refers to.
    fn keep(&mut self, location: Url, content: Result<Value, String>) {
        self.places.insert(location.clone(), Some(self.documents.len()));
        for address in content.as_ref().map(refs::addresses).unwrap_or_default() {
            if let Ok(mut url) = location.join(address) {
                url.set_fragment(None);
                self.ask(url, &location);
            }
        }
        self.documents.push(Document { location, content });
    }

    /// Wants a document, if it may be read and there are not too many. `first` is the root while there is none yet.
    fn ask(&mut self, url: Url, first: &Url) {
        let root = self.documents.first().map_or(first, |root| &root.location);
        let known = self.places.len() >= DOCUMENTS || self.places.contains_key(&url);
        if !known && ref_policy::check(root, &url).is_ok() {
            self.places.insert(url.clone(), None);
            self.asked.push(url);
        }
    }

    /// Sets how many values may be read from now on.
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

    /// Takes a step, if one is left after it.
    fn take_step(&self) -> bool {
        self.steps.set(self.steps.get().saturating_sub(1));
        !self.is_exhausted()
    }

    /// The root of the root document.
    pub(crate) fn root(&self) -> Option<NodeRef<'_>> {
        let value = self.documents.first()?.content.as_ref().ok()?;
        Some(NodeRef { bundle: self, document: 0, value })
    }

    /// What a document is called in messages.
    pub(crate) fn name(&self, document: usize) -> String {
        let root = self.documents.first();
        let named = root.zip(self.documents.get(document));
        named.map(|(root, document)| ref_policy::name(&root.location, &document.location)).unwrap_or_default()
    }

    /// What a reference in a document leads to.
    ///
    /// # Errors
    /// It leads nowhere, or to where it must not.
    pub(crate) fn find(&self, document: usize, reference: &str) -> Result<NodeRef<'_>, String> {
        if !self.take_step() {
            return Err("there are too many references".to_owned());
        }
        let found = self.follow(document, reference);
        found.map_err(|reason| format!("{} {reason}", self.describe_ref(document, reference)))
    }

    /// A reference and where it stands, for messages.
    pub(crate) fn describe_ref(&self, document: usize, reference: &str) -> String {
        format!("the reference {} in {}", ref_policy::display_ref(reference), self.name(document))
    }

    fn follow(&self, document: usize, reference: &str) -> Result<NodeRef<'_>, String> {
        if refs::is_name(reference) {
            return Err("names a schema; only paths in a document (#/…) are supported".to_owned());
        }
        let (address, fragment) = refs::split(reference);
        let document = if address.is_empty() { document } else { self.document_at(document, address)? };
        match &self.documents.get(document).ok_or("leads nowhere")?.content {
            Ok(content) => {
                let value = refs::pointer(content, fragment).ok_or("leads nowhere")?;
                Ok(NodeRef { bundle: self, document, value })
            }
            Err(reason) => Err(format!("cannot be read: {reason}")),
        }
    }

    /// The document at an address in another document.
    fn document_at(&self, document: usize, address: &str) -> Result<usize, String> {
        let here = self.documents.get(document).ok_or("leads nowhere")?;
        let Ok(url) = here.location.join(address) else { return Err("is no address".to_owned()) };
        match self.places.get(&url) {
            Some(Some(index)) => Ok(*index),
            Some(None) => Err("leads to a document that was not read".to_owned()),
            None => Err(self.refusal(&url)),
        }
    }

    /// Why a place is none where documents are.
    fn refusal(&self, url: &Url) -> String {
        let allowed = self.documents.first().map_or(Ok(()), |root| ref_policy::check(&root.location, url));
        match allowed {
            Err(reason) => reason.to_owned(),
            Ok(()) if self.places.len() < DOCUMENTS => "leads to a document that was not read".to_owned(),
            Ok(()) => format!("leads to one document more than the {DOCUMENTS} that are read"),
        }
    }
}

#[cfg(test)]
mod tests;
