//! Texts of files, programs and callers as people and models get them: bounded, and with nothing in them that misleads.

use gantry_core::invisible::is_invisible;

/// Characters of a text that [`display_text`] shows.
const DISPLAYED_CHARS: usize = 200;
/// Lines of what a program said that a message shows, counted from the end.
const LAST_LINES: usize = 12;

/// One line of a text from elsewhere, as questions and messages show it: cut to a sensible length, and without anything
/// that misleads. A backslash is doubled, so that no text can fake what is escaped.
pub(crate) fn display_text(text: &str) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        match c {
            _ if n == DISPLAYED_CHARS => {
                out.push('…');
                break;
            }
            '\\' => out.push_str("\\\\"),
            _ if is_invisible(c) => out.extend(c.escape_default()),
            _ => out.push(c),
        }
    }
    out
}

/// The end of a text, in whole characters.
pub(crate) fn tail(text: &str, bytes: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(bytes))..).unwrap_or_default()
}

/// A text without the sequences that colour a terminal.
pub(crate) fn strip_ansi(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\x1b' && chars.peek() == Some(&'[') {
            chars.next();
            chars.by_ref().find(|c| ('@'..='~').contains(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// The end of what git said, without its hints.
pub(crate) fn last_lines(said: &str) -> String {
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with("hint:");
    let lines = said.lines().rev().map(str::trim_end).filter(is_said).take(LAST_LINES);
    let lines: Vec<String> = lines.map(display_text).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// `1 commit`, `2 commits`.
pub(crate) fn counted(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_misleads_is_escaped_and_no_escape_can_be_faked() {
        assert_eq!(display_text("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(display_text("a\n\\u{202e}\u{a0}é"), "a\\n\\\\u{202e}\\u{a0}é");
        assert_eq!(display_text(&"ä".repeat(201)), format!("{}…", "ä".repeat(200)));
    }

    #[test]
    fn texts_are_cut_in_whole_characters() {
        assert_eq!(tail("aäb", 2), "b");
        assert_eq!(tail("a", 9), "a");
        assert_eq!(strip_ansi("\x1b[31mred\x1b[0m"), "red");
    }
}
