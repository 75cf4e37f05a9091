//! What happens apart from requests, as the notifications that one client gets.

use super::{
    Handler, Server,
    body::Source,
    caller::{Habits, notification},
    handler::{Change, Features},
    outbox::Care,
    ring::{COMMON, Found, Reader},
    sessions::Entry,
};
use crate::{client::ListKind, raw};
use bytes::Bytes;
use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio_util::sync::CancellationToken;

/// Which news a client wants.
#[derive(Debug)]
pub(super) enum Wants {
    /// All that a legacy session gets.
    Session { habits: Arc<Habits>, features: Features },
    /// What a `subscriptions/listen` names.
    Listen(Filter),
}

/// What a `subscriptions/listen` names, as far as it was granted.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of the filter on the wire")]
pub(super) struct Filter {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: bool,
    pub(super) watched: HashSet<String>,
    /// The id of the request, as JSON text: every notification carries it.
    pub(super) id: String,
}

/// The news for one client.
pub(super) struct News<H: Handler> {
    server: Server<H>,
    session: Arc<H::Session>,
    changes: Receiver<H::Told>,
    wants: Wants,
    /// What is to be told before the next change is looked at. Limit: one per kind of list.
    backlog: VecDeque<String>,
}

impl<H: Handler> News<H> {
    pub(super) fn new(
        server: Server<H>,
        session: Arc<H::Session>,
        changes: Receiver<H::Told>,
        wants: Wants,
    ) -> Self {
        Self { server, session, changes, wants, backlog: VecDeque::new() }
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
                Ok(change) => {
                    if self.server.inner.handler.concerns(&self.session, &change)
                        && let Some(text) = self.wants.told(change.as_ref())
                    {
                        return text;
                    }
                }
                // What was missed is not known, so every list may be another.
                Err(RecvError::Lagged(_)) => self.backlog = self.wants.everything(),
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    fn into_changes(self) -> Receiver<H::Told> {
        self.changes
    }
}

impl Wants {
    /// The notification of a change, if it is wanted.
    fn told(&self, change: &Change) -> Option<String> {
        match (change, self) {
            (Change::ListChanged { kind, .. }, _) => self.list(*kind),
            (Change::Updated { uri, params, .. }, Self::Session { habits, .. }) => {
                habits.watches(uri).then(|| notification("notifications/resources/updated", params))
            }
            (Change::Updated { uri, params, .. }, Self::Listen(filter)) => filter
                .watched
                .contains(&**uri)
                .then(|| filter.mark("notifications/resources/updated", params)),
            (Change::Log { level, params, .. }, Self::Session { habits, .. }) => {
                let wanted = habits.level().is_some_and(|least| *level >= least);
                wanted.then(|| notification("notifications/message", params))
            }
            (Change::ElicitationComplete { params, .. }, Self::Session { .. }) => {
                Some(notification("notifications/elicitation/complete", params))
            }
            (Change::Log { .. } | Change::ElicitationComplete { .. }, Self::Listen(_)) => None,
        }
    }

    fn list(&self, kind: ListKind) -> Option<String> {
        let method = match kind {
            ListKind::Tools => "notifications/tools/list_changed",
            ListKind::Resources | ListKind::Templates => "notifications/resources/list_changed",
            ListKind::Prompts => "notifications/prompts/list_changed",
        };
        let pick = |tools, resources, prompts| match kind {
            ListKind::Tools => tools,
            ListKind::Resources | ListKind::Templates => resources,
            ListKind::Prompts => prompts,
        };
        match self {
            Self::Session { features, .. } => {
                pick(true, features.resources, features.prompts).then(|| notification(method, "{}"))
            }
            Self::Listen(filter) => {
                pick(filter.tools, filter.resources, filter.prompts).then(|| filter.mark(method, "{}"))
            }
        }
    }

    fn everything(&self) -> VecDeque<String> {
        [ListKind::Tools, ListKind::Resources, ListKind::Prompts]
            .into_iter()
            .filter_map(|kind| self.list(kind))
            .collect()
    }
}

impl Filter {
    /// A notification that says for which `subscriptions/listen` it is.
    pub(super) fn mark(&self, method: &str, params: &str) -> String {
        let meta = raw::member(params, "_meta").unwrap_or("{}");
        let meta = raw::with(meta, "io.modelcontextprotocol/subscriptionId", &self.id);
        notification(method, &raw::with(params, "_meta", &meta))
    }
}

/// The stream of a legacy session that belongs to no request. There is one at a time; what happens while none is open
/// waits in the receiver.
pub(super) struct Common<T> {
    // Invariant: never held across an await.
    state: Mutex<CommonState<T>>,
}

struct CommonState<T> {
    /// What is to be read; a stream that is open has it.
    changes: Option<Receiver<T>>,
    open: CancellationToken,
}

impl<T> Common<T> {
    pub(super) fn new(changes: Receiver<T>) -> Arc<Self> {
        let state = CommonState { changes: Some(changes), open: CancellationToken::new() };
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// Whether a stream is open.
    pub(super) fn is_open(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).changes.is_none()
    }

    /// Ends the stream that is open.
    pub(super) fn end(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.open.cancel();
    }

    /// What is to be read, for a stream that takes the place of the one before.
    pub(super) fn take(&self, fresh: impl FnOnce() -> Receiver<T>) -> (Receiver<T>, CancellationToken) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = state.changes.take().unwrap_or_else(fresh);
        state.open.cancel();
        state.open = CancellationToken::new();
        (changes, state.open.clone())
    }

    fn put_back(&self, changes: Receiver<T>, open: &CancellationToken) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A stream that was replaced has nothing to give back.
        if !open.is_cancelled() {
            state.changes = Some(changes);
        }
    }
}

/// The events of a common stream.
pub(super) struct CommonEvents<H: Handler> {
    server: Server<H>,
    entry: Arc<Entry<H>>,
    news: Option<News<H>>,
    reader: Reader,
    open: CancellationToken,
}

impl<H: Handler> CommonEvents<H> {
    /// Reads what follows in place of whoever did so before.
    pub(super) fn new(server: Server<H>, entry: Arc<Entry<H>>, features: Features, reader: Reader) -> Self {
        let (changes, open) = entry.common.take(|| server.inner.handler.changes());
        let wants = Wants::Session { habits: Arc::clone(&entry.lane.habits), features };
        let news = News::new(server.clone(), Arc::clone(&entry.lane.session), changes, wants);
        Self { server, entry, news: Some(news), reader, open }
    }
}

impl<H: Handler> Source for CommonEvents<H> {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.reader.look() {
                Found::Event(bytes) => return Some(bytes),
                Found::End => return None,
                Found::NothingYet => {}
            }
            let news = self.news.as_mut()?;
            tokio::select! {
                biased;
                () = self.open.cancelled() => return None,
                () = self.server.inner.hang_up.cancelled() => return None,
                text = news.next() => self.entry.streams.push(COMMON, &text, Care::MustArrive),
            }
        }
    }
}

impl<H: Handler> Drop for CommonEvents<H> {
    fn drop(&mut self) {
        if let Some(news) = self.news.take() {
            self.entry.common.put_back(news.into_changes(), &self.open);
        }
        self.server.inner.sessions.touch(&self.entry);
    }
}
