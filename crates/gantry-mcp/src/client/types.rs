//! How a server is reached, what it says about itself, and how a request to it can fail.

use crate::exchange::BoxFuture;
use crate::{ErrorObject, Version};
pub use gantry_provider::resources::{Change, ForwardRequest, ListKind};
use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc};

#[derive(Debug, Clone)]
pub struct Target {
    /// The server's id, in log lines and as the provider of its changes.
    pub name: Arc<str>,
    pub transport: Transport,
    /// The era to speak; [`Protocol::Auto`] finds out.
    pub protocol: Protocol,
    pub declared: OfferedCapabilities,
    /// How long connecting, finding out the era and the handshake may take together.
    pub startup_timeout: Duration,
    /// Sees every message before anything else does, if there is one.
    pub trace: Option<Arc<dyn Trace>>,
    /// Gets the notifications that belong to no request, with the URIs of the server. Bounded: a change that does not
    /// fit is dropped.
    pub changes: mpsc::Sender<Change>,
    pub lists_changed: Arc<Notify>,
}

impl Target {
    /// What the server sent, without the secrets that it was given.
    pub(super) fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let masked = self.trace.as_ref().and_then(|trace| trace.masked(text));
        masked.map_or(Cow::Borrowed(text), Cow::Owned)
    }
}

/// The way to a server. Addresses and headers may hold secrets, so debug output leaves them out.
#[derive(Clone)]
pub enum Transport {
    /// A process of our own: lines on its standard input and output.
    Stdio(Arc<dyn Spawn>),
    /// Streamable HTTP, with the older HTTP+SSE as a last resort.
    Http { url: String, headers: Vec<(String, String)> },
    /// HTTP+SSE of 2024-11-05.
    Sse { url: String, headers: Vec<(String, String)> },
    /// WebSocket, one message per text frame, subprotocol `mcp`.
    WebSocket { url: String, headers: Vec<(String, String)> },
    /// TCP: lines. `host:port`.
    Tcp { address: String },
}

impl Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stdio(_) => "Stdio",
            Self::Http { .. } => "Http",
            Self::Sse { .. } => "Sse",
            Self::WebSocket { .. } => "WebSocket",
            Self::Tcp { .. } => "Tcp",
        })
    }
}

pub trait Spawn: Send + Sync + Debug {
    fn spawn(&self) -> BoxFuture<'_, Result<IoStreams, String>>;
}

/// Both directions of a process or a socket.
pub struct IoStreams {
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// Keeps it alive: dropping this ends the process and all its children.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl Debug for IoStreams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IoStreams").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// The era that the server speaks; modern if it speaks both.
    #[default]
    Auto,
    /// The versions with a handshake.
    Legacy,
    /// The versions without one.
    Modern,
}

/// The requests to clients that Gantry offers to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "three switches that are set one by one")]
pub struct OfferedCapabilities {
    /// Forms to fill in and addresses to open.
    pub elicitation: bool,
    /// Completions by the client's model.
    pub sampling: bool,
    /// The client's roots. Off unless configured: some servers extend their access to the roots that they are told.
    pub roots: bool,
}

impl Default for OfferedCapabilities {
    fn default() -> Self {
        Self { elicitation: true, sampling: true, roots: false }
    }
}

/// Sees the messages of a connection, and masks secrets in those of the server.
pub trait Trace: Send + Sync + Debug {
    /// A message went out (`sent`) or came in.
    fn frame(&self, sent: bool, text: &str);

    /// What came in as it may be passed on and shown, if that is another text.
    fn masked(&self, text: &str) -> Option<String>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamInfo {
    pub version: Version,
    /// Its capabilities, the text of an object.
    pub capabilities: String,
    /// Its name and version, the text of an object, if it said so.
    pub server_info: Option<String>,
    pub instructions: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// The server answered with an error.
    #[error("{0}")]
    Rpc(ErrorObject),
    /// The request was certainly not run.
    #[error("{0}")]
    NotSent(String),
    /// The request was sent, and its outcome is not known.
    #[error("{0}")]
    OutcomeUnknown(String),
    #[error("canceled")]
    Canceled,
}

/// The text of a result object, or why there is none.
pub(super) type Answer = Result<String, UpstreamError>;

impl UpstreamError {
    /// The error for a follow-up of a request that was sent: it cannot be `NotSent` any more.
    pub(super) fn into_outcome_unknown(self) -> Self {
        match self {
            Self::NotSent(reason) => Self::OutcomeUnknown(reason),
            Self::Rpc(_) | Self::OutcomeUnknown(_) | Self::Canceled => self,
        }
    }
}
