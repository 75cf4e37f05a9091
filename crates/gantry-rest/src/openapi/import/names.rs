//! What the tools of a document are called.
//!
//! **Invariant:** names do not depend on the order of a document, nor on what of it is wanted: whatever is added to tell
//! two names apart comes from the method and the path, and all that clash get it, not just the second. Only what is
//! written exactly like the name keeps it, if nothing else is.

use crate::openapi::operation::Method;
use gantry_core::digest::Digest;
use std::collections::{BTreeSet, HashMap};

/// Characters of a name where nothing else is said.
const CHARS: usize = 48;
/// Below this, there is no room for a name and for what tells it apart.
const LEAST_CHARS: usize = 24;
/// Digits of a digest, for the first try and for those after it.
const DIGITS: [usize; 4] = [0, 6, 12, 20];

/// What a name is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    /// What the document wants the tool to be called.
    pub(crate) wish: Option<&'a str>,
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
        let mut users: HashMap<String, Users> = HashMap::with_capacity(names.len());
        for (draft, name) in drafts.iter().zip(&names) {
            users.entry(name.to_ascii_lowercase()).or_default().add(draft.claim());
        }
        let mut longer = false;
        for (draft, name) in drafts.iter_mut().zip(&names) {
            let name = name.to_ascii_lowercase();
            let others = users.get(&name).is_some_and(|users| !users.leave_it_to(draft.claim()));
            if (others || taken.contains(&name)) && draft.step + 1 < DIGITS.len() {
                draft.step += 1;
                longer = true;
            }
        }
        if !longer {
            return names;
        }
    }
}

/// How much a name belongs to an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// It was made fit for a name, or told apart.
    #[default]
    Made,
    /// Its path is written like it.
    Path,
    /// The document calls it exactly so.
    Exact,
}

/// Those who have one name.
#[derive(Default)]
struct Users {
    all: usize,
    best: Claim,
    /// How many have the best claim.
    with_best: usize,
}

impl Users {
    fn add(&mut self, claim: Claim) {
        self.all += 1;
        if claim > self.best {
            (self.best, self.with_best) = (claim, 0);
        }
        self.with_best += usize::from(claim == self.best);
    }

    /// Whether the one with this claim keeps the name.
    fn leave_it_to(&self, claim: Claim) -> bool {
        self.all == 1 || claim != Claim::Made && claim == self.best && self.with_best == 1
    }
}

/// A name on its way.
struct Draft {
    base: String,
    /// The claim to the name as it is without digits.
    claim: Claim,
    digest: Digest,
    /// Which of [`DIGITS`] it has now.
    step: usize,
}

impl Draft {
    fn new(origin: &Origin<'_>, chars: usize) -> Self {
        let given = origin.wish.into_iter().chain(origin.id).map(|text| (text, cleaned(text)));
        let (base, claim) = match given.into_iter().find(|(_, name)| !name.is_empty()) {
            Some((text, name)) => (name.clone(), if text == name { Claim::Exact } else { Claim::Made }),
            None => {
                let name = cleaned(origin.path);
                let exact = origin.path.strip_prefix('/').is_some_and(|path| path.replace('/', "_") == name);
                let claim = if exact && !origin.path.contains('_') { Claim::Path } else { Claim::Made };
                (of_path(origin.method, &name), claim)
            }
        };
        let digest = Digest::of_parts(&[origin.method.to_string().as_bytes(), origin.path.as_bytes()]);
        let step = usize::from(base.len() > chars);
        Self { base, claim, digest, step }
    }

    fn claim(&self) -> Claim {
        if self.step == 0 { self.claim } else { Claim::Made }
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

/// Letters, digits and `_`; whatever else is between them becomes one `_`.
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

/// `get_repos_owner_repo` for `GET /repos/{owner}/{repo}`.
fn of_path(method: Method, cleaned: &str) -> String {
    let path = if cleaned.is_empty() { "root" } else { cleaned };
    format!("{}_{path}", method.as_str())
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
