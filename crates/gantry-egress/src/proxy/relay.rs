//! Answers the requests of a job: by a tunnel, by forwarding them, or by forwarding them with a credential.

use super::rules::Credential;
use super::session::{ProxySession, Refused, Target};
use crate::{HOP_BY_HOP, HttpError, Url};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::handshake;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// How long connecting may take, for all addresses of a host together.
const CONNECT: Duration = Duration::from_secs(10);

type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// The tunnel that a connection becomes once the answer to `CONNECT` is sent.
pub(super) type TunnelSlot = Arc<Mutex<Option<Tunnel>>>;

/// The two ends of a tunnel.
#[derive(Debug)]
pub(super) struct Tunnel {
    job: OnUpgrade,
    target: TcpStream,
}

impl Tunnel {
    /// Copies bytes both ways until both ends have finished.
    pub(super) async fn run(mut self) {
        let copied = match self.job.await {
            Ok(job) => tokio::io::copy_bidirectional(&mut TokioIo::new(job), &mut self.target).await,
            Err(error) => Err(std::io::Error::other(error)),
        };
        if let Err(error) = copied {
            tracing::debug!(%error, "a tunnel of a job broke");
        }
    }
}

/// The answer to a request; a refusal is one too.
pub(super) async fn answer(
    session: &ProxySession,
    slot: &TunnelSlot,
    request: Request<Incoming>,
) -> Response<Body> {
    let answered = match *request.method() {
        Method::CONNECT => open_tunnel(session, slot, request).await,
        // The server would echo the request, credential included.
        Method::TRACE => Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "TRACE is not forwarded")),
        _ => forward(session, request).await,
    };
    answered.unwrap_or_else(|refused| respond(refused.status, format!("gantry: {}\n", refused.reason)))
}

async fn open_tunnel(
    session: &ProxySession,
    slot: &TunnelSlot,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refused> {
    let target = Target::from_connect(request.uri())?;
    let stream = connect(session, &target).await?;
    let tunnel = Tunnel { job: hyper::upgrade::on(request), target: stream };
    slot.lock().unwrap_or_else(PoisonError::into_inner).replace(tunnel);
    Ok(respond(StatusCode::OK, String::new()))
}

async fn forward(session: &ProxySession, mut request: Request<Incoming>) -> Result<Response<Body>, Refused> {
    let url = match request.uri().scheme_str() {
        Some("http") => Url::parse(&request.uri().to_string()).ok(),
        Some(_) => None,
        None => {
            return Err(Refused::new(
                StatusCode::BAD_REQUEST,
                "this is a proxy; ask it for http://host/path",
            ));
        }
    };
    let unclear =
        || Refused::new(StatusCode::BAD_REQUEST, "only http:// is passed on; use CONNECT for the rest");
    let url = url.ok_or_else(unclear)?;
    strip(request.headers_mut());
    // The client sets it from the body, which may be a stream.
    request.headers_mut().remove(header::CONTENT_LENGTH);
    if let Some((credential, secure)) = session.credential(&url) {
        return forward_with_credential(session, credential, &secure, request).await;
    }
    let target = Target::from_url(&url)?;
    let stream = connect(session, &target).await?;
    forward_plain(stream, &url, request).await
}

/// A connection to the target, if the job may have one. The session reports what came of it.
async fn connect(session: &ProxySession, target: &Target) -> Result<TcpStream, Refused> {
    let addresses = session.authorise(target).await.inspect_err(|refused| {
        if refused.status == StatusCode::FORBIDDEN {
            session.note_refused(target);
        }
    })?;
    let unreachable = |reason: String| {
        Refused::new(StatusCode::BAD_GATEWAY, format!("{target} cannot be connected to: {reason}"))
    };
    let connected = timeout(CONNECT, TcpStream::connect(&*addresses)).await;
    let connected = connected.map_err(|_elapsed| unreachable("it does not answer".into()))?;
    let stream = connected.and_then(|stream| stream.set_nodelay(true).map(|()| stream));
    let stream = stream.map_err(|error| unreachable(error.to_string()))?;
    session.note_reached(target);
    Ok(stream)
}

/// Forwards a request over a plain connection.
async fn forward_plain(
    stream: TcpStream,
    url: &Url,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Refused> {
    let broken =
        |error: hyper::Error| Refused::new(StatusCode::BAD_GATEWAY, format!("the host hung up: {error}"));
    let unclear =
        |what: &str| Refused::new(StatusCode::BAD_REQUEST, format!("the {what} cannot be passed on"));
    let place = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let place: Uri = place.parse().map_err(|_illegal| unclear("path"))?;
    *request.uri_mut() = place;
    *request.version_mut() = Version::HTTP_11;
    let host = HeaderValue::from_str(&authority(url)).map_err(|_illegal| unclear("host"))?;
    request.headers_mut().insert(header::HOST, host);
    request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let driven = AbortOnDropHandle::new(tokio::spawn(connection));
    let response = sender.send_request(request).await.map_err(broken)?;
    let (mut parts, body) = response.into_parts();
    strip(&mut parts.headers);
    // The connection lives as long as its body does.
    let body = body.map_err(move |error| {
        let _driven = &driven;
        error.into()
    });
    Ok(Response::from_parts(parts, body.boxed_unsync()))
}

/// Forwards a request over TLS with a credential that the job never sees.
async fn forward_with_credential(
    session: &ProxySession,
    credential: &Credential,
    url: &Url,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refused> {
    let target = Target::from_url(url)?;
    session.has_bytes().inspect_err(|_refused| session.note_refused(&target))?;
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(header::HOST);
    parts.headers.insert(header::AUTHORIZATION, credential.authorization().clone());
    let body = if body.is_end_stream() { reqwest::Body::default() } else { reqwest::Body::wrap(body) };
    let sent = session.secure.exchange(parts.method, url.as_str(), parts.headers, body).await;
    let response = sent.map_err(|error| {
        if matches!(error, HttpError::NotAllowed { .. }) {
            session.note_refused(&target);
            return Refused::new(StatusCode::FORBIDDEN, format!("{target} is not at a public address"));
        }
        Refused::new(StatusCode::BAD_GATEWAY, error.to_string())
    })?;
    session.note_reached(&target);
    let (mut parts, body) = Response::from(response.inner).into_parts();
    strip(&mut parts.headers);
    parts.headers.remove(header::SET_COOKIE);
    Ok(Response::from_parts(parts, body.map_err(Into::into).boxed_unsync()))
}

fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Removes hop-by-hop headers: the known ones, and those that `Connection` names.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

fn respond(status: StatusCode, text: String) -> Response<Body> {
    let mut response =
        Response::new(Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
}
