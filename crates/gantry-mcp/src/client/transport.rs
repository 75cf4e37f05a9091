//! The two kinds of links to a server: a *duplex* one, where all messages come in on one stream, and *streamable HTTP*,
//! where every request has a stream of its own.

use super::dispatcher::Dispatcher;
use super::duplex::Duplex;
use super::http::HttpLink;
use super::limits::EXCERPT_CHARS;
use super::types::UpstreamError;
use crate::ErrorObject;
use crate::envelope::cut;
use crate::error::code;
use crate::exchange::ClientChannel;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// One JSON-RPC request, ready to be sent.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) id: u64,
    pub(super) method: &'a str,
    /// The params with their `_meta`.
    pub(super) params: &'a str,
    pub(super) headers: HeaderMap,
    pub(super) client: Arc<dyn ClientChannel>,
    /// It is Gantry's own request, not one of a client.
    pub(super) own: bool,
    pub(super) cancel: &'a CancellationToken,
}

#[derive(Debug)]
pub(super) enum TransportError {
    Upstream(UpstreamError),
    /// The server answered with an HTTP status that is not a success.
    Http(HttpErrorResponse),
}

#[derive(Debug)]
pub(super) struct HttpErrorResponse {
    pub(super) status: StatusCode,
    /// The error in the body, if that is a message.
    pub(super) error: Option<ErrorObject>,
    /// That error has the id of the request: it is the answer to it.
    pub(super) names_request: bool,
    pub(super) excerpt: String,
    /// The request named a session.
    pub(super) in_session: bool,
}

impl HttpErrorResponse {
    /// Whether the server does not know the session, so that the request was certainly not run. The right status is 404;
    /// some servers say 400 and name the session.
    ///
    /// An error that names the request is an answer to it: tools report in the same words that something was not found.
    /// It means an expired session only where its code says that nothing was run, or where running the request twice
    /// does no harm (`repeatable`).
    pub(super) fn is_session_expired(&self, repeatable: bool) -> bool {
        if !self.in_session {
            return false;
        }
        let unknown = self.status == StatusCode::NOT_FOUND;
        match &self.error {
            Some(error) if error.code == code::METHOD_NOT_FOUND => false,
            Some(error) if self.names_request => {
                let not_run = repeatable || error.code == code::INVALID_REQUEST;
                not_run && (unknown || self.status == StatusCode::BAD_REQUEST) && self.names_session()
            }
            Some(_) | None => unknown || self.status == StatusCode::BAD_REQUEST && self.names_session(),
        }
    }

    /// Whether the message of the error is about the session. Data and pages may hold that word for any reason.
    fn names_session(&self) -> bool {
        let message = match &self.error {
            Some(error) => &*error.message,
            None if self.excerpt.trim_start().starts_with(['{', '[', '<']) => "",
            None => cut(&self.excerpt, EXCERPT_CHARS),
        };
        message.to_ascii_lowercase().contains("session")
    }

    /// Whether the request did not come in time, or the server or a proxy failed.
    fn may_have_run(&self) -> bool {
        matches!(self.status.as_u16(), 408 | 500..) && self.error.is_none()
    }
}

impl TransportError {
    /// Whether the server may be working on the request, and its answer will not arrive.
    pub(super) fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Upstream(error) => matches!(error, UpstreamError::OutcomeUnknown(_)),
            Self::Http(response) => response.may_have_run(),
        }
    }
}

impl From<UpstreamError> for TransportError {
    fn from(error: UpstreamError) -> Self {
        Self::Upstream(error)
    }
}

impl From<TransportError> for UpstreamError {
    fn from(error: TransportError) -> Self {
        let response = match error {
            TransportError::Upstream(error) => return error,
            TransportError::Http(response) => response,
        };
        let (status, may_have_run) = (response.status, response.may_have_run());
        if let Some(error) = response.error {
            return Self::Rpc(error);
        }
        let excerpt = cut(&response.excerpt, EXCERPT_CHARS).trim();
        let said = if excerpt.is_empty() { String::new() } else { format!(": {excerpt}") };
        match status.as_u16() {
            401 | 403 => Self::NotSent(format!(
                "the server refuses access with HTTP {status}; configure headers.Authorization for it{said}"
            )),
            _ if may_have_run => {
                Self::OutcomeUnknown(format!("the server answered with HTTP {status}{said}"))
            }
            _ => Self::NotSent(format!("the server refused the request with HTTP {status}{said}")),
        }
    }
}

#[derive(Debug)]
pub(super) enum Link {
    Duplex(Duplex),
    Http(HttpLink),
}

impl Link {
    pub(super) async fn call(&self, call: &Call<'_>) -> Result<String, TransportError> {
        match self {
            Self::Duplex(duplex) => Ok(duplex.call(call).await?),
            Self::Http(http) => http.call(call).await,
        }
    }

    pub(super) async fn notify(&self, text: String) -> Result<(), TransportError> {
        match self {
            Self::Duplex(duplex) => Ok(duplex.dispatcher.send(None, text).await?),
            Self::Http(http) => http.notify(text).await,
        }
    }

    pub(super) fn dispatcher(&self) -> &Arc<Dispatcher> {
        match self {
            Self::Duplex(duplex) => &duplex.dispatcher,
            Self::Http(http) => http.dispatcher(),
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Duplex(duplex) => duplex.close().await,
            Self::Http(http) => http.close().await,
        }
    }
}
