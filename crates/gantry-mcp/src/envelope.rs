//! The JSON-RPC envelope of a message from a client, and the spans of its members.
//!
//! [`read`] scans the text once. Everything that a later stage needs is a span from that scan, so no stage parses the
//! message again. Ids are kept as their text, because a client compares the id it gets back with the one it sent: `1`,
//! `"1"` and `-0` are echoed as such.

use crate::error::{ErrorObject, code};
use crate::limits::{BATCH_MESSAGES, ID_BYTES};
use gantry_core::json::{self, Object};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Debug)]
pub(crate) enum Message<'a> {
    Request(Request<'a>),
    Notification(Notification<'a>),
    Response(Response<'a>),
    /// An array of other messages; whether that is allowed depends on the session.
    Batch(Batch<'a>),
}

#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) id: Id<'a>,
    /// The method, unescaped.
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Params<'a>,
}

#[derive(Debug)]
pub(crate) struct Notification<'a> {
    /// The method, unescaped.
    pub(crate) method: Cow<'a, str>,
    /// Empty where the params are not an object: a notification has no response that could refuse them.
    pub(crate) params: Params<'a>,
}

#[derive(Debug)]
pub(crate) struct Response<'a> {
    /// The id of the request; absent when the client could not read it.
    pub(crate) id: Option<Id<'a>>,
    /// The text of the result or of the error.
    pub(crate) outcome: Result<&'a str, &'a str>,
}

#[derive(Debug, Default)]
pub(crate) struct Params<'a> {
    /// The text of the whole object.
    pub(crate) text: Option<&'a str>,
    members: Object<'a>,
    meta: Object<'a>,
}

/// A text that is not a message, and the id to answer with if it could be read.
#[derive(Debug)]
pub(crate) struct Rejection<'a> {
    pub(crate) id: Option<Id<'a>>,
    pub(crate) error: ErrorObject,
}

impl Rejection<'_> {
    pub(crate) fn response(&self) -> String {
        failure(self.id.as_ref(), &self.error)
    }
}

impl From<ErrorObject> for Rejection<'_> {
    fn from(error: ErrorObject) -> Self {
        Self { id: None, error }
    }
}

/// A request id: a string of at most [`ID_BYTES`] or a 64-bit integer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Id<'a>(Cow<'a, str>);

impl<'a> Id<'a> {
    /// Reads an id; `None` for anything that may not be one.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let is_id = match json::string(text) {
            Some(string) => string.len() <= ID_BYTES,
            None => text.parse::<i64>().is_ok(),
        };
        is_id.then_some(Self(text.into()))
    }

    /// The JSON text as the client wrote it.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// A text that is the same for equal ids, however they were written.
    pub(crate) fn key(&self) -> Cow<'_, str> {
        match json::string(&self.0) {
            Some(Cow::Owned(unescaped)) => Cow::Owned(crate::raw::quoted(&unescaped)),
            None if self.0 == "-0" => Cow::Borrowed("0"),
            Some(Cow::Borrowed(_)) | None => Cow::Borrowed(&self.0),
        }
    }

    pub(crate) fn into_owned(self) -> Id<'static> {
        Id(Cow::Owned(self.0.into_owned()))
    }
}

/// Reads one line or one body.
///
/// # Errors
/// Says what is wrong, with the id if it could be read.
pub(crate) fn read(bytes: &[u8]) -> Result<Message<'_>, Rejection<'_>> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let message = format!("not UTF-8 at byte {}; send the message as UTF-8 text", error.valid_up_to());
        ErrorObject::new(code::PARSE_ERROR, message)
    })?;
    if text.trim_ascii_start().starts_with('[') {
        json::check(text).map_err(ErrorObject::from)?;
        return Ok(Message::Batch(Batch(text.into())));
    }
    match Object::scan(text) {
        Ok(object) => message(object),
        Err(json::Error::NotAnObject) => Err(not_an_object()),
        Err(error) => Err(ErrorObject::from(error).into()),
    }
}

/// An array of messages that was checked but not yet split.
#[derive(Debug)]
pub(crate) struct Batch<'a>(Cow<'a, str>);

impl Batch<'_> {
    /// The messages, each of which may be wrong on its own.
    pub(crate) fn messages(&self) -> Result<Vec<Result<Message<'_>, Rejection<'_>>>, ErrorObject> {
        let Some(elements) = json::elements(&self.0, BATCH_MESSAGES) else {
            let message = format!("a batch holds at most {BATCH_MESSAGES} messages; send several batches");
            return Err(ErrorObject::invalid_request(message));
        };
        if elements.is_empty() {
            return Err(ErrorObject::invalid_request("a batch must hold at least one message"));
        }
        let read = |text| Object::split(text).ok_or_else(not_an_object).and_then(message);
        Ok(elements.into_iter().map(read).collect())
    }

    pub(crate) fn into_owned(self) -> Batch<'static> {
        Batch(Cow::Owned(self.0.into_owned()))
    }
}

fn not_an_object<'a>() -> Rejection<'a> {
    ErrorObject::invalid_request("a message must be a JSON object").into()
}

fn message(object: Object<'_>) -> Result<Message<'_>, Rejection<'_>> {
    // A member that is `null` is present: a null id is an error, a missing one is not.
    let sent_id = object.get("id");
    let id = sent_id.and_then(Id::parse);
    let reject = |id, what: &str| Err(Rejection { id, error: ErrorObject::invalid_request(what) });
    if object.get("jsonrpc").is_none_or(|version| version != "\"2.0\"") {
        return reject(id, "the member jsonrpc must be \"2.0\"");
    }
    let (result, error) = (object.get("result"), object.get("error"));
    let Some(method) = object.get("method") else {
        return match (result, error) {
            (Some(result), None) => Ok(Message::Response(Response { id, outcome: Ok(result) })),
            (None, Some(error)) => Ok(Message::Response(Response { id, outcome: Err(error) })),
            _ => reject(id, "a message needs a method, or else either a result or an error"),
        };
    };
    if result.is_some() || error.is_some() {
        return reject(id, "a message with a method cannot have a result or an error");
    }
    let Some(method) = json::string(method) else { return reject(id, "the method must be a string") };
    if sent_id.is_none() {
        let params = Params::read(object).unwrap_or_default();
        return Ok(Message::Notification(Notification { method, params }));
    }
    let Some(id) = id else {
        let what = format!("the id must be a string of at most {ID_BYTES} bytes or a 64-bit integer");
        return reject(None, &what);
    };
    match Params::read(object) {
        Ok(params) => Ok(Message::Request(Request { id, method, params })),
        Err(error) => Err(Rejection { id: Some(id), error }),
    }
}

impl<'a> Params<'a> {
    fn read(mut message: Object<'a>) -> Result<Self, ErrorObject> {
        let text = message.get("params");
        if text.is_none() {
            return Ok(Self::default());
        }
        let Some(mut members) = message.take_object("params") else {
            return Err(ErrorObject::invalid_params(
                "params must be an object; leave it out if there are none",
            ));
        };
        let meta = match members.get("_meta").filter(|meta| *meta != "null") {
            Some(_) => members.take_object("_meta"),
            None => Some(Object::default()),
        };
        let meta = meta.ok_or_else(|| ErrorObject::invalid_params("_meta must be an object"))?;
        Ok(Self { text, members, meta })
    }

    /// The text of a member. One that is `null` counts as absent, as some clients write it.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.members.get(key).filter(|value| *value != "null")
    }

    pub(crate) fn string(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(json::string)
    }

    pub(crate) fn meta(&self, key: &str) -> Option<&'a str> {
        self.meta.get(key).filter(|value| *value != "null")
    }
}

/// Reads a member that may be `null` and is present all the same.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

pub(crate) fn cut(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// A response whose result is written by `result`; `size` is a guess of how long that gets.
pub(crate) fn success(id: &Id<'_>, size: usize, result: impl FnOnce(&mut String)) -> String {
    let mut out = open(id.text(), size);
    out.push_str(",\"result\":");
    result(&mut out);
    out.push('}');
    out
}

pub(crate) fn failure(id: Option<&Id<'_>>, error: &ErrorObject) -> String {
    let size = error.message.len() + error.data.as_ref().map_or(0, String::len);
    let mut out = open(id.map_or("null", |id| id.text()), size);
    out.push_str(",\"error\":");
    error.write(&mut out);
    out.push('}');
    out
}

fn open(id: &str, size: usize) -> String {
    let mut out = String::with_capacity(96 + id.len() + size);
    out.push_str("{\"jsonrpc\":\"2.0\",\"id\":");
    out.push_str(id);
    out
}
