//! Characters that a reader of a screen would not see, and escapes that show them.

use std::fmt::Write as _;

/// The same JSON in one line, with every invisible character escaped.
pub fn escape_invisible(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // The only invisible characters between values are white space.
        if matches!(c, '\t' | '\n' | '\r') { out.push(' ') } else { push_escaped(&mut out, c) }
    }
    out
}

/// Adds a character of a JSON string; an invisible one as its escape.
pub fn push_escaped(out: &mut String, c: char) {
    if !is_invisible(c) {
        out.push(c);
        return;
    }
    for unit in c.encode_utf16(&mut [0; 2]) {
        write!(out, "\\u{unit:04x}").unwrap_or_default();
    }
}

/// Whether a screen shows nothing, a gap or a font's own sign for this character, or changes how it shows others: texts
/// with such characters can look alike. The page of approvals marks the same characters.
pub fn is_invisible(c: char) -> bool {
    is_control(c) || is_undrawn(c) || is_gap(c) || is_private(c)
}

/// Whether a screen acts on this character instead of showing it: controls, and marks of the direction of writing.
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a screen draws nothing: Unicode's default ignorables, separators of lines and paragraphs, and blank fillers.
pub fn is_undrawn(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffc}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Spaces other than the usual one, and the empty Braille pattern.
fn is_gap(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}'
    )
}

/// Private use: fonts draw these as they like, mostly as nothing.
fn is_private(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::quoted;

    #[test]
    fn an_escaped_text_means_the_same() {
        let text = "a\u{202e}b\u{200b}c\u{e0041}d\u{9b}e\u{feff}é✔";
        let shown = escape_invisible(&format!("{{\n\t\"x\":{}}}", quoted(text)));
        assert_eq!(shown, r#"{  "x":"a\u202eb\u200bc\udb40\udc41d\u009be\ufeffé✔"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["x"], text);
    }

    #[test]
    fn every_invisible_character_is_known() {
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
            assert_eq!(is_invisible(c), found.is_some(), "U+{:04X} {found:?}", u32::from(c));
        }
    }
}
