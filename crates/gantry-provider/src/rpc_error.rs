//! JSON-RPC errors: the codes that Gantry uses and the object that carries one.

use gantry_core::json::{Object, write_string};
use std::fmt::Write as _;

/// The codes. Nothing between -32000 and -32019 is used: those never had one meaning.
pub mod code {
    /// Not JSON, or JSON that cannot be read safely.
    pub const PARSE_ERROR: i32 = -32700;
    /// JSON, but not a message that is allowed here.
    pub const INVALID_REQUEST: i32 = -32600;
    /// A method that this server does not have.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// Parameters that are missing or of the wrong kind; also an unknown tool.
    pub const INVALID_PARAMS: i32 = -32602;
    /// A fault of this server.
    pub const INTERNAL_ERROR: i32 = -32603;
    /// HTTP headers that are missing or say something else than the body (2026-07-28).
    pub const HEADER_MISMATCH: i32 = -32020;
    /// The client did not declare a capability that the request needs (2026-07-28).
    pub const MISSING_CAPABILITY: i32 = -32021;
    /// A protocol version that this server does not speak.
    pub const UNSUPPORTED_VERSION: i32 = -32022;
}

/// The `error` member of an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (JSON-RPC error {code})")]
pub struct ErrorObject {
    /// One of [`code`], or a code of one's own outside -32768 to -32000.
    pub code: i32,
    /// What is wrong, where, and what to do next.
    pub message: String,
    /// More of it as JSON text. It is sent as it is, so it must be valid.
    pub data: Option<String>,
}

impl ErrorObject {
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Reads the text of an error object as a client or a server sent it. A member that is missing or of the wrong kind
    /// gets a default: [`code::INTERNAL_ERROR`], no message, no data.
    pub fn parse(text: &str) -> Self {
        let object = Object::split(text).unwrap_or_default();
        let code = object.get("code").and_then(|code| code.parse().ok()).unwrap_or(code::INTERNAL_ERROR);
        let message = object.string("message").unwrap_or_default();
        Self { data: object.get("data").map(str::to_owned), ..Self::new(code, message) }
    }

    /// The same error with data, which must be valid JSON text.
    #[must_use]
    pub fn with_data(mut self, data: String) -> Self {
        self.data = Some(data);
        self
    }

    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    pub fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(code::HEADER_MISMATCH, message)
    }

    pub fn write(&self, out: &mut String) {
        write!(out, "{{\"code\":{},\"message\":", self.code).unwrap_or_default();
        write_string(out, &self.message);
        if let Some(data) = &self.data {
            out.push_str(",\"data\":");
            out.push_str(data);
        }
        out.push('}');
    }
}

impl From<gantry_core::json::Error> for ErrorObject {
    /// Two equal keys, or a number that readers round differently, are a message with two meanings; everything else is
    /// unreadable text.
    fn from(error: gantry_core::json::Error) -> Self {
        use gantry_core::json::Error;
        let code = match error {
            Error::DuplicateKey { .. } | Error::Number { .. } | Error::NotAnObject => code::INVALID_REQUEST,
            Error::Syntax { .. } | Error::TooDeep => code::PARSE_ERROR,
        };
        Self::new(code, error.to_string())
    }
}
