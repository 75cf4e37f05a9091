//! Texts, numbers, times and names as people read and type them. Text from outside is made safe to show: no control sequence
//! in it reaches the terminal.

use gantry_core::invisible;

/// The text on one line, with a space for every control or invisible character.
pub(crate) fn sanitize(cell: &str) -> String {
    cell.chars().map(|c| if invisible::is_invisible(c) { ' ' } else { c }).collect()
}

/// The text with its lines and tabs, and a space for every other control character. Joiners of letters and emoji stay.
pub(crate) fn sanitize_lines(text: &str) -> String {
    let kept = |c: char| if invisible::is_control(c) && c != '\t' { ' ' } else { c };
    text.lines().map(|line| line.chars().map(kept).collect::<String>()).collect::<Vec<_>>().join("\n")
}

/// A time of the API (RFC 3339, UTC) to the second: `2026-11-15 09:00:00`.
pub(crate) fn timestamp(rfc3339: impl ToString + Copy) -> String {
    rfc3339.to_string().chars().take(19).collect::<String>().replace('T', " ")
}

/// The lines of fields that have a value, each behind its label.
pub(crate) fn fields<'a>(
    width: usize,
    fields: impl IntoIterator<Item = (&'a str, String)>,
) -> impl Iterator<Item = String> {
    let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
    given.map(move |(label, value)| format!("  {label:width$} {value}"))
}

/// A name quoted for a shell where it needs quotes.
pub(crate) fn shell_word(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./@:".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        return name.to_owned();
    }
    format!("'{}'", sanitize(name).replace('\'', r"'\''"))
}

/// A number with its thousands apart: 2,310.
pub(crate) fn thousands(number: impl ToString + Copy) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 tool`, `2,310 tools`.
pub(crate) fn plural(number: impl ToString + Copy, noun: &str) -> String {
    let number = thousands(number);
    let ending = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (2310, "2,310"), (1_234_567, "1,234,567")]
        {
            assert_eq!(thousands(number), text);
        }
        assert_eq!((plural(1, "rule"), plural(2, "rule")), ("1 rule".into(), "2 rules".into()));
    }

    #[test]
    fn names_can_be_typed() {
        for (name, typed) in
            [("a-b/c", "a-b/c"), ("my server", "'my server'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(shell_word(name), typed);
        }
    }

    #[test]
    fn texts_keep_their_lines_and_lose_control_characters() {
        assert_eq!(sanitize_lines("a\tb\x1b[2J\nc\u{9b}1m\u{202e}d\r\n"), "a\tb [2J\nc 1m d");
        assert_eq!(sanitize_lines("👩\u{200d}🚀"), "👩\u{200d}🚀");
    }

    #[test]
    fn two_names_that_differ_look_different_in_a_table() {
        assert_eq!(sanitize("read\u{200b}_file\u{feff}"), "read _file ");
    }
}
