//! Held calls that end together: those of a run that is canceled, and those of a caller whose key has ended.

use super::Services;
use futures_util::future::join_all;
use gantry_core::State;
use gantry_core::id::SessionId;
use gantry_store::{ApprovalFilter, ApprovalRow, Error};

/// The states in which a held call has not begun.
const WAITING: [State; 3] = [State::PendingApproval, State::ScheduledForExecution, State::ApprovedReady];

const PAGE: u32 = 200;

impl Services {
    /// Ends every call of this session that waits. Returns how many did.
    pub(crate) async fn withdraw_run(&self, session: SessionId) -> Result<usize, Error> {
        let of_run = ApprovalFilter { session: Some(session), ..ApprovalFilter::default() };
        self.withdraw_where(of_run, "its run was canceled").await
    }

    /// Ends every call that waits and is among the selected ones. Returns how many did. If it fails, some may have.
    pub(crate) async fn withdraw_where(&self, selected: ApprovalFilter, why: &str) -> Result<usize, Error> {
        let mut n_ended = 0;
        // In the order of the steps, so that a call that moves on meanwhile is met again.
        for state in WAITING {
            let mut filter = ApprovalFilter { state: Some(state), limit: PAGE, ..selected.clone() };
            loop {
                let page = self.store.approvals(filter.clone()).await?;
                // At once, so that they share a commit.
                let ended = join_all(page.items.iter().map(|row| self.withdraw_row(row, why))).await;
                n_ended += ended.into_iter().sum::<Result<usize, Error>>()?;
                match page.next {
                    Some(next) => filter.cursor = Some(next),
                    None => break,
                }
            }
        }
        Ok(n_ended)
    }

    async fn withdraw_row(&self, row: &ApprovalRow, why: &str) -> Result<usize, Error> {
        let ended = self.cancel_held(row, why).await?;
        if ended {
            // What another run asks for is a new call.
            self.store.mark_delivered(row.id).await?;
        }
        Ok(usize::from(ended))
    }
}
