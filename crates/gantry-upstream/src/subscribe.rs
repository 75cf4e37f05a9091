//! Subscriptions and log levels, as sessions ask for them.
//!
//! A server is told once, however many sessions want the same, and told again when it reconnects (`resubscribe.rs`).

use crate::context::UpstreamContext;
use crate::forward::{error, missing};
use crate::server::UpstreamServer;
use futures_util::future::join_all;
use gantry_core::id::SessionId;
use gantry_core::raw;
use gantry_provider::client::LogLevel;
use gantry_provider::code::{INTERNAL_ERROR, INVALID_PARAMS};
use gantry_provider::server::RequestScope;
use gantry_provider::{BoxFuture, ErrorObject};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The result of requests that ask for nothing back.
const DONE: &str = "{}";

impl UpstreamContext {
    pub(crate) async fn subscribe(&self, scope: &dyn RequestScope, uri: &str) -> Result<String, ErrorObject> {
        let target = self.resource(scope, uri)?;
        let (session, id, own) = (scope.session(), target.server.id(), &target.upstream_uri);
        if target.server.connections().is_empty() {
            return Err(ErrorObject::new(INTERNAL_ERROR, target.server.why_unavailable()));
        }
        let subscribed = self.subscriptions.subscribe(session, id, own);
        subscribed.map_err(|why| ErrorObject::new(INVALID_PARAMS, why))?;
        // Also if there is a subscription already: the server may be about to refuse the one who came first.
        if let Err(failure) = target.server.sync_subscription(own).await {
            self.subscriptions.unsubscribe(session, id, own);
            return Err(error(id, failure));
        }
        Ok(DONE.to_owned())
    }

    pub(crate) async fn unsubscribe(
        &self,
        scope: &dyn RequestScope,
        uri: &str,
    ) -> Result<String, ErrorObject> {
        let target = self.resource(scope, uri)?;
        if self.subscriptions.unsubscribe(scope.session(), target.server.id(), &target.upstream_uri) {
            target.server.sync_subscriptions(vec![target.upstream_uri.into()]).await;
        }
        Ok(DONE.to_owned())
    }

    pub(crate) async fn set_level(&self, session: SessionId, params: &str) -> Result<String, ErrorObject> {
        let word = raw::string_member(params, "level").ok_or_else(|| missing("level"))?;
        let level = LogLevel::parse(&word).ok_or_else(|| {
            let known = LogLevel::ALL.map(LogLevel::as_str).join(", ");
            ErrorObject::new(INVALID_PARAMS, format!("there is no level {word:?}; there are {known}"))
        })?;
        if self.subscriptions.set_level(session, level).is_some() {
            push_log_level(&self.all()).await;
        }
        Ok(DONE.to_owned())
    }

    /// Drops what a session that is over had subscribed to. Returns the work of telling the servers, if there is any.
    pub(crate) fn drop_subscriptions(&self, session: SessionId) -> Option<BoxFuture<'static, ()>> {
        let before = self.subscriptions.level();
        let unsubscribed = self.subscriptions.end(session);
        let is_quieter = self.subscriptions.level().is_some_and(|level| Some(level) != before);
        if unsubscribed.is_empty() && !is_quieter {
            return None;
        }
        let mut by_server: BTreeMap<Arc<str>, Vec<Arc<str>>> = BTreeMap::new();
        for (id, uri) in unsubscribed {
            by_server.entry(id).or_default().push(uri);
        }
        let servers = self.all();
        Some(Box::pin(async move {
            let affected = servers.iter().filter_map(|server| Some((server, by_server.get(server.id())?)));
            join_all(affected.map(|(server, uris)| server.sync_subscriptions(uris.clone()))).await;
            if is_quieter {
                push_log_level(&servers).await;
            }
        }))
    }
}

/// Tells all servers that log how much to log now.
async fn push_log_level(servers: &[Arc<UpstreamServer>]) {
    let logging =
        servers.iter().filter(|server| server.listing().is_some_and(|known| known.offers("logging")));
    join_all(logging.map(|server| server.push_log_level())).await;
}
