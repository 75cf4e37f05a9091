//! The one way out for all REST services of a project.

use gantry_egress::guard::Cidr;
use gantry_egress::{HttpClient, HttpError, HttpResponse, Url};
use gantry_openapi::Method;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method as Verb, StatusCode};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

/// Redirects that are followed.
const REDIRECTS: usize = 5;

/// When a request that did not get out is tried again.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];

/// Sends requests to public addresses, and to those private ones that were opened.
#[derive(Debug)]
pub struct Outlet {
    pub(super) private: Vec<Cidr>,
    /// When a request that did not get out is tried again.
    pub(super) pauses: [Duration; 2],
    /// Made when it is first needed, on a thread that may block: loading whom to trust takes a while.
    client: OnceCell<HttpClient>,
    /// The same for public addresses only.
    public: OnceCell<HttpClient>,
}

/// A request. Its address, its headers and its body may hold secrets.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// It goes to public addresses only, whatever was opened: somebody else says where it goes.
    pub(super) public_only: bool,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("method", &self.method).finish_non_exhaustive()
    }
}

/// An answer, and where it came from in the end.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) response: HttpResponse,
    pub(super) url: Url,
    /// Another answer led there.
    pub(super) redirected: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct NoAnswer {
    pub(super) error: HttpError,
    /// The request was answered, and where that answer led there was no other.
    pub(super) redirected: bool,
}

impl NoAnswer {
    /// Whether the service may have got the request, wherever it was lost in the end.
    pub(super) fn was_sent(&self) -> bool {
        self.redirected || self.error.was_sent()
    }
}

impl Outlet {
    /// An outlet to public addresses and to these private ones.
    #[must_use]
    pub fn new(private: Vec<Cidr>) -> Self {
        Self { private, pauses: PAUSES, client: OnceCell::new(), public: OnceCell::new() }
    }

    /// Sends a request and returns as soon as the head of the answer is there. What did not get out is tried again, if
    /// doing it twice would come to the same; redirects are followed within the origin, if nothing but the address is sent.
    /// Nothing is asked for a second time because an answer says so.
    ///
    /// Cancel-safety: dropping the future closes the connection; what was sent stays sent.
    pub(super) async fn send(&self, request: &Request) -> Result<Reached, NoAnswer> {
        let no_answer = |redirected| move |error| NoAnswer { error, redirected };
        let client = self.client(request.public_only).await.map_err(no_answer(false))?;
        let mut url = request.url.clone();
        url.set_fragment(None);
        let mut asked = Vec::with_capacity(1);
        loop {
            let redirected = !asked.is_empty();
            let response = self.try_again(client, request, &url).await.map_err(no_answer(redirected))?;
            let next = target(request.method, &url, &response);
            asked.push(url.clone());
            match next.filter(|next| asked.len() <= REDIRECTS && !asked.contains(next)) {
                Some(next) => url = next,
                None => return Ok(Reached { response, url, redirected }),
            }
        }
    }

    async fn try_again(
        &self,
        client: &HttpClient,
        request: &Request,
        url: &Url,
    ) -> Result<HttpResponse, HttpError> {
        let mut pauses = self.pauses.iter().filter(|_| request.method.is_idempotent());
        let headers = headers(request);
        loop {
            let body = request.body.clone().into();
            match client.exchange(verb(request.method), url.as_str(), headers.clone(), body).await {
                // Nothing was sent, and the next attempt may find somebody. Whatever else goes wrong goes wrong again.
                Err(error @ HttpError::Connect { .. }) => match pauses.next() {
                    Some(pause) => tokio::time::sleep(*pause).await,
                    None => return Err(error),
                },
                ended => return ended,
            }
        }
    }

    async fn client(&self, public_only: bool) -> Result<&HttpClient, HttpError> {
        let (client, private) =
            if public_only { (&self.public, Vec::new()) } else { (&self.client, self.private.clone()) };
        let make = async || {
            let made = spawn_blocking(move || HttpClient::guarded(&private)).await;
            made.map_err(|crash| HttpError::Setup(crash.to_string()))?
        };
        client.get_or_try_init(make).await
    }
}

fn headers(request: &Request) -> HeaderMap {
    let mut headers = request.headers.clone();
    let usually_has_body = matches!(request.method, Method::Post | Method::Put | Method::Patch);
    if usually_has_body && request.body.is_empty() {
        // Servers that expect a body want to hear that there is none.
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    headers
}

/// Where the answer points instead, if that may be followed.
fn target(method: Method, from: &Url, response: &HttpResponse) -> Option<Url> {
    let follows = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    if !matches!(method, Method::Get | Method::Head) || !follows.contains(&response.status()) {
        return None;
    }
    let mut next = location(from, response.headers())?;
    // Nobody is sent it, so it makes no other place.
    next.set_fragment(None);
    // The headers go along, so they stay with whom they are for; and who asks is not for the service to say.
    let same_user = (next.username(), next.password()) == (from.username(), from.password());
    (next.origin() == from.origin() && same_user).then_some(next)
}

/// Where an answer points, seen from where it came from.
pub(super) fn location(from: &Url, headers: &HeaderMap) -> Option<Url> {
    from.join(headers.get(header::LOCATION)?.to_str().ok()?).ok()
}

pub(super) fn verb(method: Method) -> Verb {
    match method {
        Method::Get => Verb::GET,
        Method::Put => Verb::PUT,
        Method::Post => Verb::POST,
        Method::Delete => Verb::DELETE,
        Method::Options => Verb::OPTIONS,
        Method::Head => Verb::HEAD,
        Method::Patch => Verb::PATCH,
        Method::Trace => Verb::TRACE,
    }
}

/// An address as it may be shown: no user, no query, no fragment.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let kept = url.set_username("").is_ok() && url.set_password(None).is_ok();
    if kept { url.into() } else { url.scheme().to_owned() }
}

/// Whether the address is on this machine, as its text says.
pub(super) fn is_loopback(url: &Url) -> bool {
    match gantry_egress::guard::literal(url) {
        Some(address) => address.is_loopback(),
        None => gantry_egress::host::name(url)
            .is_some_and(|host| host == "localhost" || host.ends_with(".localhost")),
    }
}
