//! `gantry runs`.

use crate::cli::Runs;
use crate::config::MAIN_PROJECT;
use crate::desk::{Desk, Setup, encoded, query};
use crate::exit::Done;
use crate::output::{self, Noted};
use serde_json::Value;

pub(super) async fn run(setup: Setup, runs: &Runs) -> anyhow::Result<Done> {
    let desk = setup.records().await?;
    let done = match &runs.id {
        Some(id) if runs.cancel => canceled(&desk, id, runs.json).await,
        Some(id) => shown(&desk, id, runs.json).await,
        None => listed(&desk, runs).await,
    };
    desk.close().await;
    done
}

async fn listed(desk: &Desk, runs: &Runs) -> anyhow::Result<Done> {
    let limit = runs.limit.to_string();
    let query = query(&[("project", runs.of.project.as_deref()), ("limit", Some(&limit))]);
    let body = desk.get(&format!("/api/v1/runs{query}")).await?.expect_ok()?;
    let items = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if runs.json {
        output::json(&items.to_vec().into());
        return Ok(Done::Well);
    }
    let text = |run: &Value, pointer: &str| match run.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let cells = ["/id", "/project", "/door", "/principal", "/agent", "/totals/toolsRun", "/totals/failed"];
    let row = |run: &Value| {
        let last = output::moment(&text(run, "/lastAt"));
        (cells.iter().map(|cell| text(run, cell)).chain([last]).collect(), None)
    };
    let rows: Vec<Noted> = items.iter().map(row).collect();
    if rows.is_empty() {
        output::talk("There are no runs yet.");
    } else {
        let head = ["RUN", "PROJECT", "DOOR", "WHO", "AGENT", "CALLS", "FAILED", "LAST USED (UTC)"];
        output::sparse_table(&head, rows, &[("PROJECT", MAIN_PROJECT)]);
    }
    Ok(Done::Well)
}

async fn shown(desk: &Desk, id: &str, json: bool) -> anyhow::Result<Done> {
    let tree = desk.get(&format!("/api/v1/runs/{}", encoded(id))).await?.expect_ok()?;
    if json {
        output::json(&tree);
        return Ok(Done::Well);
    }
    let text = |node: &Value, pointer: &str| {
        node.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    output::data(&format!(
        "{} by {} ({})",
        text(&tree, "/id"),
        text(&tree, "/principal"),
        text(&tree, "/door")
    ));
    turns(&tree, 0);
    Ok(Done::Well)
}

fn turns(tree: &Value, depth: usize) {
    for turn in tree.get("turns").and_then(Value::as_array).into_iter().flatten() {
        let index = turn.get("index").and_then(Value::as_u64).unwrap_or_default();
        output::data(&format!("{}└ turn {index}", "  ".repeat(depth)));
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
    output::data(&output::clean(&line));
    for below in op.get("ops").and_then(Value::as_array).into_iter().flatten() {
        operation(below, depth + 1);
    }
    for session in op.get("childSessions").and_then(Value::as_array).into_iter().flatten() {
        let text = |pointer: &str| session.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let line = format!("{}└ agent {} ({})", "  ".repeat(depth + 1), text("/agent"), text("/id"));
        output::data(&output::clean(&line));
        turns(session, depth + 2);
    }
}

async fn canceled(desk: &Desk, id: &str, json: bool) -> anyhow::Result<Done> {
    let body =
        desk.post(&format!("/api/v1/runs/{}/cancel", encoded(id)), String::new()).await?.expect_ok()?;
    let was = body.get("canceled") == Some(&Value::Bool(true));
    if json {
        output::json(&body);
    } else if was {
        output::talk(&format!("Canceled {id} and its calls."));
    } else {
        output::talk(&format!("{id} is not running."));
    }
    Ok(if was { Done::Well } else { Done::Badly })
}
