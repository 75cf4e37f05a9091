//! Reads and edits single members of JSON text; everything else keeps its text and order.

use crate::json::{self, Object, write_string};
use std::borrow::Cow;

/// The members of an object in their order, values as text; `None` if the text is not an object.
#[must_use]
pub fn members(text: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    Some(Object::split(text)?.into_members().collect())
}

/// The value of a member as text; the first one if there are several.
#[must_use]
pub fn member<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    Object::split(text)?.get(key)
}

/// The decoded value of a member that is a string.
#[must_use]
pub fn string_member<'a>(text: &'a str, key: &str) -> Option<Cow<'a, str>> {
    Object::split(text)?.string(key)
}

pub use json::string;

/// The elements of an array as text; `None` if the text is not an array.
#[must_use]
pub fn elements(text: &str) -> Option<Vec<&str>> {
    json::elements(text, usize::MAX)
}

/// An object of these members.
#[must_use]
pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::from("{");
    for (key, value) in members {
        if out.len() > 1 {
            out.push(',');
        }
        write_string(&mut out, key);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    out
}

/// The object with one member set: replaced where it stands, or added at the end. A text that is not an object is
/// taken for an empty one.
#[must_use]
pub fn with(text: &str, key: &str, value: &str) -> String {
    let members = Object::split(text).unwrap_or_default();
    let is_new = members.get(key).is_none();
    let kept = members.iter().map(|(name, old)| (name, if name == key { value } else { old }));
    object(kept.chain(is_new.then_some((key, value))))
}

/// The object without the members that `drop` names.
#[must_use]
pub fn without(text: &str, drop: impl Fn(&str) -> bool) -> String {
    let members = Object::split(text).unwrap_or_default();
    object(members.iter().filter(|(name, _)| !drop(name)))
}

/// The text of a JSON string that says this.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

/// The same JSON in one line in which a person sees every character: what a screen would obey, and what no eye would
/// notice, is escaped.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Between values there are no characters like these but white space.
        if matches!(c, '\t' | '\n' | '\r') { out.push(' ') } else { push_visible(&mut out, c) }
    }
    out
}

/// Adds a character of a JSON string, or the escape that means it if a screen would obey it or no eye would notice it.
pub fn push_visible(out: &mut String, c: char) {
    if !misleads(c) {
        out.push(c);
        return;
    }
    for unit in c.encode_utf16(&mut [0; 2]) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
}

/// Whether a screen obeys this character instead of showing it: controls, and those that turn the writing around.
#[must_use]
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a screen obeys this character, or shows nothing or a mere gap for it, so that two texts look alike. The page of
/// approvals marks the same characters.
#[must_use]
pub fn misleads(c: char) -> bool {
    is_obeyed(c) || is_unseen(c) || is_gap(c) || is_private(c)
}

/// What is not drawn: all that Unicode calls ignorable by default, the ends of lines and paragraphs, and what is as empty
/// without being called so.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffc}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Spaces other than the one on every keyboard, and the pattern of dots that has none.
fn is_gap(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}'
    )
}

/// What every font draws as it likes, most of them as nothing.
fn is_private(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_misleads_is_escaped_and_means_the_same() {
        let text = "a\u{202e}b\u{200b}c\u{e0041}d\u{9b}e\u{feff}é✔";
        let shown = visible(&format!("{{\n\t\"x\":{}}}", quoted(text)));
        assert_eq!(shown, r#"{  "x":"a\u202eb\u200bc\udb40\udc41d\u009be\ufeffé✔"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["x"], text);
    }

    #[test]
    fn nothing_misleads_that_is_not_escaped() {
        let all = [
            ("controls", vec![0..=0x1f, 0x7f..=0x9f]),
            ("soft hyphen", vec![0xad..=0xad]),
            ("combining grapheme joiner", vec![0x34f..=0x34f]),
            (
                "marks and embeddings of direction",
                vec![0x61c..=0x61c, 0x200e..=0x200f, 0x202a..=0x202e, 0x2066..=0x2069],
            ),
            ("Hangul fillers", vec![0x115f..=0x1160, 0x3164..=0x3164, 0xffa0..=0xffa0]),
            ("Khmer inherent vowels", vec![0x17b4..=0x17b5]),
            ("Mongolian selectors and the separator of vowels", vec![0x180b..=0x180f]),
            (
                "zero-width spaces, joiners, word joiners",
                vec![0x200b..=0x200d, 0x2060..=0x206f, 0xfeff..=0xfeff],
            ),
            ("separators of lines and paragraphs", vec![0x2028..=0x2029]),
            ("variation selectors", vec![0xfe00..=0xfe0f, 0xe0100..=0xe01ef]),
            ("specials: reserved, annotations, an object that is not there", vec![0xfff0..=0xfffc]),
            (
                "controls of hieroglyphs, shorthand and music",
                vec![0x13430..=0x1343f, 0x1bca0..=0x1bca3, 0x1d159..=0x1d159, 0x1d173..=0x1d17a],
            ),
            ("tags and what is reserved with them", vec![0xe0000..=0xe0fff]),
            (
                "spaces but the usual one",
                vec![
                    0xa0..=0xa0,
                    0x1680..=0x1680,
                    0x2000..=0x200a,
                    0x202f..=0x202f,
                    0x205f..=0x205f,
                    0x3000..=0x3000,
                ],
            ),
            ("a pattern of no dots", vec![0x2800..=0x2800]),
            ("private use", vec![0xe000..=0xf8ff, 0xf_0000..=0xf_fffd, 0x10_0000..=0x10_fffd]),
        ];
        for c in (0..=0x10_ffff_u32).filter_map(char::from_u32) {
            let found =
                all.iter().find(|(_, ranges)| ranges.iter().any(|range| range.contains(&u32::from(c))));
            assert_eq!(misleads(c), found.is_some(), "U+{:04X} {found:?}", u32::from(c));
        }
    }

    #[test]
    fn what_is_not_named_stays_as_it_was() {
        let text = r#"{"b":1.10,"a":{"z":1e400},"\u0063":"\u00e9"}"#;
        assert_eq!(with(text, "a", "2"), r#"{"b":1.10,"a":2,"c":"\u00e9"}"#);
        assert_eq!(with(text, "n", "[]"), r#"{"b":1.10,"a":{"z":1e400},"c":"\u00e9","n":[]}"#);
        assert_eq!(without(text, |key| key == "b"), r#"{"a":{"z":1e400},"c":"\u00e9"}"#);
        assert_eq!(member(text, "a"), Some(r#"{"z":1e400}"#));
        assert_eq!(string_member(text, "c").as_deref(), Some("é"));
        assert_eq!(members("[1]"), None);
        assert_eq!(elements("[1, {\"a\":2}]"), Some(vec!["1", "{\"a\":2}"]));
    }
}
