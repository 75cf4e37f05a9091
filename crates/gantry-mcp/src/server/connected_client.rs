//! The client of one request, as the gateway sees it: it receives notifications, and requests in the way of its era.

use super::{client_requests::ClientRequests, session::LegacySession};
use crate::{
    exchange::{
        BoxFuture, Capabilities, ClientChannel, ClientRequest, ClientRequestError, ClientResponse, LogLevel,
        ServerNotification,
    },
    limits::{OUTBOX_BYTES, OUTBOX_MESSAGES, QUESTION_WAIT, QUESTIONS, QUESTIONS_WAITING, SUBSCRIPTIONS},
    raw,
};
use gantry_core::json::Object;
use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};
use uuid::Uuid;

/// Tells a client of the older era that an elicitation by URL is complete.
const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

/// The settings that a legacy client has chosen for its session.
#[derive(Debug)]
pub(super) struct SessionSettings(Mutex<Settings>);

#[derive(Debug)]
struct Settings {
    /// The least level of log messages; `None` means no messages.
    level: Option<LogLevel>,
    /// The resources that the client has subscribed to.
    watched: HashSet<String>,
}

/// A request of the client to change its settings.
#[derive(Debug)]
pub(super) enum SettingChange {
    Level(LogLevel),
    Watch(String),
    Unwatch(String),
}

impl SessionSettings {
    /// The settings before the client chooses. The protocol leaves the first level to the server.
    pub(super) fn new(logging: bool) -> Self {
        Self(Mutex::new(Settings { level: logging.then_some(LogLevel::Info), watched: HashSet::new() }))
    }

    pub(super) fn wants_log(&self, level: LogLevel) -> bool {
        self.lock().level.is_some_and(|least| level >= least)
    }

    pub(super) fn watches(&self, uri: &str) -> bool {
        self.lock().watched.contains(uri)
    }

    pub(super) fn can_watch_more(&self) -> bool {
        self.lock().watched.len() < SUBSCRIPTIONS
    }

    pub(super) fn apply(&self, change: SettingChange) {
        let mut settings = self.lock();
        match change {
            SettingChange::Level(level) => settings.level = Some(level),
            SettingChange::Watch(uri) => drop(settings.watched.insert(uri)),
            SettingChange::Unwatch(uri) => drop(settings.watched.remove(&uri)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Settings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The options of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RequestOptions {
    /// Its token for progress, as JSON text.
    pub(super) progress_token: Option<String>,
    /// The least level of log messages that a modern request names.
    pub(super) level: Option<LogLevel>,
    /// The `inputResponses` that came with the request, the text of an object.
    pub(super) responses: Option<String>,
}

/// How the client receives requests.
pub(super) enum ClientMode {
    /// As messages of their own.
    Legacy(Arc<LegacySession>),
    /// As a result that asks for input, where the method may have such a result.
    Modern { may_ask_for_input: bool },
    /// Not at all: the client receives nothing but the response.
    ResponseOnly,
}

/// Whether a message may be dropped on the way to a client that reads too slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    BestEffort,
    Required,
}

/// Anything that the client is sent before the response.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// The text of a message.
    Message(String, Delivery),
    /// Requests that a modern client gets as a result.
    InputRequired(Vec<ClientRequest>, oneshot::Sender<Vec<ClientResponse>>),
    /// Nothing will be sent for a while.
    Released,
}

/// The client of one request.
pub(super) struct ConnectedClient {
    pub(super) capabilities: Arc<Capabilities>,
    session: u64,
    mode: ClientMode,
    /// `None` while a client of 2026-07-28 that was asked for input is away: notifications would come too late.
    // Invariant: never held across an await.
    options: Mutex<Option<RequestOptions>>,
    /// One round of requests after the other: a person answers one form at a time.
    asking: Semaphore,
    outgoing: mpsc::Sender<Outgoing>,
    /// Bytes of the messages in the channel.
    queued_bytes: AtomicUsize,
}

impl ConnectedClient {
    pub(super) fn new(
        capabilities: Arc<Capabilities>,
        session: u64,
        mode: ClientMode,
        options: RequestOptions,
    ) -> (Arc<Self>, mpsc::Receiver<Outgoing>) {
        // Limit: notifications leave room for the requests that may be pending.
        let (outgoing, receiver) = mpsc::channel(OUTBOX_MESSAGES + QUESTIONS_WAITING);
        let options = Mutex::new(Some(options));
        let queued_bytes = AtomicUsize::new(0);
        let asking = Semaphore::new(1);
        (Arc::new(Self { capabilities, session, mode, options, asking, outgoing, queued_bytes }), receiver)
    }

    /// The client waits for the response no longer: it was asked for input.
    pub(super) fn leave(&self) {
        *self.options() = None;
    }

    /// The client has sent the request again, perhaps with other options.
    pub(super) fn come_back(&self, options: RequestOptions) {
        *self.options() = Some(options);
    }

    /// Notes that a message was taken out of the channel.
    pub(super) fn took(&self, message: &str) {
        self.queued_bytes.fetch_sub(message.len(), Relaxed);
    }

    fn options(&self) -> MutexGuard<'_, Option<RequestOptions>> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_notification(&self, method: &str, params: &str) {
        let message = notification(method, params);
        let queued = self.queued_bytes.load(Relaxed);
        if self.outgoing.capacity() <= QUESTIONS_WAITING || queued + message.len() > OUTBOX_BYTES {
            tracing::debug!("a notification was dropped: the client reads too slowly");
        } else if !self.send(message, Delivery::BestEffort) {
            tracing::debug!("a notification was dropped: its request has ended");
        }
    }

    fn send(&self, message: String, delivery: Delivery) -> bool {
        let bytes = message.len();
        self.queued_bytes.fetch_add(bytes, Relaxed);
        let sent = self.outgoing.try_send(Outgoing::Message(message, delivery)).is_ok();
        if !sent {
            self.queued_bytes.fetch_sub(bytes, Relaxed);
        }
        sent
    }

    async fn send_requests(
        &self,
        pending: &ClientRequests,
        requests: &[ClientRequest],
    ) -> Result<Vec<ClientResponse>, ClientRequestError> {
        let mut sent = Vec::with_capacity(requests.len());
        for request in requests {
            let (id, response) = pending.open().ok_or(ClientRequestError::Gone)?;
            sent.push(PendingRequest { client: self, pending, id, response });
            if !self.send(request_text(id, request), Delivery::Required) {
                return Err(ClientRequestError::Gone);
            }
        }
        let mut responses = Vec::with_capacity(sent.len());
        for request in &mut sent {
            responses.push((&mut request.response).await.map_err(|_closed| ClientRequestError::Gone)?);
        }
        Ok(responses)
    }

    async fn require_input(
        &self,
        requests: Vec<ClientRequest>,
    ) -> Result<Vec<ClientResponse>, ClientRequestError> {
        let early = self.options().as_mut().and_then(|options| options.responses.take());
        if let Some(responses) = early.and_then(|early| matching_responses(&requests, &early)) {
            return Ok(responses);
        }
        let requests = requests.into_iter().map(without_elicitation_id).collect();
        let (sender, responses) = oneshot::channel();
        self.outgoing
            .try_send(Outgoing::InputRequired(requests, sender))
            .map_err(|_full| ClientRequestError::Gone)?;
        responses.await.map_err(|_dropped| ClientRequestError::Gone)
    }

    async fn request_all(
        &self,
        requests: Vec<ClientRequest>,
    ) -> Result<Vec<ClientResponse>, ClientRequestError> {
        let Some(first) = requests.first() else { return Ok(Vec::new()) };
        let undeclared = |request: &&ClientRequest| !self.capabilities.can(&request.method, &request.params);
        let refused = requests.iter().find(undeclared);
        let unsupported = ClientRequestError::Unsupported(refused.unwrap_or(first).method.clone());
        if refused.is_some() || requests.len() > QUESTIONS {
            return Err(unsupported);
        }
        // Before the time limit: a round that waits for its turn uses none of its time.
        let _turn = self.asking.acquire().await.map_err(|_closed| ClientRequestError::Gone)?;
        let responses = async {
            match &self.mode {
                ClientMode::Legacy(session) => self.send_requests(&session.client_requests, &requests).await,
                ClientMode::Modern { may_ask_for_input: true } => self.require_input(requests).await,
                ClientMode::Modern { may_ask_for_input: false } | ClientMode::ResponseOnly => {
                    Err(unsupported)
                }
            }
        };
        timeout(QUESTION_WAIT, responses).await.unwrap_or(Err(ClientRequestError::Late))
    }
}

impl fmt::Debug for ConnectedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectedClient").field("session", &self.session).finish_non_exhaustive()
    }
}

impl ClientChannel for ConnectedClient {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn session(&self) -> u64 {
        self.session
    }

    fn wants_progress(&self) -> bool {
        !matches!(self.mode, ClientMode::ResponseOnly)
            && self.options().as_ref().is_some_and(|options| options.progress_token.is_some())
    }

    fn log_level(&self) -> Option<LogLevel> {
        match &self.mode {
            ClientMode::Legacy(session) => session.settings.lock().level,
            ClientMode::Modern { .. } => self.options().as_ref()?.level,
            ClientMode::ResponseOnly => None,
        }
    }

    fn notify(&self, notice: ServerNotification) {
        let is_modern = matches!(self.mode, ClientMode::Modern { .. });
        if matches!(self.mode, ClientMode::ResponseOnly) || self.options().is_none() {
            return;
        }
        match notice {
            ServerNotification::Progress(params) => {
                let token = self.options().as_ref().and_then(|options| options.progress_token.clone());
                if let Some(token) = token {
                    let params = raw::with(&params, "progressToken", &token);
                    self.send_notification("notifications/progress", &params);
                }
            }
            ServerNotification::Log(level, params) => {
                if self.log_level().is_some_and(|least| level >= least) {
                    self.send_notification("notifications/message", &params);
                }
            }
            // If the channel is full, the client has enough to read.
            ServerNotification::Released => drop(self.outgoing.try_send(Outgoing::Released)),
            // Only the older era has ids for elicitations by URL.
            ServerNotification::Other { method, .. } if is_modern && &*method == ELICITATION_COMPLETE => {}
            ServerNotification::Other { method, params } => self.send_notification(&method, &params),
        }
    }

    fn ask(
        &self,
        questions: Vec<ClientRequest>,
    ) -> BoxFuture<'_, Result<Vec<ClientResponse>, ClientRequestError>> {
        Box::pin(self.request_all(questions))
    }
}

/// A request that a legacy client was sent. Dropping it before the response notifies the client.
struct PendingRequest<'a> {
    client: &'a ConnectedClient,
    pending: &'a ClientRequests,
    id: u64,
    response: oneshot::Receiver<ClientResponse>,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if self.pending.close(self.id) {
            let params = format!("{{\"requestId\":{},\"reason\":\"no answer is needed any more\"}}", self.id);
            self.client.send_notification("notifications/cancelled", &params);
        }
    }
}

/// The responses to all requests out of the `inputResponses` of a client; `None` if one is missing or is no object.
pub(super) fn matching_responses(requests: &[ClientRequest], responses: &str) -> Option<Vec<ClientResponse>> {
    let responses = Object::split(responses)?;
    let response = |request: &ClientRequest| {
        let value = responses.get(&request.key)?;
        value.starts_with('{').then(|| Ok(value.to_owned()))
    };
    requests.iter().map(response).collect()
}

/// The text of a notification.
pub(super) fn notification(method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":{},\"params\":{params}}}", raw::quoted(method))
}

/// The text of a request to a legacy client, which wants an id with every URL that it is to open.
fn request_text(id: u64, request: &ClientRequest) -> String {
    let needs_id = request.method == "elicitation/create"
        && raw::string_member(&request.params, "mode").is_some_and(|mode| mode == "url")
        && raw::member(&request.params, "elicitationId").is_none();
    let with_id = needs_id.then(|| {
        raw::with(&request.params, "elicitationId", &raw::quoted(&Uuid::new_v4().simple().to_string()))
    });
    let method = raw::quoted(&request.method);
    let params = with_id.as_deref().unwrap_or(&request.params);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}")
}

/// Clients of 2026-07-28 know no such id.
fn without_elicitation_id(mut request: ClientRequest) -> ClientRequest {
    if request.method == "elicitation/create" && raw::member(&request.params, "elicitationId").is_some() {
        request.params = raw::without(&request.params, |key| key == "elicitationId");
    }
    request
}
