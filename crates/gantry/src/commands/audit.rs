//! `gantry audit`.

use crate::cli::{AuditAction, Filter};
use crate::client::{ApiClient, CommandContext, Scope, query};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, RowWithNote};
use serde_json::Value;

pub(super) async fn run(
    context: CommandContext,
    action: Option<AuditAction>,
    filter: &Filter,
) -> anyhow::Result<Outcome> {
    let json = context.json;
    let client = context.connect(Scope::LedgerOnly).await?;
    let done = match action {
        Some(AuditAction::Verify) => verified(&client, json).await,
        None => listed(&client, filter, json).await,
    };
    client.close().await;
    done
}

async fn listed(client: &ApiClient, filter: &Filter, json: bool) -> anyhow::Result<Outcome> {
    let limit = filter.limit.to_string();
    let query = query(&[
        ("project", filter.project.name()),
        ("since", filter.since.as_deref()),
        ("until", filter.until.as_deref()),
        ("tool", filter.tool.as_deref()),
        ("state", filter.state.as_deref()),
        ("limit", Some(&limit)),
    ]);
    let body = client.get::<Value>(&format!("/api/v1/audit{query}")).await?;
    let items = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if json {
        term::print_json(&items.to_vec());
        return Ok(Outcome::Success);
    }
    let rows: Vec<RowWithNote> = items.iter().map(|call| (row(call), None)).collect();
    if rows.is_empty() {
        term::eprint("No calls on record here match. `gantry call` makes one.");
    } else {
        let head = ["STARTED (UTC)", "PROJECT", "TOOL", "WHO", "STATE", "MS", "ARGUMENTS"];
        term::table_hiding_constant_columns(&head, rows, &[("PROJECT", MAIN_PROJECT)]);
    }
    if body.get("next").is_some_and(|next| !next.is_null()) {
        term::eprint("There are more; use --limit, --since or --until.");
    }
    Ok(Outcome::Success)
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
    let (started, latency) = (term::timestamp(&text("/startedAt")), latency.unwrap_or_default());
    vec![started, text("/project"), text("/tool"), who, state, latency, text("/arguments")]
}

async fn verified(client: &ApiClient, json: bool) -> anyhow::Result<Outcome> {
    let body = client.get::<Value>("/api/v1/audit/verify").await?;
    let ok = body.get("ok") == Some(&Value::Bool(true));
    if json {
        term::print_json(&body);
    } else if ok {
        let entries = body.get("entries").and_then(Value::as_u64).unwrap_or_default();
        term::print(&format!(
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
        term::print(&found);
    }
    Ok(if ok { Outcome::Success } else { Outcome::Failure })
}
