//! The network of a sandboxed job: an HTTP proxy that connects the job to the hosts it may reach.
//!
//! A job uses it like any HTTP proxy: `CONNECT` for a tunnel, an absolute URL for a plain request. Each target is checked
//! like every other outbound request: the host is parsed as browsers parse it and resolved once, each of its addresses
//! must be public or allowed by the configuration, and exactly those addresses are connected to.
//!
//! A job never holds a credential. Where [`Rules::credentials`] has one for `https://host`, the job requests
//! `http://host` instead, and the proxy forwards the request over TLS with the credential added.
//!
//! **Invariant:** no connection of a job outlives [`serve`].

mod meter;
mod relay;
mod rules;
mod session;

pub use rules::{BadCredential, Credential, Rules};

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use meter::{Meter, Metered};
use relay::TunnelSlot;
use session::ProxySession;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Largest head of a request.
const HEAD_BYTES: usize = 64 * 1024;

/// Pause after a failed `accept`, for example because the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a job has used of the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// `host:port` of refused targets, each once, at most [`Report::REFUSED`].
    pub refused: Vec<String>,
    /// `host:port` of targets that the job was connected to, each once, at most [`Report::HOSTS`].
    pub hosts: Vec<String>,
    /// Bytes sent and received.
    pub bytes: u64,
}

impl Report {
    /// Refused targets that are listed.
    pub const REFUSED: usize = 20;
    /// Reached targets that are listed.
    pub const HOSTS: usize = 100;
}

/// Serves one job until `stop` fires, then closes all of its connections.
///
/// Cancel-safety: dropping the future closes them too; only the report is lost.
pub async fn serve(listener: TcpListener, rules: Arc<Rules>, stop: CancellationToken) -> Report {
    serve_at(listener, Arc::new(ProxySession::new(rules)), stop).await
}

async fn serve_at(listener: TcpListener, session: Arc<ProxySession>, stop: CancellationToken) -> Report {
    let most = session.rules.max_connections.max(1);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(ended) = connections.join_next() => {
                if let Err(crash) = ended {
                    tracing::warn!(%crash, "a connection of the proxy crashed");
                }
            }
            accepted = listener.accept(), if connections.len() < most => match accepted {
                Ok((stream, _)) => { connections.spawn(serve_connection(Arc::clone(&session), stream)); }
                Err(error) => {
                    tracing::warn!(%error, "the proxy of a job cannot take a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    connections.shutdown().await;
    session.report()
}

/// Serves one connection of the job until it ends or is idle for too long.
async fn serve_connection(session: Arc<ProxySession>, stream: TcpStream) {
    let idle = session.rules.idle;
    let meter = Arc::new(Meter::new(Arc::clone(&session.budget)));
    let stream = Metered::new(stream, Arc::clone(&meter));
    tokio::select! {
        () = serve_http(session, stream) => {}
        () = meter.idle(idle) => tracing::debug!("an idle connection of a job is closed"),
    }
}

async fn serve_http(session: Arc<ProxySession>, stream: Metered<TcpStream>) {
    let slot = TunnelSlot::default();
    let service = service_fn(|request| {
        let (session, slot) = (Arc::clone(&session), slot.clone());
        async move { Ok::<_, Infallible>(relay::answer(&session, &slot, request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(session.rules.idle)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of a job broke");
    }
    let tunnel = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(tunnel) = tunnel {
        tunnel.run().await;
    }
}

#[cfg(test)]
mod tests;
