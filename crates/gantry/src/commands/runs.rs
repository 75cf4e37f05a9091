//! `gantry runs`.

use crate::cli::Runs;
use crate::client::{ApiClient, CommandContext, Scope, encoded, query};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, RowWithNote};
use serde_json::Value;

pub(super) async fn run(context: CommandContext, runs: &Runs) -> anyhow::Result<Outcome> {
    let json = context.json;
    let client = context.connect(Scope::LedgerOnly).await?;
    let done = match &runs.id {
        Some(id) if runs.cancel => canceled(&client, id, json).await,
        Some(id) => shown(&client, id, json).await,
        None => listed(&client, runs, json).await,
    };
    client.close().await;
    done
}

async fn listed(client: &ApiClient, runs: &Runs, json: bool) -> anyhow::Result<Outcome> {
    let limit = runs.limit.to_string();
    let query = query(&[("project", runs.project.name()), ("limit", Some(&limit))]);
    let body = client.get::<Value>(&format!("/api/v1/runs{query}")).await?;
    let items = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if json {
        term::print_json(&items.to_vec());
        return Ok(Outcome::Success);
    }
    let text = |run: &Value, pointer: &str| match run.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let cells = ["/id", "/project", "/door", "/principal", "/agent", "/totals/toolsRun", "/totals/failed"];
    let row = |run: &Value| {
        let last = term::timestamp(&text(run, "/lastAt"));
        (cells.iter().map(|cell| text(run, cell)).chain([last]).collect(), None)
    };
    let rows: Vec<RowWithNote> = items.iter().map(row).collect();
    if rows.is_empty() {
        term::eprint("There are no runs yet.");
    } else {
        let head = ["RUN", "PROJECT", "DOOR", "WHO", "AGENT", "CALLS", "FAILED", "LAST USED (UTC)"];
        term::table_hiding_constant_columns(&head, rows, &[("PROJECT", MAIN_PROJECT)]);
    }
    Ok(Outcome::Success)
}

async fn shown(client: &ApiClient, id: &str, json: bool) -> anyhow::Result<Outcome> {
    let tree = client.get::<Value>(&format!("/api/v1/runs/{}", encoded(id))).await?;
    if json {
        term::print_json(&tree);
        return Ok(Outcome::Success);
    }
    let text = |node: &Value, pointer: &str| {
        node.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    term::print(&format!(
        "{} by {} ({})",
        text(&tree, "/id"),
        text(&tree, "/principal"),
        text(&tree, "/door")
    ));
    turns(&tree, 0);
    Ok(Outcome::Success)
}

fn turns(tree: &Value, depth: usize) {
    for turn in tree.get("turns").and_then(Value::as_array).into_iter().flatten() {
        let index = turn.get("index").and_then(Value::as_u64).unwrap_or_default();
        term::print(&format!("{}└ turn {index}", "  ".repeat(depth)));
        for op in turn.get("ops").and_then(Value::as_array).into_iter().flatten() {
            operation(op, depth + 1);
        }
    }
}

fn operation(op: &Value, depth: usize) {
    let text = |pointer: &str| op.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let ms = op.pointer("/accounting/latencyMs").and_then(Value::as_u64);
    let time = ms.map(|ms| format!(" {ms} ms")).unwrap_or_default();
    let error = match text("/error/code") {
        "" => String::new(),
        code => format!(" {code}"),
    };
    let line = format!(
        "{}└ {} {}{error}{time}  {}",
        "  ".repeat(depth),
        text("/status"),
        text("/name"),
        text("/request/payload")
    );
    term::print(&term::sanitize(&line));
    for below in op.get("ops").and_then(Value::as_array).into_iter().flatten() {
        operation(below, depth + 1);
    }
    for session in op.get("childSessions").and_then(Value::as_array).into_iter().flatten() {
        let text = |pointer: &str| session.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let line = format!("{}└ agent {} ({})", "  ".repeat(depth + 1), text("/agent"), text("/id"));
        term::print(&term::sanitize(&line));
        turns(session, depth + 2);
    }
}

async fn canceled(client: &ApiClient, id: &str, json: bool) -> anyhow::Result<Outcome> {
    let body = client.act::<Value>(&format!("/api/v1/runs/{}/cancel", encoded(id))).await?;
    let was = body.get("canceled") == Some(&Value::Bool(true));
    if json {
        term::print_json(&body);
    } else if was {
        term::eprint(&format!("Canceled {id} and its calls."));
    } else {
        term::eprint(&format!("{id} is not running."));
    }
    Ok(if was { Outcome::Success } else { Outcome::Failure })
}
