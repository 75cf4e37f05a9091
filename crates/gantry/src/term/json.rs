//! JSON for people: indented, every value exactly as it was written, control and invisible characters escaped.

use gantry_core::invisible::push_escaped;
use serde::Serialize;

/// Indents JSON text. Numbers keep their text and keys their order, which parsing and writing would not keep.
pub(crate) fn pretty_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len().saturating_mul(2));
    let mut depth = 0_usize;
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                out.push('"');
                string(&mut chars, &mut out);
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|next| next.is_whitespace()).is_some() {}
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_whitespace() => {}
            c => push_escaped(&mut out, c),
        }
    }
    out
}

/// Copies the rest of a string with its closing quote.
fn string(chars: &mut impl Iterator<Item = char>, out: &mut String) {
    let mut escaped = false;
    for c in chars {
        push_escaped(out, c);
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return,
            _ => {}
        }
    }
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
}

/// The first lines of a text, each cut to so many characters; cut parts are replaced by their length.
pub(crate) fn truncate_lines(text: &str, lines: usize, characters: usize) -> String {
    let shortened = |line: &str| match line.chars().count() {
        length if length <= characters => line.to_owned(),
        length => {
            let begin: String = line.chars().take(characters).collect();
            format!("{begin}… ({length} characters)")
        }
    };
    let more = text.lines().count().saturating_sub(lines);
    let more = (more > 0).then(|| format!("… {more} more lines"));
    text.lines().take(lines).map(shortened).chain(more).collect::<Vec<_>>().join("\n")
}

/// Writes a value as indented JSON to standard output. Control and invisible characters are escaped, which JSON allows
/// but does not require.
pub(crate) fn print_json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => super::print(&pretty_json(&text)),
        Err(error) => super::keep_error(Err(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn json_is_laid_out_and_no_number_or_key_changes() {
        let raw = r#"{"b":1e400,"a" : 12345678901234567890123,"c":[ ], "d":{},"e":["x:y, {\"z\"}",[1]]}"#;
        let shown = "{\n  \"b\": 1e400,\n  \"a\": 12345678901234567890123,\n  \"c\": [],\n  \"d\": {},\n  \"e\": [\n    \
                     \"x:y, {\\\"z\\\"}\",\n    [\n      1\n    ]\n  ]\n}";
        assert_eq!(pretty_json(raw), shown);
        assert_eq!(pretty_json(&pretty_json(raw)), shown);
    }

    #[test]
    fn control_and_invisible_characters_are_escaped_and_the_value_stays() {
        let text = "a\u{202e}b\u{200b}c\u{e0041}d\u{9b}e\u{feff}";
        let raw = serde_json::to_string(text).unwrap();
        let shown = pretty_json(&raw);
        assert_eq!(shown, "\"a\\u202eb\\u200bc\\udb40\\udc41d\\u009be\\ufeff\"");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), text);
    }

    #[test]
    fn long_texts_are_cut_and_their_length_is_shown() {
        assert_eq!(truncate_lines("abc\nd\ne\nf", 2, 2), "ab… (3 characters)\nd\n… 2 more lines");
        assert_eq!(truncate_lines("abc\nd", 2, 3), "abc\nd");
    }
}
