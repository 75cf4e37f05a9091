//! One message on its way in, and the request that it may be.

use super::era::{self, RequestEra};
use super::methods;
use super::server::{Frame, FrameSender, QUEUED_FRAMES, Server, Session};
use super::wire::{CAPABILITIES_KEY, Failure, INVALID_PARAMS, Message, Params, Reply};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Where a message came from and where its answer goes.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) server: Arc<Server>,
    pub(super) session: Arc<Session>,
    pub(super) sender: FrameSender,
    pub(super) on_disconnect: OnDisconnect,
    /// The HTTP headers it came with; empty elsewhere.
    pub(super) headers: Arc<Value>,
}

/// What it means for a running request that its sender is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnDisconnect {
    /// The connection is gone.
    Disconnected,
    /// The client has cancelled: the rule of modern HTTP.
    Cancelled,
    /// Nothing: the rule of legacy HTTP.
    Nothing,
}

/// A request while it is being answered.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) connection: Connection,
    pub(super) era: RequestEra,
    pub(super) method: String,
    /// As JSON text.
    pub(super) id: String,
    pub(super) params: Params,
    /// The parameters, byte for byte.
    pub(super) raw_params: String,
    pub(super) token: CancellationToken,
}

impl Connection {
    /// A connection of a new session that ends with it, and what is to be written on it.
    pub(super) fn open(server: &Arc<Server>, headers: Value) -> (Self, mpsc::Receiver<Frame>) {
        let (sender, frames) = mpsc::channel(QUEUED_FRAMES);
        let connection = Self {
            server: Arc::clone(server),
            session: server.open_session(),
            sender,
            on_disconnect: OnDisconnect::Disconnected,
            headers: Arc::new(headers),
        };
        (connection, frames)
    }

    /// Takes a message from a transport that only knows text; blanks between messages are none.
    pub(super) async fn receive_text(&self, text: &[u8]) {
        if text.trim_ascii().is_empty() {
            return;
        }
        match serde_json::from_slice(text) {
            Ok(message) => self.receive(message).await,
            Err(error) => {
                let failure = Failure::new(-32700, format!("this is no message: {error}"));
                self.refuse("null", failure).await;
            }
        }
    }

    /// Takes a message. Its state changes in the order of arrival; requests are then answered at once with others.
    pub(super) async fn receive(&self, message: Message) {
        if self.server.is_mute(message.method.as_deref()) {
            return;
        }
        let Message { id, method, params, result, error } = message;
        let raw_params = params.map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
        let id = id.map(|raw| raw.get().to_owned());
        match (method, id) {
            (Some(method), Some(id)) => self.request(method, id, raw_params).await,
            (Some(method), None) => self.notified(&method, &raw_params),
            (None, Some(id)) => self.session.answered(&id, result.or(error).unwrap_or_default()),
            (None, None) => {}
        }
    }

    async fn request(&self, method: String, id: String, raw_params: String) {
        let params = match serde_json::from_str::<Params>(&raw_params) {
            Ok(params) => params,
            Err(error) => {
                return self.refuse(&id, Failure::new(INVALID_PARAMS, error.to_string())).await;
            }
        };
        let admitted = {
            let mut state = self.session.state.lock().unwrap();
            era::admit(&self.server.options, &mut state, &method, &params)
        };
        let era = match admitted {
            Ok(era) => era,
            Err(failure) => return self.refuse(&id, failure).await,
        };
        let token = self.session.begin(&id);
        let request = Request { connection: self.clone(), era, method, id, params, raw_params, token };
        tokio::spawn(request.run());
    }

    fn notified(&self, method: &str, raw_params: &str) {
        let params: Params = serde_json::from_str(raw_params).unwrap_or_default();
        if let ("notifications/cancelled", Some(id)) = (method, &params.request_id) {
            self.session.cancel(id.get());
        }
    }

    async fn refuse(&self, id: &str, failure: Failure) {
        let frame = Frame::Answer(failure.answer(id), Some(failure.code));
        self.sender.send(frame).await.ok(); // A client that is gone needs no answer.
    }
}

impl Request {
    async fn run(self) {
        let reply = methods::answer(&self).await;
        self.connection.session.end(&self.id);
        if let Some(text) = reply.answer(&self.id, self.era == RequestEra::Modern) {
            self.send(Frame::Answer(text, reply.code())).await;
        }
    }

    pub(super) fn server(&self) -> &Server {
        &self.connection.server
    }

    /// Sends something that belongs to this request.
    pub(super) async fn send(&self, frame: Frame) {
        self.connection.sender.send(frame).await.ok(); // A client that is gone needs nothing.
    }

    /// Waits until the answer is not wanted any more, and says why.
    pub(super) async fn stopped(&self) -> &'static str {
        let lost = async {
            self.connection.sender.closed().await;
            match self.connection.on_disconnect {
                OnDisconnect::Disconnected => "disconnected",
                OnDisconnect::Cancelled => "cancelled",
                OnDisconnect::Nothing => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.token.cancelled() => "cancelled",
            why = lost => why,
        }
    }

    /// Waits for something, unless the answer is not wanted any more, which the journal then says.
    pub(super) async fn unless_stopped<T>(&self, awaited: impl Future<Output = T>) -> Result<T, Reply> {
        tokio::select! {
            done = awaited => Ok(done),
            why = self.stopped() => {
                self.server().journal(why);
                Err(Reply::Silence)
            }
        }
    }

    /// Whether the client declared a capability.
    pub(super) fn client_has(&self, capability: &str) -> bool {
        let declared = match self.era {
            RequestEra::Legacy => self.connection.session.state.lock().unwrap().capabilities.clone(),
            RequestEra::Modern => self.params.meta(CAPABILITIES_KEY),
        };
        declared.get(capability).is_some()
    }

    /// The arguments of a call, as far as they are known here.
    pub(super) fn arguments<T: serde::de::DeserializeOwned + Default>(&self) -> Result<T, Reply> {
        let Some(raw) = &self.params.arguments else { return Ok(T::default()) };
        serde_json::from_str(raw.get())
            .map_err(|error| super::tools::failed(&format!("bad arguments: {error}")))
    }
}
