//! What all connections share, and what one session remembers.

use super::exit;
use super::options::Options;
use super::wire::{SUBSCRIPTION_KEY, note};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Frames that wait for a slow reader.
pub(super) const QUEUED_FRAMES: usize = 64;

/// What a transport is given to write.
#[derive(Debug)]
pub(super) enum Frame {
    /// The answer to a request, with its error code; nothing follows it.
    Answer(String, Option<i64>),
    /// A notification, or a request to the client.
    Note(String),
    /// Bytes that are no message.
    Garbage(String),
    /// Close the connection now.
    HangUp,
}

/// Where what belongs to a request, or to a whole connection, goes.
pub(super) type FrameSender = mpsc::Sender<Frame>;

/// The server behind all connections.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) options: Options,
    pub(super) definition: AtomicU64,
    pub(super) grown: Grown,
    pub(super) n_sessions: AtomicU64,
    pub(super) n_connections: AtomicU64,
    pub(super) n_calls: AtomicU64,
    /// Notifications of the tool `chatter`.
    pub(super) n_chattered: AtomicU64,
    listeners: Mutex<Vec<Listener>>,
    started: Instant,
}

/// How many entries each list has got while running.
#[derive(Debug, Default)]
pub(super) struct Grown {
    pub(super) tools: AtomicU64,
    pub(super) prompts: AtomicU64,
    pub(super) resources: AtomicU64,
}

/// One handshake's worth of state, or one connection's.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) state: Mutex<State>,
    /// Requests to the client that have no answer yet.
    asked: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    /// Requests of the client that have no answer yet.
    running: Mutex<HashMap<String, CancellationToken>>,
    n_asked: AtomicU64,
}

/// What the client has sent about itself.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) version: Option<String>,
    /// A modern request was seen, and `--latch` is on.
    pub(super) latched: bool,
    pub(super) capabilities: Value,
    pub(super) log_level: String,
    pub(super) subscriptions: BTreeSet<String>,
}

/// A client that gets notifications of changes.
#[derive(Debug)]
struct Listener {
    sender: FrameSender,
    subscription: Subscription,
}

#[derive(Debug)]
pub(super) enum Subscription {
    /// What the session has subscribed to, and every changed list.
    Session(Arc<Session>),
    /// What `subscriptions/listen` asked for, the id of that request, and whether it has ended.
    Filter { filter: Value, id: Value, ended: CancellationToken },
}

/// A change that clients can subscribe to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change<'a> {
    Tools,
    Prompts,
    Resources,
    Resource(&'a str),
}

impl Change<'_> {
    /// The notification, and what `subscriptions/listen` calls it.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Tools => ("notifications/tools/list_changed", "toolsListChanged"),
            Self::Prompts => ("notifications/prompts/list_changed", "promptsListChanged"),
            Self::Resources => ("notifications/resources/list_changed", "resourcesListChanged"),
            Self::Resource(_) => ("notifications/resources/updated", "resourceSubscriptions"),
        }
    }
}

impl Server {
    pub(super) fn new(options: Options) -> Self {
        Self {
            definition: AtomicU64::new(options.definition_version),
            options,
            grown: Grown::default(),
            n_sessions: AtomicU64::new(0),
            n_connections: AtomicU64::new(0),
            n_calls: AtomicU64::new(0),
            n_chattered: AtomicU64::new(0),
            listeners: Mutex::default(),
            started: Instant::now(),
        }
    }

    pub(super) async fn ready(&self) {
        let wait = self.options.faults.start_after.saturating_sub(self.started.elapsed());
        tokio::time::sleep(wait).await;
    }

    /// Whether a message, by its method, is never answered. With `--exit-on-discover` the process ends.
    pub(super) fn is_mute(&self, method: Option<&str>) -> bool {
        let discovers = method == Some("server/discover");
        if discovers && self.options.faults.exit_on_discover {
            exit(4, "it was told to exit on server/discover");
        }
        self.options.faults.never_start || (discovers && self.options.faults.silent_on_discover)
    }

    pub(super) fn open_session(&self) -> Arc<Session> {
        let number = self.n_sessions.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(Session { number, ..Session::default() })
    }

    /// Writes down what really happened, if there is a journal.
    pub(super) fn journal(&self, line: &str) {
        let Some(path) = &self.options.journal else { return };
        let mut file =
            std::fs::OpenOptions::new().append(true).create(true).open(path).expect("the journal opens");
        // One write per line, so that lines of calls at once cannot mix.
        file.write_all(format!("{line}\n").as_bytes()).expect("the journal is written");
    }

    /// Remembers a client that is to get notifications.
    pub(super) fn listen(&self, sender: FrameSender, subscription: Subscription) {
        let mut listeners = self.listeners.lock().unwrap();
        listeners.retain(|listener| !listener.sender.is_closed());
        listeners.push(Listener { sender, subscription });
    }

    /// The same, after a first message. Both happen as one, so that a client which has the message misses no change.
    pub(super) async fn listen_after(&self, word: String, sender: FrameSender, subscription: Subscription) {
        let Ok(place) = sender.clone().reserve_owned().await else { return };
        let mut listeners = self.listeners.lock().unwrap();
        place.send(Frame::Note(word));
        listeners.push(Listener { sender, subscription });
    }

    /// Sends a change to every client that has subscribed to it.
    pub(super) async fn notify(&self, change: Change<'_>) {
        let note = |of: &Listener| Some((of.sender.clone(), of.subscription.note(change)?));
        let notes: Vec<_> = self.listeners.lock().unwrap().iter().filter_map(note).collect();
        for (sender, note) in notes {
            sender.send(Frame::Note(note)).await.ok(); // A client that is gone needs no news.
        }
    }
}

impl Subscription {
    fn note(&self, change: Change<'_>) -> Option<String> {
        let (method, key) = change.names();
        let mut params = match change {
            Change::Resource(uri) => json!({ "uri": uri }),
            Change::Tools | Change::Prompts | Change::Resources => json!({}),
        };
        let wanted = match (self, change) {
            (Self::Session(session), Change::Resource(uri)) => {
                session.state.lock().unwrap().subscriptions.contains(uri)
            }
            (Self::Session(_), _) => true,
            (Self::Filter { ended, .. }, _) if ended.is_cancelled() => false,
            (Self::Filter { filter, .. }, Change::Resource(uri)) => {
                filter[key].as_array().is_some_and(|uris| uris.iter().any(|u| u == uri))
            }
            (Self::Filter { filter, .. }, _) => filter[key] == true,
        };
        if let Self::Filter { id, .. } = self {
            params["_meta"] = json!({ SUBSCRIPTION_KEY: id });
        }
        wanted.then(|| note(method, &params))
    }
}

impl Session {
    /// A name for a request to the client, and where its answer will come out.
    pub(super) fn ask(&self) -> (String, oneshot::Receiver<Value>) {
        let id = format!("faulty-{}", self.n_asked.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, receiver) = oneshot::channel();
        self.asked.lock().unwrap().insert(id.clone(), sender);
        (id, receiver)
    }

    /// The client's answer to a request with this id, which is JSON text.
    pub(super) fn answered(&self, id: &str, answer: Value) {
        let id: String = serde_json::from_str(id).unwrap_or_default();
        let asked = self.asked.lock().unwrap().remove(&id);
        if let Some(sender) = asked {
            sender.send(answer).ok(); // Who asked may have been cancelled.
        }
    }

    pub(super) fn begin(&self, id: &str) -> CancellationToken {
        let token = CancellationToken::new();
        self.running.lock().unwrap().insert(id.to_owned(), token.clone());
        token
    }

    pub(super) fn end(&self, id: &str) {
        self.running.lock().unwrap().remove(id);
    }

    pub(super) fn cancel(&self, id: &str) {
        if let Some(token) = self.running.lock().unwrap().get(id) {
            token.cancel();
        }
    }
}
