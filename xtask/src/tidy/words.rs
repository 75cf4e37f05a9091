//! What a source file may not say: a missing header, markers without a reason, and words that hide trouble.
//!
//! The rules look at tokens, so a string or a comment that mentions `unwrap` is no finding.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::Finding;
use super::source::Source;

/// Markers of unfinished work; split, so that this file does not find itself.
const MARKERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
/// Not part of the product: they may be as blunt as a test.
const NOT_PRODUCT: [&str; 2] = ["crates/gantry-testkit/", "xtask/"];

pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    let mut report = |line, what: String| findings.push(Finding::new(&source.path, line, what));

    if !source.text.starts_with("//!") {
        report(1, "the first line must start with `//!` and say what the file is for".to_owned());
    }
    if let Some(module) = source.path.strip_suffix("/mod.rs") {
        report(1, format!("`mod.rs` says nothing in an editor's tab; move it to {module}.rs"));
    }

    let mut scan = Scan::default();
    scan.stream(&source.tokens);
    for word in scan.words {
        if word.only_in_product && (source.is_test_line(word.line) || !is_product(&source.path)) {
            continue;
        }
        report(word.line, word.what.to_owned());
    }

    let text = without_strings(&source.text, &scan.literals);
    for (index, line) in text.lines().enumerate() {
        if let Some(marker) = bare_marker(line) {
            report(index + 1, format!("`{marker}` without a reason; write `{marker}(why)` or do it now"));
        }
    }
}

fn is_product(path: &str) -> bool {
    !NOT_PRODUCT.iter().any(|folder| path.starts_with(folder))
}

/// The first marker in the line that no `(reason)` follows.
fn bare_marker(line: &str) -> Option<&'static str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    MARKERS.into_iter().find(|marker| {
        line.match_indices(marker).any(|(start, _)| {
            let (before, rest) = line.split_at(start);
            let after = rest.strip_prefix(marker).unwrap_or_default();
            let stands_alone = !before.ends_with(is_word) && !after.starts_with(is_word);
            stands_alone && !has_reason(after)
        })
    })
}

fn has_reason(after: &str) -> bool {
    let reason = after.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    reason.is_some_and(|(reason, _)| !reason.trim().is_empty())
}

/// The text with its string literals blanked; doc comments, which are literals to the compiler, stay.
fn without_strings(text: &str, literals: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in literals {
        let Some(literal) = bytes.get_mut(range.clone()) else { continue };
        if !literal.starts_with(b"/") {
            literal.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[derive(Default)]
struct Scan {
    words: Vec<Word>,
    literals: Vec<Range<usize>>,
}

struct Word {
    line: usize,
    what: &'static str,
    only_in_product: bool,
}

impl Scan {
    fn stream(&mut self, stream: &TokenStream) {
        let trees: Vec<TokenTree> = stream.clone().into_iter().collect();
        for start in 0..trees.len() {
            let Some(rest) = trees.get(start..) else { break };
            self.tree(rest);
        }
    }

    /// Looks at the first token of `rest`, with those that follow it in the same group.
    fn tree(&mut self, rest: &[TokenTree]) {
        let Some(first) = rest.first() else { return };
        let line = first.span().start().line;
        if is_unwrap(rest) {
            let what = "`.unwrap()` hides the reason; return the error, or prove it cannot fail by type";
            self.words.push(Word { line, what, only_in_product: true });
        }
        if let Some(what) = banned(rest) {
            self.words.push(Word { line, what, only_in_product: false });
        }
        match first {
            TokenTree::Group(group) => self.stream(&group.stream()),
            TokenTree::Literal(literal) => self.literals.push(literal.span().byte_range()),
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

fn is_unwrap(rest: &[TokenTree]) -> bool {
    let [dot, name, TokenTree::Group(arguments), ..] = rest else { return false };
    is_punct(dot, '.')
        && is_ident(name, "unwrap")
        && arguments.delimiter() == Delimiter::Parenthesis
        && arguments.stream().is_empty()
}

fn banned(rest: &[TokenTree]) -> Option<&'static str> {
    match rest {
        [name, bang, TokenTree::Group(_), ..]
            if is_punct(bang, '!') && (is_ident(name, "todo") || is_ident(name, "unimplemented")) =>
        {
            Some(
                "unfinished code panics when it runs; write it, or return an error that says what is missing",
            )
        }
        [hash, TokenTree::Group(attribute), ..] if is_punct(hash, '#') => banned_attribute(attribute),
        [word, root, colon, second, rest @ ..]
            if is_ident(word, "use")
                && is_ident(root, "crate")
                && is_punct(colon, ':')
                && is_punct(second, ':')
                && starts_with_glob(rest) =>
        {
            Some("`use crate::*` hides where names come from; import what is used")
        }
        _ => None,
    }
}

/// Also finds them behind a condition, as in `#[cfg_attr(unix, ignore)]`.
fn banned_attribute(attribute: &Group) -> Option<&'static str> {
    let trees: Vec<TokenTree> = attribute.stream().into_iter().collect();
    let inner: Vec<TokenTree> = match trees.as_slice() {
        [name, TokenTree::Group(arguments)] if is_ident(name, "cfg_attr") => {
            arguments.stream().into_iter().collect()
        }
        [name, ..] => vec![name.clone()],
        [] => Vec::new(),
    };
    if inner.iter().any(|tree| is_ident(tree, "ignore")) {
        return Some(
            "an ignored test proves nothing; make it pass, or assert what happens today and say why",
        );
    }
    let should_panic = inner.iter().any(|tree| is_ident(tree, "should_panic"));
    should_panic.then_some("`should_panic` accepts any panic; assert on the error instead")
}

/// Whether a path goes on with `*` or with a group that holds a `*` of its own.
fn starts_with_glob(rest: &[TokenTree]) -> bool {
    match rest.first() {
        Some(TokenTree::Group(group)) => {
            let trees: Vec<TokenTree> = group.stream().into_iter().collect();
            trees.split(|tree| is_punct(tree, ',')).any(|item| matches!(item, [star] if is_punct(star, '*')))
        }
        Some(tree) => is_punct(tree, '*'),
        None => false,
    }
}

fn is_ident(tree: &TokenTree, name: &str) -> bool {
    matches!(tree, TokenTree::Ident(ident) if ident == name)
}

fn is_punct(tree: &TokenTree, char: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == char)
}
