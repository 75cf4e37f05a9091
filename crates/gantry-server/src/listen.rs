//! The listener: its own accept loop, because timeouts, limits and `TCP_NODELAY` have to be set per connection.

use crate::api::query::{Path, Sender};
use crate::auth::Keys;
use crate::error::ApiError;
use crate::host_check::HostCheck;
use crate::mcp::http::Target;
use crate::{App, api, mcp, page};
use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use gantry_provider::options::{Host, Origin, read_as, read_list};
use http::{Request, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use schemars::JsonSchema;
use serde::Deserialize;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at once; more wait to be accepted.
const CONNECTIONS: usize = 4096;

const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long open connections may take to finish when the server stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);

/// How often idle MCP sessions are looked for.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

/// Where Gantry listens and which requests it answers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename = "Server", rename_all = "camelCase", deny_unknown_fields)]
pub struct Options {
    /// The address and port to listen on. Any address but loopback makes every request need a key.
    #[serde(deserialize_with = "read_as::<Bind, _, _>")]
    #[schemars(with = "Bind", extend("default" = "127.0.0.1:7420"))]
    pub bind: SocketAddr,
    /// Host names, without port, that requests may be addressed to, besides the bound address and `localhost`.
    #[serde(deserialize_with = "read_list::<Host, _, _>")]
    #[schemars(with = "Vec<Host>")]
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call Gantry from a browser, besides its own page; behind a proxy with TLS, the public one.
    #[serde(deserialize_with = "read_list::<Origin, _, _>")]
    #[schemars(with = "Vec<Origin>")]
    pub allowed_origins: Vec<String>,
}

const DEFAULT_BIND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7420);

impl Default for Options {
    fn default() -> Self {
        Self { bind: DEFAULT_BIND, allowed_hosts: Vec::new(), allowed_origins: Vec::new() }
    }
}

gantry_core::option_texts! {
    /// An address to listen on.
    plain Bind = "an IP address with a port, such as 127.0.0.1:7420 or [::1]:7420",
        |text| text.parse::<SocketAddr>().is_ok();
}

impl From<Bind> for SocketAddr {
    fn from(text: Bind) -> Self {
        text.parse().unwrap_or(DEFAULT_BIND)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}; set server.bind to another address, or stop what listens there")]
    Bind { address: SocketAddr, source: std::io::Error },
}

/// Listens with the key of the data folder, and hands the bound address to `ready`, then serves until the app stops and open requests have ended.
///
/// # Errors
/// The address cannot be bound.
pub async fn serve(
    app: App,
    options: Options,
    admin_key: Arc<str>,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Error> {
    let stop = app.stop.clone();
    let bind = |source| Error::Bind { address: options.bind, source };
    let listener = TcpListener::bind(options.bind).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    let (open_to_machine, ring) = (address.ip().is_loopback(), Arc::clone(&app.keys));
    let filter = Arc::new(RequestFilter {
        hosts: HostCheck::new(address, &options.allowed_hosts, &options.allowed_origins),
        keys: Keys { admin: admin_key, open_to_machine, ring },
        router: api::router(app.clone()),
        app: app.clone(),
    });
    let approvals = app.projects.services().approvals();
    approvals.set_page(page_address(address));
    ready(address);
    let connections = TaskTracker::new();
    connections.spawn(expire_sessions(app.clone(), stop.clone()));
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let permit = tokio::select! {
            () = stop.cancelled() => break,
            permit = Arc::clone(&permits).acquire_owned() => permit,
        };
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _peer)) => stream,
                Err(error) => {
                    // Out of file descriptors, usually: wait for connections to end instead of spinning.
                    tracing::warn!("a connection could not be accepted: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let (filter, stop) = (Arc::clone(&filter), stop.clone());
        connections.spawn(async move {
            connection(stream, filter, stop).await;
            drop(permit);
        });
    }
    drop(listener);
    approvals.set_page(None);
    connections.close();
    if tokio::time::timeout(DRAIN_TIMEOUT, connections.wait()).await.is_err() {
        tracing::warn!("connections were still open after {} s and are cut", DRAIN_TIMEOUT.as_secs());
    }
    Ok(())
}

/// URL prefix of the approvals page. `None` unless bound to loopback, because the public host name is unknown.
fn page_address(bound: SocketAddr) -> Option<Arc<str>> {
    bound.ip().is_loopback().then(|| format!("http://{bound}{}", page::PREFIX).into())
}

/// The address under which this machine reaches the server: listening everywhere includes loopback.
#[must_use]
pub fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if !ip.is_unspecified() => address,
        IpAddr::V4(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())),
        IpAddr::V6(_) => SocketAddr::from((Ipv6Addr::LOCALHOST, address.port())),
    }
}

/// Ends the sessions of clients that went away, and at shutdown the streams that would never end.
async fn expire_sessions(app: App, stop: CancellationToken) {
    let mut every = tokio::time::interval(EXPIRY_INTERVAL);
    loop {
        tokio::select! {
            () = stop.cancelled() => return app.mcp.close_streams(),
            _ = every.tick() => app.mcp.expire_idle(),
        }
    }
}

async fn connection(stream: TcpStream, filter: Arc<RequestFilter>, stop: CancellationToken) {
    // Without this, an answer in two writes waits for the client's delayed acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY could not be set: {error}");
    }
    let service = hyper::service::service_fn(move |request| {
        let filter = Arc::clone(&filter);
        async move { Ok::<_, Infallible>(filter.answer(request).await) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    let serving = http
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection ended early: {error}");
    }
}

/// Checks every request before a handler sees it.
struct RequestFilter {
    hosts: HostCheck,
    keys: Keys,
    router: Router,
    app: App,
}

impl RequestFilter {
    async fn answer(&self, mut request: Request<Incoming>) -> Response {
        if let Err(refused) = self.hosts.check(&request) {
            return refused.into_response();
        }
        // The page shows nothing without a key, and a browser cannot send one when it opens a page.
        if page::is_page_request(&request) && !request.headers().contains_key(header::AUTHORIZATION) {
            return page::respond();
        }
        let identity = match self.keys.identify(request.headers()).await {
            Ok(identity) => identity,
            Err(refused) => return ApiError::into_response(refused),
        };
        // The endpoint that agents use most needs no routing.
        if request.uri().path() == "/mcp" {
            let sender = Sender { app: self.app.clone(), identity };
            let served = mcp::http::serve(sender, Path(Target::default()), request.map(Body::new));
            return served.await.into_response();
        }
        request.extensions_mut().insert(identity);
        let service = TowerToHyperService::new(self.router.clone());
        let Ok(response) = hyper::service::Service::call(&service, request).await;
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approvers_are_sent_to_the_page_only_where_they_can_reach_it() {
        let page = |bound: &str| page_address(bound.parse().unwrap());
        assert_eq!(page("127.0.0.1:7420").as_deref(), Some("http://127.0.0.1:7420/approvals/"));
        assert_eq!(page("[::1]:7420").as_deref(), Some("http://[::1]:7420/approvals/"));
        for elsewhere in ["0.0.0.0:7420", "[::]:7420", "192.168.1.2:7420"] {
            assert_eq!(page(elsewhere), None, "{elsewhere}");
        }
    }
}
