//! What sessions want to hear without asking: changes of resources, and log messages.
//!
//! A server is told once, whoever and however many want it, and told again when it comes back.

use super::Runtime;
use super::forward::{Sight, error, missing, uri};
use crate::provider::mcp::McpServer;
use crate::session::Session;
use futures_util::future::join_all;
use gantry_core::id::SessionId;
use gantry_core::raw;
use gantry_mcp::ErrorObject;
use gantry_mcp::client::Failure;
use gantry_mcp::error::code::{INTERNAL_ERROR, INVALID_PARAMS};
use gantry_mcp::exchange::LogLevel;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long servers may take to hear what sessions want.
const WISH: Duration = Duration::from_secs(5);

/// The result of requests that ask for nothing back.
const DONE: &str = "{}";

impl Runtime {
    pub(super) async fn subscribe(
        &self,
        sight: &Sight,
        session: SessionId,
        uri: &str,
    ) -> Result<String, ErrorObject> {
        let meant = self.resource(sight, uri)?;
        let (wishes, id) = (&self.upstreams.hub.wishes, meant.server.id());
        let connections = meant.server.connections();
        if connections.is_empty() {
            return Err(ErrorObject::new(INTERNAL_ERROR, meant.server.absence()));
        }
        let first =
            wishes.watch(session, id, &meant.own).map_err(|why| ErrorObject::new(INVALID_PARAMS, why))?;
        if first {
            for connection in connections {
                if let Err(failure) = hear(connection.watch(&meant.own, true)).await {
                    wishes.unwatch(session, id, &meant.own);
                    return Err(error(id, failure));
                }
            }
        }
        Ok(DONE.to_owned())
    }

    pub(super) async fn unsubscribe(
        &self,
        sight: &Sight,
        session: &Session,
        params: &str,
    ) -> Result<String, ErrorObject> {
        let meant = self.resource(sight, &uri(params)?)?;
        if self.upstreams.hub.wishes.unwatch(session.id(), meant.server.id(), &meant.own) {
            unwatch(&meant.server, &meant.own).await;
        }
        Ok(DONE.to_owned())
    }

    pub(super) async fn set_level(&self, session: &Session, params: &str) -> Result<String, ErrorObject> {
        let word = raw::string_member(params, "level").ok_or_else(|| missing("level"))?;
        let level = LogLevel::parse(&word).ok_or_else(|| {
            let known = LogLevel::ALL.map(LogLevel::as_str).join(", ");
            ErrorObject::new(INVALID_PARAMS, format!("there is no level {word:?}; there are {known}"))
        })?;
        if let Some(level) = self.upstreams.hub.wishes.set_level(session.id(), level) {
            let servers: Vec<_> = self.upstreams.sources.load().servers().cloned().collect();
            speak_up(&servers, level).await;
        }
        Ok(DONE.to_owned())
    }

    /// Lets go of what a session that is over wanted to hear. Does not wait.
    pub(super) fn forget_wishes(&self, session: SessionId) {
        let wishes = &self.upstreams.hub.wishes;
        let before = wishes.level();
        let unwatched = wishes.end(session);
        let level = wishes.level().filter(|level| Some(*level) != before);
        if unwatched.is_empty() && level.is_none() {
            return;
        }
        let sources = self.upstreams.sources.load_full();
        // Without a runtime there is nobody to tell anything.
        let Ok(runtime) = Handle::try_current() else { return };
        let tell = async move {
            for (id, uri) in unwatched {
                if let Some(server) = sources.get(&id).and_then(|source| source.server.as_ref()) {
                    unwatch(server, &uri).await;
                }
            }
            if let Some(level) = level {
                let servers: Vec<_> = sources.servers().cloned().collect();
                speak_up(&servers, level).await;
            }
        };
        self.tasks.spawn_on(tell, &runtime);
    }
}

/// Waits a moment for a server to take a wish.
async fn hear(wish: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::time::timeout(WISH, wish).await.unwrap_or_else(|_| Err(Failure::Lost("no answer in time".into())))
}

async fn unwatch(server: &McpServer, uri: &str) {
    for connection in server.connections() {
        if let Err(failure) = hear(connection.watch(uri, false)).await {
            tracing::debug!("{}: {uri} is still watched: {failure}", server.id());
        }
    }
}

async fn speak_up(servers: &[Arc<McpServer>], level: LogLevel) {
    let talkative =
        servers.iter().filter(|server| server.listing().is_some_and(|known| known.offers("logging")));
    let wishes = talkative.flat_map(|server| server.all_connections()).map(|connection| async move {
        if let Err(failure) = hear(connection.set_log_level(level)).await {
            tracing::debug!("a server does not take a log level: {failure}");
        }
    });
    join_all(wishes).await;
}
