//! Cutting and measuring text.

/// The outcome table's message for a result that no longer fits the budget.
pub const BUDGET_MESSAGE: &str = "(tool failed: context window budget exceeded)";

/// The outcome table's message for a call that took too long.
pub const TIMEOUT_MESSAGE: &str = "(tool failed: timeout)";

/// The longest start of `text` of at most `limit` bytes that ends between two characters.
pub fn truncate(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or(text)
}

/// An estimate of how many tokens a text costs a model, rather too high than too low.
///
/// Tokenizers take about four bytes of English prose per token. Other scripts cost more, but they also have more bytes per
/// character.
pub fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

/// The size of a text as a stored output reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    pub bytes: u64,
    /// A last line without a line end counts.
    pub lines: u64,
    pub tokens: u64,
}

impl Measure {
    pub fn of(text: &str) -> Self {
        Self { bytes: text.len() as u64, lines: text.lines().count() as u64, tokens: tokens(text) }
    }
}

/// The result that replaces an output that was stored whole.
pub fn handle_message(handle: &str, measure: Measure) -> serde_json::Value {
    serde_json::json!({
        "tool_output": {
            "handle": handle,
            "reason": "size_limit_exceeded",
            "bytes": measure.bytes,
            "lines": measure.lines,
            "tokens": measure.tokens,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_is_measured_in_bytes_lines_and_tokens() {
        assert_eq!(Measure::of("é\nb"), Measure { bytes: 4, lines: 2, tokens: 1 });
        assert_eq!(Measure::of(""), Measure { bytes: 0, lines: 0, tokens: 0 });
    }

    proptest! {
        #[test]
        fn truncation_respects_utf8_and_the_limit(text in ".*", limit in 0usize..64) {
            let cut = truncate(&text, limit);
            prop_assert!(cut.len() <= limit.max(text.len().min(limit)));
            prop_assert!(text.starts_with(cut));
            // Nothing more could have been kept: the next character would not fit.
            let next = text.get(cut.len()..).unwrap().chars().next().map_or(0, char::len_utf8);
            prop_assert!(cut.len() == text.len() || cut.len() + next > limit);
        }
    }
}
