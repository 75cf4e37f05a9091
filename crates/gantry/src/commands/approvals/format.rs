//! Requests in words: their state, their times, their requester and approvers, the decision.

use crate::exit::UsageError;
use crate::term;
use gantry_core::State;
use gantry_core::approval::Approvers;
use gantry_runtime::clock::now_us;
use gantry_server::model::{Approval, Scope, Timestamp};
use serde_json::value::RawValue;
use std::sync::Arc;

/// The name of the local user in rules: the command line acts as the person who can read the data folder.
const LOCAL_USER: &str = "person";

/// The state of a request or call as one word; each end has its own.
pub(in crate::commands) fn state(state: State) -> &'static str {
    match state {
        State::PendingApproval => "waiting",
        State::ScheduledForExecution => "scheduled",
        State::ApprovedReady => "approved",
        State::Executing => "running",
        State::CompletedSuccess => "done",
        State::CompletedFailure => "failed",
        State::RejectedByUser => "denied",
        State::RejectedByTimeout => "expired",
        State::CancelledBySystem => "canceled",
        State::OutcomeUnknown => "unknown",
        State::Refused => "refused",
    }
}

/// Reads a state that the user typed: a word of [`state`] or of the API.
pub(super) fn parse_state(typed: &str) -> Result<State, UsageError> {
    let word = match typed.to_lowercase().as_str() {
        "pending" => "waiting".to_owned(),
        "cancelled" => "canceled".to_owned(),
        word => word.to_owned(),
    };
    let matches = |known: &&State| state(**known) == word || known.as_str().eq_ignore_ascii_case(&word);
    State::ALL.iter().find(matches).copied().ok_or_else(|| {
        // A refused call never becomes a request.
        let known = State::ALL.iter().filter(|known| **known != State::Refused);
        let words: Vec<&str> = known.map(|known| state(*known)).collect();
        UsageError(format!("there is no state {typed:?}; it is one of {}", words.join(", ")))
    })
}

/// A duration in its largest unit.
fn duration(seconds: u64) -> String {
    match seconds {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", s / 60),
        s @ 7_200..172_800 => format!("{} h", s / 3_600),
        s => format!("{} days", s / 86_400),
    }
}

/// Seconds from now until a time; negative once it has passed.
fn seconds_until(time: Timestamp) -> i64 {
    time.0.saturating_sub(now_us()).div_euclid(1_000_000)
}

pub(super) fn ago(time: Timestamp) -> String {
    duration(seconds_until(time).min(0).unsigned_abs())
}

pub(super) fn ahead(time: Timestamp) -> String {
    match seconds_until(time) {
        seconds @ 1.. => format!("in {}", duration(seconds.unsigned_abs())),
        _ => "now".to_owned(),
    }
}

pub(super) fn utc(time: Timestamp) -> String {
    format!("{} UTC", term::timestamp(time))
}

/// When the request expires or runs; empty if neither is due.
pub(in crate::commands) fn due(approval: &Approval) -> String {
    match (approval.state, approval.expires_at, approval.scheduled_for) {
        (State::PendingApproval, None, _) => "never expires".to_owned(),
        (State::PendingApproval, Some(time), _) => format!("expires {}", ahead(time)),
        (State::ScheduledForExecution, _, Some(time)) => format!("runs {}", ahead(time)),
        _ => String::new(),
    }
}

/// The agents from the topmost one down; without an agent, the principal that called.
pub(super) fn requester(approval: &Approval) -> String {
    if approval.agent_path.is_empty() {
        return approval.caller.principal.to_string();
    }
    approval.agent_path.join(" > ")
}

pub(in crate::commands) fn approvers(lists: &[Vec<Arc<str>>]) -> Approvers<'_> {
    Approvers::by(lists.iter().map(|names| names.iter().map(|name| &**name)))
}

pub(in crate::commands) fn may_local_user_approve(approval: &Approval) -> bool {
    approvers(&approval.approvers).includes(LOCAL_USER)
}

/// The arguments indented, exactly as they were written.
pub(super) fn arguments(arguments: Option<&RawValue>) -> String {
    arguments.map(|text| term::pretty_json(text.get())).unwrap_or_default()
}

/// What was decided, by whom and through which program; `None` while nothing is.
pub(in crate::commands) fn decision(approval: &Approval) -> Option<String> {
    let decision = approval.decision.as_ref()?;
    let mut text = String::from(if decision.approved { "approved" } else { "denied" });
    if let Some(by) = &approval.decided_by {
        text.push_str(&format!(" by {by}"));
    }
    if let Some(via) = &approval.decided_via {
        text.push_str(&format!(" ({via})"));
    }
    match decision.scope {
        Scope::Session if decision.approved => text.push_str(", also for the rest of the session"),
        Scope::Always if decision.approved => text.push_str(", also from now on"),
        Scope::Once | Scope::Session | Scope::Always => {}
    }
    if decision.modified_args_bytes.is_some() {
        text.push_str(", with other arguments");
    }
    if let Some(reason) = decision.reason.as_ref().filter(|reason| !reason.is_empty()) {
        text.push_str(&format!(": {reason}"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apr_7_every_end_has_a_word_of_its_own() {
        let words: Vec<&str> = State::ALL.iter().map(|known| state(*known)).collect();
        for (n, word) in words.iter().enumerate() {
            assert!(!words[..n].contains(word) && !word.contains('_'), "{word}");
            assert_eq!(state(parse_state(word).unwrap()), *word);
        }
        assert_eq!(parse_state("pending").unwrap(), State::PendingApproval);
        assert_eq!(parse_state("rejected_by_user").unwrap(), State::RejectedByUser);
        let unknown = parse_state("foo").unwrap_err().to_string();
        let list = "there is no state \"foo\"; it is one of waiting, scheduled, ";
        assert!(unknown.starts_with(list) && !unknown.contains("refused"), "{unknown}");
        assert!(words.iter().all(|word| unknown.contains(word) || *word == "refused"), "{unknown}");
    }

    #[test]
    fn durations_have_one_unit() {
        for (seconds, text) in
            [(0, "0 s"), (119, "119 s"), (600, "10 min"), (7_200, "2 h"), (259_200, "3 days")]
        {
            assert_eq!(duration(seconds), text);
        }
        assert_eq!(ahead(Timestamp(0)), "now");
    }
}
