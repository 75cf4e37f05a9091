//! The names of the tools of a document.
//!
//! **Invariant:** names depend neither on the order of a document nor on which of its operations are chosen: of names that
//! clash, each gets digits of a hash of its method and path.

use crate::openapi::operation::Method;
use gantry_core::digest::Digest;
use std::collections::{BTreeSet, HashMap};

/// Characters of a name, where the caller sets no limit.
const CHARS: usize = 48;
/// The least limit: it leaves room for a name and for digits.
const LEAST_CHARS: usize = 24;
/// Digits of the hash: in the first name, and in each longer one while it clashes.
const DIGITS: [usize; 4] = [0, 6, 12, 20];

/// The source of a name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    /// The name that the document gives the tool.
    pub(crate) given: Option<&'a str>,
    /// The `operationId`.
    pub(crate) id: Option<&'a str>,
}

/// The name of each operation, in the same order.
pub(crate) fn assign(origins: &[Origin<'_>], chars: usize, taken: &BTreeSet<String>) -> Vec<String> {
    let chars = if chars == 0 { CHARS } else { chars.max(LEAST_CHARS) };
    let taken: BTreeSet<String> = taken.iter().map(|name| name.to_ascii_lowercase()).collect();
    let mut drafts: Vec<Draft> = origins.iter().map(|origin| Draft::new(origin, chars)).collect();
    // Each round lengthens at least one name or is the last.
    loop {
        let names: Vec<String> = drafts.iter().map(|draft| draft.name(chars)).collect();
        let mut users: HashMap<String, usize> = HashMap::with_capacity(names.len());
        for name in &names {
            *users.entry(name.to_ascii_lowercase()).or_default() += 1;
        }
        let mut longer = false;
        for (draft, name) in drafts.iter_mut().zip(&names) {
            let name = name.to_ascii_lowercase();
            let clashes = taken.contains(&name) || users.get(&name).is_some_and(|users| *users > 1);
            if clashes && draft.step + 1 < DIGITS.len() {
                draft.step += 1;
                longer = true;
            }
        }
        if !longer {
            return names;
        }
    }
}

/// A name that is not final.
struct Draft {
    base: String,
    digest: Digest,
    /// Which of [`DIGITS`] it has now.
    step: usize,
}

impl Draft {
    fn new(origin: &Origin<'_>, chars: usize) -> Self {
        let mut named = origin.given.into_iter().chain(origin.id).map(cleaned);
        let base = named.find(|name| !name.is_empty()).unwrap_or_else(|| {
            let path = cleaned(origin.path);
            let path = if path.is_empty() { "root" } else { &path };
            format!("{}_{path}", origin.method.as_str())
        });
        let digest = Digest::of_parts(&[origin.method.to_string().as_bytes(), origin.path.as_bytes()]);
        let step = usize::from(base.len() > chars);
        Self { base, digest, step }
    }

    fn name(&self, chars: usize) -> String {
        let digits = DIGITS.get(self.step).copied().unwrap_or_default();
        if digits == 0 {
            return self.base.clone();
        }
        let room = chars.saturating_sub(digits + 1);
        format!("{}_{}", cut(&self.base, room), self.digest.short(digits))
    }
}

/// Letters, digits and `_`; other characters between them become one `_`.
fn cleaned(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut gap = false;
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            if gap && !out.is_empty() && !out.ends_with('_') && c != '_' {
                out.push('_');
            }
            gap = false;
            out.push(c);
        } else {
            gap = true;
        }
    }
    out.trim_matches('_').to_owned()
}

/// The beginning of a name, up to the end of a word where that leaves enough of it. Names are ASCII here.
fn cut(name: &str, chars: usize) -> &str {
    let Some(start) = name.get(..chars).filter(|_| name.len() > chars) else { return name };
    let bytes = name.as_bytes();
    let ends_word = |at: usize| match (bytes.get(at - 1), bytes.get(at)) {
        (Some(last), Some(next)) => {
            *next == b'_' || *last == b'_' || last.is_ascii_lowercase() && next.is_ascii_uppercase()
        }
        _ => true,
    };
    let end = (chars / 2 + 1..=chars).rev().find(|at| ends_word(*at)).unwrap_or(chars);
    name.get(..end).unwrap_or(start).trim_end_matches('_')
}

#[cfg(test)]
mod tests;
