//! The result of a call, as an MCP client gets it.

use gantry_core::error::{ErrorCode, Upstream};
use gantry_core::id::CallId;
use gantry_core::json::write_string;
use gantry_core::schema::SchemaText;
use gantry_core::{Refusal, State, ToolError, raw};
use gantry_mcp::ErrorObject;
use gantry_mcp::error::code::{INTERNAL_ERROR, INVALID_PARAMS};
use gantry_runtime::Reply;
use serde_json::json;
use std::sync::Arc;

/// How a client gets the outcome of a call that it does not wait for.
const AGAIN: &str = "the same call again gets the outcome.";

/// The text of the result of a call. A result or an error of an MCP server is passed on as it came; a note is added where
/// an approver changed the arguments.
pub(super) fn result(reply: &Reply) -> Result<Arc<str>, ErrorObject> {
    let result = plain(reply)?;
    let Some(arguments) = &reply.executed_arguments else { return Ok(result) };
    let by = reply.approved_by.as_deref().unwrap_or("a person");
    let note = format!("Note: {by} approved this call with other arguments. What ran: {arguments}");
    let content = raw::member(&result, "content").unwrap_or("[]");
    Ok(raw::with(&result, "content", &with_note(content, &note)).into())
}

/// A list of content blocks with a text before them.
fn with_note(content: &str, note: &str) -> String {
    let rest = content.trim().strip_prefix('[').unwrap_or("]");
    let mut out = String::with_capacity(64 + note.len() + content.len());
    out.push('[');
    push_text_block(&mut out, note);
    out.push_str(if rest.trim_start().starts_with(']') { "" } else { "," });
    out.push_str(rest);
    out
}

fn plain(reply: &Reply) -> Result<Arc<str>, ErrorObject> {
    match &reply.outcome {
        Ok(shaped) => {
            if let Some(result) = shaped.content() {
                return Ok(Arc::clone(result));
            }
            let schema = reply.tool.as_ref().and_then(|tool| tool.spec.output_schema.as_ref());
            let structured =
                shaped.structured().filter(|text| schema.is_some_and(|schema| may_fit(schema, text)));
            // Clients refuse a result without the structure that its tool promises, unless it is marked as an error; a
            // handle that stands for a stored output has none.
            let is_error = schema.is_some() && structured.is_none();
            Ok(write(shaped.text(), structured, is_error, None))
        }
        Err(error) if error.code == ErrorCode::ToolNotFound => {
            Err(ErrorObject::new(INVALID_PARAMS, error.message.clone()))
        }
        Err(error) if reply.is_held() => {
            let once = if reply.state == State::Executing { "it has ended" } else { "it is decided" };
            let message = format!("{} Once {once}, {AGAIN}", error.message);
            failed(reply.id, &ToolError { message, ..error.clone() })
        }
        Err(error) => failed(reply.id, error),
    }
}

/// Whether a structure is at least of the promised type: services do not always answer what they say.
fn may_fit(schema: &SchemaText, structure: &str) -> bool {
    let is_object = structure.trim_start().starts_with('{');
    is_object || raw::string_member(schema.as_str(), "type").is_none_or(|kind| kind != "object")
}

fn failed(id: CallId, error: &ToolError) -> Result<Arc<str>, ErrorObject> {
    match error.upstream.as_deref() {
        Some(Upstream::Result(result)) => Ok(Arc::clone(result)),
        Some(Upstream::Error(object)) => {
            let sent = ErrorObject::parse(object);
            let message = if sent.message.is_empty() { error.message.clone() } else { sent.message };
            Err(ErrorObject { message, ..sent })
        }
        None => {
            // For programs; models read the text.
            let meta = json!({ "gantry/call": id, "gantry/error": error }).to_string();
            Ok(write(&error.conversation(), None, true, Some(&meta)))
        }
    }
}

/// The text of a result of Gantry's own.
fn write(text: &str, structured: Option<&str>, is_error: bool, meta: Option<&str>) -> Arc<str> {
    let size = 96 + text.len() + structured.map_or(0, str::len) + meta.map_or(0, str::len);
    let mut out = String::with_capacity(size);
    out.push_str("{\"content\":[");
    push_text_block(&mut out, text);
    out.push(']');
    let is_error = if is_error { "true" } else { "false" };
    for (key, value) in [("structuredContent", structured), ("isError", Some(is_error)), ("_meta", meta)] {
        let Some(value) = value else { continue };
        out.extend([",\"", key, "\":", value]);
    }
    out.push('}');
    out.into()
}

/// The error for a request that was refused before it became a call.
pub(super) fn refused(refusal: &Refusal) -> ErrorObject {
    let internal = refusal.error().code == ErrorCode::InternalError;
    let code = if internal { INTERNAL_ERROR } else { INVALID_PARAMS };
    ErrorObject::new(code, refusal.error().message.clone())
}

fn push_text_block(out: &mut String, text: &str) {
    out.push_str("{\"type\":\"text\",\"text\":");
    write_string(out, text);
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_stands_before_what_there_is() {
        assert_eq!(with_note("[]", "n"), r#"[{"type":"text","text":"n"}]"#);
        assert_eq!(with_note(r#" [ {"a":1}]"#, "n"), r#"[{"type":"text","text":"n"}, {"a":1}]"#);
    }
}
