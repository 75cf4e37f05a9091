//! Requests in words: where they stand, how long ago, by whom.

use crate::exit::UsageError;
use gantry_core::State;
use jiff::Timestamp;

/// Where a request or call stands, by the word that people use; every end has its own.
pub(in crate::commands) fn state(state: &str) -> &str {
    match state {
        "PENDING_APPROVAL" => "waiting",
        "SCHEDULED_FOR_EXECUTION" => "scheduled",
        "APPROVED_READY" => "approved",
        "EXECUTING" => "running",
        "COMPLETED_SUCCESS" => "done",
        "COMPLETED_FAILURE" => "failed",
        "REJECTED_BY_USER" => "denied",
        "REJECTED_BY_TIMEOUT" => "expired",
        "CANCELLED_BY_SYSTEM" | "CANCELED" => "canceled",
        "OUTCOME_UNKNOWN" => "unknown",
        "REFUSED" => "refused",
        other => other,
    }
}

/// The API's word for what a person typed, which may be the API's or the people's.
pub(super) fn typed_state(typed: &str) -> Result<&'static str, UsageError> {
    let meant = typed.to_lowercase();
    let meant = match meant.as_str() {
        "pending" => "waiting",
        "cancelled" => "canceled",
        "executing" => "running",
        other => other,
    };
    let known = || State::ALL.iter().map(|known| known.as_str());
    known().find(|known| state(known) == meant || known.eq_ignore_ascii_case(meant)).ok_or_else(|| {
        // A call that was refused was never one to ask about.
        let asked = known().filter(|known| *known != State::Refused.as_str());
        let words: Vec<&str> = asked.map(state).collect();
        UsageError(format!("there is no state {typed:?}; it is one of {}", words.join(", ")))
    })
}

/// A span of time, roughly, as people say it.
pub(super) fn span(seconds: i64) -> String {
    match seconds.unsigned_abs() {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", s / 60),
        s @ 7_200..172_800 => format!("{} h", s / 3_600),
        s => format!("{} days", s / 86_400),
    }
}

/// Seconds from now until a moment of the API; negative once it has passed.
pub(super) fn until(moment: &str) -> Option<i64> {
    let moment: Timestamp = moment.parse().ok()?;
    Some(moment.as_second().saturating_sub(Timestamp::now().as_second()))
}

/// How long ago a moment of the API is.
pub(super) fn ago(moment: &str) -> String {
    until(moment).map_or_else(String::new, |seconds| span(seconds.min(0)))
}

/// In how long a moment of the API comes.
pub(super) fn ahead(moment: &str) -> String {
    match until(moment) {
        Some(seconds) if seconds > 0 => format!("in {}", span(seconds)),
        Some(_) => "now".to_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apr_7_every_end_has_a_word_of_its_own() {
        let words: Vec<&str> = State::ALL.iter().map(|known| state(known.as_str())).collect();
        for (n, word) in words.iter().enumerate() {
            assert!(!words[..n].contains(word) && !word.contains('_'), "{word}");
            assert_eq!(state(typed_state(word).unwrap()), *word);
        }
        assert_eq!(typed_state("pending").unwrap(), "PENDING_APPROVAL");
        assert_eq!(typed_state("rejected_by_user").unwrap(), "REJECTED_BY_USER");
        let unknown = typed_state("foo").unwrap_err().to_string();
        assert!(
            unknown.starts_with("there is no state \"foo\"; it is one of waiting, scheduled, "),
            "{unknown}"
        );
        let told = |word: &str| unknown.contains(word) || word == "refused";
        assert!(words.iter().all(|word| told(word)), "{unknown}");
    }

    #[test]
    fn spans_are_said_roughly() {
        for (seconds, said) in
            [(0, "0 s"), (-119, "119 s"), (600, "10 min"), (7_200, "2 h"), (259_200, "3 days")]
        {
            assert_eq!(span(seconds), said);
        }
        assert_eq!(ahead("2020-01-01T00:00:00Z"), "now");
        assert_eq!(ahead("no time"), "");
    }
}
