//! The two kinds of way to a server: a *duplex* one, where everything comes in on one stream, and *streamable HTTP*,
//! where every request has a stream of its own.

use super::{dispatcher::Dispatcher, duplex::Duplex, http::HttpLink, limits::EXCERPT_CHARS, types::Failure};
use crate::{ErrorObject, envelope::cut, error::code, exchange::Audience};
use http::{HeaderMap, StatusCode};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// One JSON-RPC request to be sent as it is.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) method: &'a str,
    /// The params with their `_meta`.
    pub(super) params: &'a str,
    /// What HTTP says besides.
    pub(super) headers: HeaderMap,
    pub(super) audience: Arc<dyn Audience>,
    /// It is Gantry's own request, not one of a client.
    pub(super) own: bool,
    pub(super) cancel: &'a CancellationToken,
}

/// Why a request has no result, as the transport sees it.
#[derive(Debug)]
pub(super) enum Trouble {
    /// As callers see it.
    Failure(Failure),
    /// The server answered with an HTTP status that is not a success.
    Status(Refusal),
}

/// An HTTP answer that is an error.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// The error in the body, if it is a message.
    pub(super) error: Option<ErrorObject>,
    /// The beginning of the body.
    pub(super) excerpt: String,
    /// The session that the request named.
    pub(super) session: Option<Arc<str>>,
}

impl Refusal {
    /// Whether the session is unknown to the server. The right status is 404; some say 400 and name the session.
    pub(super) fn lost_session(&self) -> bool {
        let known_method = self.error.as_ref().is_none_or(|error| error.code != code::METHOD_NOT_FOUND);
        self.session.is_some()
            && known_method
            && (self.status == StatusCode::NOT_FOUND
                || self.status == StatusCode::BAD_REQUEST
                    && self.excerpt.to_ascii_lowercase().contains("session"))
    }

    fn into_failure(self) -> Failure {
        if let Some(error) = self.error {
            return Failure::Answered(error);
        }
        let status = self.status;
        let excerpt = cut(&self.excerpt, EXCERPT_CHARS).trim();
        let said = if excerpt.is_empty() { String::new() } else { format!(": {excerpt}") };
        match status.as_u16() {
            401 | 403 => Failure::Unavailable(format!(
                "the server refuses access with HTTP {status}; configure headers.Authorization for it{said}"
            )),
            // The request did not come in time or something between broke: it may have been run.
            408 | 500.. => Failure::Lost(format!("the server answered with HTTP {status}{said}")),
            _ => Failure::Unavailable(format!("the server refused the request with HTTP {status}{said}")),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Failure(failure) => failure,
            Trouble::Status(refusal) => refusal.into_failure(),
        }
    }
}

/// A way to a server.
#[derive(Debug)]
pub(super) enum Link {
    Duplex(Duplex),
    Http(HttpLink),
}

impl Link {
    /// Sends a request and waits for its result.
    pub(super) async fn call(&self, call: &Call<'_>) -> Result<String, Trouble> {
        match self {
            Self::Duplex(duplex) => Ok(duplex.call(call).await?),
            Self::Http(http) => http.call(call).await,
        }
    }

    /// Sends a message that has no answer.
    pub(super) async fn notify(&self, text: String) -> Result<(), Trouble> {
        match self {
            Self::Duplex(duplex) => Ok(duplex.notify(text).await?),
            Self::Http(http) => http.notify(text).await,
        }
    }

    pub(super) fn dispatcher(&self) -> &Arc<Dispatcher> {
        match self {
            Self::Duplex(duplex) => duplex.dispatcher(),
            Self::Http(http) => http.dispatcher(),
        }
    }

    /// Ends it in an orderly way.
    pub(super) async fn close(&self) {
        match self {
            Self::Duplex(duplex) => duplex.close().await,
            Self::Http(http) => http.close().await,
        }
        self.dispatcher().end("the connection was closed");
    }
}
