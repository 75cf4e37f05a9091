//! The result of a call, as the API returns it, and how it is printed.

use super::approvals::format;
use crate::exit::Outcome;
use crate::term;
use gantry_core::{State, ToolError, raw};
use gantry_server::model::Extras;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The result of a call: its JSON text, and the part of a `CallReply` that is printed. A request that never became a call
/// has only `ok` and `error`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallResult {
    #[serde(skip)]
    pub(super) text: String,
    pub(super) ok: bool,
    result: Option<Box<RawValue>>,
    pub(super) error: Option<ToolError>,
    pub(super) state: Option<State>,
    pub(super) approval_id: Option<String>,
    #[serde(default)]
    pub(super) latency_ms: u64,
    #[serde(default)]
    extras: Extras,
}

impl CallResult {
    pub(super) fn new(text: String) -> anyhow::Result<Self> {
        let result: Self = serde_json::from_str(&text)?;
        Ok(Self { text, ..result })
    }

    /// The result of a recorded call, as the call itself would have returned it.
    pub(super) fn from_record(text: &str) -> anyhow::Result<Self> {
        Self::new(raw::without(text, |name| name == "record"))
    }

    /// Prints the result on standard output, or the error on standard error.
    pub(super) fn print(&self, json: bool) -> Outcome {
        let outcome = Outcome::of(self.ok);
        if json {
            term::print(self.text.trim_end());
            return outcome;
        }
        if let Some(arguments) = &self.extras.executed_arguments {
            let arguments = term::sanitize(&arguments.to_string());
            term::eprint(&format!("It ran with the arguments that were approved instead: {arguments}"));
        }
        match (&self.result, self.ok) {
            (Some(result), true) => match serde_json::from_str::<String>(result.get()) {
                Ok(text) => term::print_untrusted(&text),
                Err(_) => term::print(&term::pretty_json(result.get())),
            },
            (None, true) => {}
            (_, false) => self.print_error(),
        }
        outcome
    }

    pub(super) fn print_error(&self) {
        let error = self.error.as_ref();
        let (code, message) = error.map_or(("", ""), |error| (error.code.as_str(), &*error.message));
        let message = term::sanitize(message);
        // The word must not be missing: denied, expired, canceled and unknown mean different things.
        let word = match self.state {
            Some(
                state @ (State::RejectedByUser
                | State::RejectedByTimeout
                | State::CancelledBySystem
                | State::OutcomeUnknown),
            ) if !message.contains(format::state(state)) => format!("{}: ", format::state(state)),
            _ => String::new(),
        };
        term::eprint(&format!("error: {word}{message} [{code}]"));
    }
}
