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
use crate::desk::Setup;
use crate::exit::Done;

pub(super) async fn run(
    setup: Setup,
    action: Option<ApprovalsAction>,
    waiting: &ListApprovals,
) -> anyhow::Result<Done> {
    match action {
        None => list::list(setup, waiting).await,
        Some(ApprovalsAction::List(wanted)) => list::list(setup, &wanted).await,
        Some(ApprovalsAction::Show(wanted)) => list::show(setup, &wanted).await,
        Some(ApprovalsAction::Approve(wanted)) => decide::approve(setup, &wanted).await,
        Some(ApprovalsAction::Deny(wanted)) => decide::deny(setup, &wanted).await,
        Some(ApprovalsAction::Cancel(wanted)) => decide::cancel(setup, &wanted).await,
        Some(ApprovalsAction::Watch(wanted)) => watch::run(setup, &wanted).await,
        Some(ApprovalsAction::Grants(wanted)) => grants::list(setup, &wanted).await,
        Some(ApprovalsAction::Revoke(wanted)) => grants::revoke(setup, &wanted).await,
    }
}
