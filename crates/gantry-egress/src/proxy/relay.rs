//! Answers the requests of a job: by a tunnel, by passing them on, or by passing them on with a credential.

use super::door::{Door, Refused, Target};
use super::reach::reach;
use super::rules::Credential;
use crate::{HttpError, Url};
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
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// What is about one connection only, and is not passed on.
const HOP_BY_HOP: [HeaderName; 11] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    HeaderName::from_static("http2-settings"),
];

/// The tunnel that a connection is to become, once the job has been told that it is open.
#[derive(Debug, Clone, Default)]
pub(super) struct Slot(Arc<Mutex<Option<Tunnel>>>);

impl Slot {
    pub(super) fn take(&self) -> Option<Tunnel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, tunnel: Tunnel) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(tunnel);
    }
}

/// Both ends of a tunnel.
#[derive(Debug)]
pub(super) struct Tunnel {
    job: OnUpgrade,
    target: TcpStream,
}

impl Tunnel {
    /// Passes bytes both ways until both ends have finished.
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

/// The answer to a request. A refusal is one too.
pub(super) async fn answer(door: &Door, slot: &Slot, request: Request<Incoming>) -> Response<Body> {
    let answered = match *request.method() {
        Method::CONNECT => open_tunnel(door, slot, request).await,
        // A server would send back what it got, a credential included.
        Method::TRACE => Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "TRACE is not passed on")),
        _ => pass_on(door, request).await,
    };
    answered.unwrap_or_else(|refused| said(refused.status, format!("gantry: {}\n", refused.reason)))
}

async fn open_tunnel(
    door: &Door,
    slot: &Slot,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refused> {
    let target = Target::of_tunnel(request.uri())?;
    let stream = reach(door, &target).await?;
    slot.put(Tunnel { job: hyper::upgrade::on(request), target: stream });
    Ok(said(StatusCode::OK, String::new()))
}

async fn pass_on(door: &Door, mut request: Request<Incoming>) -> Result<Response<Body>, Refused> {
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
    // It follows from the body that is passed on, which may come in pieces.
    request.headers_mut().remove(header::CONTENT_LENGTH);
    if let Some((credential, secure)) = door.credential(&url) {
        return vouch_for(door, credential, &secure, request).await;
    }
    let target = Target::of(&url)?;
    let stream = reach(door, &target).await?;
    send(stream, &url, request).await
}

/// Passes a request on as it is.
async fn send(
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

/// Passes a request on over TLS, with a credential that the job never sees.
async fn vouch_for(
    door: &Door,
    credential: &Credential,
    url: &Url,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refused> {
    let target = Target::of(url)?;
    door.has_bytes().inspect_err(|_refused| door.note_refused(&target))?;
    let client = door.secure()?;
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(header::HOST);
    parts.headers.insert(header::AUTHORIZATION, credential.authorization().clone());
    let body = (!body.is_end_stream()).then(|| reqwest::Body::wrap(body));
    let response = client.stream(parts.method, url.as_str(), parts.headers, body).await.map_err(|error| {
        if matches!(error, HttpError::NotAllowed { .. }) {
            door.note_refused(&target);
            return Refused::new(StatusCode::FORBIDDEN, format!("{target} is not at a public address"));
        }
        Refused::new(StatusCode::BAD_GATEWAY, error.to_string())
    })?;
    door.note_reached(&target);
    let (mut parts, body) = Response::from(response).into_parts();
    strip(&mut parts.headers);
    parts.headers.remove(header::SET_COOKIE);
    Ok(Response::from_parts(parts, body.map_err(Into::into).boxed_unsync()))
}

fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Removes what is about one connection only, and what that says is so too.
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

fn said(status: StatusCode, text: String) -> Response<Body> {
    let mut response =
        Response::new(Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
}
