//! `gantry servers`.

mod add;

use crate::cli::{NamedServer, OfProject, ServersAction};
use crate::config::MAIN_PROJECT;
use crate::desk::{Desk, Setup, encoded, query};
use crate::exit::Done;
use crate::output::{self, Noted};
use serde_json::Value;

/// What is shown of each server; why it is not well stands below.
const HEAD: [&str; 10] =
    ["LIGHT", "ID", "PROJECT", "AGENT", "TYPE", "STATUS", "ERA", "TOOLS", "MS", "SINCE (UTC)"];

pub(super) async fn run(
    setup: Setup,
    action: Option<ServersAction>,
    of: &OfProject,
    json: bool,
) -> anyhow::Result<Done> {
    match action {
        None => shown(setup, of.project.as_deref(), json).await,
        Some(ServersAction::List { of, json }) => shown(setup, of.project.as_deref(), json).await,
        Some(ServersAction::Add(server)) => add::run(&setup, &server).await,
        Some(ServersAction::Remove(server)) => removed(&setup, &server).await,
        Some(ServersAction::Restart(server)) => restarted(&setup, &server).await,
    }
}

async fn shown(setup: Setup, project: Option<&str>, json: bool) -> anyhow::Result<Done> {
    let desk = match project {
        Some(_) => setup.desk_in(project).await?,
        None => setup.desk().await?,
    };
    desk.settled().await;
    let listed = listed(&desk, project, json).await;
    desk.close().await;
    listed
}

async fn listed(desk: &Desk, project: Option<&str>, json: bool) -> anyhow::Result<Done> {
    let body = desk.get(&format!("/api/v1/servers{}", query(&[("project", project)]))).await?.expect_ok()?;
    let items = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if json {
        output::json(&items.to_vec().into());
    } else if items.is_empty() {
        output::talk(
            "There are no MCP servers. Write them under mcpServers in gantry.yaml, as in an editor's file.",
        );
    } else {
        let rows: Vec<Noted> = items.iter().map(row).collect();
        let is_ill = rows.iter().any(|(_, note)| note.is_some());
        output::sparse_table(&HEAD, rows, &[("PROJECT", MAIN_PROJECT), ("AGENT", "")]);
        if is_ill || items.iter().any(|server| flags(server) > 0) {
            output::talk("gantry doctor says more, and gantry doctor ID all about one server.");
        }
    }
    Ok(Done::Well)
}

/// A server, and below it what went wrong.
fn row(server: &Value) -> Noted {
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
        output::light(&text("light")),
        text("id"),
        text("project"),
        text("agent"),
        text("type"),
        text("status"),
        text("era"),
        tools,
        latency.unwrap_or_default(),
        output::moment(&text("since")),
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
        query(&[("project", Some(server.place.name()))])
    )
}

async fn removed(setup: &Setup, server: &NamedServer) -> anyhow::Result<Done> {
    let instead = "there is nothing to remove. To keep a server from starting with the next gantry serve, set enabled: \
                   false in its entry of the configuration";
    let path = path(server, "");
    let answer = setup.running(instead)?.delete(&path).await?.expect_ok()?;
    if server.json {
        output::json(&answer);
    }
    let id = output::clean(&server.id);
    output::talk(&format!("Removed {id} until Gantry stops."));
    let configured = setup.loaded.config.project(server.place.name());
    if configured.is_some_and(|project| project.mcp_servers.contains_key(&server.id)) {
        output::talk(
            "It is in the configuration and comes back at the next start. To keep it away, set enabled: false in its \
             entry there.",
        );
    }
    Ok(Done::Well)
}

async fn restarted(setup: &Setup, server: &NamedServer) -> anyhow::Result<Done> {
    let instead = "there is nothing to restart. gantry serve starts every server, and so does gantry doctor to look at them";
    let path = path(server, "/restart");
    let answer = setup.running(instead)?.post(&path, String::new()).await?.expect_ok()?;
    if server.json {
        output::json(&answer);
    }
    let status = answer.get("status").and_then(Value::as_str).unwrap_or("starting");
    output::talk(&format!("Restarted {}; it is {status}.", output::clean(&server.id)));
    Ok(Done::Well)
}
