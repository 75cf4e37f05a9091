//! `gantry servers`.

mod add;

use crate::cli::ChangeServers;
use crate::desk::{Desk, Setup, encoded};
use crate::exit::Done;
use crate::output;
use serde_json::Value;

pub(super) async fn run(setup: Setup, change: Option<ChangeServers>, json: bool) -> anyhow::Result<Done> {
    match change {
        None => {
            let desk = setup.desk().await?;
            desk.settled().await;
            let listed = listed(&desk, json).await;
            desk.close().await;
            listed
        }
        Some(ChangeServers::Add(server)) => add::run(&setup, &server).await,
        Some(ChangeServers::Remove { id }) => removed(&setup, &id).await,
        Some(ChangeServers::Restart { id }) => restarted(&setup, &id).await,
    }
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
        let rows: Vec<Vec<String>> = items.iter().map(row).collect();
        output::table(&["LIGHT", "ID", "TYPE", "STATUS", "ERA", "TOOLS", "MS", "SINCE", "LAST ERROR"], &rows);
    }
    Ok(Done::Well)
}

fn row(server: &Value) -> Vec<String> {
    let text = |key: &str| server.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |key: &str| server.get(key).and_then(Value::as_u64).unwrap_or_default();
    let tools = match number("quarantined") {
        0 => number("tools").to_string(),
        quarantined => format!("{} ({quarantined} quarantined)", number("tools")),
    };
    let latency = server.get("latencyMs").and_then(Value::as_f64).map(|ms| format!("{ms:.1}"));
    let since = text("since").chars().take(19).collect::<String>().replace('T', " ");
    vec![
        output::light(&text("light")),
        text("id"),
        text("type"),
        text("status"),
        text("era"),
        tools,
        latency.unwrap_or_default(),
        since,
        text("lastError"),
    ]
}

async fn removed(setup: &Setup, id: &str) -> anyhow::Result<Done> {
    setup.running()?.delete(&format!("/api/v1/servers/{}", encoded(id))).await?.expect_ok()?;
    output::talk(&format!("Removed {id} until Gantry stops."));
    if setup.loaded.config.mcp_servers.contains_key(id) {
        output::talk(
            "It is in the configuration and comes back at the next start. To keep it away, add this key:\n",
        );
        output::data(&format!("mcpServers:\n  {}:\n    enabled: false", add::yaml_key(id)));
    }
    Ok(Done::Well)
}

async fn restarted(setup: &Setup, id: &str) -> anyhow::Result<Done> {
    let path = format!("/api/v1/servers/{}/restart", encoded(id));
    let server = setup.running()?.post(&path, String::new()).await?.expect_ok()?;
    let status = server.get("status").and_then(Value::as_str).unwrap_or("starting");
    output::talk(&format!("Restarted {id}; it is {status}."));
    Ok(Done::Well)
}
