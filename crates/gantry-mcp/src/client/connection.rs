//! A live connection to a server.

use super::types::{About, Failure, ListKind, Outgoing, Protocol, Target};
use crate::exchange::LogLevel;
use std::time::Duration;

/// Connects to a server: reaches it, finds out its era, and shakes hands where that is due.
///
/// `known` is the era it spoke last time; it is tried first and found out anew when it does not fit.
///
/// # Errors
/// Why the server cannot be used, in words for a person.
pub async fn connect(target: &Target, known: Protocol) -> Result<Connection, Failure> {
    let _unused = (target, known);
    Err(Failure::Unavailable("not built yet".into()))
}

/// A live connection to a server. It ends when it is dropped or closed, or when [`Connection::closed`] returns.
#[derive(Debug)]
pub struct Connection {
    about: About,
}

impl Connection {
    /// What the server says about itself.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Asks for everything of a kind, page by page, bounded in number and size; items as the server sent them.
    ///
    /// # Errors
    /// The server cannot be asked, or answers with something else than a list.
    pub async fn list(&self, kind: ListKind) -> Result<Vec<Box<str>>, Failure> {
        let _unused = kind;
        Err(Failure::Unavailable("not built yet".into()))
    }

    /// Sends a request and waits for its result, the text of an object as the server sent it.
    ///
    /// Cancel-safety: dropping the future withdraws the request, and the server is told.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn request(&self, request: Outgoing<'_>) -> Result<String, Failure> {
        let _unused = request;
        Err(Failure::Unavailable("not built yet".into()))
    }

    /// Asks whether the server is there (`ping`, or `server/discover` where there is no ping), and how long it took.
    ///
    /// # Errors
    /// No answer came in time, or the connection is closed.
    pub async fn ping(&self, limit: Duration) -> Result<Duration, Failure> {
        let _unused = limit;
        Err(Failure::Unavailable("not built yet".into()))
    }

    /// Wants to hear, or no longer, when this resource changes (the server's own URI).
    ///
    /// # Errors
    /// The server does not take it.
    pub async fn watch(&self, uri: &str, on: bool) -> Result<(), Failure> {
        let _unused = (uri, on);
        Err(Failure::Unavailable("not built yet".into()))
    }

    /// From which level on the server is to send log messages.
    ///
    /// # Errors
    /// The server does not take it.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), Failure> {
        let _unused = level;
        Err(Failure::Unavailable("not built yet".into()))
    }

    /// Requests that are under way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        0
    }

    /// Waits until the connection has ended, and says why.
    pub async fn closed(&self) -> String {
        std::future::pending().await
    }

    /// Ends the connection in an orderly way (a legacy session is deleted, a process is let go).
    pub async fn close(&self) {}
}
