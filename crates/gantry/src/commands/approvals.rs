//! `gantry approvals`: calls that wait for an approval or for their scheduled time, and the decisions about them.

pub(super) mod decide;
pub(super) mod format;
pub(super) mod prompt;
pub(super) mod terminal;

mod list;
mod watch;

use crate::cli::{ApprovalsAction, ListApprovals};
use crate::client::{ApiClient, CommandContext, Query, Scope, encoded};
use crate::exit::Outcome;
use crate::term;
use gantry_core::State;
use gantry_server::model::{Approval, List};

const PATH: &str = "/api/v1/approvals";

const WAITING: [State; 2] = [State::PendingApproval, State::ScheduledForExecution];

pub(super) async fn run(
    context: CommandContext,
    action: Option<ApprovalsAction>,
    list: ListApprovals,
) -> anyhow::Result<Outcome> {
    let action = action.unwrap_or(ApprovalsAction::List(list));
    let asks = !context.json && term::is_interactive();
    if let ApprovalsAction::Approve(wanted) = &action {
        decide::check(&context, wanted)?;
    }
    let may_run_calls = matches!(action, ApprovalsAction::Approve(_))
        || (asks && matches!(action, ApprovalsAction::Watch(_)));
    // Without a running server an approved call runs in this process, with the MCP servers of its project.
    let scope = if may_run_calls { Scope::All } else { Scope::LedgerOnly };
    let work = async |client: &ApiClient| match action {
        ApprovalsAction::List(filter) => list::list(client, &filter).await,
        ApprovalsAction::Show { id } => list::show(client, &id).await,
        ApprovalsAction::Approve(wanted) => decide::approve(client, wanted).await,
        ApprovalsAction::Deny { id, reason } => decide::deny(client, &id, reason).await,
        ApprovalsAction::Cancel { id } => decide::cancel(client, &id).await,
        ApprovalsAction::Watch(filter) => watch::run(client, filter.name(), asks).await,
        ApprovalsAction::Grants { all, project } => list::grants(client, all, project.name()).await,
        ApprovalsAction::Revoke { id } => list::revoke(client, &id).await,
    };
    context.with_client(scope, work).await
}

/// The path of a request; `id` may be the last digits of its id.
fn path(id: &(impl ToString + ?Sized)) -> String {
    format!("{PATH}/{}", encoded(&id.to_string()))
}

pub(super) async fn get(client: &ApiClient, id: impl ToString) -> anyhow::Result<Approval> {
    client.get(&path(&id), &[]).await
}

/// Lists requests, newest first, from a cursor on. Long arguments are left out.
async fn page(
    client: &ApiClient,
    state: Option<State>,
    project: Option<&str>,
    (limit, cursor): (u32, Option<&str>),
) -> anyhow::Result<List<Approval>> {
    let (state, limit) = (state.map(State::as_str), limit.to_string());
    let query: Query<'_> =
        &[("state", state), ("project", project), ("limit", Some(&limit)), ("cursor", cursor)];
    client.get(PATH, query).await
}

/// The request for which the call of this one waits now, if it does, with its whole arguments.
pub(super) async fn pending_request(
    client: &ApiClient,
    approval: &Approval,
) -> anyhow::Result<Option<Approval>> {
    let call = approval.call_id.to_string();
    let state = State::PendingApproval.as_str();
    let requests: Vec<Approval> = client.list(PATH, &[("state", Some(state)), ("call", Some(&call))]).await?;
    match requests.first() {
        Some(request) => get(client, request.id).await.map(Some),
        None => Ok(None),
    }
}
