//! What callers and approvers were answered, by the name of the call.

use super::super::held::{Held, text};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// All stories.
#[derive(Debug, Default)]
pub(super) struct Book(Mutex<HashMap<String, Story>>);

/// What was said about one call.
#[derive(Debug, Default, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each was said or not, apart from the others")]
pub(super) struct Story {
    /// It was acknowledged that it waits.
    pub(super) held: Option<Held>,
    /// A yes was acknowledged.
    pub(super) approved: bool,
    /// An approver tried to say no, with any answer.
    pub(super) denying: bool,
    /// A no was acknowledged.
    pub(super) denied: bool,
    /// Its caller tried to withdraw it, with any answer.
    pub(super) withdrawing: bool,
    /// It was acknowledged that it is withdrawn.
    pub(super) withdrawn: bool,
    /// Its caller got the answer that it is over, and how.
    pub(super) answered: Option<String>,
}

impl Book {
    /// The story of a call that is about to be made.
    pub(super) fn begin(&self, name: &str) {
        let known = self.lock().insert(name.to_owned(), Story::default());
        assert!(known.is_none(), "{name} is made twice");
    }

    pub(super) fn held(&self, name: &str, held: &Held) {
        self.note(name, |story| story.held = Some(held.clone()));
    }

    /// An approver is about to decide.
    pub(super) fn deciding(&self, name: &str, approved: bool) {
        self.note(name, |story| story.denying |= !approved);
    }

    /// An approver got the answer that the decision stands.
    #[track_caller]
    pub(super) fn decided(&self, name: &str, approved: bool) {
        let mut stories = self.lock();
        let story = stories.get_mut(name).expect("somebody has made it");
        let said = if approved { &mut story.approved } else { &mut story.denied };
        let before = std::mem::replace(said, true);
        drop(stories);
        assert!(!before, "{name} was decided twice");
    }

    pub(super) fn withdrawing(&self, name: &str) {
        self.note(name, |story| story.withdrawing = true);
    }

    pub(super) fn withdrawn(&self, name: &str) {
        self.note(name, |story| story.withdrawn = true);
    }

    pub(super) fn answered(&self, name: &str, state: String) {
        self.note(name, |story| story.answered = Some(state));
    }

    pub(super) fn stories(&self) -> HashMap<String, Story> {
        self.lock().clone()
    }

    fn note(&self, name: &str, note: impl FnOnce(&mut Story)) {
        note(self.lock().get_mut(name).unwrap_or_else(|| panic!("nobody has made {name}")));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Story>> {
        self.0.lock().expect("nobody failed in it")
    }
}

/// The name of the call that an approval, or an entry of the ledger, is about.
#[track_caller]
pub(super) fn name(item: &Value) -> String {
    let shown = &item["arguments"];
    // The ledger has them as a text.
    let arguments = shown.as_str().map(|text| serde_json::from_str(text).expect("JSON"));
    let arguments: Value = arguments.unwrap_or_else(|| shown.clone());
    let named = &arguments["text"];
    text(if named.is_null() { &arguments["file"] } else { named })
}
