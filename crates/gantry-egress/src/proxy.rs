//! The way out of a jail: an HTTP proxy that lets one job reach what it may, and nothing else.
//!
//! A job speaks to it as to any proxy: `CONNECT` for a tunnel, an absolute address for a plain request. Each target
//! passes the same gates as every other outbound request: the host is read as browsers read it, looked up once, each of
//! its addresses must be public or opened, and exactly those are connected to.
//!
//! A job never holds a credential. Where [`Rules::credentials`] has one for `https://host`, the job asks for
//! `http://host` instead, and the proxy asks for it over TLS with the credential added.
//!
//! **Invariant:** nothing that a job has opened outlives [`serve`].

mod door;
mod meter;
mod reach;
mod relay;
mod rules;

pub use rules::{BadCredential, Credential, Rules};

use door::Door;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use meter::{Meter, Metered};
use relay::Slot;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Bytes of the head of a request.
const HEAD_BYTES: usize = 64 * 1024;

/// How long to wait when no connection can be taken, because there are no descriptors left, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a job has reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// `host:port` that it was not let to, each once, at most [`Report::REFUSED`].
    pub refused: Vec<String>,
    /// `host:port` that it was connected to, each once, at most [`Report::HOSTS`].
    pub hosts: Vec<String>,
    /// Bytes that went through, both ways.
    pub bytes: u64,
}

impl Report {
    /// Refused hosts that are named.
    pub const REFUSED: usize = 20;
    /// Reached hosts that are named.
    pub const HOSTS: usize = 100;
}

/// Serves one job until `stop` fires. Then all of its connections are closed.
///
/// Cancel-safety: dropping the future closes them too; only the report is lost.
pub async fn serve(listener: TcpListener, rules: Arc<Rules>, stop: CancellationToken) -> Report {
    serve_at(listener, Arc::new(Door::new(rules)), stop).await
}

async fn serve_at(listener: TcpListener, door: Arc<Door>, stop: CancellationToken) -> Report {
    let most = door.rules.max_connections.max(1);
    let mut talks = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(ended) = talks.join_next() => {
                if let Err(crash) = ended {
                    tracing::warn!(%crash, "a connection of the proxy crashed");
                }
            }
            accepted = listener.accept(), if talks.len() < most => match accepted {
                Ok((stream, _)) => { talks.spawn(talk(Arc::clone(&door), stream)); }
                Err(error) => {
                    tracing::warn!(%error, "the proxy of a job cannot take a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    talks.shutdown().await;
    door.report()
}

/// One connection of the job, until it ends or nothing has moved on it for too long.
async fn talk(door: Arc<Door>, stream: TcpStream) {
    let idle = door.rules.idle;
    let meter = Arc::new(Meter::new(Arc::clone(&door.budget)));
    let stream = Metered::new(stream, Arc::clone(&meter));
    tokio::select! {
        () = converse(door, stream) => {}
        () = meter.idle(idle) => tracing::debug!("an idle connection of a job is closed"),
    }
}

async fn converse(door: Arc<Door>, stream: Metered<TcpStream>) {
    let slot = Slot::default();
    let service = service_fn(|request| {
        let (door, slot) = (Arc::clone(&door), slot.clone());
        async move { Ok::<_, Infallible>(relay::answer(&door, &slot, request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(door.rules.idle)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of a job broke");
    }
    if let Some(tunnel) = slot.take() {
        tunnel.run().await;
    }
}

#[cfg(test)]
mod tests;
