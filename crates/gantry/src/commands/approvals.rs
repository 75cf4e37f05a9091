//! `gantry approvals`: calls that wait for an approval or for their scheduled time, and the decisions about them.

pub(super) mod decide;
pub(super) mod format;
pub(super) mod prompt;
pub(super) mod terminal;
pub(super) mod wait;

mod editor;
mod grants;
mod list;
mod watch;

use crate::cli::{ApprovalsAction, ListApprovals};
use crate::client::{ApiClient, CommandContext, encoded, query};
use crate::exit::Outcome;
use gantry_core::State;
use gantry_server::model::{Approval, List};

/// The states of requests that wait: for an approval, and for their scheduled time.
const WAITING: [State; 2] = [State::PendingApproval, State::ScheduledForExecution];

pub(super) async fn run(
    context: CommandContext,
    action: Option<ApprovalsAction>,
    list: ListApprovals,
) -> anyhow::Result<Outcome> {
    match action.unwrap_or(ApprovalsAction::List(list)) {
        ApprovalsAction::List(filter) => list::list(context, &filter).await,
        ApprovalsAction::Show(wanted) => list::show(context, &wanted.id).await,
        ApprovalsAction::Approve(wanted) => decide::approve(context, wanted).await,
        ApprovalsAction::Deny(wanted) => decide::deny(context, wanted).await,
        ApprovalsAction::Cancel(wanted) => decide::cancel(context, &wanted.id).await,
        ApprovalsAction::Watch(project) => watch::run(context, project.name()).await,
        ApprovalsAction::Grants(wanted) => grants::list(context, &wanted).await,
        ApprovalsAction::Revoke(wanted) => grants::revoke(context, &wanted.id).await,
    }
}

/// The path of a request; `id` may be the last digits of its id.
fn path(id: &str) -> String {
    format!("/api/v1/approvals/{}", encoded(id))
}

/// Reads one request.
pub(super) async fn get(client: &ApiClient, id: impl ToString) -> anyhow::Result<Approval> {
    client.get(&path(&id.to_string())).await
}

/// Lists requests, newest first.
async fn page(
    client: &ApiClient,
    state: Option<State>,
    project: Option<&str>,
    limit: u32,
) -> anyhow::Result<List<Approval>> {
    let limit = limit.to_string();
    let state = state.map(State::as_str);
    let query = query(&[("state", state), ("project", project), ("limit", Some(&limit))]);
    client.get(&format!("/api/v1/approvals{query}")).await
}

/// The request for which the call of this one waits now, if it does.
pub(super) async fn pending_request(
    client: &ApiClient,
    approval: &Approval,
) -> anyhow::Result<Option<Approval>> {
    let call = approval.call_id.to_string();
    let query = query(&[("state", Some(State::PendingApproval.as_str())), ("call", Some(&call))]);
    let requests: Vec<Approval> = client.list(&format!("/api/v1/approvals{query}")).await?;
    Ok(requests.into_iter().next())
}
