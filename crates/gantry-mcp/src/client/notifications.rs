//! Notifications of a server, and the clients that get them.

use super::dispatcher::Dispatcher;
use super::message;
use super::pending::Recipient;
use super::types::Change;
use crate::exchange::{LogLevel, ServerNotification};
use crate::{lock, raw};
use std::sync::Arc;

/// The key under which a notification names the subscription that it belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

impl Dispatcher {
    pub(super) fn on_notification(&self, method: &str, params: &str, origin: Option<u64>) {
        let provider = || Arc::clone(&self.target.name);
        match method {
            "notifications/progress" => self.on_progress(params),
            "notifications/message" => self.on_log(params, origin),
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => self.notify_lists_changed(),
            "notifications/resources/updated" => {
                if let Some(uri) = raw::string_member(params, "uri") {
                    let (provider, uri) = (provider(), uri.into());
                    self.on_change(Change::Updated { provider, uri, params: params.into() });
                }
            }
            "notifications/elicitation/complete" => {
                self.on_change(Change::ElicitationComplete { provider: provider(), params: params.into() });
            }
            "notifications/cancelled" => self.on_cancelled(params),
            "notifications/subscriptions/acknowledged" => self.acknowledged.notify_one(),
            _ => self.on_other(method, params, origin),
        }
    }

    fn on_progress(&self, params: &str) {
        let token = raw::member(params, "progressToken").and_then(message::number);
        match token.and_then(|token| self.pending().client(token)) {
            Some(client) => client.notify(ServerNotification::Progress(params.into())),
            None => tracing::debug!(server = %self.target.name, "progress came under an unknown token"),
        }
    }

    /// Forwards a log message to the client whose request is running. Without any request it goes to all clients; if it
    /// could belong to several clients it is dropped.
    fn on_log(&self, params: &str, origin: Option<u64>) {
        let server = &self.target.name;
        let level = raw::string_member(params, "level").and_then(|level| LogLevel::parse(&level));
        let Some(level) = level else {
            tracing::debug!(%server, "a log message has no level that is known");
            return;
        };
        match self.recipient(origin) {
            Recipient::Client(owner) => {
                if owner.client.log_level().is_some_and(|least| level >= least) {
                    owner.client.notify(ServerNotification::Log(level, params.into()));
                }
            }
            Recipient::None => {
                self.on_change(Change::Log { provider: Arc::clone(server), level, params: params.into() });
            }
            Recipient::Ambiguous => {
                tracing::debug!(%server, "a log message could belong to several clients");
            }
        }
    }

    /// The server cancels a request of its own.
    fn on_cancelled(&self, params: &str) {
        let Some(id) = raw::member(params, "requestId") else { return };
        let request = lock(&self.client_requests).remove(id);
        if let Some(request) = request {
            request.cancel();
        }
    }

    fn on_other(&self, method: &str, params: &str, origin: Option<u64>) {
        let subscription =
            || raw::member(raw::member(params, "_meta")?, SUBSCRIPTION).and_then(message::number);
        let client = origin.or_else(subscription).and_then(|id| self.pending().client(id));
        match client {
            Some(client) => {
                client.notify(ServerNotification::Other { method: method.into(), params: params.into() });
            }
            None => {
                tracing::debug!(server = %self.target.name, method, "a notification belongs to no request");
            }
        }
    }

    /// The lists of the server have changed, or a notification of that may have been missed.
    pub(super) fn notify_lists_changed(&self) {
        self.target.lists_changed.notify_one();
    }

    fn on_change(&self, change: Change) {
        if self.target.changes.try_send(change).is_err() {
            tracing::debug!(server = %self.target.name, "a change was dropped, its receiver is slow");
        }
    }
}
