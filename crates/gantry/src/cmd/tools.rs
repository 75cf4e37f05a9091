//! `gantry tools`.

use crate::cli::{Format, Who};
use crate::cmd::{absent, known_project};
use crate::desk::{Desk, Setup, query};
use crate::exit::Done;
use crate::output;
use serde_json::{Map, Value};

/// What an MCP client gets of each tool.
const MCP_FIELDS: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

pub(super) async fn run(setup: Setup, who: &Who, format: Format, json: bool) -> anyhow::Result<Done> {
    known_project(&who.project)?;
    let desk = setup.desk().await?;
    desk.settled().await;
    let done = listed(&desk, who, if json { Format::Json } else { format }).await;
    desk.close().await;
    done
}

async fn listed(desk: &Desk, who: &Who, format: Format) -> anyhow::Result<Done> {
    let query = query(&[("agent", who.agent.as_deref())]);
    let mut body = desk.get(&format!("/api/v1/tools{query}")).await?.expect_ok()?;
    let items = body.get_mut("items").map(Value::take).unwrap_or_default();
    match format {
        Format::Json => output::json(&items),
        Format::Mcp => output::json(
            &items.as_array().into_iter().flatten().filter_map(as_mcp).collect::<Vec<_>>().into(),
        ),
        Format::Table => table(items.as_array().map(Vec::as_slice).unwrap_or_default()),
    }
    absent::tell_all(desk).await?;
    Ok(Done::Well)
}

fn as_mcp(tool: &Value) -> Option<Value> {
    let ready = tool.get("status").and_then(Value::as_str) == Some("ready");
    let fields = MCP_FIELDS.iter().filter_map(|field| Some(((*field).to_owned(), tool.get(*field)?.clone())));
    let tool: Map<String, Value> = fields.filter(|(_, value)| !value.is_null()).collect();
    ready.then_some(Value::Object(tool))
}

fn table(tools: &[Value]) {
    let text = |tool: &Value, pointer: &str| {
        tool.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let rows: Vec<Vec<String>> = tools
        .iter()
        .map(|tool| {
            let what = match text(tool, "/reason") {
                reason if reason.is_empty() => text(tool, "/description"),
                reason => format!("quarantined: {reason}"),
            };
            vec![text(tool, "/name"), text(tool, "/provider/kind"), effect(tool).to_owned(), what]
        })
        .collect();
    if rows.is_empty() {
        output::talk("There are no tools here. `gantry doctor TOOL` says why one is missing.");
        return;
    }
    output::table(&["NAME", "KIND", "EFFECT", "DESCRIPTION"], &rows);
}

fn effect(tool: &Value) -> &'static str {
    let hint = |name: &str| tool.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool);
    match (hint("destructiveHint"), hint("readOnlyHint")) {
        (Some(true), _) => "destructive",
        (_, Some(true)) => "read",
        _ => "write",
    }
}
