//! `gantry approvals`: calls that wait for a person or for their time, and what was decided about them.

pub(super) mod ask;
pub(super) mod decision;
pub(super) mod follow;
pub(super) mod item;
pub(super) mod keyboard;
pub(super) mod words;

mod decide;
mod editor;
mod find;
mod grants;
mod list;
mod watch;

use crate::cli::{ApprovalsAction, ListApprovals};
use crate::client::CommandContext;
use crate::exit::Outcome;

pub(super) async fn run(
    context: CommandContext,
    action: Option<ApprovalsAction>,
    list: ListApprovals,
) -> anyhow::Result<Outcome> {
    match action.unwrap_or(ApprovalsAction::List(list)) {
        ApprovalsAction::List(wanted) => list::list(context, &wanted).await,
        ApprovalsAction::Show(wanted) => list::show(context, &wanted).await,
        ApprovalsAction::Approve(wanted) => decide::approve(context, &wanted).await,
        ApprovalsAction::Deny(wanted) => decide::deny(context, &wanted).await,
        ApprovalsAction::Cancel(wanted) => decide::cancel(context, &wanted).await,
        ApprovalsAction::Watch(wanted) => watch::run(context, wanted.name()).await,
        ApprovalsAction::Grants(wanted) => grants::list(context, &wanted).await,
        ApprovalsAction::Revoke(wanted) => grants::revoke(context, &wanted).await,
    }
}
