//! `gantry audit`.

use crate::cli::{Audit, Filter};
use crate::config::MAIN_PROJECT;
use crate::desk::{Desk, Setup, query};
use crate::exit::Done;
use crate::output::{self, Noted};
use serde_json::Value;

pub(super) async fn run(setup: Setup, verify: Option<Audit>, filter: &Filter) -> anyhow::Result<Done> {
    let desk = setup.records().await?;
    let done = match verify {
        Some(Audit::Verify { json }) => verified(&desk, json).await,
        None => listed(&desk, filter).await,
    };
    desk.close().await;
    done
}

async fn listed(desk: &Desk, filter: &Filter) -> anyhow::Result<Done> {
    let limit = filter.limit.to_string();
    let query = query(&[
        ("project", filter.of.project.as_deref()),
        ("since", filter.since.as_deref()),
        ("until", filter.until.as_deref()),
        ("tool", filter.tool.as_deref()),
        ("state", filter.state.as_deref()),
        ("limit", Some(&limit)),
    ]);
    let body = desk.get(&format!("/api/v1/audit{query}")).await?.expect_ok()?;
    let items = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if filter.json {
        output::json(&items.to_vec().into());
        return Ok(Done::Well);
    }
    let rows: Vec<Noted> = items.iter().map(|call| (row(call), None)).collect();
    if rows.is_empty() {
        output::talk("No calls on record here match. `gantry call` makes one.");
    } else {
        let head = ["STARTED (UTC)", "PROJECT", "TOOL", "WHO", "STATE", "MS", "ARGUMENTS"];
        output::sparse_table(&head, rows, &[("PROJECT", MAIN_PROJECT)]);
    }
    if body.get("next").is_some_and(|next| !next.is_null()) {
        output::talk("There are more; use --limit, --since or --until.");
    }
    Ok(Done::Well)
}

fn row(call: &Value) -> Vec<String> {
    let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let state = match text("/error/code") {
        code if code.is_empty() => text("/state"),
        code => format!("{} {code}", text("/state")),
    };
    let who = match text("/agent") {
        agent if agent.is_empty() => text("/principal"),
        agent => format!("{}/{agent}", text("/principal")),
    };
    let latency = call.pointer("/accounting/latencyMs").and_then(Value::as_u64).map(|ms| ms.to_string());
    let (started, latency) = (output::moment(&text("/startedAt")), latency.unwrap_or_default());
    vec![started, text("/project"), text("/tool"), who, state, latency, text("/arguments")]
}

async fn verified(desk: &Desk, json: bool) -> anyhow::Result<Done> {
    let body = desk.get("/api/v1/audit/verify").await?.expect_ok()?;
    let ok = body.get("ok") == Some(&Value::Bool(true));
    if json {
        output::json(&body);
    } else if ok {
        let entries = body.get("entries").and_then(Value::as_u64).unwrap_or_default();
        output::data(&format!(
            "The audit trail is whole: {entries} entries, each bound to the one before it."
        ));
    } else {
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let found = format!(
            "The audit trail was tampered with at entry {} of the chain {}: {}.",
            body.pointer("/firstBad/entry").and_then(Value::as_i64).unwrap_or_default(),
            text("/firstBad/node"),
            text("/firstBad/what")
        );
        output::data(&found);
    }
    Ok(if ok { Done::Well } else { Done::Badly })
}
