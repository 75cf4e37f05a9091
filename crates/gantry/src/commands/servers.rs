//! `gantry servers`: lists the MCP servers; adds, removes and restarts servers of the running Gantry.

mod add;

use crate::cli::{NamedServer, ProjectFilter, ServersAction};
use crate::client::{ApiClient, CommandContext, Scope, encoded, query};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, Column};
use gantry_server::model::{ChangedServer, HealthStatus, Removed, Server, ServerInUse};

const COLUMNS: [Column<Server>; 10] = [
    Column::new("LIGHT", |server| term::light(server.health.as_str())),
    Column::new("ID", |server| server.id.to_string()),
    Column::unless("PROJECT", &[MAIN_PROJECT], |server| server.project.to_string()),
    Column::unless("AGENT", &[""], |server| server.agent.as_deref().unwrap_or_default().to_owned()),
    Column::new("TYPE", |server| server.kind.to_string()),
    Column::new("STATUS", |server| server.status.to_string()),
    Column::new("ERA", |server| server.era.as_deref().unwrap_or_default().to_owned()),
    Column::new("TOOLS", tools),
    Column::new("MS", |server| server.latency_ms.map(|ms| format!("{ms:.1}")).unwrap_or_default()),
    Column::new("SINCE (UTC)", |server| term::timestamp(server.since)),
];

const EMPTY: &str =
    "There are no MCP servers. Define them under mcpServers in gantry.yaml, as in an editor's file.";

pub(super) async fn run(
    context: CommandContext,
    action: Option<ServersAction>,
    list: ProjectFilter,
) -> anyhow::Result<Outcome> {
    match action.unwrap_or(ServersAction::List(list)) {
        ServersAction::List(filter) => print_servers(context, filter.name()).await,
        ServersAction::Add(args) => add::run(&context, &args).await,
        ServersAction::Remove(server) => remove(&context, &server).await,
        ServersAction::Restart(server) => restart(&context, &server).await,
    }
}

async fn print_servers(context: CommandContext, project: Option<&str>) -> anyhow::Result<Outcome> {
    let json = context.json;
    let work = async |client: &ApiClient| {
        client.wait_until_ready().await;
        let servers: Vec<Server> =
            client.list(&format!("/api/v1/servers{}", query(&[("project", project)]))).await?;
        if json {
            term::print_json(&servers);
        } else if servers.is_empty() {
            term::eprint(EMPTY);
        } else {
            term::print_table(&servers, &COLUMNS, |server| last_error(server).map(str::to_owned));
            if servers.iter().any(|server| !server.flags.is_empty() || last_error(server).is_some()) {
                term::eprint("gantry doctor says more; gantry doctor ID explains one server.");
            }
        }
        Ok(Outcome::Success)
    };
    context.with_client(Scope::of(project), work).await
}

/// The number of tools, with what is wrong with them.
fn tools(server: &Server) -> String {
    let mut tools = server.tools.to_string();
    if server.quarantined > 0 {
        tools.push_str(&format!(" ({} quarantined)", server.quarantined));
    }
    if !server.flags.is_empty() {
        tools.push_str(&format!(" ⚠ {}", server.flags.len()));
    }
    tools
}

/// Why a server does not work; a past error of a working server is no news.
fn last_error(server: &Server) -> Option<&str> {
    server.last_error.as_deref().filter(|_| server.health != HealthStatus::Green)
}

/// The path of a server, or of an action on it.
fn path(server: &NamedServer, action: &str) -> String {
    let query = query(&[("project", Some(server.project.name()))]);
    format!("/api/v1/servers/{}{action}{query}", encoded(&server.id))
}

async fn remove(context: &CommandContext, server: &NamedServer) -> anyhow::Result<Outcome> {
    let instead = "there is nothing to remove. To keep a server from starting with the next gantry serve, set enabled: \
                   false in its entry of the configuration";
    let removed: Removed = context.require_server(instead)?.delete(&path(server, "")).await?;
    if context.json {
        term::print_json(&removed);
    }
    term::eprint(&format!("Removed {} until Gantry stops.", term::sanitize(&server.id)));
    let project = context.loaded.config.project(server.project.name());
    if project.is_some_and(|project| project.mcp_servers.contains_key(server.id.as_str())) {
        term::eprint(
            "It is in the configuration and comes back at the next start. To prevent that, set enabled: false in its \
             entry.",
        );
    }
    Ok(Outcome::Success)
}

async fn restart(context: &CommandContext, server: &NamedServer) -> anyhow::Result<Outcome> {
    let instead = "there is nothing to restart. gantry serve starts every server, and gantry doctor starts them for its \
                   checks";
    let changed: ChangedServer = context.require_server(instead)?.act(&path(server, "/restart")).await?;
    if context.json {
        term::print_json(&changed);
    }
    let status = match &changed.server {
        ServerInUse::Used(server) => &server.status,
        ServerInUse::Unused { .. } => "not used by the active agent",
    };
    term::eprint(&format!("Restarted {}; it is {status}.", term::sanitize(&server.id)));
    Ok(Outcome::Success)
}
