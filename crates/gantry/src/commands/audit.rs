//! `gantry audit`: lists recorded calls and verifies the audit log.

use crate::cli::{AuditAction, Filter};
use crate::client::ApiClient;
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, Column};
use gantry_server::model::{AuditVerification, BadEntry, CallRecord, List};

const COLUMNS: [Column<CallRecord>; 7] = [
    Column::new("STARTED (UTC)", |call| term::timestamp(call.started_at)),
    Column::unless("PROJECT", &[MAIN_PROJECT], |call| call.project.to_string()),
    Column::new("TOOL", |call| call.tool.to_string()),
    Column::new("CALLER", |call| caller(&call.principal, call.agent.as_deref())),
    Column::new("STATE", state),
    Column::new("MS", |call| {
        call.accounting.as_ref().map(|it| it.latency_ms.to_string()).unwrap_or_default()
    }),
    Column::new("ARGUMENTS", |call| call.arguments.to_string()),
];

pub(super) async fn run(
    client: &ApiClient,
    action: Option<AuditAction>,
    filter: &Filter,
) -> anyhow::Result<Outcome> {
    match action {
        Some(AuditAction::Verify) => verify(client).await,
        None => list(client, filter).await,
    }
}

async fn list(client: &ApiClient, filter: &Filter) -> anyhow::Result<Outcome> {
    let limit = filter.limit.to_string();
    let query = [
        ("project", filter.project.name()),
        ("since", filter.since.as_deref()),
        ("until", filter.until.as_deref()),
        ("tool", filter.tool.as_deref()),
        ("state", filter.state.as_deref()),
        ("limit", Some(&*limit)),
    ];
    let calls: List<CallRecord> = client.get("/api/v1/audit", &query).await?;
    let empty = "No recorded call matches. `gantry call` makes one.";
    term::print_list(&calls.items, &COLUMNS, empty, client.json);
    if !client.json && calls.next.is_some() {
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
pub(super) fn caller(principal: &str, agent: Option<&str>) -> String {
    agent.map_or_else(|| principal.to_owned(), |agent| format!("{principal}/{agent}"))
}

async fn verify(client: &ApiClient) -> anyhow::Result<Outcome> {
    let verified: AuditVerification = client.get("/api/v1/audit/verify", &[]).await?;
    let entries = verified.entries;
    let text = match &verified.first_bad {
        Some(BadEntry { node, entry, what }) => {
            format!("The audit log was tampered with at entry {entry} of the chain {node}: {what}.")
        }
        None => format!("The audit log is intact: {entries} entries, each bound to the one before it."),
    };
    term::print_value(&verified, client.json, |_| vec![text]);
    Ok(Outcome::of(verified.ok))
}
