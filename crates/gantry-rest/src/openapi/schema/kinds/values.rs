//! The values that stand for kinds: what a property may be, and which of its values is meant.

use super::super::convert::own_kinds;
use super::super::keywords;
use super::VALUE_BYTES;
use crate::openapi::bundle::Version;
use crate::openapi::spot::{Spot, reading};
use serde_json::Value;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet, VecDeque};

/// Values that a property may list.
const VALUES: usize = 200;
/// Schemas that a property may be put together from.
const PARTS: usize = 64;

/// What a property may be, which is text or null.
#[derive(Debug, Default)]
pub(super) struct Texts<'a> {
    /// The only texts, each once; empty means any.
    pub(super) listed: Vec<&'a str>,
    pub(super) null: bool,
}

/// What a property may be; nothing if that may be something else than text, or too much to look at. Counts what is looked
/// at for it.
pub(super) fn texts<'a>(property: Spot<'a>, looks: &mut usize) -> Option<Texts<'a>> {
    let mut out = Texts::default();
    let mut seen = HashSet::new();
    // Each with whether it holds in any case.
    let mut waiting = VecDeque::from([(property, true)]);
    while let Some((spot, always)) = waiting.pop_front() {
        *looks += 1;
        if !seen.insert(spot.identity()) {
            continue;
        }
        if seen.len() > PARTS {
            return None;
        }
        if let Some(reference) = spot.reference() {
            *looks += 1 + reading(reference.len());
            waiting.push_back((spot.bundle.find(spot.document, reference).ok()?, always));
            out.null |= keywords::is_nullable(spot);
            if spot.bundle.version != Version::V31 {
                continue;
            }
        }
        let types = own_kinds(spot);
        if types.iter().any(|kind| !matches!(*kind, "string" | "null")) {
            return None;
        }
        out.null |= types.contains(&"null") || keywords::is_nullable(spot);
        let listed = listed(spot, &mut out.null, looks)?;
        if always && out.listed.is_empty() {
            out.listed = listed;
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let parts = spot.get(keyword).into_iter().flat_map(Spot::elements).take(PARTS + 1);
            waiting.extend(parts.map(|part| (part, always && keyword == "allOf")));
        }
    }
    Some(out)
}

/// The texts that a schema lists itself. Nothing if it lists something else, or too many.
fn listed<'a>(spot: Spot<'a>, null: &mut bool, looks: &mut usize) -> Option<Vec<&'a str>> {
    let values: Vec<Spot<'a>> = match spot.get("const") {
        Some(only) => vec![only],
        None => spot.get("enum").into_iter().flat_map(Spot::elements).take(VALUES + 1).collect(),
    };
    *looks += values.len();
    if values.len() > VALUES {
        return None;
    }
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for value in values {
        match value.value {
            Value::String(text) if text.len() > VALUE_BYTES || !seen.insert(text.as_str()) => {}
            Value::String(text) => out.push(text.as_str()),
            Value::Null => *null = true,
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => return None,
        }
    }
    Some(out)
}

/// The values that are listed for a property; none means any.
pub(super) struct Listed<'a> {
    pub(super) texts: Vec<&'a str>,
    /// Those that no other has the letters of, by their letters.
    letters: OnceCell<HashMap<String, Option<&'a str>>>,
}

impl<'a> Listed<'a> {
    pub(super) fn new(texts: Vec<&'a str>) -> Self {
        Self { texts, letters: OnceCell::new() }
    }

    /// Those of some values that are listed, as they are listed here. Where nothing is, all of them. Counts what is looked
    /// at for it.
    pub(super) fn among(&self, wished: Vec<&'a str>, looks: &mut usize) -> Vec<&'a str> {
        if self.texts.is_empty() {
            return wished;
        }
        *looks += 1 + wished.len() * self.texts.len() / 16;
        wished.into_iter().filter_map(|wish| self.alike(wish, looks)).collect()
    }

    /// The one that is meant: itself, or the only one with the same letters. `Cat` is often sent as `cat`.
    fn alike(&self, wish: &str, looks: &mut usize) -> Option<&'a str> {
        if let Some(same) = self.texts.iter().find(|value| **value == wish) {
            return Some(same);
        }
        let by_letters = self.letters.get_or_init(|| {
            let mut found = HashMap::new();
            for text in &self.texts {
                *looks += 1 + reading(8 * text.len());
                found.entry(letters(text)).and_modify(|only| *only = None).or_insert(Some(*text));
            }
            found
        });
        *looks += 1 + reading(8 * wish.len());
        by_letters.get(&letters(wish)).copied().flatten()
    }
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}
