//! What a reply of the pipeline is to an MCP client.

use gantry_core::error::{ErrorCode, Upstream};
use gantry_core::id::CallId;
use gantry_core::json::write_string;
use gantry_core::schema::SchemaText;
use gantry_core::{Refusal, State, ToolError, raw};
use gantry_mcp::error::code::{INTERNAL_ERROR, INVALID_PARAMS};
use gantry_mcp::{Answer, ErrorObject, ToolAnswer};
use gantry_runtime::Reply;
use serde_json::json;

/// How a client gets what becomes of a call that it does not wait for.
const AGAIN: &str = "the same call again gets the outcome.";

/// The answer to a call. What an MCP server said, well or ill, goes on as it said it; where a person had the call run with
/// other arguments, a note says so.
pub(super) fn answer(reply: &Reply) -> Result<Answer, ErrorObject> {
    let answer = plain(reply)?;
    let Some(note) = note(reply) else { return Ok(answer) };
    Ok(match answer {
        Answer::Own(own) => Answer::Own(ToolAnswer { content: with_note(&own.content, &note), ..own }),
        Answer::Raw { result } => {
            let content = raw::member(&result, "content").unwrap_or("[]");
            Answer::Raw { result: raw::with(&result, "content", &with_note(content, &note)).into() }
        }
    })
}

/// What the caller has to know to read the result: it is of other arguments than those that were sent.
fn note(reply: &Reply) -> Option<String> {
    let arguments = reply.executed_arguments.as_ref()?;
    let by = reply.approved_by.as_deref().unwrap_or("a person");
    Some(format!("Note: {by} approved this call with other arguments. What ran: {arguments}"))
}

/// A list of content blocks with a text before them.
fn with_note(content: &str, note: &str) -> String {
    let (block, rest) = (text_block(note), content.trim().strip_prefix('[').unwrap_or("]"));
    let block = block.strip_suffix(']').unwrap_or(&block);
    let comma = if rest.trim_start().starts_with(']') { "" } else { "," };
    format!("{block}{comma}{rest}")
}

fn plain(reply: &Reply) -> Result<Answer, ErrorObject> {
    match &reply.outcome {
        Ok(shaped) => {
            if let Some(result) = shaped.content() {
                return Ok(Answer::Raw { result: result.clone() });
            }
            let schema = reply.tool.as_ref().and_then(|tool| tool.spec.output_schema.as_ref());
            let promised = schema.is_some();
            let structured =
                shaped.structured().filter(|text| schema.is_some_and(|schema| may_fit(schema, text)));
            Ok(Answer::Own(ToolAnswer {
                content: text_block(shaped.text()),
                // Clients refuse a result that lacks the structure its tool promises, unless it is marked as an
                // error; a handle that stands for a stored output lacks it.
                is_error: promised && structured.is_none(),
                structured: structured.map(str::to_owned),
                meta: None,
            }))
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

/// Whether a structure is at least of the kind that was promised: services do not always answer what they say.
fn may_fit(schema: &SchemaText, structure: &str) -> bool {
    let is_object = structure.trim_start().starts_with('{');
    is_object || raw::string_member(schema.as_str(), "type").is_none_or(|kind| kind != "object")
}

fn failed(id: CallId, error: &ToolError) -> Result<Answer, ErrorObject> {
    match error.upstream.as_deref() {
        Some(Upstream::Result(result)) => Ok(Answer::Raw { result: result.clone() }),
        Some(Upstream::Error(object)) => Err(as_sent(object, error)),
        None => Ok(Answer::Own(ToolAnswer {
            content: text_block(&error.conversation()),
            structured: None,
            is_error: true,
            meta: Some(error_meta(id, error)),
        })),
    }
}

/// A server's error object, word for word.
fn as_sent(object: &str, error: &ToolError) -> ErrorObject {
    let code = raw::member(object, "code").and_then(|code| code.parse().ok()).unwrap_or(INTERNAL_ERROR);
    let message = raw::string_member(object, "message").map_or_else(|| error.message.clone(), Into::into);
    let data = raw::member(object, "data").map(str::to_owned);
    ErrorObject { data, ..ErrorObject::new(code, message) }
}

/// A request that was not let in.
pub(super) fn refused(refusal: &Refusal) -> ErrorObject {
    let internal = refusal.error().code == ErrorCode::InternalError;
    let code = if internal { INTERNAL_ERROR } else { INVALID_PARAMS };
    ErrorObject::new(code, refusal.error().message.clone())
}

fn text_block(text: &str) -> String {
    let mut block = String::with_capacity(text.len() + 32);
    block.push_str("[{\"type\":\"text\",\"text\":");
    write_string(&mut block, text);
    block.push_str("}]");
    block
}

/// The error for programs; what models read is the text.
fn error_meta(id: CallId, error: &ToolError) -> String {
    json!({ "gantry/call": id, "gantry/error": error }).to_string()
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
