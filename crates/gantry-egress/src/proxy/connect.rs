//! Connects a job to an authorised target.

use super::session::{ProxySession, Refused, Target};
use http::StatusCode;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long connecting may take, for all addresses of a host together.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection to the target, if the job may have one. The session reports what came of it.
pub(super) async fn connect(session: &ProxySession, target: &Target) -> Result<TcpStream, Refused> {
    let addresses = session.authorise(target).await.inspect_err(|refused| {
        if refused.status == StatusCode::FORBIDDEN {
            session.note_refused(target);
        }
    })?;
    let unreachable = |reason: String| {
        Refused::new(StatusCode::BAD_GATEWAY, format!("{target} cannot be connected to: {reason}"))
    };
    match tokio::time::timeout(CONNECT, first(&addresses)).await {
        Ok(Ok(stream)) => {
            session.note_reached(target);
            Ok(stream)
        }
        Ok(Err(error)) => Err(unreachable(error.to_string())),
        Err(_) => Err(unreachable("it does not answer".into())),
    }
}

async fn first(addresses: &[SocketAddr]) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(addresses).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
