//! `gantry servers`.

mod add;

use crate::cli::{NamedServer, ServersAction};
use crate::desk::{Desk, Setup, encoded};
use crate::exit::Done;
use crate::output::{self, Noted};
use serde_json::Value;

/// What is shown of each server; why it is not well stands below.
const HEAD: [&str; 8] = ["LIGHT", "ID", "TYPE", "STATUS", "ERA", "TOOLS", "MS", "SINCE (UTC)"];

pub(super) async fn run(setup: Setup, action: Option<ServersAction>, json: bool) -> anyhow::Result<Done> {
    match action {
        None => shown(setup, json).await,
        Some(ServersAction::List { json }) => shown(setup, json).await,
        Some(ServersAction::Add(server)) => add::run(&setup, &server).await,
        Some(ServersAction::Remove(server)) => removed(&setup, &server).await,
        Some(ServersAction::Restart(server)) => restarted(&setup, &server).await,
    }
}

async fn shown(setup: Setup, json: bool) -> anyhow::Result<Done> {
    let desk = setup.desk().await?;
    desk.settled().await;
    let listed = listed(&desk, json).await;
    desk.close().await;
    listed
}

async fn listed(desk: &Desk, json: bool) -> anyhow::Result<Done> {
    let body = desk.get("/api/v1/servers").await?.expect_ok()?;
    let items = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if json {
        output::json(&items.to_vec().into());
    } else if items.is_empty() {
        output::talk(
            "There are no MCP servers. Write them under mcpServers in gantry.yaml, as in an editor's file.",
        );
    } else {
        let rows: Vec<Noted> = items.iter().map(row).collect();
        output::noted_table(&HEAD, &rows);
        if rows.iter().any(|(_, note)| note.is_some()) || items.iter().any(|server| flags(server) > 0) {
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

async fn removed(setup: &Setup, server: &NamedServer) -> anyhow::Result<Done> {
    let instead = "there is nothing to remove. To keep a server from starting with the next gantry serve, set enabled: \
                   false in its entry of the configuration";
    let path = format!("/api/v1/servers/{}", encoded(&server.id));
    let answer = setup.running(instead)?.delete(&path).await?.expect_ok()?;
    if server.json {
        output::json(&answer);
    }
    let id = output::clean(&server.id);
    output::talk(&format!("Removed {id} until Gantry stops."));
    if setup.loaded.config.mcp_servers.contains_key(&server.id) {
        output::talk(
            "It is in the configuration and comes back at the next start. To keep it away, set enabled: false in its \
             entry there.",
        );
    }
    Ok(Done::Well)
}

async fn restarted(setup: &Setup, server: &NamedServer) -> anyhow::Result<Done> {
    let instead = "there is nothing to restart. gantry serve starts every server, and so does gantry doctor to look at them";
    let path = format!("/api/v1/servers/{}/restart", encoded(&server.id));
    let answer = setup.running(instead)?.post(&path, String::new()).await?.expect_ok()?;
    if server.json {
        output::json(&answer);
    }
    let status = answer.get("status").and_then(Value::as_str).unwrap_or("starting");
    output::talk(&format!("Restarted {}; it is {status}.", output::clean(&server.id)));
    Ok(Done::Well)
}
