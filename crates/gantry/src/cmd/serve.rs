//! `gantry serve`.

use crate::desk::Setup;
use crate::exit::{Done, Usage};
use crate::signals::Signals;
use crate::startup::{self, Started};
use crate::{output, reload};
use gantry_provider::HealthStatus;
use gantry_runtime::Projects;
use gantry_server::{App, Options};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long running calls may take to end when the server is told to stop.
const GRACE: Duration = Duration::from_secs(25);

pub(super) async fn run(setup: Setup, bind: Option<SocketAddr>) -> anyhow::Result<Done> {
    let Setup { source, loaded, folder, extra } = setup;
    let _lock = folder.claim()?;
    let (key, fresh) = folder.key()?;
    let server = loaded.config.server.clone();
    let Started { projects, configuration } = startup::start(source, loaded, extra).await?;
    let parse = startup::server_parser(&configuration);
    let tools = projects.names().iter().filter_map(|name| count_tools(&projects, name)).sum();
    let starting = projects.servers(None).iter().filter(|server| server.health != HealthStatus::Off).count();
    let options = Options { bind: bind.unwrap_or(server.bind), ..server };
    let stop = stop_on_signal()?;
    let following = tokio::spawn(reload::follow(Arc::clone(&projects), configuration, stop.clone()));
    let app = App::new(Arc::clone(&projects), parse, stop);
    let ready = |address| {
        // What processes that are gone have left waiting goes on here.
        projects.services().approvals().take_over_orphans();
        if let Err(error) = folder.announce(address) {
            tracing::warn!("other commands will not find this server: {error:#}");
        }
        let active = active(&projects);
        output::talk(&greeting(address, (tools, starting), &active, &folder, fresh.then_some(&*key)));
    };
    let served = gantry_server::serve(app.clone(), options, key.as_str().into(), ready).await;
    // Calls whose clients hung up may end first; only then do sessions end, which cancels what is left.
    following.abort();
    projects.drain(GRACE).await;
    app.close().await;
    projects.shutdown(Duration::ZERO).await;
    served.map_err(|error @ gantry_server::Error::Bind { .. }| Usage(error.to_string()))?;
    output::talk("Gantry has stopped.");
    Ok(Done::Well)
}

/// How many tools a caller of a project has who names no agent.
fn count_tools(projects: &Projects, project: &str) -> Option<usize> {
    let context = projects.peek(project, None)?;
    Some(context.runtime.toolset(context.agent.as_deref()).ok()?.len())
}

/// The active agents, each in its project, in lines.
fn active(projects: &Projects) -> String {
    let names = projects.names();
    let active = names.iter().filter_map(|name| Some((name, projects.active(name)?)));
    active.map(|(project, agent)| format!("  agent {agent} is active in {project}\n")).collect()
}

fn greeting(
    address: SocketAddr,
    (tools, starting): (usize, usize),
    active: &str,
    folder: &crate::folder::Folder,
    key: Option<&str>,
) -> String {
    let servers = match starting {
        0 => String::new(),
        1 => " 1 MCP server is starting.".to_owned(),
        n => format!(" {n} MCP servers are starting."),
    };
    let mut text = format!(
        "Gantry is running with {tools} tools.{servers}\n\n  open  http://{address}/\n  MCP   http://{address}/mcp\n  data  {}\n{active}",
        folder.path().display()
    );
    match key {
        Some(key) => text.push_str(&format!(
            "\n  This key approves and administers. It is kept in admin.key in the data folder:\n  {key}\n"
        )),
        None => text.push_str("  key   admin.key in the data folder\n"),
    }
    text.push_str("\nStop it with Ctrl-C.");
    text
}

/// Fires at the first SIGINT or SIGTERM. The second one ends the process at once.
fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let fired = stop.clone();
    let mut signals = Signals::listen()?;
    tokio::spawn(async move {
        signals.asked().await;
        signals.end_at_once();
        output::talk("\nStopping: running calls may end first. Once more stops at once.");
        fired.cancel();
    });
    Ok(stop)
}
