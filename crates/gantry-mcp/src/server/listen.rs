//! `subscriptions/listen` (2026-07-28): a request that is answered by notifications until one side ends it.

use super::Server;
use super::body::{Source, message};
use super::handler::{Features, ForwardRequest, Handler};
use super::notifications::{Interest, ListenFilter, NotificationFeed};
use super::response::present_members;
use crate::envelope::{Id, Params};
use crate::exchange::{ForwardMethod, NoClient, RequestContext};
use crate::limits::{SUBSCRIPTIONS, URI_BYTES};
use crate::{ErrorObject, raw};
use bytes::Bytes;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long subscribing to all resources of one request may take; the client waits for the first message so long.
const GRANT_WAIT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct ListenRequest {
    filter: ListenFilter,
    uris: Vec<String>,
}

impl ListenRequest {
    /// Reads the filter, as far as this server can honour it.
    pub(super) fn read(params: &Params<'_>, id: &Id<'_>, features: &Features) -> Result<Self, ErrorObject> {
        let Some(sent) = params.get("notifications").filter(|text| text.starts_with('{')) else {
            return Err(ErrorObject::invalid_params("subscriptions/listen needs notifications, an object"));
        };
        let wants = |key: &str| raw::member(sent, key) == Some("true");
        let uris = match raw::member(sent, "resourceSubscriptions").filter(|_| features.resources) {
            Some(list) => read_uris(list)?,
            None => Vec::new(),
        };
        let filter = ListenFilter {
            tools: wants("toolsListChanged"),
            prompts: wants("promptsListChanged") && features.prompts,
            resources: wants("resourcesListChanged") && features.resources,
            watched: HashSet::new(),
            id: id.text().to_owned(),
        };
        Ok(Self { filter, uris })
    }
}

fn read_uris(list: &str) -> Result<Vec<String>, ErrorObject> {
    let wrong = || {
        let message = format!(
            "resourceSubscriptions is a list of at most {SUBSCRIPTIONS} URIs, each of at most {URI_BYTES} bytes"
        );
        ErrorObject::invalid_params(message)
    };
    let elements = gantry_core::json::elements(list, SUBSCRIPTIONS).ok_or_else(wrong)?;
    let uri = |text| raw::string(text).filter(|uri| uri.len() <= URI_BYTES).map(|uri| uri.into_owned());
    let uris = elements.into_iter().map(uri).collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
    let mut seen = HashSet::new();
    Ok(uris.into_iter().filter(|uri| seen.insert(uri.clone())).collect())
}

pub(super) struct Listening {
    server: Server,
    id: Id<'static>,
    first: Option<String>,
    feed: NotificationFeed,
    /// Held until the end; dropping it unsubscribes.
    _subscriptions: Subscriptions,
    stop: CancellationToken,
    ended: bool,
}

impl Listening {
    /// Begins to listen. Resources that cannot be subscribed to, or not in time, are left out of what is granted.
    ///
    /// Cancel-safety: dropping the future takes the subscriptions back.
    pub(super) async fn begin(
        server: &Server,
        handler: Arc<dyn Handler>,
        id: Id<'static>,
        request: ListenRequest,
        stop: CancellationToken,
    ) -> Self {
        let changes = server.changes();
        let ListenRequest { mut filter, uris } = request;
        let subscriptions = subscribe(server, &handler, uris).await;
        let first = Some(acknowledged(&filter, &subscriptions.uris));
        filter.watched = subscriptions.uris.iter().cloned().collect();
        let feed = NotificationFeed::new(handler, changes, Interest::Listen(filter));
        Self { server: server.clone(), id, first, feed, _subscriptions: subscriptions, stop, ended: false }
    }

    /// The next message; the response comes last, when the server ends it.
    ///
    /// Cancel-safety: nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Option<String> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if self.ended {
            return None;
        }
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {
                self.ended = true;
                Some(self.server.inner.writer.listen_ended(&self.id))
            }
            text = self.feed.next() => Some(text),
        }
    }
}

impl Source for Listening {
    async fn next(&mut self) -> Option<Bytes> {
        self.next().await.map(|text| message(&text))
    }
}

/// Resources that are subscribed to until this is dropped.
struct Subscriptions {
    server: Server,
    handler: Arc<dyn Handler>,
    uris: Vec<String>,
}

/// Subscribes to resources, one after the other, in a task of its own: a subscription whose request was dropped halfway
/// would be in an unknown state. Once the receiver is gone, the task takes the last one back and stops.
async fn subscribe(server: &Server, handler: &Arc<dyn Handler>, uris: Vec<String>) -> Subscriptions {
    let (owner, granting) = (server.clone(), Arc::clone(handler));
    let (granted, mut grants) = mpsc::channel(1);
    server.in_background(async move {
        for uri in uris {
            match forward(&*granting, ForwardMethod::Subscribe, &uri).await {
                Ok(_) => {
                    let (server, handler) = (owner.clone(), Arc::clone(&granting));
                    if granted.send(Subscriptions { server, handler, uris: vec![uri] }).await.is_err() {
                        return;
                    }
                }
                Err(error) => tracing::debug!(uri, "a resource cannot be watched: {error}"),
            }
        }
    });
    let mut subscriptions =
        Subscriptions { server: server.clone(), handler: Arc::clone(handler), uris: Vec::new() };
    let all = async {
        while let Some(mut one) = grants.recv().await {
            subscriptions.uris.append(&mut one.uris);
        }
    };
    if timeout(GRANT_WAIT, all).await.is_err() {
        tracing::warn!("not all resources of a subscriptions/listen are watched: the servers took too long");
    }
    subscriptions
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        let (handler, uris) = (Arc::clone(&self.handler), std::mem::take(&mut self.uris));
        if uris.is_empty() {
            return;
        }
        self.server.in_background(async move {
            for uri in uris {
                if let Err(error) = forward(&*handler, ForwardMethod::Unsubscribe, &uri).await {
                    tracing::debug!(uri, "a resource stays watched: {error}");
                }
            }
        });
    }
}

async fn forward(handler: &dyn Handler, method: ForwardMethod, uri: &str) -> Result<String, ErrorObject> {
    let params = raw::object([("uri", raw::quoted(uri).as_str())]);
    let context = RequestContext { client: Arc::new(NoClient::default()), cancel: CancellationToken::new() };
    handler.request(ForwardRequest { method, params, meta: None, context }).await
}

/// The first message: what was granted.
fn acknowledged(filter: &ListenFilter, watched: &[String]) -> String {
    let uris: Vec<String> = watched.iter().map(|uri| raw::quoted(uri)).collect();
    let uris = format!("[{}]", uris.join(","));
    let granted = present_members([
        ("toolsListChanged", filter.tools.then_some("true")),
        ("promptsListChanged", filter.prompts.then_some("true")),
        ("resourcesListChanged", filter.resources.then_some("true")),
        ("resourceSubscriptions", (!watched.is_empty()).then_some(uris.as_str())),
    ]);
    let params = raw::object([("notifications", granted.as_str())]);
    filter.notification("notifications/subscriptions/acknowledged", &params)
}
