//! Hearing what a server says without being asked: `subscriptions/listen` in the newer era, `resources/subscribe` in
//! the older one.

mod ear;
mod stream;

use super::{
    core::Core,
    dispatcher::lock,
    limits::{WATCHED, WISHES},
    types::Failure,
};
use crate::{ErrorObject, error::code, exchange::LogLevel, raw};
use std::{collections::BTreeSet, sync::Mutex};
use tokio::sync::{mpsc, oneshot};

pub(super) use ear::run;

/// What is heard, and the way to whoever hears it.
#[derive(Debug)]
pub(super) struct Subscriptions {
    /// Resources that the server was told of and took. Limit: [`WATCHED`], and requests under way at that moment.
    pub(super) uris: Mutex<BTreeSet<String>>,
    wishes: mpsc::Sender<Wish>,
}

/// Somebody wants to hear, or no longer, when a resource changes (newer era).
#[derive(Debug)]
pub(super) struct Wish {
    uri: String,
    on: bool,
    reply: oneshot::Sender<Result<(), Failure>>,
}

impl Subscriptions {
    /// Nothing is heard yet. What is received is for [`run`].
    pub(super) fn new() -> (Self, mpsc::Receiver<Wish>) {
        let (wishes, received) = mpsc::channel(WISHES);
        (Self { uris: Mutex::default(), wishes }, received)
    }
}

impl Core {
    /// Wants to hear, or no longer, when a resource changes.
    ///
    /// Cancel-safety: a wish that is given up was granted or it was not; asking again tells.
    pub(super) async fn watch(&self, uri: &str, on: bool) -> Result<(), Failure> {
        let resources = raw::member(&self.about.capabilities, "resources");
        if resources.and_then(|resources| raw::member(resources, "subscribe")) != Some("true") {
            return Err(Failure::Answered(ErrorObject::new(
                code::METHOD_NOT_FOUND,
                "the server does not tell of changes of its resources",
            )));
        }
        if !self.modern() {
            return self.subscribe(uri, on).await;
        }
        let ended = || Failure::Unavailable(self.dispatcher().why_ended());
        let (reply, outcome) = oneshot::channel();
        let wish = Wish { uri: uri.to_owned(), on, reply };
        // Limit: each wish in the queue is answered in time.
        if self.subscriptions.wishes.send(wish).await.is_err() {
            return Err(ended());
        }
        outcome.await.unwrap_or_else(|_| Err(ended()))
    }

    async fn subscribe(&self, uri: &str, on: bool) -> Result<(), Failure> {
        let params = raw::object([("uri", &*raw::quoted(uri))]);
        if on {
            {
                let uris = lock(&self.subscriptions.uris);
                if uris.contains(uri) {
                    return Ok(());
                }
                if uris.len() >= WATCHED {
                    return Err(too_many());
                }
            }
            self.own("resources/subscribe", &params).await?;
            lock(&self.subscriptions.uris).insert(uri.to_owned());
        } else if lock(&self.subscriptions.uris).remove(uri) {
            self.own("resources/unsubscribe", &params).await?;
        }
        Ok(())
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

    /// The params of `subscriptions/listen` for the lists and these resources; `None` if the server offers nothing to
    /// listen to.
    fn filter(&self, uris: &BTreeSet<String>) -> Option<String> {
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
        let uris: Vec<String> = uris.iter().map(|uri| raw::quoted(uri)).collect();
        if offers("resources", "subscribe") && !uris.is_empty() {
            members.push(("resourceSubscriptions", format!("[{}]", uris.join(","))));
        }
        let filter = raw::object(members.iter().map(|(key, value)| (*key, &**value)));
        (!members.is_empty()).then(|| raw::object([("notifications", &*filter)]))
    }
}

fn too_many() -> Failure {
    Failure::Unavailable(format!("{WATCHED} resources of this server are watched already"))
}
