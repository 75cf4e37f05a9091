//! Cutting results down to what a conversation can take: truncation that respects UTF-8, and counting.

use std::borrow::Cow;

/// What the seeds' outcome table says for a result that no longer fits.
pub const BUDGET_MESSAGE: &str = "(tool failed: context window budget exceeded)";

/// What it says for a call that took too long.
pub const TIMEOUT_MESSAGE: &str = "(tool failed: timeout)";

/// The longest start of `text` of at most `limit` bytes that ends between two characters.
#[must_use]
pub fn truncated(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return text.into();
    }
    text.get(..text.floor_char_boundary(limit)).unwrap_or_default().into()
}

/// A cautious estimate of how many tokens a text costs a model.
///
/// Four bytes a token is what tokenizers do on English prose; other scripts cost more, and they have more bytes a
/// character, so counting bytes errs on the safe side for both.
#[must_use]
pub fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

/// The size of a text in all the ways a stored output reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Bytes of UTF-8.
    pub bytes: u64,
    /// Lines; a last line without an end counts.
    pub lines: u64,
    /// Estimated tokens.
    pub tokens: u64,
}

impl Measure {
    /// Measures a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self { bytes: text.len() as u64, lines: text.lines().count() as u64, tokens: tokens(text) }
    }
}

/// What stands in a conversation in place of an output that was stored whole.
#[must_use]
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
            let cut = truncated(&text, limit);
            prop_assert!(cut.len() <= limit.max(text.len().min(limit)));
            prop_assert!(text.starts_with(&*cut));
            // Nothing more could have been kept: the next character would not fit.
            let next = text.get(cut.len()..).unwrap().chars().next().map_or(0, char::len_utf8);
            prop_assert!(cut.len() == text.len() || cut.len() + next > limit);
        }
    }
}
