//! `gantry serve`.

use crate::client::CommandContext;
use crate::exit::{Outcome, UsageError};
use crate::signals::Signals;
use crate::startup::{self, Started};
use crate::{term, watch_config};
use gantry_provider::HealthStatus;
use gantry_runtime::Projects;
use gantry_server::{App, Options};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long running calls may go on when the server is stopped.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(25);

pub(super) async fn run(context: CommandContext, bind: Option<SocketAddr>) -> anyhow::Result<Outcome> {
    let CommandContext { source, loaded, data_dir, extra, .. } = context;
    let _lock = data_dir.lock_for_server()?;
    let (key, fresh) = data_dir.admin_key()?;
    let server = loaded.config.server.clone();
    let Started { projects, configuration } = startup::start(source, loaded, extra).await?;
    let parse = startup::server_parser(&configuration);
    let tools = projects.names().iter().filter_map(|name| count_tools(&projects, name)).sum();
    let starting = projects.servers(None).iter().filter(|server| server.health != HealthStatus::Off).count();
    let options = Options { bind: bind.unwrap_or(server.bind), ..server };
    let stop = stop_on_signal()?;
    let watching = tokio::spawn(watch_config::watch(Arc::clone(&projects), configuration, stop.clone()));
    let app = App::new(Arc::clone(&projects), parse, stop);
    let ready = |address| {
        // This process continues the held calls of processes that have died.
        projects.services().approvals().take_over_orphans();
        if let Err(error) = data_dir.write_server_info(address) {
            tracing::warn!("commands will not find this server: {error:#}");
        }
        let active = active(&projects);
        term::eprint(&greeting(address, (tools, starting), &active, &data_dir, fresh.then_some(&*key)));
    };
    let served = gantry_server::serve(app.clone(), options, key.as_str().into(), ready).await;
    // Running calls may end before their sessions do, which cancels the rest.
    watching.abort();
    projects.drain(SHUTDOWN_GRACE_PERIOD).await;
    app.close().await;
    projects.shutdown(Duration::ZERO).await;
    served.map_err(|error @ gantry_server::Error::Bind { .. }| UsageError(error.to_string()))?;
    term::eprint("Gantry has stopped.");
    Ok(Outcome::Success)
}

/// The number of tools for clients of a project that name no agent.
fn count_tools(projects: &Projects, project: &str) -> Option<usize> {
    let context = projects.peek(project, None)?;
    Some(context.runtime.toolset(context.agent.as_deref()).ok()?.len())
}

/// The active agent of each project, in lines.
fn active(projects: &Projects) -> String {
    let names = projects.names();
    let active = names.iter().filter_map(|name| Some((name, projects.active(name)?)));
    active.map(|(project, agent)| format!("  agent {agent} is active in {project}\n")).collect()
}

fn greeting(
    address: SocketAddr,
    (tools, starting): (usize, usize),
    active: &str,
    data_dir: &crate::data_dir::DataDir,
    key: Option<&str>,
) -> String {
    let servers = match starting {
        0 => String::new(),
        1 => " 1 MCP server is starting.".to_owned(),
        n => format!(" {n} MCP servers are starting."),
    };
    let mut text = format!(
        "Gantry is running with {tools} tools.{servers}\n\n  open  http://{address}/\n  MCP   http://{address}/mcp\n  data  {}\n{active}",
        data_dir.path().display()
    );
    match key {
        Some(key) => text.push_str(&format!(
            "\n  This key may approve and administer. It is stored in admin.key in the data folder:\n  {key}\n"
        )),
        None => text.push_str("  key   admin.key in the data folder\n"),
    }
    text.push_str("\nStop it with Ctrl-C.");
    text
}

/// A token that the first SIGINT or SIGTERM cancels. The next signal kills the process.
fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let fired = stop.clone();
    let mut signals = Signals::listen()?;
    tokio::spawn(async move {
        signals.recv().await;
        signals.kill_on_next_signal();
        term::eprint("\nStopping: running calls may end first. Press again to stop at once.");
        fired.cancel();
    });
    Ok(stop)
}
