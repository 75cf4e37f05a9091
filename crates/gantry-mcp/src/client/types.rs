//! The words of the client side: how to reach a server, what to ask of it, what it may say, and how that can fail.

use crate::{ErrorObject, Version, exchange::BoxFuture};
pub use gantry_provider::resources::{ForwardRequest, ListKind};
use std::{any::Any, fmt::Debug, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};

/// A server that can be connected to.
#[derive(Debug, Clone)]
pub struct Target {
    /// What log lines call it.
    pub name: Arc<str>,
    /// The way to it.
    pub transport: Transport,
    /// The era to speak, or that it is to be found out.
    pub protocol: Protocol,
    /// What Gantry tells it that clients can do.
    pub declared: Declared,
    /// How long connecting, finding out the era and shaking hands may take together.
    pub startup_timeout: Duration,
    /// Sees every frame, if there is one.
    pub trace: Option<Arc<dyn Trace>>,
    /// Where events go. Bounded; an event that does not fit is dropped, except that the receiver is told to look anew
    /// by a later one.
    pub events: mpsc::Sender<Event>,
}

/// The way to a server. Addresses and headers may hold secrets, so debug output leaves them out.
#[derive(Clone)]
pub enum Transport {
    /// A process of our own: lines on its standard input and output.
    Stdio(Arc<dyn Dial>),
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

/// Starts a process and hands its pipes over.
pub trait Dial: Send + Sync + Debug {
    /// Starts it.
    fn dial(&self) -> BoxFuture<'_, Result<Wires, String>>;
}

/// Both directions of a process or a socket.
pub struct Wires {
    /// What it says.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// What it hears.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// Keeps it alive: dropping this ends the process and all its children.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl Debug for Wires {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wires").finish_non_exhaustive()
    }
}

/// Which era to speak with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Whichever it speaks; the newer one if both.
    #[default]
    Auto,
    /// The versions with a handshake.
    Legacy,
    /// The versions without one.
    Modern,
}

/// What clients may be asked by a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "three switches that are set one by one")]
pub struct Declared {
    /// To fill in forms and to open addresses.
    pub elicitation: bool,
    /// To complete with their model.
    pub sampling: bool,
    /// For their roots. Off unless configured: some servers widen what they may touch to whatever roots they are told.
    pub roots: bool,
}

impl Default for Declared {
    fn default() -> Self {
        Self { elicitation: true, sampling: true, roots: false }
    }
}

/// Sees frames.
pub trait Trace: Send + Sync + Debug {
    /// A message went out (`sent`) or came in.
    fn frame(&self, sent: bool, text: &str);
}

/// What a server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The version that is spoken with it.
    pub version: Version,
    /// Its capabilities, the text of an object.
    pub capabilities: String,
    /// Its name and version, the text of an object, if it said so.
    pub server_info: Option<String>,
    /// Its advice to models.
    pub instructions: Option<String>,
}

/// What a server says without being asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Its list of tools, resources (templates among them) or prompts is another now.
    Changed(ListKind),
    /// A resource is another now: the params of `notifications/resources/updated`, an object.
    Updated(Arc<str>),
    /// A log message that belongs to no request: the params of `notifications/message`, an object.
    Log(Arc<str>),
    /// The params of `notifications/elicitation/complete`, an object.
    ElicitationComplete(Arc<str>),
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The server answered with an error.
    #[error("{0}")]
    Answered(ErrorObject),
    /// Nothing was sent.
    #[error("{0}")]
    Unavailable(String),
    /// It was sent, and what came of it is not known.
    #[error("{0}")]
    Lost(String),
    /// It was withdrawn.
    #[error("canceled")]
    Canceled,
}
