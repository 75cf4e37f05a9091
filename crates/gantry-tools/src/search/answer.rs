//! What a search gives back.

use super::query::Mode;
use serde::Serialize;

/// Bytes of text in one answer; what comes after them is left out.
const ANSWER_BYTES: usize = 1024 * 1024;
/// Bytes of a line that are shown.
const LINE_BYTES: usize = 500;
/// Of these, what is shown before the match.
const LEAD_BYTES: usize = 120;

/// One line that was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Match {
    pub(super) path: String,
    pub(super) line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) column: Option<usize>,
    pub(super) text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) before: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) after: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) symbol: Option<String>,
}

/// The whole answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    pub(super) mode: Mode,
    pub(super) matches: Vec<Match>,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) files_searched: Option<usize>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) skipped: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Answer {
    pub(super) fn new(mode: Mode, matches: Vec<Match>) -> Self {
        Self { mode, matches, truncated: false, files_searched: None, skipped: 0, note: None }
    }

    /// Leaves out what is beyond so many matches or the size limit, and says so.
    pub(super) fn bounded(mut self, most: usize) -> Self {
        self.truncated |= self.matches.len() > most;
        self.matches.truncate(most);
        let mut left = ANSWER_BYTES;
        let fitting = self.matches.iter().position(|found| match left.checked_sub(found.size()) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        if let Some(fitting) = fitting {
            self.matches.truncate(fitting);
            self.truncated = true;
        }
        self
    }
}

impl Match {
    fn size(&self) -> usize {
        let around: usize = self.before.iter().chain(&self.after).map(String::len).sum();
        self.path.len() + self.text.len() + around
    }
}

/// A line as results have it, and the column (in characters, from 1) of a byte in it. Of a long line, what is around
/// that byte.
pub(super) fn shown(line: &[u8], at: usize) -> (String, usize) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let lead = line.get(..at).unwrap_or(line);
    let column = String::from_utf8_lossy(lead).chars().count() + 1;
    if line.len() <= LINE_BYTES {
        return (String::from_utf8_lossy(line).into_owned(), column);
    }
    let from = at.min(line.len()).saturating_sub(LEAD_BYTES);
    let from = (from..line.len()).find(|n| is_boundary(line, *n)).unwrap_or(line.len());
    let to = (from + LINE_BYTES).min(line.len());
    let to = (from..=to).rfind(|n| is_boundary(line, *n)).unwrap_or(to);
    let part = String::from_utf8_lossy(line.get(from..to).unwrap_or_default());
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
    (format!("{before}{part}{after}"), column)
}

/// Whether no character lies across this place.
fn is_boundary(line: &[u8], at: usize) -> bool {
    line.get(at).is_none_or(|byte| byte & 0b1100_0000 != 0b1000_0000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_shown_around_the_match() {
        let line = format!("{}needle{}\r\n", "ä".repeat(1000), "ö".repeat(1000));
        let (text, column) = shown(line.as_bytes(), 2000);
        assert_eq!(column, 1001);
        assert!(text.starts_with("…ä") && text.ends_with("ö…") && text.contains("äneedleö"), "{text}");
        assert!(text.len() < LINE_BYTES + 10);
        assert_eq!(shown(b"short\n", 2), ("short".to_owned(), 3));
        assert_eq!(shown(b"", 7).1, 1);
        assert!(shown(&[0xff; 600], 599).0.starts_with('…'));
    }

    #[test]
    fn an_answer_has_a_limit() {
        let one = Match { text: "x".repeat(ANSWER_BYTES / 2), ..Match::default() };
        let answer = Answer::new(Mode::Literal, vec![one.clone(), one.clone(), one]);
        let answer = answer.bounded(10);
        assert!(answer.truncated && answer.matches.len() == 2);
        let answer = answer.bounded(1);
        assert!(answer.truncated && answer.matches.len() == 1);
    }
}
