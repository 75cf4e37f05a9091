//! `gantry approvals`, `gantry approvals show`, `grants` and `revoke`.

use super::{WAITING, format};
use crate::cli::ListApprovals;
use crate::client::{ApiClient, encoded};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, Column};
use gantry_core::State;
use gantry_core::approval::{Approvers, answers};
use gantry_server::model::{Approval, Grant, List, Revoked, Timestamp};
use http::Method;

const COLUMNS: &[Column<Approval>] = &[
    Column::new("ID", |approval| approval.id.to_string()),
    Column::unless("STATE", &["waiting"], |approval| format::state(approval.state).to_owned()),
    Column::new("AGE", |approval| format::ago(approval.created_at)),
    Column::unless("DUE", &[""], format::due),
    Column::unless("PROJECT", &[MAIN_PROJECT], |approval| approval.caller.project.to_string()),
    Column::new("TOOL", |approval| approval.tool.to_string()),
    Column::new("WHO", format::requester),
    Column::new("WHY", |approval| approval.reason.to_string()),
];

const GRANT_LIMIT: &str = "1000";

const GRANT_COLUMNS: &[Column<Grant>] = &[
    Column::new("ID", |grant| grant.id.to_string()),
    Column::unless("PROJECT", &[MAIN_PROJECT], |grant| grant.project.to_string()),
    Column::new("TOOL", |grant| grant.tool.to_string()),
    Column::new("SERVER", |grant| grant.provider.to_string()),
    Column::new("WHO", |grant| match grant.agent_path.as_slice() {
        [] => grant.principal.to_string(),
        path => path.join(" > "),
    }),
    Column::new("HOLDS", |grant| match &grant.session {
        None => "always".to_owned(),
        Some(session) => format!("for {session}"),
    }),
    Column::new("BY", |grant| grant.granted_by.to_string()),
    Column::new("SINCE (UTC)", |grant| term::timestamp(grant.created_at)),
    Column::unless("REVOKED (UTC)", &[""], |grant| grant.revoked_at.map(term::timestamp).unwrap_or_default()),
];

pub(super) async fn list(client: &ApiClient, filter: &ListApprovals) -> anyhow::Result<Outcome> {
    let state = filter.state.as_deref().map(format::parse_state).transpose()?;
    let (states, empty) = match state {
        None if !filter.all => {
            (WAITING.map(Some).to_vec(), "No calls wait for an approval or for their scheduled time.")
        }
        state => (vec![state], "No requests match."),
    };
    let (mut approvals, mut has_more) = (Vec::new(), false);
    for state in states {
        let page = super::page(client, state, filter.project.name(), (filter.limit, None)).await?;
        approvals.extend(page.items);
        has_more |= page.next.is_some();
    }
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    has_more |= approvals.len() > limit;
    approvals.truncate(limit);
    term::print_list(&approvals, COLUMNS, empty, client.json);
    if has_more && !client.json {
        term::eprint("There are more; use --limit, --project or --state.");
    }
    Ok(Outcome::Success)
}

pub(super) async fn show(client: &ApiClient, id: &str) -> anyhow::Result<Outcome> {
    let approval = super::get(client, id).await?;
    if client.json {
        term::print_json(&approval);
        return Ok(Outcome::Success);
    }
    let id = approval.id;
    term::print(&format!("{id} is {}", format::state(approval.state)));
    term::fields(12, details(&approval)).for_each(|line| term::print(&term::sanitize(&line)));
    print_arguments("arguments", &format::arguments(approval.arguments.as_deref()));
    let modified = approval.decision.as_ref().and_then(|decision| decision.modified_args.as_deref());
    if modified.is_some() {
        print_arguments("approved instead", &format::arguments(modified));
    }
    if approval.state == State::PendingApproval {
        term::eprint(&if format::may_local_user_approve(&approval) {
            format!("Decide with gantry approvals approve {id}, or deny {id} --reason TEXT.")
        } else {
            format!("You may not approve it; gantry approvals deny {id} --reason TEXT denies it.")
        });
    }
    Ok(Outcome::Success)
}

fn print_arguments(title: &str, arguments: &str) {
    term::print(&format!("  {title}"));
    arguments.lines().for_each(|line| term::print(&format!("    {line}")));
}

/// The fields of a request besides its arguments; empty ones are not shown.
fn details(approval: &Approval) -> Vec<(&'static str, String)> {
    let caller = &approval.caller;
    // A call without such rules only waits for its scheduled time.
    let needs_approval = !approval.rules.is_empty();
    let approvers = match format::approvers(&approval.approvers) {
        _ if !needs_approval => String::new(),
        none @ Approvers::None(_) => none.refusal(),
        approvers @ (Approvers::Any | Approvers::OneOf(_)) => approvers.to_string(),
    };
    let due = |time: Option<Timestamp>| match time {
        Some(time) if !approval.state.is_over() => format!("{} ({})", format::utc(time), format::ahead(time)),
        time => time.map(format::utc).unwrap_or_default(),
    };
    let if_some = |is_some: bool, text: String| if is_some { text } else { String::new() };
    let delay = format!("{} ms after the approval", approval.delay_ms);
    let decided = [format::decision(approval), approval.decided_at.map(format::utc)];
    vec![
        ("tool", format!("{} of {}", approval.tool, approval.provider)),
        ("effect", approval.effect.to_string()),
        ("why", approval.reason.to_string()),
        ("agent", approval.agent_path.join(" > ")),
        ("caller", format!("{} by {}", caller.principal, caller.door)),
        ("project", caller.project.to_string()),
        ("session", caller.session.to_string()),
        ("call", approval.call_id.to_string()),
        ("rules", approval.rules.join(", ")),
        ("a grant", answers(&approval.rules, &approval.remember)),
        ("may decide", approvers),
        ("requested", format::utc(approval.created_at)),
        ("expires", due(approval.expires_at)),
        ("runs", due(approval.scheduled_for)),
        ("delay", if_some(approval.delay_ms > 0 && needs_approval, delay)),
        ("cost", if_some(approval.estimated_cost > 0, format!("{}, estimated", approval.estimated_cost))),
        ("attempts", if_some(approval.attempts > 1, approval.attempts.to_string())),
        ("decided", decided.into_iter().flatten().collect::<Vec<_>>().join(", ")),
        ("message", approval.message.as_deref().unwrap_or_default().to_owned()),
        ("replaces", approval.supersedes.map(|id| id.to_string()).unwrap_or_default()),
    ]
}

pub(super) async fn grants(client: &ApiClient, all: bool, project: Option<&str>) -> anyhow::Result<Outcome> {
    let query = [("revoked", all.then_some("true")), ("project", project), ("limit", Some(GRANT_LIMIT))];
    let grants: List<Grant> = client.get("/api/v1/grants", &query).await?;
    let empty = "There are no grants: every call that needs an approval is asked about.";
    term::print_list(&grants.items, GRANT_COLUMNS, empty, client.json);
    if grants.next.is_some() && !client.json {
        term::eprint(&format!("There are more than these {GRANT_LIMIT}; use --project."));
    }
    Ok(Outcome::Success)
}

pub(super) async fn revoke(client: &ApiClient, id: &str) -> anyhow::Result<Outcome> {
    let path = format!("/api/v1/grants/{}", encoded(id));
    let revoked: Revoked = client.act(Method::DELETE, &path).await?;
    let id = &revoked.id;
    let text = match revoked.held {
        true => format!("revoked {id}: such calls need an approval again"),
        false => format!("{id} was revoked before"),
    };
    term::print_value(&revoked, client.json, |_| vec![text]);
    Ok(Outcome::Success)
}
