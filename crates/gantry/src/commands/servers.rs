//! `gantry servers`.

mod add;

use crate::cli::{NamedServer, ProjectFilter, ServersAction};
use crate::client::{ApiClient, CommandContext, Scope, encoded, query};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, RowWithNote};
use serde_json::Value;

/// What is shown of each server; why it is not well stands below.
const HEAD: [&str; 10] =
    ["LIGHT", "ID", "PROJECT", "AGENT", "TYPE", "STATUS", "ERA", "TOOLS", "MS", "SINCE (UTC)"];

pub(super) async fn run(
    context: CommandContext,
    action: Option<ServersAction>,
    list: ProjectFilter,
) -> anyhow::Result<Outcome> {
    let json = context.json;
    match action.unwrap_or(ServersAction::List(list)) {
        ServersAction::List(filter) => shown(context, filter.name(), json).await,
        ServersAction::Add(server) => add::run(&context, &server).await,
        ServersAction::Remove(server) => removed(&context, &server).await,
        ServersAction::Restart(server) => restarted(&context, &server).await,
    }
}

async fn shown(context: CommandContext, project: Option<&str>, json: bool) -> anyhow::Result<Outcome> {
    let client = context.connect(Scope::of(project)).await?;
    client.wait_until_ready().await;
    let listed = listed(&client, project, json).await;
    client.close().await;
    listed
}

async fn listed(client: &ApiClient, project: Option<&str>, json: bool) -> anyhow::Result<Outcome> {
    let body = client.get::<Value>(&format!("/api/v1/servers{}", query(&[("project", project)]))).await?;
    let items = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if json {
        term::print_json(&items.to_vec());
    } else if items.is_empty() {
        term::eprint(
            "There are no MCP servers. Write them under mcpServers in gantry.yaml, as in an editor's file.",
        );
    } else {
        let rows: Vec<RowWithNote> = items.iter().map(row).collect();
        let is_ill = rows.iter().any(|(_, note)| note.is_some());
        term::table_hiding_constant_columns(&HEAD, rows, &[("PROJECT", MAIN_PROJECT), ("AGENT", "")]);
        if is_ill || items.iter().any(|server| flags(server) > 0) {
            term::eprint("gantry doctor says more, and gantry doctor ID all about one server.");
        }
    }
    Ok(Outcome::Success)
}

/// A server, and below it what went wrong.
fn row(server: &Value) -> RowWithNote {
    let text = |key: &str| server.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |key: &str| server.get(key).and_then(Value::as_u64).unwrap_or_default();
    let mut tools = number("tools").to_string();
    if number("quarantined") > 0 {
        tools.push_str(&format!(" ({} quarantined)", number("quarantined")));
    }
    if flags(server) > 0 {
        tools.push_str(&format!(" ⚠ {}", flags(server)));
    }
    let latency = server.get("latencyMs").and_then(Value::as_f64).map(|ms| format!("{ms:.1}"));
    let cells = vec![
        term::light(&text("light")),
        text("id"),
        text("project"),
        text("agent"),
        text("type"),
        text("status"),
        text("era"),
        tools,
        latency.unwrap_or_default(),
        term::timestamp(&text("since")),
    ];
    // One that is well may have failed before, which is no news any more.
    let error = Some(text("lastError")).filter(|error| !error.is_empty() && text("light") != "green");
    (cells, error)
}

/// How many things look suspicious in its definitions.
fn flags(server: &Value) -> usize {
    server.get("flags").and_then(Value::as_array).map_or(0, Vec::len)
}

/// Where the API has a server, or something about it.
fn path(server: &NamedServer, what: &str) -> String {
    format!(
        "/api/v1/servers/{}{what}{}",
        encoded(&server.id),
        query(&[("project", Some(server.project.name()))])
    )
}

async fn removed(context: &CommandContext, server: &NamedServer) -> anyhow::Result<Outcome> {
    let instead = "there is nothing to remove. To keep a server from starting with the next gantry serve, set enabled: \
                   false in its entry of the configuration";
    let path = path(server, "");
    let answer = context.require_server(instead)?.delete::<Value>(&path).await?;
    if context.json {
        term::print_json(&answer);
    }
    let id = term::sanitize(&server.id);
    term::eprint(&format!("Removed {id} until Gantry stops."));
    let configured = context.loaded.config.project(server.project.name());
    if configured.is_some_and(|project| project.mcp_servers.contains_key(&server.id)) {
        term::eprint(
            "It is in the configuration and comes back at the next start. To keep it away, set enabled: false in its \
             entry there.",
        );
    }
    Ok(Outcome::Success)
}

async fn restarted(context: &CommandContext, server: &NamedServer) -> anyhow::Result<Outcome> {
    let instead = "there is nothing to restart. gantry serve starts every server, and so does gantry doctor to look at them";
    let path = path(server, "/restart");
    let answer = context.require_server(instead)?.act::<Value>(&path).await?;
    if context.json {
        term::print_json(&answer);
    }
    let status = answer.get("status").and_then(Value::as_str).unwrap_or("starting");
    term::eprint(&format!("Restarted {}; it is {status}.", term::sanitize(&server.id)));
    Ok(Outcome::Success)
}
