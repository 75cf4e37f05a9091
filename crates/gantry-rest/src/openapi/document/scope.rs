//! Schemas with an `$id`, and the references in them, which start from there and not from the document.
//!
//! An `$id` is a name, and nothing is ever fetched because of it: what it leads to is among the documents that were read
//! for other reasons, or it counts for nothing.

use super::{Bundle, NodeRef, pointer};
use std::collections::HashMap;
use url::Url;

/// References in schemas with an `$id` that are known in one document. Any more start from the document.
const SCOPED: usize = 100_000;

/// A schema with an address of its own.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) base: Url,
    /// Where in the document it is.
    pub(super) pointer: String,
}

/// Those of a document.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    all: Vec<Scope>,
    /// Which of them a reference is in, by the place of its text. One that is the whole document is not listed.
    places: HashMap<usize, usize>,
}

impl Scopes {
    /// Adds one and says which it is.
    pub(super) fn add(&mut self, scope: Scope) -> usize {
        self.all.push(scope);
        self.all.len() - 1
    }

    pub(super) fn get(&self, scope: usize) -> Option<&Scope> {
        self.all.get(scope)
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|scope| scope.base.as_str())
    }

    /// Notes which of them a reference is in.
    pub(super) fn note(&mut self, reference: &str, scope: Option<usize>) {
        let Some(scope) = scope.filter(|_| !reference.is_empty() && self.places.len() < SCOPED) else {
            return;
        };
        if self.get(scope).is_some_and(|scope| !scope.pointer.is_empty()) {
            self.places.insert(place(reference), scope);
        }
    }

    fn of(&self, reference: &str) -> Option<&Scope> {
        match self.places.get(&place(reference)) {
            Some(scope) => self.get(*scope),
            None => self.all.first().filter(|scope| scope.pointer.is_empty()),
        }
    }
}

/// Equal for one and the same text of a document. An empty one has no place.
fn place(reference: &str) -> usize {
    reference.as_ptr().addr()
}

impl Bundle {
    /// What a reference leads to by the `$id`s around it, if there are any and that is known.
    pub(super) fn scoped(&self, document: usize, reference: &str) -> Option<NodeRef<'_>> {
        let (here, content) = self.content(document).ok()?;
        let scope = here.scopes.of(reference)?;
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if address.is_empty() {
            let schema = content.pointer(&scope.pointer)?;
            let value = pointer::inside(&here.names, content, schema, &scope.base, fragment)?;
            return Some(NodeRef { bundle: self, document, value });
        }
        let url = scope.base.join(address).ok()?;
        let found = self.identified(document, &url, fragment).or_else(|| self.known(&url, fragment));
        found.or_else(|| self.within((*self.places.get(&url)?)?, fragment).ok())
    }

    /// A schema in any document that has this address of its own.
    pub(super) fn known(&self, url: &Url, fragment: &str) -> Option<NodeRef<'_>> {
        self.identified(*self.ids.get(url.as_str())?, url, fragment)
    }
}
