//! `gantry approvals` and `gantry approvals show`.

use super::{WAITING, format};
use crate::cli::ListApprovals;
use crate::client::{CommandContext, Scope};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, Column};
use gantry_core::State;
use gantry_core::approval::Approvers;
use gantry_server::model::{Approval, Timestamp};

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

pub(super) async fn list(context: CommandContext, filter: &ListApprovals) -> anyhow::Result<Outcome> {
    let state = filter.state.as_deref().map(format::parse_state).transpose()?;
    let states = match state {
        None if !filter.all => WAITING.map(Some).to_vec(),
        state => vec![state],
    };
    let empty = match (state, filter.all) {
        (None, false) => "No calls wait for an approval or for their scheduled time.",
        _ => "No requests match.",
    };
    let json = context.json;
    context
        .with_client(Scope::LedgerOnly, async |client| {
            let (mut approvals, mut has_more) = (Vec::new(), false);
            for state in states {
                let page = super::page(client, state, filter.project.name(), filter.limit).await?;
                approvals.extend(page.items);
                has_more |= page.next.is_some();
            }
            let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
            has_more |= approvals.len() > limit;
            approvals.truncate(limit);
            term::print_list(&approvals, COLUMNS, empty, json);
            if has_more && !json {
                term::eprint("There are more; use --limit, --project or --state.");
            }
            Ok(Outcome::Success)
        })
        .await
}

pub(super) async fn show(context: CommandContext, id: &str) -> anyhow::Result<Outcome> {
    let json = context.json;
    let approval =
        context.with_client(Scope::LedgerOnly, async |client| super::get(client, id).await).await?;
    if json {
        term::print_json(&approval);
        return Ok(Outcome::Success);
    }
    let id = approval.id;
    term::print(&format!("{id} is {}", format::state(approval.state)));
    for (label, text) in details(&approval).into_iter().filter(|(_, text)| !text.is_empty()) {
        term::print(&term::sanitize(&format!("  {label:12} {text}")));
    }
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
    let needs_approval = format::needs_approval(approval);
    let approvers = match format::approvers(approval) {
        // A call that only waits for its scheduled time needs no approver.
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
