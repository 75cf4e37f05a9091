//! JSON as a person reads it before saying yes to it: laid out in lines, every value exactly as it was written, and
//! nothing in it that a terminal would obey or an eye would miss.

use gantry_core::invisible::push_escaped;

/// Lays JSON text out in lines. Numbers keep their text and keys their order, which a parsed value would not.
pub(crate) fn pretty(json: &str) -> String {
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

/// The text within so many lines of so many characters each; what is left out is said with its length.
pub(crate) fn within(text: &str, lines: usize, characters: usize) -> Vec<String> {
    let mut shown: Vec<String> = text.lines().take(lines).map(|line| shortened(line, characters)).collect();
    let more = text.lines().count().saturating_sub(lines);
    if more > 0 {
        shown.push(format!("… {more} more lines"));
    }
    shown
}

fn shortened(line: &str, characters: usize) -> String {
    let length = line.chars().count();
    if length <= characters {
        return line.to_owned();
    }
    let begin: String = line.chars().take(characters).collect();
    format!("{begin}… ({length} characters)")
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
        assert_eq!(pretty(raw), shown);
        assert_eq!(pretty(&pretty(raw)), shown);
    }

    #[test]
    fn what_a_terminal_obeys_or_nobody_sees_is_escaped_and_means_the_same() {
        let text = "a\u{202e}b\u{200b}c\u{e0041}d\u{9b}e\u{feff}";
        let raw = serde_json::to_string(text).unwrap();
        let shown = pretty(&raw);
        assert_eq!(shown, "\"a\\u202eb\\u200bc\\udb40\\udc41d\\u009be\\ufeff\"");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), text);
    }

    #[test]
    fn long_texts_are_cut_and_their_length_is_told() {
        assert_eq!(within("abc\nd\ne\nf", 2, 2), ["ab… (3 characters)", "d", "… 2 more lines"]);
        assert_eq!(within("abc", 2, 3), ["abc"]);
    }
}
