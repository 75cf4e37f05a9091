//! The JSON-RPC envelope: who asks what under which id, borrowed from the text that came in.
//!
//! [`read`] scans the whole text once with suspicion and then only cuts it into pieces. Ids are kept as their
//! text, because a client compares what it gets back with what it sent: `1`, `"1"` and `-0` are echoed as such.

use crate::{
    error::ErrorObject,
    limits::{BATCH_MESSAGES, ID_BYTES},
};
use gantry_core::json;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What one line or one body holds.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// One message.
    One(Message<'a>),
    /// An array of them; whether that is allowed depends on the session.
    Batch(Batch<'a>),
}

/// One message.
#[derive(Debug)]
pub enum Message<'a> {
    /// Wants an answer.
    Request(Request<'a>),
    /// Wants none.
    Notification(Notification<'a>),
    /// Is one.
    Response(Response<'a>),
}

/// A message that wants an answer.
#[derive(Debug)]
pub struct Request<'a> {
    /// What the answer must carry.
    pub id: Id<'a>,
    /// The method, unescaped.
    pub method: Cow<'a, str>,
    /// The parameters, always an object.
    pub params: Option<&'a RawValue>,
}

/// A message that wants no answer.
#[derive(Debug)]
pub struct Notification<'a> {
    /// The method, unescaped.
    pub method: Cow<'a, str>,
    /// The parameters, of any kind: nobody can be told that they are wrong.
    pub params: Option<&'a RawValue>,
}

/// An answer.
#[derive(Debug)]
pub struct Response<'a> {
    /// The id of the request; absent when the other side could not read it.
    pub id: Option<Id<'a>>,
    /// Either a result or an error.
    pub outcome: Result<&'a RawValue, &'a RawValue>,
}

/// A text that is not a message, and the id to answer with if it could be read.
#[derive(Debug)]
pub struct Rejection<'a> {
    /// The id of the bad message.
    pub id: Option<Id<'a>>,
    /// What is wrong with it.
    pub error: ErrorObject,
}

impl Rejection<'_> {
    /// The answer that says so.
    #[must_use]
    pub fn answer(&self) -> String {
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
pub struct Id<'a> {
    text: Cow<'a, str>,
    /// The one way to write this id, where `text` is another one.
    canonical: Option<String>,
}

impl<'a> Id<'a> {
    /// Reads an id; `None` for anything that may not be one.
    #[must_use]
    pub fn parse(raw: &'a RawValue) -> Option<Self> {
        let text = raw.get();
        let canonical = if text.starts_with('"') {
            let value = string(raw)?;
            if value.len() > ID_BYTES {
                return None;
            }
            matches!(value, Cow::Owned(_)).then(|| {
                let mut canonical = String::with_capacity(value.len() + 2);
                json::write_string(&mut canonical, &value);
                canonical
            })
        } else {
            let number = text.parse::<i64>().ok()?;
            (text == "-0").then(|| number.to_string())
        };
        Some(Self { text: text.into(), canonical })
    }

    /// The JSON text as the client wrote it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A text that is the same for equal ids, however they were written.
    #[must_use]
    pub fn key(&self) -> &str {
        self.canonical.as_deref().unwrap_or(&self.text)
    }

    /// The same id on its own.
    #[must_use]
    pub fn into_owned(self) -> Id<'static> {
        Id { text: Cow::Owned(self.text.into_owned()), canonical: self.canonical }
    }
}

/// Reads one line or one body.
///
/// # Errors
/// Says what is wrong, with the id if it could be read.
pub fn read(bytes: &[u8]) -> Result<Incoming<'_>, Rejection<'_>> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let message = format!("not UTF-8 at byte {}; send the message as UTF-8 text", error.valid_up_to());
        ErrorObject::new(crate::error::code::PARSE_ERROR, message)
    })?;
    json::check(text).map_err(ErrorObject::from)?;
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    if text.starts_with('[') { Ok(Incoming::Batch(Batch(text))) } else { message(text).map(Incoming::One) }
}

/// An array of messages that was scanned but not yet cut into pieces.
#[derive(Debug)]
pub struct Batch<'a>(&'a str);

impl<'a> Batch<'a> {
    /// The messages, each of which may be wrong on its own.
    ///
    /// # Errors
    /// When there are none or more than [`BATCH_MESSAGES`].
    pub fn messages(&self) -> Result<Vec<Result<Message<'a>, Rejection<'a>>>, ErrorObject> {
        let Ok(Elements(elements)) = serde_json::from_str(self.0) else {
            let message = format!("a batch holds at most {BATCH_MESSAGES} messages; send several batches");
            return Err(ErrorObject::invalid_request(message));
        };
        if elements.is_empty() {
            return Err(ErrorObject::invalid_request("a batch must hold at least one message"));
        }
        Ok(elements.into_iter().map(|element| message(element.get())).collect())
    }
}

/// The elements of an array, refused as soon as there are too many, so that a body full of commas costs nothing.
struct Elements<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Elements<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Bounded)
    }
}

struct Bounded;

impl<'de> Visitor<'de> for Bounded {
    type Value = Elements<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            if elements.len() == BATCH_MESSAGES {
                return Err(A::Error::custom("too many messages"));
            }
            elements.push(element);
        }
        Ok(Elements(elements))
    }
}

/// The members of an envelope. A member that is `null` is present: a null id is an error, a missing one is not.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Reads a member that may be `null` and is there all the same.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads one message from a text that was scanned and has no white space around it.
fn message(text: &str) -> Result<Message<'_>, Rejection<'_>> {
    // Serde would take an array for a struct, so the kind is checked by hand.
    if !text.starts_with('{') {
        return Err(ErrorObject::invalid_request("a message must be a JSON object").into());
    }
    let wire: Wire<'_> =
        serde_json::from_str(text).map_err(|error| ErrorObject::invalid_request(error.to_string()))?;
    let id = wire.id.and_then(Id::parse);
    let reject = |id, what: &str| Err(Rejection { id, error: ErrorObject::invalid_request(what) });
    if wire.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return reject(id, "the member jsonrpc must be \"2.0\"");
    }
    let Some(method) = wire.method else {
        return match (wire.result, wire.error) {
            (Some(result), None) => Ok(Message::Response(Response { id, outcome: Ok(result) })),
            (None, Some(error)) => Ok(Message::Response(Response { id, outcome: Err(error) })),
            _ => reject(id, "a message needs a method, or else either a result or an error"),
        };
    };
    if wire.result.is_some() || wire.error.is_some() {
        return reject(id, "a message with a method cannot have a result or an error");
    }
    let Some(method) = string(method) else { return reject(id, "the method must be a string") };
    if wire.id.is_none() {
        return Ok(Message::Notification(Notification { method, params: wire.params }));
    }
    let Some(id) = id else {
        let what = format!("the id must be a string of at most {ID_BYTES} bytes or a 64-bit integer");
        return reject(None, &what);
    };
    if wire.params.is_some_and(|params| !params.get().starts_with('{')) {
        let error = ErrorObject::invalid_params("params must be an object; leave it out if there are none");
        return Err(Rejection { id: Some(id), error });
    }
    Ok(Message::Request(Request { id, method, params: wire.params }))
}

/// What a JSON string means, borrowed where it has no escapes; `None` if it is not a string.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str::<String>(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// The first characters of a text.
pub(crate) fn cut(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// An answer whose result is written by `result`; `size` is a guess of how long that gets.
pub(crate) fn success(id: &Id<'_>, size: usize, result: impl FnOnce(&mut String)) -> String {
    let mut out = open(id.text(), size);
    out.push_str(",\"result\":");
    result(&mut out);
    out.push('}');
    out
}

/// An answer that is an error.
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
