//! The result of a call, as the API returns it, and how it is printed.

use super::approvals::format;
use crate::exit::Outcome;
use crate::term;
use gantry_core::{State, ToolError, raw};
use gantry_server::model::Extras;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The result of a call: its JSON text, and what the command line reads in it.
#[derive(Debug)]
pub(super) struct CallResult {
    pub(super) text: String,
    pub(super) reply: Reply,
}

/// The part of a `CallReply` that is printed. A request that never became a call has only `ok` and `error`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reply {
    pub(super) ok: bool,
    pub(super) result: Option<Box<RawValue>>,
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
        Ok(Self { reply: serde_json::from_str(&text)?, text })
    }

    /// The result of a recorded call, as the call itself would have returned it.
    pub(super) fn from_record(text: &str) -> anyhow::Result<Self> {
        Self::new(raw::without(text, |name| name == "record"))
    }

    pub(super) fn outcome(&self) -> Outcome {
        if self.reply.ok { Outcome::Success } else { Outcome::Failure }
    }

    /// Prints the result on standard output, or the error on standard error.
    pub(super) fn print(&self, json: bool) -> Outcome {
        if json {
            term::print(self.text.trim_end());
            return self.outcome();
        }
        if let Some(arguments) = &self.reply.extras.executed_arguments {
            let arguments = term::sanitize(&arguments.to_string());
            term::eprint(&format!("It ran with the arguments that were approved instead: {arguments}"));
        }
        match (&self.reply.result, self.reply.ok) {
            (Some(result), true) => match serde_json::from_str::<String>(result.get()) {
                Ok(text) => term::print_untrusted(&text),
                Err(_) => term::print(&term::pretty_json(result.get())),
            },
            (None, true) => {}
            (_, false) => self.print_error(),
        }
        self.outcome()
    }

    /// Prints why the call failed or was not run.
    pub(super) fn print_error(&self) {
        let error = self.reply.error.as_ref();
        let (code, message) = error.map_or(("", ""), |error| (error.code.as_str(), &*error.message));
        let message = term::sanitize(message);
        // The word must not be missing: denied, expired, canceled and unknown mean different things.
        let word = match self.reply.state {
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
