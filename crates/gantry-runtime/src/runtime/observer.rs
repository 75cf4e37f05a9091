//! Turns what happens at the servers of a runtime into events and into notifications for connected clients.

use crate::event::{EventKind, Events};
use gantry_provider::resources::{Change, ChangeNotice};
use gantry_provider::server::Observer;
use std::sync::Arc;
use tokio::sync::broadcast;

#[derive(Debug)]
pub(super) struct ServerObserver {
    pub(super) events: Events,
    pub(super) runtime: u64,
    /// The channel of notifications for connected clients.
    pub(super) changes: broadcast::Sender<ChangeNotice>,
}

impl Observer for ServerObserver {
    fn ready(&self, server: &Arc<str>, era: &'static str, tools: usize) {
        self.events.emit(None, EventKind::ServerUp { server: Arc::clone(server), era, tools });
    }

    fn down(&self, server: &Arc<str>, reason: String) {
        let server = Arc::clone(server);
        self.events.emit(None, EventKind::ServerDown { server, reason: reason.into() });
    }

    fn frame(&self, server: &Arc<str>, sent: bool, text: String) {
        let server = Arc::clone(server);
        self.events.emit(None, EventKind::McpFrame { server, sent, text: text.into() });
    }

    fn changed(&self, change: Change) {
        // There may be no client connected.
        self.changes.send(ChangeNotice { runtime: self.runtime, change }).ok();
    }
}
