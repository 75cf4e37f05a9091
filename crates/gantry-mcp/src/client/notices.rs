//! What a server says without being asked, and whom it concerns.

use super::{
    dispatcher::{Dispatcher, Whose, lock},
    message,
    types::{Event, ListKind},
};
use crate::{
    exchange::{LogLevel, ServerNotification},
    raw,
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::mpsc::error::TrySendError;

/// The key under which a notification names the subscription that it belongs to.
pub(super) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

impl Dispatcher {
    /// A notification came.
    pub(super) fn notified(self: &Arc<Self>, method: &str, params: &str, origin: Option<u64>) {
        match method {
            "notifications/progress" => self.progressed(params),
            "notifications/message" => self.logged(params, origin),
            "notifications/tools/list_changed" => self.changed(ListKind::Tools),
            "notifications/resources/list_changed" => self.changed(ListKind::Resources),
            "notifications/prompts/list_changed" => self.changed(ListKind::Prompts),
            "notifications/resources/updated" => self.event(Event::Updated(params.into())),
            "notifications/elicitation/complete" => self.event(Event::ElicitationComplete(params.into())),
            "notifications/cancelled" => self.question_withdrawn(params),
            _ => self.other(method, params, origin),
        }
    }

    fn progressed(&self, params: &str) {
        let token = raw::member(params, "progressToken").and_then(message::number);
        match token.and_then(|token| self.progress_audience(token)) {
            Some(audience) => audience.notify(ServerNotification::Progress(params.into())),
            None => tracing::debug!(server = %self.target.name, "progress came that nobody waits for"),
        }
    }

    /// A log message. Only its own client may see it, whether that wants it or not; what nobody's request can have
    /// caused is for all.
    fn logged(&self, params: &str, origin: Option<u64>) {
        let server = &self.target.name;
        let level = raw::string_member(params, "level").and_then(|level| LogLevel::parse(&level));
        let Some(level) = level else {
            tracing::debug!(%server, "a log message has no level that is known");
            return;
        };
        match self.whose(origin) {
            Whose::Client(asker) => {
                if asker.audience.log_level().is_some_and(|least| level >= least) {
                    asker.audience.notify(ServerNotification::Log(level, params.into()));
                }
            }
            Whose::NoClient => self.event(Event::Log(params.into())),
            Whose::Unclear => tracing::debug!(%server, "a log message does not say for whom it is"),
        }
    }

    fn question_withdrawn(&self, params: &str) {
        let Some(id) = raw::member(params, "requestId") else { return };
        let question = lock(&self.open_questions).remove(id);
        if let Some(question) = question {
            question.cancel();
        }
    }

    fn other(&self, method: &str, params: &str, origin: Option<u64>) {
        let subscription =
            || raw::member(raw::member(params, "_meta")?, SUBSCRIPTION).and_then(message::number);
        let Some(id) = origin.or_else(subscription) else {
            tracing::debug!(server = %self.target.name, method, "a notification came that belongs to no request");
            return;
        };
        if let Some(audience) = self.audience(id) {
            audience.notify(ServerNotification::Other { method: method.into(), params: params.into() });
        }
    }

    /// Tells that a list is another now. Unlike other events this one is not lost when the receiver is slow.
    pub(super) fn changed(self: &Arc<Self>, kind: ListKind) {
        let Err(TrySendError::Full(event)) = self.target.events.try_send(Event::Changed(kind)) else {
            return;
        };
        if self.late_change(kind).swap(true, Ordering::Relaxed) {
            return;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            // The receiver may look anew while this waits, but a look too many harms nobody.
            let slot = tokio::select! {
                slot = this.target.events.reserve() => slot.ok(),
                () = this.over.cancelled() => None,
            };
            this.late_change(kind).store(false, Ordering::Relaxed);
            if let Some(slot) = slot {
                slot.send(event);
            }
        });
    }

    /// Tells that something may have been missed.
    pub(super) fn look_anew(self: &Arc<Self>) {
        for kind in [ListKind::Tools, ListKind::Resources, ListKind::Prompts] {
            self.changed(kind);
        }
    }

    fn late_change(&self, kind: ListKind) -> &AtomicBool {
        let [tools, resources, prompts] = &self.late_changes;
        match kind {
            ListKind::Tools => tools,
            ListKind::Resources | ListKind::Templates => resources,
            ListKind::Prompts => prompts,
        }
    }

    /// Tells an event, or drops it when the receiver is slow.
    pub(super) fn event(&self, event: Event) {
        if self.target.events.try_send(event).is_err() {
            tracing::debug!(server = %self.target.name, "an event was dropped, its receiver is slow");
        }
    }
}
