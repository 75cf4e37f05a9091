//! Subscriptions to the resources and lists of a server: one `subscriptions/listen` of a modern connection for all of
//! them, one `resources/subscribe` per resource of a legacy one.

use super::connection::Connection;
use super::inner::ConnectionInner;
use super::limits::{ACKNOWLEDGE, BACKGROUND_FAILURES, MAX_SUBSCRIPTIONS, REOPEN, STREAM_WAS_WELL};
use super::transport::{HttpErrorResponse, TransportError};
use super::types::UpstreamError;
use crate::error::code;
use crate::exchange::{BoxFuture, LogLevel};
use crate::{ErrorObject, raw};
use futures_util::FutureExt as _;
use std::collections::BTreeSet;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// The resources to subscribe to. Limit: [`MAX_SUBSCRIPTIONS`].
    wanted: watch::Sender<BTreeSet<String>>,
    /// The resources of the open stream (modern).
    open: watch::Sender<BTreeSet<String>>,
}

impl Connection {
    /// Subscribes to changes of this resource (the server's own URI), or unsubscribes.
    ///
    /// Cancel-safety: whether the change was made is not known; it can be made again.
    pub async fn watch(&self, uri: &str, on: bool) -> Result<(), UpstreamError> {
        let (inner, Subscriptions { wanted, .. }) = (&self.inner, &self.inner.subscriptions);
        if !inner.offers("resources", "subscribe") {
            let what = "the server does not tell of changes of its resources";
            return Err(UpstreamError::Rpc(ErrorObject::new(code::METHOD_NOT_FOUND, what)));
        }
        let params = raw::object([("uri", &*raw::quoted(uri))]);
        if !on {
            let was_wanted = wanted.send_if_modified(|uris| uris.remove(uri));
            if was_wanted && !inner.is_modern() {
                inner.own("resources/unsubscribe", &params).await?;
            }
            return Ok(());
        }
        let (is_wanted, count) = {
            let uris = wanted.borrow();
            (uris.contains(uri), uris.len())
        };
        if !is_wanted && count >= MAX_SUBSCRIPTIONS {
            let what = format!("{MAX_SUBSCRIPTIONS} resources of this server are watched already");
            return Err(UpstreamError::NotSent(what));
        }
        if !is_wanted && !inner.is_modern() {
            inner.own("resources/subscribe", &params).await?;
        }
        wanted.send_if_modified(|uris| uris.insert(uri.to_owned()));
        if inner.is_modern() { self.wait_until_open(uri).await } else { Ok(()) }
    }

    /// Waits until the stream of a modern server is open for a resource.
    async fn wait_until_open(&self, uri: &str) -> Result<(), UpstreamError> {
        let Subscriptions { wanted, open } = &self.inner.subscriptions;
        let (mut wanted, mut open) = (wanted.subscribe(), open.subscribe());
        tokio::select! {
            _ = open.wait_for(|uris| uris.contains(uri)) => Ok(()),
            _ = wanted.wait_for(|uris| !uris.contains(uri)) => {
                let what = "the server refuses the subscription to this resource";
                Err(UpstreamError::Rpc(ErrorObject::new(code::INVALID_PARAMS, what)))
            }
            reason = self.closed() => Err(UpstreamError::NotSent(reason)),
        }
    }

    /// Sets the level from which on a legacy server sends log messages. Every modern request carries its own.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), UpstreamError> {
        let inner = &self.inner;
        if inner.is_modern() {
            return Ok(());
        }
        if raw::member(&inner.info.capabilities, "logging").is_none() {
            let what = "the server does not send log messages";
            return Err(UpstreamError::Rpc(ErrorObject::new(code::METHOD_NOT_FOUND, what)));
        }
        let params = raw::object([("level", &*raw::quoted(level.as_str()))]);
        inner.own("logging/setLevel", &params).await.map(drop)
    }
}

impl ConnectionInner {
    fn offers(&self, feature: &str, what: &str) -> bool {
        let feature = raw::member(&self.info.capabilities, feature);
        feature.and_then(|feature| raw::member(feature, what)) == Some("true")
    }

    /// The params of `subscriptions/listen` for the lists and these resources; `None` if the server offers neither.
    fn filter(&self, uris: &BTreeSet<String>) -> Option<String> {
        let mut members = Vec::new();
        for (feature, key) in [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ] {
            if self.offers(feature, "listChanged") {
                members.push((key, "true".to_owned()));
            }
        }
        let uris: Vec<String> = uris.iter().map(|uri| raw::quoted(uri)).collect();
        if self.offers("resources", "subscribe") && !uris.is_empty() {
            members.push(("resourceSubscriptions", format!("[{}]", uris.join(","))));
        }
        let filter = raw::object(members.iter().map(|(key, value)| (*key, &**value)));
        (!members.is_empty()).then(|| raw::object([("notifications", &*filter)]))
    }
}

/// Keeps one `subscriptions/listen` open for what is wanted.
struct SubscriptionTask {
    inner: Arc<ConnectionInner>,
    open: Option<Stream>,
    /// The resources that the server took last.
    accepted: BTreeSet<String>,
    /// The server refused several new resources together.
    one_by_one: bool,
    /// When the wanted stream is tried again, if it is not open.
    retry: Option<Instant>,
    pause: Duration,
    failures: u32,
    /// Notifications may have been missed while no stream was open.
    missed: bool,
}

/// One `subscriptions/listen`. Dropping it cancels the request.
struct Stream {
    request: BoxFuture<'static, Result<String, TransportError>>,
    opened: Instant,
}

/// Keeps the stream of a modern connection open, for as long as it is polled.
pub(super) async fn run(inner: Arc<ConnectionInner>) {
    let mut wanted = inner.subscriptions.wanted.subscribe();
    let mut task = SubscriptionTask {
        inner,
        open: None,
        accepted: BTreeSet::new(),
        one_by_one: false,
        retry: Some(Instant::now()),
        pause: REOPEN[0],
        failures: 0,
        missed: false,
    };
    loop {
        tokio::select! {
            biased;
            outcome = end_of(&mut task.open) => {
                task.on_end(outcome);
                continue;
            }
            () = at(task.retry) => {}
            Ok(()) = wanted.changed() => {}
        }
        let uris = wanted.borrow_and_update().clone();
        if task.open.is_some() && *task.inner.subscriptions.open.borrow() == uris {
            task.retry = None;
        } else {
            task.apply(uris).await;
        }
    }
}

impl SubscriptionTask {
    /// Opens a stream for these resources. A new resource that the server refuses is not wanted any more; several that
    /// it refuses together are added one by one.
    async fn apply(&mut self, mut uris: BTreeSet<String>) {
        let mut new: Vec<String> = uris.difference(&self.accepted).cloned().collect();
        let has_more = self.one_by_one && new.len() > 1;
        if has_more {
            new.truncate(1);
            uris.retain(|uri| self.accepted.contains(uri) || new.contains(uri));
        }
        let Err(error) = self.open(&uris).await else {
            (self.accepted, self.one_by_one, self.retry) = (uris, has_more, has_more.then(Instant::now));
            return;
        };
        if !self.retry_later(Some(error)) {
            return;
        }
        match &*new {
            [] if self.open.is_none() && !uris.is_empty() => {
                // One of the resources may be the reason; the lists do not depend on it.
                self.open(&BTreeSet::new()).await.unwrap_or_default();
            }
            [] => {}
            [refused] => {
                let server = &self.inner.dispatcher().target.name;
                tracing::warn!(%server, refused, "the server refuses the subscription to a resource");
                self.inner.subscriptions.wanted.send_if_modified(|uris| uris.remove(refused));
            }
            _ => (self.one_by_one, self.retry) = (true, Some(Instant::now())),
        }
    }

    /// Opens a stream. The old one is closed when the new one is open, and stays when that fails.
    async fn open(&mut self, uris: &BTreeSet<String>) -> Result<(), TransportError> {
        let Some(params) = self.inner.filter(uris) else {
            self.close();
            return Ok(());
        };
        let inner = Arc::clone(&self.inner);
        let dispatcher = Arc::clone(self.inner.dispatcher());
        // An acknowledgement that came late is of an earlier stream.
        dispatcher.acknowledged.notified().now_or_never();
        let mut request: BoxFuture<'static, _> = Box::pin(async move { inner.listen(&params).await });
        // Some servers acknowledge only with the first notification.
        let mut acknowledged = pin!(timeout(ACKNOWLEDGE, dispatcher.acknowledged.notified()));
        loop {
            tokio::select! {
                biased;
                _ = end_of(&mut self.open) => {
                    self.close();
                    self.missed = true;
                }
                outcome = &mut request => {
                    let what = "the server ended the subscription at once";
                    return Err(outcome.err().unwrap_or_else(|| UpstreamError::OutcomeUnknown(what.into()).into()));
                }
                _ = &mut acknowledged => break,
            }
        }
        self.open = Some(Stream { request, opened: Instant::now() });
        self.inner.subscriptions.open.send_replace(uris.clone());
        if mem::take(&mut self.missed) {
            dispatcher.notify_lists_changed();
        }
        Ok(())
    }

    fn close(&mut self) -> Option<Stream> {
        self.inner.subscriptions.open.send_replace(BTreeSet::new());
        self.open.take()
    }

    fn on_end(&mut self, outcome: Result<String, TransportError>) {
        if self.close().is_some_and(|stream| stream.opened.elapsed() >= STREAM_WAS_WELL) {
            (self.pause, self.failures) = (REOPEN[0], 0);
        }
        self.missed = true;
        self.retry_later(outcome.err());
    }

    /// Decides whether and when to open a stream again. Returns whether the server refuses it.
    fn retry_later(&mut self, error: Option<TransportError>) -> bool {
        let dispatcher = self.inner.dispatcher();
        let server = &dispatcher.target.name;
        let is_refused = error.as_ref().is_some_and(is_refusal);
        let is_reached = is_refused || matches!(error, Some(TransportError::Http(_)));
        self.failures = if is_reached { 0 } else { self.failures + 1 };
        self.retry = Some(Instant::now() + self.pause);
        match &error.map(UpstreamError::from) {
            Some(UpstreamError::Rpc(error)) if error.code == code::METHOD_NOT_FOUND => {
                tracing::warn!(%server, %error, "the server has no subscriptions/listen");
                self.retry = None;
            }
            Some(UpstreamError::NotSent(reason)) if self.failures >= BACKGROUND_FAILURES => {
                dispatcher.end(reason);
                self.retry = None;
            }
            Some(error) if is_refused && self.pause == REOPEN[0] => {
                tracing::warn!(%server, %error, "the server refuses subscriptions/listen, which is tried again");
            }
            Some(error) => tracing::debug!(%server, %error, "subscriptions/listen is tried again"),
            None => tracing::debug!(%server, "the server ended a subscription"),
        }
        self.pause = (self.pause * 2).min(REOPEN[1]);
        is_refused
    }
}

/// Whether the server was reached and refused the request, and not because of the moment.
fn is_refusal(error: &TransportError) -> bool {
    match error {
        TransportError::Upstream(error) => matches!(error, UpstreamError::Rpc(_)),
        TransportError::Http(HttpErrorResponse { status, error, .. }) => {
            let is_of_the_moment = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
            !is_of_the_moment && (error.is_some() || status.is_client_error())
        }
    }
}

/// Waits for the end of a stream, if one is open. The stream has to be dropped then.
async fn end_of(open: &mut Option<Stream>) -> Result<String, TransportError> {
    match open {
        Some(stream) => (&mut stream.request).await,
        None => std::future::pending().await,
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
