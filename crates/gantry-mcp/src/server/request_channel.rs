//! The channel to the client of one request: notifications, and requests as the client's era takes them.

use super::client_requests::ClientRequests;
use super::connection::{Connection, SettingChange};
use super::outgoing::{Delivery, Outgoing, OutgoingQueue};
use crate::exchange::{
    BoxFuture, Capabilities, ClientChannel, ClientRequest, ClientRequestError, ClientResponse,
    ClientResponses, LogLevel, ServerNotification,
};
use crate::limits::{QUESTION_WAIT, QUESTIONS};
use crate::{Version, lock, raw};
use gantry_core::json::Object;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use uuid::Uuid;

/// Tells a client of the older era that an elicitation by URL is complete.
const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

#[derive(Debug, Default)]
pub(super) struct RequestOptions {
    /// Its token for progress, as JSON text.
    pub(super) progress_token: Option<String>,
    /// The least level of log messages that a modern request names.
    pub(super) level: Option<LogLevel>,
    /// The `inputResponses` that came with the request, the text of an object.
    pub(super) responses: Option<String>,
}

/// The client of a request, which decides how it receives messages before the response.
pub(super) enum ClientMode {
    /// A client with a handshake gets requests as messages of their own.
    Legacy(Arc<Connection>, ResponseMode),
    /// A client of 2026-07-28 gets requests as a result, where the method may have such a result.
    Modern { capabilities: Capabilities, number: u64, may_ask_for_input: bool },
}

/// Whether a legacy client receives messages before the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseMode {
    Stream,
    /// It receives nothing but the response.
    Single,
}

pub(super) struct RequestChannel {
    mode: ClientMode,
    /// `None` while a client of 2026-07-28 that was asked for input is away: notifications would come too late.
    // Invariant: never held across an await.
    options: Mutex<Option<RequestOptions>>,
    /// One round of requests after the other: a person answers one form at a time.
    asking: Semaphore,
    pub(super) outgoing: OutgoingQueue,
}

impl RequestChannel {
    pub(super) fn new(mode: ClientMode, options: RequestOptions) -> Arc<Self> {
        let (options, asking) = (Mutex::new(Some(options)), Semaphore::new(1));
        Arc::new(Self { mode, options, asking, outgoing: OutgoingQueue::default() })
    }

    pub(super) fn version(&self) -> Version {
        match &self.mode {
            ClientMode::Legacy(connection, _) => connection.version,
            ClientMode::Modern { .. } => Version::MODERN,
        }
    }

    /// Applies a change of the settings that a legacy client has asked for.
    pub(super) fn apply(&self, change: SettingChange) {
        if let ClientMode::Legacy(connection, _) = &self.mode {
            connection.settings.apply(change);
        }
    }

    fn receives_messages(&self) -> bool {
        !matches!(self.mode, ClientMode::Legacy(_, ResponseMode::Single))
    }

    /// The client was asked for input and no longer waits for the response.
    pub(super) fn leave(&self) {
        *self.options() = None;
    }

    /// The client has sent the request again, with its options of now.
    pub(super) fn come_back(&self, options: RequestOptions) {
        *self.options() = Some(options);
    }

    fn options(&self) -> MutexGuard<'_, Option<RequestOptions>> {
        lock(&self.options)
    }

    fn send_notification(&self, method: &str, params: &str) {
        let message = Outgoing::Message(notification(method, params), Delivery::BestEffort);
        if !self.outgoing.push(message) {
            tracing::debug!(
                "a notification was dropped: its request has ended, or the client reads too slowly"
            );
        }
    }

    async fn send_requests(&self, pending: &ClientRequests, requests: &[ClientRequest]) -> ClientResponses {
        let mut sent = Vec::with_capacity(requests.len());
        for request in requests {
            let (id, response) = pending.open().ok_or(ClientRequestError::Gone)?;
            sent.push(PendingRequest { channel: self, pending, id, response });
            if !self.outgoing.push(Outgoing::Message(request_text(id, request), Delivery::Required)) {
                return Err(ClientRequestError::Gone);
            }
        }
        let mut responses = Vec::with_capacity(sent.len());
        for request in &mut sent {
            responses.push((&mut request.response).await.map_err(|_closed| ClientRequestError::Gone)?);
        }
        Ok(responses)
    }

    async fn require_input(&self, requests: Vec<ClientRequest>) -> ClientResponses {
        let early = self.options().as_mut().and_then(|options| options.responses.take());
        if let Some(responses) = early.and_then(|early| matching_responses(&requests, &early)) {
            return Ok(responses);
        }
        let requests = requests.into_iter().map(without_elicitation_id).collect();
        let (sender, responses) = oneshot::channel();
        if !self.outgoing.push(Outgoing::InputRequired(requests, sender)) {
            return Err(ClientRequestError::Gone);
        }
        responses.await.map_err(|_dropped| ClientRequestError::Gone)
    }

    async fn request_all(&self, requests: Vec<ClientRequest>) -> ClientResponses {
        let Some(first) = requests.first() else { return Ok(Vec::new()) };
        let undeclared =
            |request: &&ClientRequest| !self.capabilities().can(&request.method, &request.params);
        let refused = requests.iter().find(undeclared);
        let unsupported = ClientRequestError::Unsupported(refused.unwrap_or(first).method.clone());
        if refused.is_some() || requests.len() > QUESTIONS {
            return Err(unsupported);
        }
        // Before the time limit: a round that waits for its turn uses none of its time.
        let _turn = self.asking.acquire().await.map_err(|_closed| ClientRequestError::Gone)?;
        let responses = async {
            match &self.mode {
                ClientMode::Legacy(connection, ResponseMode::Stream) => {
                    self.send_requests(&connection.client_requests, &requests).await
                }
                ClientMode::Modern { may_ask_for_input: true, .. } => self.require_input(requests).await,
                ClientMode::Modern { .. } | ClientMode::Legacy(_, ResponseMode::Single) => Err(unsupported),
            }
        };
        timeout(QUESTION_WAIT, responses).await.unwrap_or(Err(ClientRequestError::Late))
    }
}

impl fmt::Debug for RequestChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestChannel").field("client", &self.session()).finish_non_exhaustive()
    }
}

impl ClientChannel for RequestChannel {
    fn capabilities(&self) -> &Capabilities {
        match &self.mode {
            ClientMode::Legacy(connection, _) => &connection.capabilities,
            ClientMode::Modern { capabilities, .. } => capabilities,
        }
    }

    fn session(&self) -> u64 {
        match &self.mode {
            ClientMode::Legacy(connection, _) => connection.number,
            ClientMode::Modern { number, .. } => *number,
        }
    }

    fn wants_progress(&self) -> bool {
        self.receives_messages()
            && self.options().as_ref().is_some_and(|options| options.progress_token.is_some())
    }

    fn log_level(&self) -> Option<LogLevel> {
        match &self.mode {
            ClientMode::Legacy(connection, ResponseMode::Stream) => connection.settings.log_level(),
            ClientMode::Legacy(_, ResponseMode::Single) => None,
            ClientMode::Modern { .. } => self.options().as_ref()?.level,
        }
    }

    fn notify(&self, notice: ServerNotification) {
        let is_modern = matches!(self.mode, ClientMode::Modern { .. });
        if !self.receives_messages() || self.options().is_none() {
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
            // If the queue is full, the client has enough to read.
            ServerNotification::Released => {
                self.outgoing.push(Outgoing::Released);
            }
            // Only the older era has ids for elicitations by URL.
            ServerNotification::Other { method, .. } if is_modern && &*method == ELICITATION_COMPLETE => {}
            ServerNotification::Other { method, params } => self.send_notification(&method, &params),
        }
    }

    fn ask(&self, questions: Vec<ClientRequest>) -> BoxFuture<'_, ClientResponses> {
        Box::pin(self.request_all(questions))
    }
}

/// A request that a legacy client was sent. Dropping it before the response notifies the client.
struct PendingRequest<'a> {
    channel: &'a RequestChannel,
    pending: &'a ClientRequests,
    id: u64,
    response: oneshot::Receiver<ClientResponse>,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if self.pending.close(self.id) {
            let params = format!("{{\"requestId\":{},\"reason\":\"no answer is needed any more\"}}", self.id);
            self.channel.send_notification("notifications/cancelled", &params);
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
