//! `gantry mcp`: MCP on standard input and output.

mod bridge;

use crate::cli::Who;
use crate::config::Config;
use crate::desk::{Desk, Setup, encoded, query};
use crate::exit::{Done, Usage};
use crate::reload;
use crate::signals::Signals;
use crate::startup::{self, Started};
use gantry_egress::LocalServer;
use gantry_server::Identity;
use gantry_server::mcp::{Gateway, endpoint};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long calls may take to end when the client is gone. One that sends a signal does not wait for them.
const GRACE: Duration = Duration::from_secs(2);

pub(super) async fn run(setup: Setup, who: &Who) -> anyhow::Result<Done> {
    let (project, agent) = (who.place.name(), who.agent.as_deref());
    check(&setup, project, agent).await?;
    if let Some(note) = setup.folder.server() {
        // The client gets no more than the agent role. The key says who is behind it: the person who may approve.
        let key = setup.folder.key()?.0;
        bridge::run(LocalServer::new(note.address, Some(key)), project, agent).await?;
        return Ok(Done::Well);
    }
    // Behind the client is the person who started it and who may read the data folder anyway. The gateway gives the client
    // itself no more than the agent role.
    let identity = Identity::person();
    let Started { projects, configuration } = startup::start(setup.source, setup.loaded, setup.extra).await?;
    let gateway = Gateway::new(Arc::clone(&projects), identity, project.into(), agent.map(Into::into));
    let stop = CancellationToken::new();
    let following = tokio::spawn(reload::follow(Arc::clone(&projects), configuration, stop.clone()));
    let server = endpoint(&projects);
    // The client would otherwise be told of half the tools.
    projects.settled().await;
    let mut signals = Signals::listen()?;
    // What processes that are gone have left waiting goes on here.
    projects.services().approvals().take_over_orphans();
    let served = tokio::select! {
        served = server.serve(Arc::new(gateway), tokio::io::stdin(), tokio::io::stdout()) => served.map(|()| Done::Well),
        asked = signals.asked() => Ok(Done::Stopped(asked)),
    };
    following.abort();
    let grace = match served {
        Ok(Done::Stopped(_)) => {
            signals.end_at_once();
            Duration::ZERO
        }
        Ok(Done::Well | Done::Badly) | Err(_) => GRACE,
    };
    server.shutdown().await;
    projects.shutdown(grace).await;
    Ok(served?)
}

/// A client that starts as nobody, or nowhere, would be refused everything, and its person would not be told why. A
/// running server may have a project or an agent that the file does not have any more.
async fn check(setup: &Setup, project: &str, agent: Option<&str>) -> anyhow::Result<()> {
    let Some(trouble) = missing(&setup.loaded.config, project, agent) else { return Ok(()) };
    let Some(server) = setup.server()? else { return Err(Usage(trouble).into()) };
    let query = query(&[("project", Some(project))]);
    let path = match agent {
        Some(agent) => format!("/api/v1/agents/{}{query}", encoded(agent)),
        None => format!("/api/v1/agents{query}"),
    };
    Desk::Server(server).get(&path).await?.expect_ok()?;
    Ok(())
}

/// What the file does not have.
fn missing(config: &Config, project: &str, agent: Option<&str>) -> Option<String> {
    let Some(known) = config.project(project) else {
        let known = config.all().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        return Some(format!("there is no project {project:?}; configured: {known}"));
    };
    let agent = agent.filter(|agent| !known.agents.contains_key(*agent))?;
    let known = known.agents.keys().map(String::as_str).collect::<Vec<_>>();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Some(format!("there is no agent {agent:?}; configured: {known}"))
}
