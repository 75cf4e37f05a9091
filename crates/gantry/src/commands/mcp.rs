//! `gantry mcp`: MCP on standard input and output.

use crate::cli::CallerArgs;
use crate::client::{ApiClient, CommandContext, encoded};
use crate::config::Config;
use crate::exit::{Outcome, UsageError};
use crate::signals::Signals;
use crate::startup::{self, Started};
use crate::watch_config;
use anyhow::Context as _;
use gantry_egress::{LocalServer, SocketReader, SocketWriter};
use gantry_mcp::error::code::PARSE_ERROR;
use gantry_mcp::lines::{self, Line, Lines};
use gantry_server::Identity;
use gantry_server::mcp::{Gateway, endpoint};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long running calls may go on when the client has disconnected. A signal cancels them at once.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// How many answers may wait to be written.
const ANSWER_QUEUE: usize = 64;

pub(super) async fn run(context: CommandContext, caller: &CallerArgs) -> anyhow::Result<Outcome> {
    let (project, agent) = (caller.project.name(), caller.agent.as_deref());
    check(&context, project, agent).await?;
    // The user who started the client may read the data folder and approve calls. The client itself gets no more than the
    // agent role from the gateway.
    if let Some(server) = context.running_server()?.as_ref().and_then(ApiClient::remote) {
        bridge(server, project, agent).await?;
        return Ok(Outcome::Success);
    }
    let identity = Identity::owner();
    let Started { projects, configuration } =
        startup::start(context.source, context.loaded, context.extra).await?;
    let gateway = Gateway::new(Arc::clone(&projects), identity, project.into(), agent.map(Into::into));
    let stop = CancellationToken::new();
    let watching = tokio::spawn(watch_config::watch(Arc::clone(&projects), configuration, stop.clone()));
    let server = endpoint(&projects);
    // Otherwise the client would first list only some of the tools.
    projects.settled().await;
    let mut signals = Signals::listen()?;
    // This process continues the held calls of processes that have died.
    projects.services().approvals().take_over_orphans();
    let served = tokio::select! {
        served = server.serve(Arc::new(gateway), tokio::io::stdin(), tokio::io::stdout()) => served.map(|()| Outcome::Success),
        signal = signals.recv() => Ok(Outcome::Interrupted(signal)),
    };
    watching.abort();
    let grace = match served {
        Ok(Outcome::Interrupted(_)) => {
            signals.kill_on_next_signal();
            Duration::ZERO
        }
        Ok(Outcome::Success | Outcome::Failure) | Err(_) => SHUTDOWN_GRACE_PERIOD,
    };
    server.shutdown().await;
    projects.shutdown(grace).await;
    Ok(served?)
}

/// Fails early if the project or the agent does not exist; otherwise the client would only see refused requests. A running
/// server may still know names that were removed from the file.
async fn check(context: &CommandContext, project: &str, agent: Option<&str>) -> anyhow::Result<()> {
    let Some(problem) = unknown_caller(&context.loaded.config, project, agent) else { return Ok(()) };
    let Some(server) = context.running_server()? else { return Err(UsageError(problem).into()) };
    let path =
        format!("/api/v1/agents{}", agent.map(|agent| format!("/{}", encoded(agent))).unwrap_or_default());
    server.get::<serde_json::Value>(&path, &[("project", Some(project))]).await?;
    Ok(())
}

/// The project or agent that the configuration does not have, as an error message.
fn unknown_caller(config: &Config, project: &str, agent: Option<&str>) -> Option<String> {
    let Some(known) = config.project(project) else {
        let known = config.all().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        return Some(format!("there is no project {project:?}; configured: {known}"));
    };
    let agent = agent.filter(|agent| !known.agents.contains_key(*agent))?;
    let known = known.agents.keys().map(String::as_str).collect::<Vec<_>>();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Some(format!("there is no agent {agent:?}; configured: {known}"))
}

/// Connects standard input and output to the running server by WebSocket, so that the client shares its queues, cache and
/// events. Each line becomes a frame, and each frame a line, until the client closes standard input and every answer is
/// written.
async fn bridge(server: &LocalServer, project: &str, agent: Option<&str>) -> anyhow::Result<()> {
    let mut path = format!("/ws/{}", encoded(project));
    if let Some(agent) = agent {
        path.push_str(&format!("/agents/{}", encoded(agent)));
    }
    let (reader, writer) = server.websocket(&path).await?;
    let (answers, queue) = mpsc::channel::<String>(ANSWER_QUEUE);
    let writing = tokio::spawn(lines::write(tokio::io::stdout(), queue));
    let sending = send(writer, answers.clone());
    let received = tokio::select! {
        received = receive(reader, answers) => received,
        // At the end of the input, requests before it are still answered; only an error ends the bridge here.
        error = async { match sending.await { Ok(()) => std::future::pending().await, Err(error) => error } } => Err(error),
    };
    let written = writing.await?;
    received?;
    written.context("standard output broke")
}

/// Sends every line to the server, and an empty frame at the end of the input.
async fn send(mut writer: SocketWriter, answers: mpsc::Sender<String>) -> anyhow::Result<()> {
    let mut lines = Lines::new(tokio::io::stdin());
    while let Some(line) = lines.next().await.context("standard input broke")? {
        match line {
            Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
            Line::Whole(line) => match String::from_utf8(line) {
                Ok(text) => writer.send(text).await?,
                Err(_) => answers.send(unreadable("the line is not UTF-8 text")).await?,
            },
            Line::TooLong => answers.send(unreadable("the line is too long")).await?,
        }
    }
    drop(answers);
    Ok(writer.send(String::new()).await?)
}

async fn receive(mut reader: SocketReader, answers: mpsc::Sender<String>) -> anyhow::Result<()> {
    while let Some(text) = reader.next().await.context("the Gantry server is gone; start the client again")? {
        if answers.send(text).await.is_err() {
            return Ok(()); // The client has closed standard output.
        }
    }
    Ok(())
}

fn unreadable(message: &str) -> String {
    let error = serde_json::json!({ "code": PARSE_ERROR, "message": message });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{error}}}")
}
