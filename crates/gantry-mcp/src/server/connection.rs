//! The state that the requests of one legacy client share after its handshake, over any transport.

use super::client_requests::ClientRequests;
use super::handler::Handler;
use super::in_flight::InFlightRequests;
use super::legacy;
use crate::envelope::{Message, Params};
use crate::exchange::{Capabilities, LogLevel};
use crate::limits::SUBSCRIPTIONS;
use crate::{Version, lock};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

pub(super) struct Connection {
    pub(super) handler: Arc<dyn Handler>,
    pub(super) version: Version,
    pub(super) in_flight: InFlightRequests,
    pub(super) capabilities: Capabilities,
    /// Tells this client from all others.
    pub(super) number: u64,
    pub(super) client_requests: ClientRequests,
    pub(super) settings: Settings,
}

impl Connection {
    /// The state after `initialize`, for a handler that has its session.
    pub(super) fn new(
        handler: &Arc<dyn Handler>,
        version: Version,
        params: &Params<'_>,
        in_flight: InFlightRequests,
        number: u64,
    ) -> Self {
        Self {
            handler: Arc::clone(handler),
            version,
            in_flight,
            capabilities: params.get("capabilities").map(Capabilities::new).unwrap_or_default(),
            number,
            client_requests: ClientRequests::default(),
            settings: Settings::new(handler.features().logging),
        }
    }

    /// Handles a message that wants no response.
    pub(super) fn accept(&self, message: &Message<'_>) {
        match message {
            Message::Notification(notification) => {
                if let Some(id) = legacy::cancelled(notification) {
                    self.in_flight.cancel(&id);
                }
            }
            Message::Response(response) => {
                let is_pending = self.client_requests.respond(response);
                tracing::trace!(is_pending, "an MCP client has sent a response");
            }
            Message::Request(_) | Message::Batch(_) => {}
        }
    }
}

/// The settings that a legacy client has chosen.
// Invariant: the lock is never held across an await.
#[derive(Debug)]
pub(super) struct Settings(Mutex<Chosen>);

#[derive(Debug)]
struct Chosen {
    /// The least level of log messages; `None` means no messages.
    level: Option<LogLevel>,
    watched: HashSet<String>,
}

/// A request of the client to change its settings.
#[derive(Debug)]
pub(super) enum SettingChange {
    Level(LogLevel),
    Watch(String),
    Unwatch(String),
}

impl Settings {
    /// The settings before the client chooses. The protocol leaves the first level to the server.
    fn new(logging: bool) -> Self {
        Self(Mutex::new(Chosen { level: logging.then_some(LogLevel::Info), watched: HashSet::new() }))
    }

    /// The least level of log messages that the client wants; `None` means none.
    pub(super) fn log_level(&self) -> Option<LogLevel> {
        lock(&self.0).level
    }

    pub(super) fn watches(&self, uri: &str) -> bool {
        lock(&self.0).watched.contains(uri)
    }

    pub(super) fn can_watch_more(&self) -> bool {
        lock(&self.0).watched.len() < SUBSCRIPTIONS
    }

    pub(super) fn apply(&self, change: SettingChange) {
        let mut settings = lock(&self.0);
        match change {
            SettingChange::Level(level) => settings.level = Some(level),
            SettingChange::Watch(uri) => drop(settings.watched.insert(uri)),
            SettingChange::Unwatch(uri) => drop(settings.watched.remove(&uri)),
        }
    }
}
