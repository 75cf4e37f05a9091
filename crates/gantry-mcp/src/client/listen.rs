//! Hearing what a server says without being asked: `subscriptions/listen` in the newer era, `resources/subscribe` in
//! the older one.

use super::{
    core::Core,
    dispatcher::lock,
    limits::{ACKNOWLEDGE, BACKGROUND_FAILURES, REOPEN, STREAM_WAS_WELL, WATCHED},
    types::Failure,
};
use crate::{
    ErrorObject,
    error::code,
    exchange::{Answered, Audience, BoxFuture, Capabilities, LogLevel, Notice, Question, Unanswered},
    raw,
};
use std::{
    collections::BTreeSet,
    mem,
    sync::{Arc, Mutex},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// What is to be heard, and what is being heard.
#[derive(Debug)]
pub(super) struct Subscriptions {
    /// Limit: [`WATCHED`].
    uris: Mutex<BTreeSet<String>>,
    /// Counts the changes of `uris`.
    wanted: watch::Sender<u64>,
    /// The last change that the server has taken, or that it never will.
    granted: watch::Sender<u64>,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self { uris: Mutex::default(), wanted: watch::Sender::new(0), granted: watch::Sender::new(0) }
    }
}

impl Core {
    /// Wants to hear, or no longer, when a resource changes.
    pub(super) async fn watch(&self, uri: &str, on: bool) -> Result<(), Failure> {
        let resources = raw::member(&self.about.capabilities, "resources");
        if resources.and_then(|resources| raw::member(resources, "subscribe")) != Some("true") {
            return Err(Failure::Answered(ErrorObject::new(
                code::METHOD_NOT_FOUND,
                "the server does not tell of changes of its resources",
            )));
        }
        {
            let mut uris = lock(&self.subscriptions.uris);
            if on && uris.len() >= WATCHED && !uris.contains(uri) {
                let what = format!("{WATCHED} resources of this server are watched already");
                return Err(Failure::Unavailable(what));
            }
            let another = if on { uris.insert(uri.to_owned()) } else { uris.remove(uri) };
            if !another {
                return Ok(());
            }
        }
        if !self.modern() {
            let subscribed = self.subscribe(uri, on).await;
            if subscribed.is_err() && on {
                lock(&self.subscriptions.uris).remove(uri);
            }
            return subscribed;
        }
        let mut number = 0;
        self.subscriptions.wanted.send_modify(|wanted| {
            *wanted += 1;
            number = *wanted;
        });
        let mut granted = self.subscriptions.granted.subscribe();
        match timeout(ACKNOWLEDGE, granted.wait_for(|granted| *granted >= number)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => {
                Err(Failure::Lost("the server did not confirm the subscription in time".into()))
            }
        }
    }

    async fn subscribe(&self, uri: &str, on: bool) -> Result<(), Failure> {
        let method = if on { "resources/subscribe" } else { "resources/unsubscribe" };
        self.own(method, &raw::object([("uri", &*raw::quoted(uri))])).await.map(drop)
    }

    /// Tells a new session what the old one was told.
    pub(super) async fn restore(&self) {
        let server = &self.dispatcher().target.name;
        let uris = lock(&self.subscriptions.uris).clone();
        for uri in uris {
            if let Err(failure) = self.subscribe(&uri, true).await {
                tracing::warn!(%server, uri, %failure, "a resource is no longer watched");
            }
        }
        let level = *lock(&self.level);
        if let Some(level) = level
            && let Err(failure) = self.set_log_level(level).await
        {
            tracing::warn!(%server, %failure, "the log level is that of the server again");
        }
    }

    /// From which level on the server is to log.
    pub(super) async fn set_log_level(&self, level: LogLevel) -> Result<(), Failure> {
        if self.modern() {
            return Ok(());
        }
        if raw::member(&self.about.capabilities, "logging").is_none() {
            let what = "the server does not send log messages";
            return Err(Failure::Answered(ErrorObject::new(code::METHOD_NOT_FOUND, what)));
        }
        self.own("logging/setLevel", &raw::object([("level", &*raw::quoted(level.as_str()))])).await?;
        *lock(&self.level) = Some(level);
        Ok(())
    }

    /// The params of `subscriptions/listen`; `None` if the server offers nothing to listen to.
    fn filter(&self) -> Option<String> {
        let capabilities = &self.about.capabilities;
        let offers = |feature: &str, what: &str| {
            raw::member(capabilities, feature).and_then(|feature| raw::member(feature, what)) == Some("true")
        };
        let mut members = Vec::new();
        for (feature, key) in [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ] {
            if offers(feature, "listChanged") {
                members.push((key, "true".to_owned()));
            }
        }
        let uris: Vec<String> = lock(&self.subscriptions.uris).iter().map(|uri| raw::quoted(uri)).collect();
        if offers("resources", "subscribe") && !uris.is_empty() {
            members.push(("resourceSubscriptions", format!("[{}]", uris.join(","))));
        }
        let filter = raw::object(members.iter().map(|(key, value)| (*key, &**value)));
        (!members.is_empty()).then(|| raw::object([("notifications", &*filter)]))
    }
}

/// Keeps one stream open. When what is wanted changes, the new one is open before the old one is let go.
pub(super) async fn run(core: Arc<Core>) {
    let mut wanted = core.subscriptions.wanted.subscribe();
    let mut pause = REOPEN[0];
    let mut failures = 0;
    let mut old: Option<Stream> = None;
    let mut missed = false;
    loop {
        let number = *wanted.borrow_and_update();
        let Some(filter) = core.filter() else {
            old = None;
            core.subscriptions.granted.send_replace(number);
            if wanted.changed().await.is_err() {
                return;
            }
            continue;
        };
        let opened = Instant::now();
        let mut stream = Stream::open(&core, filter);
        let mut outcome = tokio::select! {
            outcome = stream.acknowledged() => outcome,
            () = keep_reading(&mut old) => None,
        };
        drop(old.take());
        if outcome.is_none() {
            core.subscriptions.granted.send_replace(number);
            if mem::take(&mut missed) {
                core.dispatcher().look_anew();
            }
            outcome = tokio::select! {
                _ = wanted.changed() => None,
                outcome = stream.end() => Some(outcome),
            };
        }
        let Some(outcome) = outcome else {
            old = Some(stream);
            continue;
        };
        if opened.elapsed() >= STREAM_WAS_WELL {
            (pause, failures) = (REOPEN[0], 0);
        }
        failures += 1;
        missed = true;
        if !is_worth_another(&core, outcome, failures) {
            return;
        }
        sleep(pause).await;
        pause = (pause * 2).min(REOPEN[1]);
    }
}

/// Whether it makes sense to listen again.
fn is_worth_another(core: &Core, outcome: Result<String, Failure>, failures: u32) -> bool {
    match outcome {
        Err(Failure::Answered(error)) => {
            tracing::warn!(server = %core.dispatcher().target.name, %error, "the server cannot be listened to");
            false
        }
        Err(Failure::Unavailable(reason)) if failures >= BACKGROUND_FAILURES => {
            core.dispatcher().end(reason);
            false
        }
        Ok(_) | Err(_) => true,
    }
}

/// Reads a stream that is about to be replaced, for as long as the caller likes.
async fn keep_reading(old: &mut Option<Stream>) {
    if let Some(stream) = old {
        let outcome = stream.end().await;
        tracing::debug!(?outcome, "a subscription ended while another one was opened");
    }
    std::future::pending().await
}

/// One `subscriptions/listen`. Dropping it withdraws the request.
struct Stream {
    request: BoxFuture<'static, Result<String, Failure>>,
    listener: Arc<Listener>,
}

impl Stream {
    fn open(core: &Arc<Core>, params: String) -> Self {
        let listener = Arc::new(Listener::default());
        let audience = Arc::clone(&listener) as Arc<dyn Audience>;
        let core = Arc::clone(core);
        let request = Box::pin(async move { core.listen(&params, audience).await });
        Self { request, listener }
    }

    /// Waits until the server has said what it grants. Gives the outcome if that comes first.
    async fn acknowledged(&mut self) -> Option<Result<String, Failure>> {
        tokio::select! {
            () = self.listener.acknowledged.cancelled() => None,
            // Some servers only confirm with the first notification.
            () = sleep(ACKNOWLEDGE) => None,
            outcome = &mut self.request => Some(outcome),
        }
    }

    /// Waits for the end. It must not be called again after that.
    async fn end(&mut self) -> Result<String, Failure> {
        (&mut self.request).await
    }
}

/// Hears that a subscription is granted.
#[derive(Debug, Default)]
struct Listener {
    capabilities: Capabilities,
    acknowledged: CancellationToken,
}

impl Audience for Listener {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn session(&self) -> u64 {
        0
    }

    fn wants_progress(&self) -> bool {
        false
    }

    fn log_level(&self) -> Option<LogLevel> {
        None
    }

    fn notify(&self, notice: Notice) {
        if let Notice::Other { method, .. } = notice
            && &*method == "notifications/subscriptions/acknowledged"
        {
            self.acknowledged.cancel();
        }
    }

    fn ask(&self, _questions: Vec<Question>) -> BoxFuture<'_, Result<Vec<Answered>, Unanswered>> {
        Box::pin(std::future::ready(Err(Unanswered::Gone)))
    }
}
