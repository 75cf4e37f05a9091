//! The lines that a search returns.

use schemars::JsonSchema;
use serde::Serialize;

const LINE_BYTES: usize = 500;
/// Of these, what is returned before the match.
const LEAD_BYTES: usize = 120;

#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(super) struct Match {
    /// The file, relative to the workspace root.
    pub(super) path: String,
    /// The number of the line.
    #[schemars(range(min = 1))]
    pub(super) line: u64,
    /// Where in the line the match begins, in characters; not for ranked.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) column: Option<usize>,
    /// The line; of a long one the part around the match.
    pub(super) text: String,
    /// Lines before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) before: Vec<String>,
    /// Lines after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) after: Vec<String>,
    /// How well the file fits, compared with the others; ranked only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) score: Option<f64>,
    /// The definition that the line is or seems to belong to; ranked only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) symbol: Option<String>,
}

impl Match {
    pub(super) fn size(&self) -> usize {
        let around: usize = self.before.iter().chain(&self.after).map(String::len).sum();
        self.path.len() + self.text.len() + around
    }
}

/// A line as results have it, and the column (in characters, from 1) of a byte in it. Of a long line, what is around
/// that byte.
pub(super) fn display_line(line: &[u8], at: usize) -> (String, usize) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let lead = String::from_utf8_lossy(line.get(..at).unwrap_or(line));
    let column = lead.chars().count() + 1;
    let text = String::from_utf8_lossy(line);
    if text.len() <= LINE_BYTES {
        return (text.into_owned(), column);
    }
    let from = text.ceil_char_boundary(lead.len().saturating_sub(LEAD_BYTES));
    let to = text.floor_char_boundary(from + LINE_BYTES);
    let part = text.get(from..to).unwrap_or_default();
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    (format!("{before}{part}{after}"), column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_shown_around_the_match() {
        let line = format!("{}needle{}\r\n", "ä".repeat(1000), "ö".repeat(1000));
        let (text, column) = display_line(line.as_bytes(), 2000);
        assert_eq!(column, 1001);
        assert!(text.starts_with("…ä") && text.ends_with("ö…") && text.contains("äneedleö"), "{text}");
        assert!(text.len() < LINE_BYTES + 10);
        assert_eq!(display_line(b"short\n", 2), ("short".to_owned(), 3));
        assert_eq!(display_line(b"", 7).1, 1);
        assert!(display_line(&[0xff; 600], 599).0.starts_with('…'));
    }
}
