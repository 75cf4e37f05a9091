//! Messages of a server, split but not judged (numbers of any size, any key order, unknown members), and messages to it.

use super::limits::EXCERPT_CHARS;
use crate::envelope::{cut, present};
use crate::error::code;
use crate::{ErrorObject, raw};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Debug, PartialEq)]
pub(super) enum Message<'a> {
    /// Wants an answer under this id (JSON text).
    Request { id: &'a str, method: Cow<'a, str>, params: &'a str },
    /// Wants none.
    Notification { method: Cow<'a, str>, params: &'a str },
    /// The text of a result, or an error, and the request that it answers.
    Response { named: Named, outcome: Result<&'a str, ErrorObject> },
}

/// What an answer says about the request that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// The request with this id.
    Request(u64),
    /// Nothing: the server could not tell the id.
    Nothing,
    /// An id that is none of ours.
    Unknown,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// The messages in a text, several if it is a batch; `None` if it is not a message.
pub(super) fn read(text: &str) -> Option<Vec<Message<'_>>> {
    let text = text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    match text.as_bytes().first()? {
        b'{' => one(text).map(|message| vec![message]),
        // Limit: the text is bounded, and so are the messages in it.
        b'[' => raw::elements(text)?.into_iter().map(one).collect(),
        _ => None,
    }
}

/// Whether a text that is not a message was meant to be one: JSON-RPC that is cut off or otherwise broken.
pub(super) fn is_broken(text: &str) -> bool {
    let looks_like_one = text.trim_start().starts_with('{') && text.contains("\"jsonrpc\"");
    looks_like_one && serde_json::from_str::<IgnoredAny>(text).is_err()
}

fn one(text: &str) -> Option<Message<'_>> {
    if !text.starts_with('{') {
        return None;
    }
    let wire: Wire<'_> = serde_json::from_str(text).ok()?;
    let id = wire.id.map(RawValue::get).filter(|id| *id != "null");
    if let Some(method) = wire.method {
        let params = wire.params.map(RawValue::get).filter(|params| params.starts_with('{')).unwrap_or("{}");
        return Some(match id {
            Some(id) => Message::Request { id, method, params },
            None => Message::Notification { method, params },
        });
    }
    let outcome = match (wire.result, wire.error) {
        (_, Some(error)) if error.get() != "null" => Err(error_object(error.get())),
        (Some(result), _) => Ok(result.get()),
        (None, _) => return None,
    };
    let named = match id {
        Some(id) => number(id).map_or(Named::Unknown, Named::Request),
        None => Named::Nothing,
    };
    Some(Message::Response { named, outcome })
}

/// The id or the token that was ours, also where a server made a string of it.
pub(super) fn number(text: &str) -> Option<u64> {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).parse().ok()
}

/// An error as a server sent it, made whole where something is missing.
pub(super) fn error_object(text: &str) -> ErrorObject {
    let code = raw::member(text, "code").and_then(|code| code.parse().ok()).unwrap_or(code::INTERNAL_ERROR);
    let message = raw::string_member(text, "message").map_or_else(
        || format!("the server sent an error without a message: {}", cut(text, EXCERPT_CHARS)),
        Cow::into_owned,
    );
    let data = raw::member(text, "data").map(str::to_owned);
    ErrorObject { code, message, data }
}

pub(super) fn request(id: u64, method: &str, params: &str) -> String {
    let (id, method) = (id.to_string(), raw::quoted(method));
    raw::object([("jsonrpc", "\"2.0\""), ("id", &id), ("method", &method), ("params", params)])
}

pub(super) fn notification(method: &str, params: &str) -> String {
    raw::object([("jsonrpc", "\"2.0\""), ("method", &*raw::quoted(method)), ("params", params)])
}

pub(super) fn answer(id: &str, outcome: &Result<String, ErrorObject>) -> String {
    match outcome {
        Ok(result) => raw::object([("jsonrpc", "\"2.0\""), ("id", id), ("result", result)]),
        Err(error) => {
            let mut text = String::new();
            error.write(&mut text);
            raw::object([("jsonrpc", "\"2.0\""), ("id", id), ("error", &*text)])
        }
    }
}

pub(super) fn cancelled(id: u64) -> String {
    let params =
        raw::object([("requestId", &*id.to_string()), ("reason", "\"the client withdrew the request\"")]);
    notification("notifications/cancelled", &params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_keeps_its_text() {
        let text =
            r#"{"id":7,"jsonrpc":"2.0","result":{"n":123456789012345678901234567890.10,"b":1,"a":1},"x":1}"#;
        let messages = read(text).unwrap();
        let expected = r#"{"n":123456789012345678901234567890.10,"b":1,"a":1}"#;
        assert_eq!(messages, [Message::Response { named: Named::Request(7), outcome: Ok(expected) }]);
    }

    #[test]
    fn an_id_may_come_back_as_a_string_as_null_or_as_something_else() {
        let cases = [
            ("\"7\"", Named::Request(7)),
            ("7", Named::Request(7)),
            ("null", Named::Nothing),
            ("\"x\"", Named::Unknown),
            ("7.5", Named::Unknown),
        ];
        for (id, named) in cases {
            let text = format!(r#"{{"id":{id},"result":{{}}}}"#);
            assert_eq!(read(&text).unwrap(), [Message::Response { named, outcome: Ok("{}") }], "{text}");
        }
        let without = read(r#"{"result":{}}"#).unwrap();
        assert_eq!(without, [Message::Response { named: Named::Nothing, outcome: Ok("{}") }]);
    }

    #[test]
    fn an_error_is_made_whole() {
        assert_eq!(
            error_object(r#"{"code":-32042,"message":"m","data":[1.0]}"#).data.as_deref(),
            Some("[1.0]")
        );
        let partial = error_object("\"boom\"");
        assert_eq!(partial.code, code::INTERNAL_ERROR);
        assert!(partial.message.contains("boom"));
    }

    #[test]
    fn what_is_not_a_message_is_not_read() {
        for text in ["", "hello", "{", "{}", "[1]", "\"x\"", "{\"id\":1}", "[{\"method\":1}]", "null"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read("[]"), Some(vec![]));
        assert_eq!(read(r#"[{"method":"a"},{"id":1,"method":"b","params":[]}]"#).unwrap().len(), 2);
    }
}
