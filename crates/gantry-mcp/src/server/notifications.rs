//! Changes of lists and resources, as the notifications that one client gets outside of its requests.

use super::Server;
use super::body::Source;
use super::connection::Connection;
use super::event_log::{EventReader, SESSION_STREAM};
use super::handler::{Change, ChangeNotice, Features, Handler};
use super::outgoing::Delivery;
use super::request_channel::notification;
use super::sessions::HttpSession;
use crate::client::ListKind;
use crate::raw;
use bytes::Bytes;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

pub(super) enum Interest {
    /// All that a legacy client gets.
    Session { connection: Arc<Connection>, features: Features },
    /// Those that a `subscriptions/listen` names.
    Listen(ListenFilter),
}

/// The notifications that a `subscriptions/listen` names, as far as they were granted.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of the filter on the wire")]
pub(super) struct ListenFilter {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: bool,
    pub(super) watched: HashSet<String>,
    /// The id of the request, as JSON text: every notification carries it.
    pub(super) id: String,
}

pub(super) struct NotificationFeed {
    handler: Arc<dyn Handler>,
    changes: Receiver<ChangeNotice>,
    interest: Interest,
    /// Notifications that precede the next change. Limit: one per kind of list.
    backlog: VecDeque<String>,
}

impl NotificationFeed {
    pub(super) fn new(
        handler: Arc<dyn Handler>,
        changes: Receiver<ChangeNotice>,
        interest: Interest,
    ) -> Self {
        Self { handler, changes, interest, backlog: VecDeque::new() }
    }

    pub(super) fn of_connection(connection: &Arc<Connection>, changes: Receiver<ChangeNotice>) -> Self {
        let handler = Arc::clone(&connection.handler);
        let interest = Interest::Session { connection: Arc::clone(connection), features: handler.features() };
        Self::new(handler, changes, interest)
    }

    /// Waits for the next notification.
    ///
    /// Cancel-safety: nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> String {
        loop {
            if let Some(text) = self.backlog.pop_front() {
                return text;
            }
            match self.changes.recv().await {
                Ok(notice) => {
                    if self.handler.is_visible(&notice)
                        && let Some(text) = self.interest.render(&notice.change)
                    {
                        return text;
                    }
                }
                // The missed changes are unknown, so every list may have changed.
                Err(RecvError::Lagged(_)) => {
                    let kinds = [ListKind::Tools, ListKind::Resources, ListKind::Prompts];
                    self.backlog =
                        kinds.into_iter().filter_map(|kind| self.interest.list_changed(kind)).collect();
                }
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

impl Interest {
    /// The text of the notification of a change, if the client wants it.
    fn render(&self, change: &Change) -> Option<String> {
        match (change, self) {
            (Change::ListChanged { kind, .. }, _) => self.list_changed(*kind),
            (Change::Updated { uri, params, .. }, _) => {
                let is_wanted = match self {
                    Self::Session { connection, .. } => connection.settings.watches(uri),
                    Self::Listen(filter) => filter.watched.contains(&**uri),
                };
                is_wanted.then(|| self.text("notifications/resources/updated", params))
            }
            (Change::Log { level, params, .. }, Self::Session { connection, .. }) => {
                let is_wanted = connection.settings.log_level().is_some_and(|least| *level >= least);
                is_wanted.then(|| self.text("notifications/message", params))
            }
            (Change::ElicitationComplete { params, .. }, Self::Session { .. }) => {
                Some(self.text("notifications/elicitation/complete", params))
            }
            (Change::Log { .. } | Change::ElicitationComplete { .. }, Self::Listen(_)) => None,
        }
    }

    fn list_changed(&self, kind: ListKind) -> Option<String> {
        let (tools, resources, prompts) = match self {
            Self::Session { features, .. } => (true, features.resources, features.prompts),
            Self::Listen(filter) => (filter.tools, filter.resources, filter.prompts),
        };
        let (is_wanted, method) = match kind {
            ListKind::Tools => (tools, "notifications/tools/list_changed"),
            ListKind::Resources | ListKind::Templates => (resources, "notifications/resources/list_changed"),
            ListKind::Prompts => (prompts, "notifications/prompts/list_changed"),
        };
        is_wanted.then(|| self.text(method, "{}"))
    }

    fn text(&self, method: &str, params: &str) -> String {
        match self {
            Self::Session { .. } => notification(method, params),
            Self::Listen(filter) => filter.notification(method, params),
        }
    }
}

impl ListenFilter {
    /// The text of a notification that names its `subscriptions/listen`.
    pub(super) fn notification(&self, method: &str, params: &str) -> String {
        let meta = raw::member(params, "_meta").unwrap_or("{}");
        let meta = raw::with(meta, "io.modelcontextprotocol/subscriptionId", &self.id);
        notification(method, &raw::with(params, "_meta", &meta))
    }
}

/// The events of the stream of a legacy session that belongs to no request. At most one is open; changes while none is
/// open wait in the feed of the session.
pub(super) struct SessionEvents {
    server: Server,
    session: Arc<HttpSession>,
    feed: Option<NotificationFeed>,
    reader: EventReader,
}

impl SessionEvents {
    /// Opens the stream. The reader has replaced that of the stream that was open.
    pub(super) fn open(server: &Server, session: &Arc<HttpSession>, reader: EventReader) -> Self {
        let feed = session.feed().take();
        let new = || NotificationFeed::of_connection(&session.connection, server.changes());
        let feed = Some(feed.unwrap_or_else(new));
        Self { server: server.clone(), session: Arc::clone(session), feed, reader }
    }
}

impl Source for SessionEvents {
    async fn next(&mut self) -> Option<Bytes> {
        let feed = self.feed.as_mut()?;
        loop {
            tokio::select! {
                biased;
                () = self.server.inner.close_streams.cancelled() => return None,
                event = self.reader.next() => return event,
                text = feed.next() => {
                    self.session.logs.push(SESSION_STREAM, &text, Delivery::Required, None);
                }
            }
        }
    }
}

impl Drop for SessionEvents {
    fn drop(&mut self) {
        // The next stream replaces the reader first and takes the feed then.
        let mut feed = self.session.feed();
        if self.reader.is_current() {
            *feed = self.feed.take();
        }
        drop(feed);
        self.server.inner.sessions.touch(&self.session);
    }
}
