//! What was said, what is on record and what has happened, held against each other.

use super::super::held::{all, is_over, lines, text};
use super::book::{self, Book, Story};
use gantry_testkit::{Server, TestDir};
use serde_json::Value;
use std::collections::HashMap;

/// What came of all calls.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// Calls on record, and how many of them were acknowledged to their callers.
    calls: usize,
    acknowledged: usize,
    /// Decisions on record, and how many of them were acknowledged to the approver.
    approved: usize,
    denied: usize,
    acknowledged_decisions: usize,
    expired: usize,
    withdrawn: usize,
    /// Calls that ended well.
    executed: usize,
    /// Calls of unknown outcome, and how many of them have had their effect.
    unknown: usize,
    unknown_with_effect: usize,
    /// Calls that were approved, not withdrawn, and neither ran nor are of unknown outcome.
    lost: usize,
    /// Calls whose effect is there twice.
    twice: usize,
}

impl Figures {
    /// They are what was promised, and the kills have met what they are about.
    pub(super) fn hold_up(&self, cycles: usize) {
        assert_eq!((self.lost, self.twice), (0, 0), "{self:?}");
        assert!(self.acknowledged > cycles && self.executed > cycles, "{self:?}");
        for (met, what) in [
            (self.unknown, "a call that ran"),
            (self.denied, "a no"),
            (self.expired, "a call that expired"),
            (self.withdrawn, "a call that was withdrawn"),
        ] {
            assert!(met > 0, "no life of the server has seen {what}: {self:?}");
        }
        // A request or a decision may be on record without an answer; never the other way round.
        assert!(self.calls >= self.acknowledged, "{self:?}");
        assert!(self.approved + self.denied >= self.acknowledged_decisions, "{self:?}");
    }
}

/// Holds everything against everything.
pub(super) fn examine(home: &TestDir, server: &Server, book: &Book) -> Figures {
    let mut effects: HashMap<String, usize> = HashMap::new();
    for line in lines(home) {
        *effects.entry(line).or_default() += 1;
    }
    let approvals = by_name(&all(server, "/api/v1/approvals"));
    let ledger = by_name(&all(server, "/api/v1/audit"));
    let mut figures = Figures { calls: approvals.len(), ..Figures::default() };
    for (name, story) in book.stories() {
        if name.starts_with("slow-") {
            let text = std::fs::read_to_string(home.path().join(&name)).unwrap_or_default();
            effects.insert(name.clone(), text.lines().filter(|line| *line == "begun").count());
        }
        match approvals.get(&name) {
            None => assert!(story.held.is_none(), "{name} was acknowledged and is not there: {story:?}"),
            Some(item) => one(item, &story, effects.get(&name).copied().unwrap_or(0), &mut figures),
        }
    }
    assert_eq!(approvals.len(), ledger.len(), "nothing ran that was not held");
    for (name, item) in &approvals {
        let entry = &ledger[name];
        assert_eq!((&item["callId"], &item["state"]), (&entry["id"], &entry["state"]), "{item}\n{entry}");
    }
    let unheard = effects.keys().find(|name| !approvals.contains_key(*name) && effects[*name] > 0);
    assert_eq!(unheard, None, "it took effect and is not on record");
    figures
}

/// Each by the name of its call; none is there twice.
fn by_name(items: &[Value]) -> HashMap<String, Value> {
    let mut named = HashMap::new();
    for item in items {
        let doubled = named.insert(book::name(item), item.clone());
        assert_eq!(doubled, None, "{item}");
    }
    named
}

/// Holds one call against what was said of it and how often its effect is there.
fn one(item: &Value, story: &Story, effects: usize, figures: &mut Figures) {
    assert!(is_over(item), "{item}");
    let (state, begun) = (text(&item["state"]), item["attempts"].as_u64() > Some(0));
    let decided = item["decision"]["approved"].as_bool();
    let is_lost = decided == Some(true)
        && !story.withdrawing
        && !["COMPLETED_SUCCESS", "OUTCOME_UNKNOWN"].contains(&&*state);
    figures.lost += usize::from(is_lost);
    figures.twice += usize::from(effects > 1);
    figures.approved += usize::from(decided == Some(true));
    figures.denied += usize::from(decided == Some(false));
    match &*state {
        "COMPLETED_SUCCESS" => {
            assert!(effects >= 1 && begun, "it is said to have run: {item}");
            figures.executed += 1;
        }
        "OUTCOME_UNKNOWN" => {
            assert!(begun, "it is unknown and has not begun: {item}");
            figures.unknown += 1;
            figures.unknown_with_effect += usize::from(effects > 0);
        }
        "REJECTED_BY_USER" => assert_eq!((decided, effects, begun), (Some(false), 0, false), "{item}"),
        "REJECTED_BY_TIMEOUT" => {
            assert_eq!((decided, effects, begun), (None, 0, false), "{item}");
            figures.expired += 1;
        }
        "CANCELLED_BY_SYSTEM" => {
            assert_eq!((story.withdrawing, effects, begun), (true, 0, false), "{item}");
            figures.withdrawn += 1;
        }
        _ => panic!("a call that counts cannot end so: {item}"),
    }
    if let Some(held) = &story.held {
        figures.acknowledged += 1;
        assert_eq!((&item["id"], &item["callId"]), (&held.id.clone().into(), &held.call.clone().into()));
    }
    figures.acknowledged_decisions += usize::from(story.approved || story.denied);
    if story.denied {
        assert_eq!(decided, Some(false), "the no that was acknowledged stands: {item}");
    } else if story.approved && decided != Some(true) {
        // What was approved and waits for its time can still be stopped by a no, and by nothing else.
        let stopped = story.denying && item["caller"]["project"] == "later";
        assert!(decided == Some(false) && stopped, "the yes that was acknowledged stands: {item}");
    }
    if story.withdrawn {
        assert_eq!(state, "CANCELLED_BY_SYSTEM", "that it is withdrawn was acknowledged: {item}");
    }
    if let Some(answered) = &story.answered {
        assert_eq!(state, *answered, "its caller was told otherwise: {item}");
    }
}
