//! Text of a document that goes into a schema: descriptions and names.

use gantry_core::invisible::is_invisible;
use std::borrow::Cow;

// Limit: bytes that are read to find one character that is shown; a description may have megabytes.
const READ_PER_CHAR: usize = 16;

/// The text in one line of at most `chars` characters, without HTML comments and invisible characters. Ends at a word.
pub(crate) fn collapse(text: &str, chars: usize) -> String {
    let readable = text.floor_char_boundary(chars.saturating_mul(READ_PER_CHAR));
    let text = without_comments(text.get(..readable).unwrap_or_default());
    let mut out = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let word = without_invisible(word);
        let length = word.chars().count();
        if length == 0 {
            continue;
        }
        let gap = usize::from(!out.is_empty());
        if used + gap + length >= chars {
            if out.is_empty() {
                out.extend(word.chars().take(chars.saturating_sub(1)));
            }
            out.push('…');
            return out;
        }
        if gap == 1 {
            out.push(' ');
        }
        out.push_str(&word);
        used += gap + length;
    }
    out
}

/// The text without HTML comments. A comment without an end takes the rest with it.
pub(crate) fn without_comments(text: &str) -> Cow<'_, str> {
    let Some((before, after)) = text.split_once("<!--") else { return Cow::Borrowed(text) };
    let mut out = before.to_owned();
    let mut rest = after;
    while let Some((_, shown)) = rest.split_once("-->") {
        let (before, after) = shown.split_once("<!--").unwrap_or((shown, ""));
        out.push_str(before);
        rest = after;
    }
    Cow::Owned(out)
}

fn without_invisible(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(word.chars().filter(|c| !is_invisible(*c)).collect())
}

pub(super) fn add_sentence(text: &mut String, sentence: &str) {
    if !text.is_empty() {
        if !text.ends_with(['.', '!', '?', ':', '…']) {
            text.push('.');
        }
        text.push(' ');
    }
    text.push_str(sentence);
}

/// Values in a row, if that is short.
pub(super) fn listed<'v>(values: impl Iterator<Item = Cow<'v, str>> + Clone, chars: usize) -> Option<String> {
    let bytes: usize = values.clone().map(|value| value.len()).sum();
    if bytes == 0 || bytes > chars * 4 {
        return None;
    }
    let row = collapse(&values.collect::<Vec<_>>().join(", "), chars);
    (!row.ends_with('…')).then_some(row)
}

/// The name under `$defs` for the target of a reference: the last part of its path, cleaned.
pub(super) fn definition_name(reference: &str) -> String {
    let last = reference.rsplit(['/', '#']).find(|part| !part.is_empty()).unwrap_or_default();
    let last = last.replace("~1", "_").replace("~0", "_");
    let clean = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' };
    let name: String = last.chars().take(64).map(clean).collect();
    if name.chars().all(|c| matches!(c, '_' | '.' | '-')) { "Schema".to_owned() } else { name }
}
