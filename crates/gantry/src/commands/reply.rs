//! The reply to a call, as people read it and as programs do.

use super::approvals::words;
use crate::client::ApiResponse;
use crate::exit::Outcome;
use crate::term;
use gantry_core::raw;
use serde_json::{Value, json};

/// What `GET /api/v1/calls/{id}` says of a call that is over, as the call itself would have been answered.
pub(super) fn reply_from_record(answer: ApiResponse) -> ApiResponse {
    if answer.body.get("ok").is_some() {
        let text = raw::without(&answer.text, |name| name == "record");
        return ApiResponse { text, ..answer };
    }
    // It never ran, so there is no reply of a tool.
    let text = |pointer: &str| answer.body.pointer(pointer).and_then(Value::as_str);
    let state = text("/state").unwrap_or_default();
    let error = ["/error", "/record/error"].iter().find_map(|place| answer.body.pointer(place)).cloned();
    let error = error.unwrap_or_else(
        || json!({ "code": state, "message": format!("the call is {}", words::state(state)) }),
    );
    let body = json!({ "ok": false, "error": error, "id": text("/id"), "state": state });
    ApiResponse { status: answer.status, text: body.to_string(), body }
}

/// Shows a reply.
pub(super) fn show(answer: &ApiResponse, as_json: bool) -> Outcome {
    let ok = is_ok(answer);
    if as_json {
        term::print(answer.text.trim_end());
        return if ok { Outcome::Success } else { Outcome::Failure };
    }
    if let Some(arguments) = answer.body.pointer("/extras/executedArguments") {
        let arguments = term::sanitize(&arguments.to_string());
        term::eprint(&format!("It ran with the arguments that were approved instead: {arguments}"));
    }
    if ok {
        match answer.body.get("result") {
            Some(Value::String(text)) => term::print_untrusted(text),
            Some(value) => term::print_json(value),
            None => {}
        }
        return Outcome::Success;
    }
    print_error(answer);
    Outcome::Failure
}

/// Whether the call did what it was to do.
pub(super) fn is_ok(answer: &ApiResponse) -> bool {
    answer.body.get("ok") == Some(&Value::Bool(true))
}

/// Says why a call came to nothing.
pub(super) fn print_error(answer: &ApiResponse) {
    let text = |pointer: &str| answer.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (message, state) = (term::sanitize(text("/error/message")), text("/state"));
    // Denied, expired, canceled and unknown are never to be taken for one another.
    let word = match words::state(state) {
        word @ ("denied" | "expired" | "canceled" | "unknown") if !message.contains(word) => {
            format!("{word}: ")
        }
        _ => String::new(),
    };
    term::eprint(&format!("error: {word}{message} [{}]", text("/error/code")));
}
