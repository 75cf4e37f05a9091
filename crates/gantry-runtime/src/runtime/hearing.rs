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

/// Resources that one stream of a client listens to, for as long as this is kept.
///
/// Several streams may share a session; each of them has its own wishes.
#[derive(Debug)]
pub struct Listening {
    rt: Arc<Runtime>,
    key: SessionId,
    granted: Vec<String>,
}

impl Listening {
    /// Those of the resources asked for that it will hear of, named as the client named them.
    #[must_use]
    pub fn granted(&self) -> &[String] {
        &self.granted
    }

    /// Whether it wants to hear of this resource of a server, named as clients see it.
    #[must_use]
    pub fn wants(&self, provider: &str, uri: &str) -> bool {
        self.rt.is_watched(self.key, provider, uri)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.rt.forget_wishes(self.key);
    }
}

impl Runtime {
    /// Listens to resources for a stream of a session. What cannot be had is left out.
    pub async fn listen_to(self: &Arc<Self>, session: &Session, uris: Vec<String>) -> Listening {
        let sight = self.sight(session.caller().agent.as_deref());
        let mut listening = Listening { rt: Arc::clone(self), key: SessionId::mint(), granted: Vec::new() };
        for uri in uris {
            match self.subscribe(&sight, listening.key, &uri).await {
                Ok(_) => listening.granted.push(uri),
                Err(error) => tracing::debug!("{uri:?} cannot be listened to: {error}"),
            }
        }
        listening
    }

    /// Whether a session has subscribed to this resource of a server, named as clients see it.
    #[must_use]
    pub fn is_subscribed(&self, session: &Session, provider: &str, uri: &str) -> bool {
        self.is_watched(session.id(), provider, uri)
    }

    fn is_watched(&self, key: SessionId, provider: &str, uri: &str) -> bool {
        let sources = self.upstreams.sources.load();
        let server = sources.get(provider).and_then(|source| source.server.as_ref());
        let own = server.and_then(|server| server.mapping().own(uri));
        own.is_some_and(|own| self.upstreams.hub.wishes.is_watching(key, provider, own))
    }

    /// From which level on a session wants log messages that belong to no request, if it said so.
    #[must_use]
    pub fn log_level(&self, session: &Session) -> Option<LogLevel> {
        self.upstreams.hub.wishes.level_of(session.id())
    }

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
    let wishes = talkative.flat_map(|server| server.connections()).map(|connection| async move {
        if let Err(failure) = hear(connection.set_log_level(level)).await {
            tracing::debug!("a server does not take a log level: {failure}");
        }
    });
    join_all(wishes).await;
}
