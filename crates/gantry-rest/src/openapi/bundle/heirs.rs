//! Which named schemas inherit from which others: in OpenAPI, what has another schema in its `allOf` is a kind of it.
//!
//! Found once for a bundle, since the schemas that inherit do not stand where the one that they inherit from is used.

use super::Bundle;
use crate::openapi::spot::Spot;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Schemas, parts and references that are looked at. Where there are more, no schema is known to have heirs.
const LOOKS: usize = 500_000;
/// The same for one schema.
const OWN_LOOKS: usize = 200;
/// `allOf`s inside each other, without a reference between them.
const NESTED: usize = 4;
/// Bytes of a name that can be the value of a property.
const NAME_BYTES: usize = 200;
/// Where a document has schemas by name. In a document that others refer to, they may also be all that there is.
const SHELVES: [&[&str]; 4] = [&["components", "schemas"], &["definitions"], &["$defs"], &[]];

/// The heirs of all schemas.
#[derive(Debug, Default)]
pub(super) struct Heirs {
    /// In the order of the documents.
    named: Vec<Named>,
    /// Those at a place.
    places: HashSet<usize>,
    /// Which of them inherit from what is at a place, without a schema between.
    children: HashMap<usize, Vec<usize>>,
}

/// A schema with a name.
#[derive(Debug)]
struct Named {
    document: usize,
    shelf: &'static [&'static str],
    name: String,
}

/// A schema that inherits from another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heir<'a> {
    pub(crate) name: &'a str,
    pub(crate) spot: Spot<'a>,
}

impl Bundle {
    /// The schemas that inherit from this one, without another one between.
    pub(crate) fn heirs<'a>(&'a self, spot: Spot<'_>) -> impl Iterator<Item = Heir<'a>> + use<'a> {
        let heirs = self.family();
        let found = heirs.and_then(|heirs| Some((heirs, heirs.children.get(&spot.identity())?)));
        found.into_iter().flat_map(move |(heirs, children)| {
            children.iter().filter_map(move |child| heirs.named.get(*child)?.heir(self))
        })
    }

    /// Whether a schema is known to inherit from another one.
    pub(crate) fn is_heir(&self, spot: Spot<'_>) -> bool {
        self.family().is_some_and(|heirs| heirs.places.contains(&spot.identity()))
    }

    /// Whether any document tells kinds apart.
    pub(crate) fn tells_kinds(&self) -> bool {
        self.tells_kinds
    }

    /// Nothing where no document tells kinds apart.
    fn family(&self) -> Option<&Heirs> {
        self.tells_kinds.then(|| self.heirs.get_or_init(|| found(self)))
    }
}

fn found(bundle: &Bundle) -> Heirs {
    let mut out = Heirs::default();
    let mut looks = 0;
    let mut seen = HashSet::new();
    for (index, document) in bundle.documents.iter().enumerate() {
        let Ok(value) = &document.content else { continue };
        let root = Spot { bundle, document: index, value };
        for shelf in SHELVES.into_iter().filter(|shelf| index > 0 || !shelf.is_empty()) {
            let Some(schemas) = shelf.iter().try_fold(root, |spot, key| spot.get(key)) else { continue };
            for (name, schema) in schemas.members() {
                looks += 1;
                let schema = schema.aliased(&mut looks);
                if name.len() <= NAME_BYTES && seen.insert(schema.identity()) {
                    let named = Named { document: index, shelf, name: name.to_owned() };
                    out.add(named, schema, &mut looks);
                }
                if looks > LOOKS {
                    return Heirs::default();
                }
            }
        }
    }
    out
}

impl Heirs {
    fn add(&mut self, named: Named, schema: Spot<'_>, looks: &mut usize) {
        let mut seen = HashSet::new();
        for base in bases(schema, looks) {
            if seen.insert(base.identity()) {
                self.children.entry(base.identity()).or_default().push(self.named.len());
            }
        }
        if !seen.is_empty() {
            self.places.insert(schema.identity());
            self.named.push(named);
        }
    }
}

impl Named {
    fn heir<'a>(&'a self, bundle: &'a Bundle) -> Option<Heir<'a>> {
        let value: &Value = bundle.documents.get(self.document)?.content.as_ref().ok()?;
        let root = Spot { bundle, document: self.document, value };
        let shelf = self.shelf.iter().try_fold(root, |spot, key| spot.get(key))?;
        Some(Heir { name: &self.name, spot: shelf.get(&self.name)?.aliased(&mut 0) })
    }
}

/// The schemas that a schema refers to in its `allOf`. Counts what is looked at for it.
pub(crate) fn bases<'a>(schema: Spot<'a>, looks: &mut usize) -> Vec<Spot<'a>> {
    let mut out = Vec::new();
    let most = *looks + OWN_LOOKS;
    let mut waiting = vec![(schema, 0)];
    while let Some((spot, depth)) = waiting.pop() {
        for part in spot.get("allOf").into_iter().flat_map(Spot::elements) {
            *looks += 1;
            if *looks > most {
                return out;
            }
            if part.reference().is_some() {
                out.extend(part.followed(looks).ok());
            } else if depth < NESTED {
                waiting.push((part, depth + 1));
            }
        }
    }
    out
}
