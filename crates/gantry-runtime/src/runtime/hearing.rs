//! What sessions want to hear without asking: changes of resources, and log messages.
//!
//! A server is told once, whoever and however many want it, and told again when it comes back.

use super::Runtime;
use super::forward::{Sight, error, missing, uri};
use crate::provider::mcp::McpServer;
use crate::provider::mcp::wishes::Wishes;
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
        if meant.server.connections().is_empty() {
            return Err(ErrorObject::new(INTERNAL_ERROR, meant.server.absence()));
        }
        let first =
            wishes.watch(session, id, &meant.own).map_err(|why| ErrorObject::new(INVALID_PARAMS, why))?;
        if first && let Err(failure) = tell_watched(wishes, &meant.server, &meant.own).await {
            wishes.unwatch(session, id, &meant.own);
            return Err(error(id, failure));
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
        let wishes = &self.upstreams.hub.wishes;
        if wishes.unwatch(session.id(), meant.server.id(), &meant.own) {
            unwatch(wishes, &meant.server, &meant.own).await;
        }
        Ok(DONE.to_owned())
    }

    pub(super) async fn set_level(&self, session: &Session, params: &str) -> Result<String, ErrorObject> {
        let word = raw::string_member(params, "level").ok_or_else(|| missing("level"))?;
        let level = LogLevel::parse(&word).ok_or_else(|| {
            let known = LogLevel::ALL.map(LogLevel::as_str).join(", ");
            ErrorObject::new(INVALID_PARAMS, format!("there is no level {word:?}; there are {known}"))
        })?;
        let wishes = &self.upstreams.hub.wishes;
        if wishes.set_level(session.id(), level).is_some() {
            let servers: Vec<_> = self.upstreams.sources.load().servers().cloned().collect();
            speak_up(wishes, &servers).await;
        }
        Ok(DONE.to_owned())
    }

    /// Lets go of what a session that is over wanted to hear. Does not wait.
    pub(super) fn forget_wishes(&self, session: SessionId) {
        let hub = Arc::clone(&self.upstreams.hub);
        let before = hub.wishes.level();
        let unwatched = hub.wishes.end(session);
        let is_quieter = hub.wishes.level().is_some_and(|level| Some(level) != before);
        if unwatched.is_empty() && !is_quieter {
            return;
        }
        let sources = self.upstreams.sources.load_full();
        // Without a runtime there is nobody to tell anything.
        let Ok(runtime) = Handle::try_current() else { return };
        let tell = async move {
            for (id, uri) in unwatched {
                if let Some(server) = sources.get(&id).and_then(|source| source.server.as_ref()) {
                    unwatch(&hub.wishes, server, &uri).await;
                }
            }
            if is_quieter {
                let servers: Vec<_> = sources.servers().cloned().collect();
                speak_up(&hub.wishes, &servers).await;
            }
        };
        self.tasks.spawn_on(tell, &runtime);
    }
}

/// Waits a moment for a server to take a wish.
async fn hear(wish: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::time::timeout(WISH, wish).await.unwrap_or_else(|_| Err(Failure::Lost("no answer in time".into())))
}

/// Tells a server whether somebody watches a resource now: while this waited for its turn, the last may have left, or the
/// first come.
async fn tell_watched(wishes: &Wishes, server: &McpServer, uri: &str) -> Result<(), Failure> {
    hear(async {
        let turn = server.telling.acquire().await;
        let is_watched = wishes.wants(server.id(), uri);
        let mut told = Ok(());
        for connection in server.connections() {
            told = told.and(connection.watch(uri, is_watched).await);
        }
        drop(turn);
        told
    })
    .await
}

async fn unwatch(wishes: &Wishes, server: &McpServer, uri: &str) {
    if let Err(failure) = tell_watched(wishes, server, uri).await {
        tracing::debug!("{}: {uri} is still watched: {failure}", server.id());
    }
}

/// Tells all servers how much to log now.
async fn speak_up(wishes: &Wishes, servers: &[Arc<McpServer>]) {
    let talkative =
        servers.iter().filter(|server| server.listing().is_some_and(|known| known.offers("logging")));
    join_all(talkative.map(|server| tell_level(wishes, server))).await;
}

async fn tell_level(wishes: &Wishes, server: &McpServer) {
    let told = hear(async {
        let turn = server.telling.acquire().await;
        let Some(level) = wishes.level() else { return Ok(()) };
        let telling = server
            .all_connections()
            .into_iter()
            .map(|connection| async move { connection.set_log_level(level).await });
        let told = join_all(telling).await;
        drop(turn);
        told.into_iter().collect()
    });
    if let Err(failure) = told.await {
        tracing::debug!("{}: it does not take a log level: {failure}", server.id());
    }
}
