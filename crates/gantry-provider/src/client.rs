//! The client behind a request, while the request is under way: notifications to it, and questions that it answers.
//!
//! A server that works on a request may report progress, write to the log, or ask the client something (a form to fill
//! in, a completion from its model, its roots). The protocol eras do that in different ways. Code that faces a server
//! uses a [`ClientChannel`]; code that faces a client implements one, as the client's era has it.

use crate::{BoxFuture, ErrorObject};
use gantry_core::raw;
use std::{fmt::Debug, sync::Arc};
use tokio_util::sync::CancellationToken;

/// The client behind a request.
pub trait ClientChannel: Send + Sync + Debug {
    /// The capabilities of the client.
    fn capabilities(&self) -> &Capabilities;

    /// Equal for requests of one client session, and only for those.
    ///
    /// Some servers ask without naming a request. Such a question is passed on only while all requests that are under way
    /// there belong to one session, so that no client answers for another one.
    fn session(&self) -> u64;

    /// Whether the client wants progress notifications.
    fn wants_progress(&self) -> bool;

    /// From which level on the client wants log messages of this request; `None` means none.
    fn log_level(&self) -> Option<LogLevel>;

    /// Notifies the client. It never waits; what a slow client does not take in time is dropped.
    fn notify(&self, notice: ServerNotification);

    /// Asks the client and waits for all answers, one per question and in the same order. Dropping the future withdraws
    /// the questions.
    fn ask(
        &self,
        questions: Vec<ClientRequest>,
    ) -> BoxFuture<'_, Result<Vec<ClientResponse>, ClientRequestError>>;
}

/// The client behind a request, and its cancellation.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// The client.
    pub client: Arc<dyn ClientChannel>,
    /// Fires when the client withdraws the request.
    pub cancel: CancellationToken,
}

/// A notification of a server about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerNotification {
    /// The params of `notifications/progress` as they came, an object; the token in them is not the client's.
    Progress(Arc<str>),
    /// The params of `notifications/message` as they came, an object, and the level in them.
    Log(LogLevel, Arc<str>),
    /// The server has closed the stream of the request for now; its answer comes later. A client that can resume a stream
    /// may be disconnected likewise.
    Released,
    /// Any other notification that came with the request.
    Other {
        /// Its method.
        method: Arc<str>,
        /// Its params, an object.
        params: Arc<str>,
    },
}

/// A request of a server to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRequest {
    /// The server's name for it, unique among those sent together.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// The params as they came, an object.
    pub params: String,
}

/// What a client answered: the text of a result object, or an error.
pub type ClientResponse = Result<String, ErrorObject>;

/// Why a request to the client has no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientRequestError {
    /// The client has not declared the capability.
    #[error("the client does not support {0}")]
    Unsupported(String),
    /// The client is gone, or the request has none.
    #[error("no client is there to answer")]
    Gone,
    /// The client took too long.
    #[error("the client did not answer in time")]
    Late,
}

/// How severe a log message is, least first; the words of syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// All of them, least first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level with this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

/// The extension of 2026-07-28 whose results are tasks that finish later.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The capabilities that a client declared, as it wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    text: Box<str>,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self { text: "{}".into() }
    }
}

impl Capabilities {
    /// Capabilities with this text, which must be that of an object; anything else declares nothing.
    #[must_use]
    pub fn new(text: &str) -> Self {
        if raw::members(text).is_some() { Self { text: text.into() } } else { Self::default() }
    }

    /// The object as it was sent.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the client takes this request. An `elicitation` without members is one for forms, as in the versions
    /// that had no other kind.
    #[must_use]
    pub fn can(&self, method: &str, params: &str) -> bool {
        let declared = |name: &str| raw::member(&self.text, name).filter(|value| value.starts_with('{'));
        match method {
            "elicitation/create" => declared("elicitation").is_some_and(|elicitation| {
                let has = |mode: &str| raw::member(elicitation, mode).is_some();
                let url = raw::member(params, "mode").is_some_and(|mode| mode == "\"url\"");
                if url { has("url") } else { has("form") || !has("url") }
            }),
            "sampling/createMessage" => declared("sampling").is_some(),
            "roots/list" => declared("roots").is_some(),
            _ => false,
        }
    }

    /// Whether an extension of this name is declared.
    #[must_use]
    pub fn has_extension(&self, name: &str) -> bool {
        raw::member(&self.text, "extensions")
            .is_some_and(|extensions| raw::member(extensions, name).is_some())
    }
}

/// No client: requests of the command line, the HTTP API and Gantry itself.
#[derive(Debug, Default)]
pub struct NoClient(Capabilities);

impl ClientChannel for NoClient {
    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    fn session(&self) -> u64 {
        0
    }

    fn wants_progress(&self) -> bool {
        false
    }

    fn log_level(&self) -> Option<LogLevel> {
        None
    }

    fn notify(&self, _notice: ServerNotification) {}

    fn ask(
        &self,
        _questions: Vec<ClientRequest>,
    ) -> BoxFuture<'_, Result<Vec<ClientResponse>, ClientRequestError>> {
        Box::pin(std::future::ready(Err(ClientRequestError::Gone)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_elicitation_is_one_for_forms() {
        let can =
            |declared: &str, params: &str| Capabilities::new(declared).can("elicitation/create", params);
        assert!(can(r#"{"elicitation":{}}"#, "{}"));
        assert!(!can(r#"{"elicitation":{}}"#, r#"{"mode":"url"}"#));
        assert!(can(r#"{"elicitation":{"url":{}}}"#, r#"{"mode":"url"}"#));
        assert!(!can(r#"{"elicitation":{"url":{}}}"#, "{}"));
        assert!(can(r#"{"elicitation":{"form":{},"url":{}}}"#, "{}"));
        assert!(!can(r#"{"sampling":{}}"#, "{}"));
        assert!(!can("[]", "{}"));
    }
}
