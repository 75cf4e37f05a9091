//! `gantry audit`: lists recorded calls and verifies the audit log.

use crate::cli::{AuditAction, Filter};
use crate::client::{ApiClient, CommandContext, Scope, query};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, Column};
use gantry_server::model::{AuditVerification, CallRecord, List};

const COLUMNS: [Column<CallRecord>; 7] = [
    Column::new("STARTED (UTC)", |call| term::timestamp(call.started_at)),
    Column::unless("PROJECT", &[MAIN_PROJECT], |call| call.project.to_string()),
    Column::new("TOOL", |call| call.tool.to_string()),
    Column::new("CALLER", caller),
    Column::new("STATE", state),
    Column::new("MS", |call| {
        call.accounting.as_ref().map(|it| it.latency_ms.to_string()).unwrap_or_default()
    }),
    Column::new("ARGUMENTS", |call| call.arguments.to_string()),
];

pub(super) async fn run(
    context: CommandContext,
    action: Option<AuditAction>,
    filter: &Filter,
) -> anyhow::Result<Outcome> {
    let json = context.json;
    let work = async |client: &ApiClient| match action {
        Some(AuditAction::Verify) => verify(client, json).await,
        None => list(client, filter, json).await,
    };
    context.with_client(Scope::LedgerOnly, work).await
}

async fn list(client: &ApiClient, filter: &Filter, json: bool) -> anyhow::Result<Outcome> {
    let limit = filter.limit.to_string();
    let query = query(&[
        ("project", filter.project.name()),
        ("since", filter.since.as_deref()),
        ("until", filter.until.as_deref()),
        ("tool", filter.tool.as_deref()),
        ("state", filter.state.as_deref()),
        ("limit", Some(&limit)),
    ]);
    let calls: List<CallRecord> = client.get(&format!("/api/v1/audit{query}")).await?;
    let empty = "No recorded call matches. `gantry call` makes one.";
    term::print_list(&calls.items, &COLUMNS, empty, json);
    if !json && calls.next.is_some() {
        term::eprint("There are more calls; use --limit, --since or --until.");
    }
    Ok(Outcome::Success)
}

fn state(call: &CallRecord) -> String {
    match &call.error {
        Some(error) => format!("{} {}", call.state, error.code),
        None => call.state.to_string(),
    }
}

/// The caller of a recorded call: `principal`, or `principal/agent`.
pub(super) fn caller(call: &CallRecord) -> String {
    match &call.agent {
        Some(agent) => format!("{}/{agent}", call.principal),
        None => call.principal.to_string(),
    }
}

async fn verify(client: &ApiClient, json: bool) -> anyhow::Result<Outcome> {
    let verified: AuditVerification = client.get("/api/v1/audit/verify").await?;
    if json {
        term::print_json(&verified);
    } else if let Some(bad) = &verified.first_bad {
        term::print(&term::sanitize(&format!(
            "The audit log was tampered with at entry {} of the chain {}: {}.",
            bad.entry, bad.node, bad.what
        )));
    } else {
        term::print(&format!(
            "The audit log is intact: {} entries, each bound to the one before it.",
            verified.entries
        ));
    }
    Ok(if verified.ok { Outcome::Success } else { Outcome::Failure })
}
