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
use gantry_mcp::error::code::{INTERNAL_ERROR, INVALID_PARAMS};
use gantry_provider::client::LogLevel;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::runtime::Handle;

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
        wishes.watch(session, id, &meant.own).map_err(|why| ErrorObject::new(INVALID_PARAMS, why))?;
        // Also if it is watched already: the first who wanted it may be about to hear that it cannot be.
        if let Err(failure) = meant.server.tell_watched(&meant.own).await {
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
            meant.server.tell_all_watched(vec![meant.own.into()]).await;
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
            let servers: Vec<_> = self.sources().servers().cloned().collect();
            speak_up(&servers).await;
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
        let sources = self.sources();
        // Without a runtime there is nobody to tell anything.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut by_server: BTreeMap<Arc<str>, Vec<Arc<str>>> = BTreeMap::new();
        for (id, uri) in unwatched {
            by_server.entry(id).or_default().push(uri);
        }
        let tell = async move {
            let servers: Vec<_> = sources.servers().cloned().collect();
            let affected = servers.iter().filter_map(|server| Some((server, by_server.remove(server.id())?)));
            join_all(affected.map(|(server, uris)| server.tell_all_watched(uris))).await;
            if is_quieter {
                speak_up(&servers).await;
            }
        };
        let closing = self.closing.clone();
        let until_closing = async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = tell => {}
            }
        };
        self.tasks.spawn_on(until_closing, &runtime);
    }
}

/// Tells all servers how much to log now.
async fn speak_up(servers: &[Arc<McpServer>]) {
    let talkative =
        servers.iter().filter(|server| server.listing().is_some_and(|known| known.offers("logging")));
    join_all(talkative.map(|server| server.tell_level())).await;
}
