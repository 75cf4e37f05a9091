//! Makes text from outside safe to show: no control sequence in it reaches the terminal.

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

#[cfg(test)]
mod tests {
    use super::*;

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
