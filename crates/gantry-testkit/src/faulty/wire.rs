//! JSON-RPC as text: what is read of a message, and how answers are written.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The keys of a modern request's `_meta`.
pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
/// Keys of what a modern server sends.
pub(super) const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
pub(super) const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// Codes that more than one file uses.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const HEADER_MISMATCH: i64 = -32020;
pub(super) const MISSING_CAPABILITY: i64 = -32021;
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// A request, a notification or an answer.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) id: Option<Box<RawValue>>,
    pub(super) method: Option<String>,
    pub(super) params: Option<Box<RawValue>>,
    pub(super) result: Option<Value>,
    pub(super) error: Option<Value>,
}

/// All that is read of any request's parameters.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Params {
    #[serde(rename = "_meta")]
    pub(super) meta: BTreeMap<String, Box<RawValue>>,
    pub(super) name: String,
    pub(super) uri: String,
    pub(super) level: String,
    pub(super) cursor: Option<String>,
    pub(super) arguments: Option<Box<RawValue>>,
    pub(super) protocol_version: String,
    pub(super) capabilities: Value,
    pub(super) notifications: Value,
    pub(super) argument: Value,
    #[serde(rename = "ref")]
    pub(super) reference: Value,
    pub(super) request_id: Option<Box<RawValue>>,
    pub(super) request_state: Option<String>,
    pub(super) input_responses: Value,
}

impl Params {
    /// A key of `_meta`, as text or what else it is.
    pub(super) fn meta(&self, key: &str) -> Value {
        self.meta.get(key).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}

/// What a request leads to.
#[derive(Debug)]
pub(super) enum Reply {
    /// The text of a result, which the modern era marks as complete.
    Result(String),
    /// The same for a list or a document, which the modern era lets clients keep.
    Cacheable(String),
    /// A result that asks for more, which only the modern era has.
    Input(Value),
    /// The whole answer in the server's own words, right or wrong.
    Verbatim(String),
    Failure(Failure),
    /// Nothing: the request was cancelled, or the connection is gone.
    Silence,
}

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Failure {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// The answer to the request with this id.
    pub(super) fn answer(&self, id: &str) -> String {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
    }
}

impl From<Failure> for Reply {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl Reply {
    /// The answer to the request with this id, if there is one, in the words of an era.
    pub(super) fn answer(&self, id: &str, modern: bool) -> Option<String> {
        let result = match self {
            Self::Result(text) if modern => marked(text, r#""resultType":"complete""#),
            Self::Cacheable(text) if modern => {
                marked(text, r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#)
            }
            Self::Result(text) | Self::Cacheable(text) => text.clone(),
            Self::Input(value) => value.to_string(),
            Self::Verbatim(text) => return Some(text.clone()),
            Self::Failure(failure) => return Some(failure.answer(id)),
            Self::Silence => return None,
        };
        Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
    }

    pub(super) fn code(&self) -> Option<i64> {
        match self {
            Self::Failure(failure) => Some(failure.code),
            Self::Result(_) | Self::Cacheable(_) | Self::Input(_) | Self::Verbatim(_) | Self::Silence => None,
        }
    }
}

/// An object with more fields in front; the rest of its text stays as it is.
fn marked(object: &str, fields: &str) -> String {
    let rest = object.strip_prefix('{').unwrap_or(object);
    let comma = if rest.starts_with('}') { "" } else { "," };
    format!("{{{fields}{comma}{rest}")
}

pub(super) fn note(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// A request to the client.
pub(super) fn request(id: &str, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_marks_a_result_and_leaves_the_rest_of_its_text() {
        let result = Reply::Result(r#"{ "z":1.10 }"#.into());
        assert_eq!(result.answer("7", false).unwrap(), r#"{"jsonrpc":"2.0","id":7,"result":{ "z":1.10 }}"#);
        let modern = result.answer("7", true).unwrap();
        assert!(modern.ends_with(r#""result":{"resultType":"complete", "z":1.10 }}"#), "{modern}");
        let empty = Reply::Result("{}".into()).answer("7", true).unwrap();
        assert!(empty.ends_with(r#""result":{"resultType":"complete"}}"#), "{empty}");
    }
}
