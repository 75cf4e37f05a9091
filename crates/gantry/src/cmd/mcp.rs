//! `gantry mcp`: MCP on standard input and output.

mod bridge;

use crate::cli::Who;
use crate::cmd::known_project;
use crate::desk::{Desk, Setup, query};
use crate::exit::{Done, Usage};
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
    known_agent(&setup, who).await?;
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

/// A client that starts as nobody would be refused everything, and its person would not be told why. A running server
/// may have an agent that the file does not have any more.
async fn known_agent(setup: &Setup, who: &Who) -> anyhow::Result<()> {
    let agents = &setup.loaded.config.agents;
    let Some(agent) = who.agent.as_deref().filter(|agent| !agents.contains_key(*agent)) else {
        return Ok(());
    };
    if let Some(server) = setup.server()? {
        let path = format!("/api/v1/tools{}", query(&[("agent", Some(agent))]));
        Desk::Server(server).get(&path).await?.expect_ok()?;
        return Ok(());
    }
    let known = agents.keys().map(String::as_str).collect::<Vec<_>>();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(Usage(format!("there is no agent {agent:?}; configured: {known}")).into())
}
