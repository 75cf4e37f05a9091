//! The two kinds of way to a server: a *duplex* one, where everything comes in on one stream, and *streamable HTTP*,
//! where every request has a stream of its own.

use super::{dispatcher::Dispatcher, duplex::Duplex, http::HttpLink, limits::EXCERPT_CHARS, types::Failure};
use crate::{ErrorObject, envelope::cut, error::code, exchange::ClientChannel};
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
    pub(super) audience: Arc<dyn ClientChannel>,
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
    /// That error names the request: it is about what was asked, not about the way it came.
    pub(super) names_request: bool,
    /// The beginning of the body.
    pub(super) excerpt: String,
    /// The session that the request named.
    pub(super) session: Option<Arc<str>>,
}

impl Refusal {
    /// Whether the session is unknown to the server, so that the request was certainly not run. The right status is 404;
    /// some say 400 and name the session.
    ///
    /// An error that names the request is an answer to it: tools report what they did not find in the same words. It
    /// tells of a lost session only where the code says that nothing was run, or where running it twice does no harm
    /// (`repeatable`).
    pub(super) fn lost_session(&self, repeatable: bool) -> bool {
        if self.session.is_none() {
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

    /// Whether the words of the error are about the session. Data and pages may hold that word for any reason.
    fn names_session(&self) -> bool {
        let said = match &self.error {
            Some(error) => &*error.message,
            None if self.excerpt.trim_start().starts_with(['{', '[', '<']) => "",
            None => cut(&self.excerpt, EXCERPT_CHARS),
        };
        said.to_ascii_lowercase().contains("session")
    }

    /// Whether the request did not come in time, or something between broke.
    fn may_have_run(&self) -> bool {
        matches!(self.status.as_u16(), 408 | 500..) && self.error.is_none()
    }

    fn into_failure(self) -> Failure {
        let lost = self.may_have_run();
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
            _ if lost => Failure::Lost(format!("the server answered with HTTP {status}{said}")),
            _ => Failure::Unavailable(format!("the server refused the request with HTTP {status}{said}")),
        }
    }
}

impl Trouble {
    /// Whether the server may be working on the request, without an answer that is ever heard.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Failure(failure) => matches!(failure, Failure::Lost(_)),
            Self::Status(refusal) => refusal.may_have_run(),
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
