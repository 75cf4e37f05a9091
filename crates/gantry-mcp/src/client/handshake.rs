//! Reaching a server, finding out which era it speaks, and the handshake.
//!
//! A modern server is asked `server/discover`, a legacy one is sent `initialize`. Where the era is not known, the modern
//! question comes first. On a stream both are sent to the same process, which is started again only where it ended
//! because of the first. Over HTTP every request stands alone.

use super::dispatcher::Dispatcher;
use super::http::{HttpEndpoint, HttpLink};
use super::limits::PROBE_WAIT;
use super::transport::{Call, Link, TransportError};
use super::types::{Protocol, Target, Transport, UpstreamError, UpstreamInfo};
use super::{lines, message, meta, sse, websocket};
use crate::error::code;
use crate::exchange::NoClient;
use crate::{ErrorObject, Version, raw};
use http::{HeaderMap, HeaderValue};
use std::borrow::Cow;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) link: Link,
    pub(super) info: UpstreamInfo,
}

#[derive(Debug)]
enum HandshakeError {
    /// The server does not speak this era; it may speak the other one.
    WrongEra(String),
    /// The server cannot be used at the moment in any era.
    Unavailable(UpstreamError),
}

impl From<HandshakeError> for UpstreamError {
    /// A handshake runs nothing, so its outcome is never unknown.
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::Unavailable(error @ Self::Canceled) => error,
            HandshakeError::Unavailable(error) => Self::NotSent(error.to_string()),
            HandshakeError::WrongEra(reason) => Self::NotSent(reason),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

/// Reaches the server, and completes the handshake. `known` is the era that it spoke last.
///
/// Cancel-safety: `known` is then the era to try next.
pub(super) async fn connect(target: &Target, known: &mut Protocol) -> Result<Handshake, UpstreamError> {
    // A server that does not answer in time may not speak this era any more.
    let last = mem::take(known);
    let outcome = reach(target, last, known).await;
    *known = match &outcome {
        Ok(handshake) if handshake.info.version.is_modern() => Protocol::Modern,
        Ok(_) => Protocol::Legacy,
        Err(_) => last,
    };
    outcome
}

async fn reach(target: &Target, known: Protocol, next: &mut Protocol) -> Result<Handshake, UpstreamError> {
    let eras: &[Era] = match (target.protocol, known) {
        (Protocol::Modern, _) => &[Era::Modern],
        (Protocol::Legacy, _) => &[Era::Legacy],
        (Protocol::Auto, Protocol::Legacy) => &[Era::Legacy, Era::Modern],
        (Protocol::Auto, Protocol::Auto | Protocol::Modern) => &[Era::Modern, Era::Legacy],
    };
    let handshake = match &target.transport {
        Transport::Http { url, headers } => over_http(target, eras, HttpEndpoint::new(url, headers)?).await?,
        Transport::Sse { url, headers } => over_sse(target, HttpEndpoint::new(url, headers)?).await?,
        Transport::Stdio(_) | Transport::WebSocket { .. } | Transport::Tcp { .. } => {
            let half = target.startup_timeout / 2;
            let wait = if known == Protocol::Modern { half } else { half.min(PROBE_WAIT) };
            over_stream(target, eras, wait, next).await?
        }
    };
    if !handshake.info.version.is_modern() {
        start_session(&handshake.link, &handshake.info).await?;
    }
    Ok(handshake)
}

/// Tells a legacy server that it can start, and listens to it.
async fn start_session(link: &Link, info: &UpstreamInfo) -> Result<(), UpstreamError> {
    link.dispatcher().takes_requests.store(true, Ordering::Relaxed);
    if let Link::Http(http) = link {
        http.set_version(info.version);
    }
    link.notify(message::notification("notifications/initialized", "{}")).await?;
    if let Link::Http(http) = link {
        http.open_background();
    }
    Ok(())
}

/// `next` is the era to try next if this is given up.
async fn over_stream(
    target: &Target,
    eras: &[Era],
    wait: Duration,
    next: &mut Protocol,
) -> Result<Handshake, UpstreamError> {
    let link = open(target).await?;
    let probed = match eras {
        [era] => return Ok(Handshake { info: handshake(&link, *era).await?, link }),
        [Era::Modern, ..] => probe(&link, wait).await,
        _ => match initialize(&link).await {
            Err(HandshakeError::WrongEra(_)) => discover(&link).await,
            outcome => outcome,
        },
    };
    match probed {
        Ok(info) => Ok(Handshake { link, info }),
        // Some legacy servers end on a method that they do not know.
        Err(_) if eras.first() == Some(&Era::Modern) && link.dispatcher().has_ended() => {
            drop(link);
            *next = Protocol::Legacy;
            let link = open(target).await?;
            Ok(Handshake { info: initialize(&link).await?, link })
        }
        Err(error) => Err(error.into()),
    }
}

/// Asks the modern question, and sends `initialize` when it is refused or not answered for a while: a silent server may
/// be a legacy one, or slow.
async fn probe(link: &Link, wait: Duration) -> Result<UpstreamInfo, HandshakeError> {
    let mut modern = pin!(discover(link));
    match timeout(wait, &mut modern).await {
        Ok(Err(HandshakeError::WrongEra(_))) => return initialize(link).await,
        Ok(outcome) => return outcome,
        Err(_) => {}
    }
    let mut legacy = pin!(initialize(link));
    tokio::select! {
        biased;
        outcome = &mut modern => match outcome {
            Err(HandshakeError::WrongEra(_)) => legacy.await,
            outcome => outcome,
        },
        outcome = &mut legacy => match outcome {
            Err(error) => modern.await.map_err(|_refusal| error),
            outcome => outcome,
        },
    }
}

async fn open(target: &Target) -> Result<Link, UpstreamError> {
    let frames = Dispatcher::start(target);
    let streams = match &target.transport {
        Transport::Stdio(process) => process.spawn().await,
        Transport::Tcp { address } => lines::tcp(address).await,
        Transport::WebSocket { url, headers } => {
            return Ok(Link::Duplex(websocket::open(frames, url, headers).await?));
        }
        Transport::Http { .. } | Transport::Sse { .. } => Err("this transport is not a stream".into()),
    };
    Ok(Link::Duplex(lines::open(frames, streams.map_err(UpstreamError::NotSent)?)))
}

async fn over_http(
    target: &Target,
    eras: &[Era],
    endpoint: HttpEndpoint,
) -> Result<Handshake, UpstreamError> {
    let mut refusals = Vec::new();
    for era in eras {
        let link = HttpLink::new(Dispatcher::start(target), endpoint.clone(), *era == Era::Modern);
        let link = Link::Http(link);
        match handshake(&link, *era).await {
            Ok(info) => return Ok(Handshake { link, info }),
            Err(HandshakeError::WrongEra(reason)) => refusals.push(reason),
            Err(error @ HandshakeError::Unavailable(_)) => return Err(error.into()),
        }
    }
    if target.protocol != Protocol::Modern {
        match over_sse(target, endpoint).await {
            Ok(handshake) => return Ok(handshake),
            Err(error) => refusals.push(format!("as HTTP+SSE: {error}")),
        }
    }
    let reasons = refusals.join("; ");
    Err(UpstreamError::NotSent(format!(
        "there is no MCP server that Gantry can talk to at this address: {reasons}"
    )))
}

async fn over_sse(target: &Target, endpoint: HttpEndpoint) -> Result<Handshake, UpstreamError> {
    let link = sse::open(Dispatcher::start(target), endpoint).await;
    let link = link.map_err(|error| HandshakeError::Unavailable(error.into()))?;
    let link = Link::Duplex(link);
    Ok(Handshake { info: initialize(&link).await?, link })
}

async fn handshake(link: &Link, era: Era) -> Result<UpstreamInfo, HandshakeError> {
    match era {
        Era::Modern => discover(link).await,
        Era::Legacy => initialize(link).await,
    }
}

async fn discover(link: &Link) -> Result<UpstreamInfo, HandshakeError> {
    let params = meta::modern("{}", None, None, link.dispatcher().target.declared, None);
    let mut outcome = call(link, "server/discover", &params).await;
    if let Err(TransportError::Http(response)) = &outcome
        && response.error.as_ref().is_some_and(offers_modern)
    {
        outcome = call(link, "server/discover", &params).await;
    }
    let result = outcome.map_err(discover_error)?;
    let versions = raw::member(&result, "supportedVersions").and_then(raw::elements).unwrap_or_default();
    if !versions.iter().any(|version| raw::string(version).as_deref() == Some(Version::MODERN.as_str())) {
        let what = format!("the server does not offer {} to server/discover", Version::MODERN.as_str());
        return Err(HandshakeError::WrongEra(what));
    }
    let in_meta = || raw::member(raw::member(&result, "_meta")?, "io.modelcontextprotocol/serverInfo");
    let server_info = in_meta().or_else(|| raw::member(&result, "serverInfo"));
    Ok(info(Version::MODERN, &result, server_info))
}

/// Sends `initialize` to a legacy server. [`start_session`] follows.
async fn initialize(link: &Link) -> Result<UpstreamInfo, HandshakeError> {
    let capabilities = meta::declared_capabilities(link.dispatcher().target.declared);
    let version = raw::quoted(Version::LAST_LEGACY.as_str());
    let members =
        [("protocolVersion", &*version), ("capabilities", &*capabilities), ("clientInfo", meta::CLIENT_INFO)];
    let result = call(link, "initialize", &raw::object(members)).await.map_err(initialize_error)?;
    let version = raw::string_member(&result, "protocolVersion").unwrap_or_default();
    match Version::parse(&version) {
        Some(modern) if modern.is_modern() => {
            Err(HandshakeError::WrongEra(format!("the server wants {version}")))
        }
        Some(version) => Ok(info(version, &result, raw::member(&result, "serverInfo"))),
        None => {
            let what = format!("the server speaks the protocol version {version:?}, which is not known");
            Err(HandshakeError::Unavailable(UpstreamError::NotSent(what)))
        }
    }
}

async fn call(link: &Link, method: &'static str, params: &str) -> Result<String, TransportError> {
    let mut headers = HeaderMap::new();
    if method != "initialize" {
        headers.insert("mcp-method", HeaderValue::from_static(method));
    }
    let cancel = CancellationToken::new();
    let (id, client) = (link.dispatcher().next_id(), Arc::new(NoClient::default()));
    link.call(&Call { id, method, params, headers, client, own: true, cancel: &cancel }).await
}

fn info(version: Version, result: &str, server_info: Option<&str>) -> UpstreamInfo {
    let capabilities =
        raw::member(result, "capabilities").filter(|text| text.starts_with('{')).unwrap_or("{}");
    UpstreamInfo {
        version,
        capabilities: capabilities.to_owned(),
        server_info: server_info.filter(|text| text.starts_with('{')).map(str::to_owned),
        instructions: raw::string_member(result, "instructions").map(Cow::into_owned),
    }
}

/// Whether an error says that the server speaks the modern version after all.
pub(super) fn offers_modern(error: &ErrorObject) -> bool {
    let supported = || raw::elements(raw::member(error.data.as_deref()?, "supported")?);
    error.code == code::UNSUPPORTED_VERSION
        && supported().unwrap_or_default().contains(&&*raw::quoted(Version::MODERN.as_str()))
}

impl HandshakeError {
    fn new(error: TransportError, is_wrong_era: bool) -> Self {
        let error = UpstreamError::from(error);
        if is_wrong_era { Self::WrongEra(error.to_string()) } else { Self::Unavailable(error) }
    }
}

fn discover_error(error: TransportError) -> HandshakeError {
    let may_be_legacy =
        |error: &ErrorObject| !matches!(error.code, code::HEADER_MISMATCH | code::MISSING_CAPABILITY);
    let is_wrong_era = match &error {
        TransportError::Http(response) => {
            let is_outage = matches!(response.status.as_u16(), 401 | 403 | 408 | 429);
            response.status.is_client_error()
                && !is_outage
                && response.error.as_ref().is_none_or(may_be_legacy)
        }
        TransportError::Upstream(UpstreamError::Rpc(error)) => may_be_legacy(error),
        // Some legacy servers hang up on a method that they do not know.
        TransportError::Upstream(UpstreamError::OutcomeUnknown(_)) => true,
        TransportError::Upstream(UpstreamError::NotSent(_) | UpstreamError::Canceled) => false,
    };
    HandshakeError::new(error, is_wrong_era)
}

fn initialize_error(error: TransportError) -> HandshakeError {
    let is_wrong_era = match &error {
        TransportError::Http(response) => {
            matches!(response.status.as_u16(), 400 | 404 | 405 | 406 | 415)
                || response.error.as_ref().is_some_and(|error| error.code == code::UNSUPPORTED_VERSION)
        }
        // A server that does not know `initialize` must be a modern one.
        TransportError::Upstream(UpstreamError::Rpc(error)) => {
            matches!(error.code, code::UNSUPPORTED_VERSION | code::METHOD_NOT_FOUND)
        }
        TransportError::Upstream(_) => false,
    };
    HandshakeError::new(error, is_wrong_era)
}
