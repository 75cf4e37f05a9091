//! What a connection shares with its tasks, and how one request is sent in the era of the server.

use super::dispatcher::Dispatcher;
use super::subscriptions::Subscriptions;
use super::tools::{self, ToolCallHints, ToolHints};
use super::transport::{Call, Link, TransportError};
use super::types::{Answer, ListKind, UpstreamError, UpstreamInfo};
use super::{handshake, meta};
use crate::error::code;
use crate::exchange::{ClientChannel, NoClient};
use http::HeaderMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(super) struct ConnectionInner {
    pub(super) link: Link,
    pub(super) info: UpstreamInfo,
    pub(super) tools: ToolCallHints,
    pub(super) subscriptions: Subscriptions,
}

/// A request that is not yet written in the way of an era.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutgoingRequest<'a> {
    pub(super) method: &'a str,
    /// Without `_meta`.
    pub(super) params: &'a str,
    pub(super) meta: Option<&'a str>,
    /// The request whose client gets the progress, if it is not this one.
    pub(super) progress_token: Option<u64>,
    /// The client behind it; `None` for Gantry's own requests.
    pub(super) client: Option<&'a Arc<dyn ClientChannel>>,
    pub(super) cancel: &'a CancellationToken,
}

impl<'a> OutgoingRequest<'a> {
    fn own(method: &'a str, params: &'a str, cancel: &'a CancellationToken) -> Self {
        Self { method, params, meta: None, progress_token: None, client: None, cancel }
    }
}

impl ConnectionInner {
    pub(super) fn is_modern(&self) -> bool {
        self.info.version.is_modern()
    }

    pub(super) fn dispatcher(&self) -> &Arc<Dispatcher> {
        self.link.dispatcher()
    }

    pub(super) async fn own(&self, method: &str, params: &str) -> Answer {
        self.request(OutgoingRequest::own(method, params, &CancellationToken::new())).await
    }

    /// Opens a stream of notifications and waits for its end.
    pub(super) async fn listen(&self, params: &str) -> Result<String, TransportError> {
        self.send(OutgoingRequest::own("subscriptions/listen", params, &CancellationToken::new())).await
    }

    /// Sends a request and waits for its result. A request that the server refused without running it, because of its
    /// headers or its version, is sent once more.
    pub(super) async fn request(&self, request: OutgoingRequest<'_>) -> Answer {
        let error = match self.send(request).await.map_err(UpstreamError::from) {
            Err(UpstreamError::Rpc(error)) => error,
            outcome => return outcome,
        };
        let is_repeatable = match error.code {
            // The headers were made from schemas that the server no longer has.
            code::HEADER_MISMATCH if request.method == "tools/call" => {
                Box::pin(self.list(ListKind::Tools)).await.is_ok()
            }
            code::UNSUPPORTED_VERSION => self.is_modern() && handshake::offers_modern(&error),
            _ => false,
        };
        if is_repeatable { Ok(self.send(request).await?) } else { Err(UpstreamError::Rpc(error)) }
    }

    async fn send(&self, request: OutgoingRequest<'_>) -> Result<String, TransportError> {
        let OutgoingRequest { method, params, meta, progress_token, client, cancel } = request;
        let id = self.dispatcher().next_id();
        let wants_progress = client.is_some_and(|client| client.wants_progress());
        let token = wants_progress.then(|| progress_token.unwrap_or(id));
        let declared = self.dispatcher().target.declared;
        let (params, headers) = if self.is_modern() {
            let headers = match &self.link {
                Link::Http(_) => tools::headers(method, params, self.hints(request).as_deref()),
                Link::Duplex(_) => HeaderMap::new(),
            };
            let client = client.map(|client| &**client);
            (meta::modern(params, meta, token, declared, client), headers)
        } else {
            (meta::legacy(params, meta, token), HeaderMap::new())
        };
        let (own, client) = (client.is_none(), client.cloned());
        let client = client.unwrap_or_else(|| Arc::new(NoClient::default()));
        self.link.call(&Call { id, method, params: &params, headers, client, own, cancel }).await
    }

    pub(super) fn hints(&self, request: OutgoingRequest<'_>) -> Option<Arc<ToolHints>> {
        if request.method == "tools/call" { self.tools.get(request.params) } else { None }
    }
}
