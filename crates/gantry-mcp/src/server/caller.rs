//! The client of one request, as the handler sees it: told by notifications, asked in the way of its era.

use super::{
    outbox::{Outbox, matched},
    presence::Presence,
    questions::{Pending, Questions},
};
use crate::{
    exchange::{
        BoxFuture, Capabilities, ClientChannel, ClientRequest, ClientRequestError, ClientResponse, LogLevel,
        ServerNotification,
    },
    limits::{QUESTION_WAIT, QUESTIONS, SUBSCRIPTIONS},
    raw,
};
use gantry_core::json::write_string;
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};
use tokio::{sync::Semaphore, time::timeout};
use uuid::Uuid;

/// Tells a client of the older era that what it was sent to an address for is done.
const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

/// What a legacy client has chosen for its whole session.
#[derive(Debug)]
pub(super) struct Habits {
    /// The least level of log messages, by its place in [`LogLevel::ALL`]; one beyond them means none.
    level: AtomicU8,
    // Invariant: never held across an await.
    watched: Mutex<HashSet<String>>,
}

impl Habits {
    /// Those of a client that has not chosen yet. The protocol leaves the level to the server.
    pub(super) fn new(logging: bool) -> Self {
        let level = if logging { place(LogLevel::Info) } else { u8::MAX };
        Self { level: AtomicU8::new(level), watched: Mutex::default() }
    }

    pub(super) fn level(&self) -> Option<LogLevel> {
        LogLevel::ALL.get(usize::from(self.level.load(Ordering::Relaxed))).copied()
    }

    pub(super) fn set_level(&self, level: LogLevel) {
        self.level.store(place(level), Ordering::Relaxed);
    }

    pub(super) fn watches(&self, uri: &str) -> bool {
        self.watched().contains(uri)
    }

    /// Whether one more resource may be watched.
    pub(super) fn may_watch(&self) -> bool {
        self.watched().len() < SUBSCRIPTIONS
    }

    pub(super) fn watch(&self, uri: &str) {
        self.watched().insert(uri.to_owned());
    }

    pub(super) fn unwatch(&self, uri: &str) {
        self.watched().remove(uri);
    }

    fn watched(&self) -> MutexGuard<'_, HashSet<String>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(level: LogLevel) -> u8 {
    let place = LogLevel::ALL.iter().position(|other| *other == level);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX)
}

/// What the client wants to hear while this request runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    /// Its token for progress, as JSON text.
    pub(super) progress: Option<String>,
    /// The level of log messages that the request itself names.
    pub(super) level: Option<LogLevel>,
    /// Answers that came with the request, the text of an object.
    pub(super) responses: Option<String>,
}

/// How the client can be asked.
#[derive(Debug)]
pub(super) enum Manner {
    /// By requests of our own.
    Legacy { questions: Arc<Questions>, habits: Arc<Habits> },
    /// By a result that says what is missing, where the request may have such a result.
    Modern { may_park: bool },
    /// Not at all, and it hears nothing but the result.
    Mute,
}

/// The client of one request.
#[derive(Debug)]
pub(super) struct Caller {
    capabilities: Arc<Capabilities>,
    session: u64,
    manner: Manner,
    // Invariant: never held across an await.
    wishes: Mutex<Wishes>,
    /// One round of questions after the other.
    asking: Semaphore,
    pub(super) outbox: Outbox,
    pub(super) presence: Arc<Presence>,
}

impl Caller {
    pub(super) fn new(capabilities: Arc<Capabilities>, session: u64, manner: Manner, wishes: Wishes) -> Self {
        Self {
            capabilities,
            session,
            manner,
            wishes: Mutex::new(wishes),
            asking: Semaphore::new(1),
            outbox: Outbox::default(),
            presence: Arc::default(),
        }
    }

    /// The client has sent the request anew, and may want to hear other things this time.
    pub(super) fn renew(&self, wishes: Wishes) {
        *self.wishes() = wishes;
    }

    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask_directly(
        &self,
        pending: &Arc<Questions>,
        questions: Vec<ClientRequest>,
    ) -> Result<Vec<ClientResponse>, ClientRequestError> {
        let mut opened = Vec::with_capacity(questions.len());
        for question in questions {
            let open = pending.open().ok_or(ClientRequestError::Gone)?;
            self.outbox.insist(request(open.id, &question));
            opened.push(Asked { outbox: &self.outbox, id: open.id, open: Some(open) });
        }
        let mut answers = Vec::with_capacity(opened.len());
        let all = async {
            for mut asked in opened {
                answers.push(asked.answer().await.ok_or(ClientRequestError::Gone)?);
            }
            Ok(())
        };
        timeout(QUESTION_WAIT, all).await.unwrap_or(Err(ClientRequestError::Late))?;
        Ok(answers)
    }

    async fn park(&self, questions: Vec<ClientRequest>) -> Result<Vec<ClientResponse>, ClientRequestError> {
        let early = self.wishes().responses.take();
        if let Some(answers) = early.and_then(|early| matched(&questions, &early)) {
            return Ok(answers);
        }
        let questions = questions.into_iter().map(without_elicitation_id).collect();
        let answered = self.outbox.ask(questions);
        timeout(QUESTION_WAIT, answered)
            .await
            .map_err(|_late| ClientRequestError::Late)?
            .unwrap_or(Err(ClientRequestError::Gone))
    }

    async fn ask_all(
        &self,
        questions: Vec<ClientRequest>,
    ) -> Result<Vec<ClientResponse>, ClientRequestError> {
        let Some(first) = questions.first() else { return Ok(Vec::new()) };
        let unsupported = |question: &ClientRequest| ClientRequestError::Unsupported(question.method.clone());
        if questions.len() > QUESTIONS {
            return Err(unsupported(first));
        }
        let undeclared =
            |question: &&ClientRequest| !self.capabilities.can(&question.method, &question.params);
        if let Some(question) = questions.iter().find(undeclared) {
            return Err(unsupported(question));
        }
        let _turn = self.asking.acquire().await.map_err(|_closed| ClientRequestError::Gone)?;
        match &self.manner {
            Manner::Legacy { questions: pending, .. } => self.ask_directly(pending, questions).await,
            Manner::Modern { may_park: true } => self.park(questions).await,
            Manner::Modern { may_park: false } | Manner::Mute => Err(unsupported(first)),
        }
    }
}

impl ClientChannel for Caller {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn session(&self) -> u64 {
        self.session
    }

    fn wants_progress(&self) -> bool {
        !matches!(self.manner, Manner::Mute) && self.wishes().progress.is_some()
    }

    fn log_level(&self) -> Option<LogLevel> {
        match &self.manner {
            Manner::Legacy { habits, .. } => habits.level(),
            Manner::Modern { .. } => self.wishes().level,
            Manner::Mute => None,
        }
    }

    fn notify(&self, notice: ServerNotification) {
        // A client of 2026-07-28 that was asked something is away, and what is said meanwhile would come too late.
        let away = matches!(self.manner, Manner::Modern { .. }) && !self.presence.is_there();
        if away || matches!(self.manner, Manner::Mute) {
            return;
        }
        match notice {
            ServerNotification::Progress(params) => {
                let Some(token) = self.wishes().progress.clone() else { return };
                let params = raw::with(&params, "progressToken", &token);
                self.outbox.tell(notification("notifications/progress", &params));
            }
            ServerNotification::Log(level, params) => {
                if self.log_level().is_some_and(|least| level >= least) {
                    self.outbox.tell(notification("notifications/message", &params));
                }
            }
            ServerNotification::Released => self.outbox.release(),
            // Only the older era has ids for addresses.
            ServerNotification::Other { method, .. }
                if matches!(self.manner, Manner::Modern { .. }) && &*method == ELICITATION_COMPLETE => {}
            ServerNotification::Other { method, params } => self.outbox.tell(notification(&method, &params)),
        }
    }

    fn ask(
        &self,
        questions: Vec<ClientRequest>,
    ) -> BoxFuture<'_, Result<Vec<ClientResponse>, ClientRequestError>> {
        Box::pin(self.ask_all(questions))
    }

    fn present(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.presence.somebody())
    }
}

/// A question that a legacy client was asked. If nobody waits for the answer any more, the client is told.
struct Asked<'a> {
    outbox: &'a Outbox,
    id: u64,
    /// Taken when it is answered, or cannot be any more.
    open: Option<Pending>,
}

impl Asked<'_> {
    async fn answer(&mut self) -> Option<ClientResponse> {
        let answer = self.open.as_mut()?.answer().await;
        self.open = None;
        answer
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.open.take().is_some() {
            let params = format!("{{\"requestId\":{},\"reason\":\"no answer is needed any more\"}}", self.id);
            self.outbox.tell(notification("notifications/cancelled", &params));
        }
    }
}

/// The text of a notification.
pub(super) fn notification(method: &str, params: &str) -> String {
    let mut out = String::with_capacity(48 + method.len() + params.len());
    out.push_str("{\"jsonrpc\":\"2.0\",\"method\":");
    write_string(&mut out, method);
    out.push_str(",\"params\":");
    out.push_str(params);
    out.push('}');
    out
}

/// The text of a request to a legacy client, which wants an id with every address that it is to open.
fn request(id: u64, question: &ClientRequest) -> String {
    let url = question.method == "elicitation/create"
        && raw::string_member(&question.params, "mode").is_some_and(|mode| mode == "url")
        && raw::member(&question.params, "elicitationId").is_none();
    let completed = url.then(|| {
        raw::with(&question.params, "elicitationId", &raw::quoted(&Uuid::new_v4().simple().to_string()))
    });
    let method = raw::quoted(&question.method);
    let params = completed.as_deref().unwrap_or(&question.params);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}")
}

/// A client of 2026-07-28 knows no such id.
fn without_elicitation_id(mut question: ClientRequest) -> ClientRequest {
    if question.method == "elicitation/create" && raw::member(&question.params, "elicitationId").is_some() {
        question.params = raw::without(&question.params, |key| key == "elicitationId");
    }
    question
}
