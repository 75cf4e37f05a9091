//! `keep_note`: keeps one note until Gantry ends.

use crate::text::display_text;
use crate::tool::prelude::*;
use gantry_core::digest::Digest;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The tool.
#[derive(Debug, Default)]
pub(crate) struct KeepNote(Mutex<Option<String>>);

/// Keeps one note until Gantry ends. Use it for what a later call needs. Replacing a note that is there waits for a
/// person's approval.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The note.
    #[schemars(length(min = 1, max = 1000))]
    text: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The note that was there before; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<String>,
}

impl Tool for KeepNote {
    const NAME: &'static str = "keep_note";
    const TITLE: &'static str = "Keep a note";
    const HINTS: Annotations = CHANGES;
    const APPROVAL: ApprovalRule = ApprovalRule::Depends;
    type Args = Args;
    type Output = Output;

    async fn preflight(&self, _args: Args) -> Result<Preflight> {
        let note = self.note();
        let ask = note.as_ref().map(|note| format!("the note “{}” would be replaced", display_text(note)));
        Ok(Preflight { ask, precondition: Some(fingerprint(note.as_deref()).into()) })
    }

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output> {
        let mut note = self.note();
        if call.precondition() != Some(&*fingerprint(note.as_deref())) {
            return Err(failure::outdated(
                "the note is not what it was when the call was judged; call again",
            ));
        }
        Ok(Output { replaced: note.replace(call.args.text) })
    }
}

impl KeepNote {
    fn note(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the note that is there from every other one.
fn fingerprint(note: Option<&str>) -> String {
    note.map_or("absent".to_owned(), |note| Digest::of(note.as_bytes()).to_string())
}
