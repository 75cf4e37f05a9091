//! `subscriptions/listen` (2026-07-28): a request that is answered by notifications until one side ends it.

use super::{
    Handler, Server,
    body::{Source, message},
    caller::{Caller, Manner, Wishes},
    handler::{Features, Inquiry},
    news::{Filter, News, Wants},
    params::Params,
};
use crate::{
    ErrorObject, Version,
    envelope::Id,
    exchange::{Capabilities, ForwardMethod, RequestContext},
    limits::{SUBSCRIPTIONS, URI_BYTES},
    raw,
};
use bytes::Bytes;
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::{sync::oneshot, time::timeout};
use tokio_util::sync::CancellationToken;

/// How long it may take until all resources of one request are watched; the client waits for the first message so long.
const GRANT_WAIT: Duration = Duration::from_secs(20);

/// What a client wants to hear, as it said it.
#[derive(Debug)]
pub(super) struct Wanted {
    filter: Filter,
    uris: Vec<String>,
}

impl Wanted {
    /// Reads the filter, as far as this server can honour it.
    ///
    /// # Errors
    /// There is no filter, or it is not one.
    pub(super) fn read(params: &Params<'_>, id: &Id<'_>, features: &Features) -> Result<Self, ErrorObject> {
        let sent =
            params.notifications.map(serde_json::value::RawValue::get).filter(|text| text.starts_with('{'));
        let Some(sent) = sent else {
            return Err(ErrorObject::invalid_params("subscriptions/listen needs notifications, an object"));
        };
        let wants = |key: &str| raw::member(sent, key) == Some("true");
        let uris = match raw::member(sent, "resourceSubscriptions").filter(|_| features.resources) {
            Some(list) => uris(list)?,
            None => Vec::new(),
        };
        let filter = Filter {
            tools: wants("toolsListChanged"),
            prompts: wants("promptsListChanged") && features.prompts,
            resources: wants("resourcesListChanged") && features.resources,
            watched: HashSet::new(),
            id: id.text().to_owned(),
        };
        Ok(Self { filter, uris })
    }
}

fn uris(list: &str) -> Result<Vec<String>, ErrorObject> {
    let wrong = || {
        let message = format!(
            "resourceSubscriptions is a list of at most {SUBSCRIPTIONS} URIs, each of at most {URI_BYTES} bytes"
        );
        ErrorObject::invalid_params(message)
    };
    let elements =
        raw::elements(list).filter(|elements| elements.len() <= SUBSCRIPTIONS).ok_or_else(wrong)?;
    let uri = |text| raw::string(text).filter(|uri| uri.len() <= URI_BYTES).map(|uri| uri.into_owned());
    elements.into_iter().map(uri).collect::<Option<Vec<_>>>().ok_or_else(wrong)
}

/// A `subscriptions/listen` that is open.
pub(super) struct Listening<H: Handler> {
    server: Server<H>,
    id: Id<'static>,
    first: Option<String>,
    news: News<H>,
    /// Held for what it gives back.
    _watching: Watching<H>,
    stop: CancellationToken,
    ended: bool,
}

impl<H: Handler> Listening<H> {
    /// Begins to listen. Resources that cannot be watched, or not in time, are left out of what is granted.
    ///
    /// Cancel-safety: what was granted is given back when the future is dropped.
    pub(super) async fn begin(
        server: Server<H>,
        session: Arc<H::Session>,
        id: Id<'static>,
        wanted: Wanted,
        stop: CancellationToken,
    ) -> Self {
        let changes = server.inner.handler.changes();
        let Wanted { mut filter, uris } = wanted;
        let mut watching = Watching::new(server.clone(), Arc::clone(&session));
        let all = async {
            for uri in uris {
                watching.add(uri).await;
            }
        };
        if timeout(GRANT_WAIT, all).await.is_err() {
            tracing::warn!(
                "not all resources of a subscriptions/listen are watched: the servers took too long"
            );
        }
        let first = Some(acknowledged(&filter, &watching.uris));
        filter.watched = watching.uris.iter().cloned().collect();
        let news = News::new(server.clone(), session, changes, Wants::Listen(filter));
        Self { server, id, first, news, _watching: watching, stop, ended: false }
    }

    /// The next message; the answer comes last, when the server ends it.
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
                Some(self.server.inner.about.listened(&self.id))
            }
            text = self.news.next() => Some(text),
        }
    }
}

impl<H: Handler> Source for Listening<H> {
    async fn next(&mut self) -> Option<Bytes> {
        self.next().await.map(|text| message(&text))
    }
}

/// Resources that are watched until this is dropped.
struct Watching<H: Handler> {
    server: Server<H>,
    session: Arc<H::Session>,
    uris: Vec<String>,
}

impl<H: Handler> Watching<H> {
    fn new(server: Server<H>, session: Arc<H::Session>) -> Self {
        Self { server, session, uris: Vec::new() }
    }

    /// Watches one more resource, if that can be done.
    ///
    /// Cancel-safety: the handler is asked in a task of its own. Of a question that is dropped halfway nobody knows
    /// whether it was granted, and so whether it is to be taken back.
    async fn add(&mut self, uri: String) {
        if self.uris.contains(&uri) {
            return;
        }
        let mut one = Self::new(self.server.clone(), Arc::clone(&self.session));
        let (grant, granted) = oneshot::channel();
        self.server.in_background(async move {
            match one.server.watch(&one.session, ForwardMethod::Subscribe, &uri).await {
                Ok(()) => one.uris.push(uri),
                Err(error) => tracing::debug!(uri, "a resource cannot be watched: {error}"),
            }
            if grant.send(one).is_err() {
                tracing::debug!("a client left before it was told what is watched");
            }
        });
        if let Ok(mut one) = granted.await {
            self.uris.append(&mut one.uris);
        }
    }
}

impl<H: Handler> Drop for Watching<H> {
    fn drop(&mut self) {
        let (watched, session) = (std::mem::take(&mut self.uris), Arc::clone(&self.session));
        if watched.is_empty() {
            return;
        }
        let server = self.server.clone();
        self.server.in_background(async move {
            for uri in watched {
                if let Err(error) = server.watch(&session, ForwardMethod::Unsubscribe, &uri).await {
                    tracing::debug!(uri, "a resource stays watched: {error}");
                }
            }
        });
    }
}

impl<H: Handler> Server<H> {
    /// Asks the handler to watch a resource, or no longer.
    async fn watch(
        &self,
        session: &Arc<H::Session>,
        method: ForwardMethod,
        uri: &str,
    ) -> Result<(), ErrorObject> {
        let params = raw::object([("uri", raw::quoted(uri).as_str())]);
        let inquiry = Inquiry { method, params, meta: None, version: Version::MODERN };
        let nobody = Caller::new(Arc::new(Capabilities::default()), 0, Manner::Mute, Wishes::default());
        let turn = RequestContext { client: Arc::new(nobody), cancel: CancellationToken::new() };
        self.inner.handler.request(session, inquiry, turn).await.map(drop)
    }
}

/// The first message: what was granted.
fn acknowledged(filter: &Filter, watched: &[String]) -> String {
    let uris: Vec<String> = watched.iter().map(|uri| raw::quoted(uri)).collect();
    let uris = format!("[{}]", uris.join(","));
    let members = [
        ("toolsListChanged", filter.tools.then_some("true")),
        ("promptsListChanged", filter.prompts.then_some("true")),
        ("resourcesListChanged", filter.resources.then_some("true")),
        ("resourceSubscriptions", (!watched.is_empty()).then_some(uris.as_str())),
    ];
    let granted = raw::object(members.iter().filter_map(|(key, value)| Some((*key, (*value)?))));
    let params = raw::object([("notifications", granted.as_str())]);
    filter.mark("notifications/subscriptions/acknowledged", &params)
}
