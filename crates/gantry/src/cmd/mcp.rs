//! `gantry mcp`: MCP on standard input and output.

mod bridge;

use crate::cli::Who;
use crate::cmd::known_project;
use crate::desk::Setup;
use crate::exit::Done;
use crate::wiring;
use gantry_egress::LocalServer;
use gantry_server::Identity;
use gantry_server::mcp::{Client, endpoint};
use std::sync::Arc;
use std::time::Duration;

/// How long calls may take to end when the client is gone.
const GRACE: Duration = Duration::from_secs(2);

pub(super) async fn run(setup: Setup, who: &Who) -> anyhow::Result<Done> {
    known_project(&who.project)?;
    if let Some(note) = setup.folder.server() {
        // On loopback the agent role needs no key, and an agent gets no more than that.
        let key = if note.open { None } else { Some(setup.folder.key()?.0) };
        bridge::run(LocalServer::new(note.address, key), who.agent.as_deref()).await?;
        return Ok(Done::Well);
    }
    // The client is a program that acts for a model; it gets no more than the agent role.
    let client = Client { identity: Identity::local(), agent: who.agent.as_deref().map(Into::into) };
    let runtime = wiring::start(setup.loaded, &setup.folder, setup.extra).await?;
    let server = endpoint(Arc::clone(&runtime));
    // The client would otherwise be told of half the tools.
    runtime.settled().await;
    let served = server.serve(client, tokio::io::stdin(), tokio::io::stdout()).await;
    server.shutdown().await;
    runtime.shutdown(GRACE).await;
    served?;
    Ok(Done::Well)
}
