//! Changes of the gateway, as the notifications that one client gets outside of its requests.

use super::{
    Server,
    body::Source,
    connected_client::{Delivery, notification},
    event_log::{EventReader, SESSION_STREAM},
    handler::{Change, ChangeNotice, Features, Session},
    session::LegacySession,
    sessions::HttpSession,
};
use crate::{client::ListKind, raw};
use bytes::Bytes;
use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio_util::sync::CancellationToken;

/// The notifications that a client wants.
pub(super) enum Interest {
    /// All that a legacy session gets.
    Session { legacy: Arc<LegacySession>, features: Features },
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

/// The notifications of one client.
pub(super) struct NotificationFeed {
    session: Arc<dyn Session>,
    changes: Receiver<ChangeNotice>,
    interest: Interest,
    /// Notifications that precede the next change. Limit: one per kind of list.
    backlog: VecDeque<String>,
}

impl NotificationFeed {
    pub(super) fn new(
        session: Arc<dyn Session>,
        changes: Receiver<ChangeNotice>,
        interest: Interest,
    ) -> Self {
        Self { session, changes, interest, backlog: VecDeque::new() }
    }

    /// The feed of a legacy session.
    pub(super) fn of_session(
        legacy: &Arc<LegacySession>,
        changes: Receiver<ChangeNotice>,
        features: Features,
    ) -> Self {
        let interest = Interest::Session { legacy: Arc::clone(legacy), features };
        Self::new(Arc::clone(&legacy.session), changes, interest)
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
                    if self.session.is_visible(&notice)
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
                    Self::Session { legacy, .. } => legacy.settings.watches(uri),
                    Self::Listen(filter) => filter.watched.contains(&**uri),
                };
                is_wanted.then(|| self.text("notifications/resources/updated", params))
            }
            (Change::Log { level, params, .. }, Self::Session { legacy, .. }) => {
                legacy.settings.wants_log(*level).then(|| self.text("notifications/message", params))
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

/// The stream of a legacy session that belongs to no request. At most one is open; changes while none is open wait in
/// the receiver.
pub(super) struct SessionStream {
    // Invariant: never held across an await.
    state: Mutex<StreamState>,
}

struct StreamState {
    /// `None` while a stream is open and reads from it.
    changes: Option<Receiver<ChangeNotice>>,
    /// Ends the open stream.
    close: CancellationToken,
}

impl SessionStream {
    pub(super) fn new(changes: Receiver<ChangeNotice>) -> Self {
        let state = StreamState { changes: Some(changes), close: CancellationToken::new() };
        Self { state: Mutex::new(state) }
    }

    pub(super) fn is_open(&self) -> bool {
        self.lock().changes.is_none()
    }

    /// Ends the open stream.
    pub(super) fn close(&self) {
        self.lock().close.cancel();
    }

    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The events of a session's stream.
pub(super) struct SessionEvents {
    server: Server,
    session: Arc<HttpSession>,
    feed: NotificationFeed,
    reader: EventReader,
    close: CancellationToken,
}

impl SessionEvents {
    /// Opens the stream, in place of the one that is open.
    pub(super) fn open(
        server: &Server,
        session: &Arc<HttpSession>,
        features: Features,
        reader: EventReader,
    ) -> Self {
        let mut state = session.stream.lock();
        let changes = state.changes.take().unwrap_or_else(|| server.changes());
        state.close.cancel();
        state.close = CancellationToken::new();
        let feed = NotificationFeed::of_session(&session.legacy, changes, features);
        let close = state.close.clone();
        Self { server: server.clone(), session: Arc::clone(session), feed, reader, close }
    }
}

impl Source for SessionEvents {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                biased;
                () = self.close.cancelled() => return None,
                () = self.server.inner.close_streams.cancelled() => return None,
                event = self.reader.next() => return event,
                text = self.feed.next() => {
                    self.session.logs.push(SESSION_STREAM, &text, Delivery::Required, None);
                }
            }
        }
    }
}

impl Drop for SessionEvents {
    fn drop(&mut self) {
        let mut state = self.session.stream.lock();
        // A stream that was replaced has no receiver to give back.
        if !self.close.is_cancelled() {
            state.changes = Some(std::mem::replace(&mut self.feed.changes, self.server.changes()));
        }
        drop(state);
        self.server.inner.sessions.touch(&self.session);
    }
}
