//! Held calls that end together: those of a run that is canceled, and those of a caller who may not call any more.

use super::Services;
use futures_util::future::join_all;
use gantry_core::State;
use gantry_core::id::SessionId;
use gantry_store::{ApprovalFilter, ApprovalRow};
use std::sync::Arc;

/// The states in which a held call has not begun.
const WAITING: [State; 3] = [State::PendingApproval, State::ScheduledForExecution, State::ApprovedReady];

/// Approvals that are read at once.
const PAGE: u32 = 200;

impl Services {
    /// Ends every call of this principal that waits. Returns how many did.
    ///
    /// # Errors
    /// The store failed; some may have ended.
    pub(crate) async fn withdraw_all(
        &self,
        principal: &Arc<str>,
        why: &str,
    ) -> Result<usize, gantry_store::Error> {
        let of = ApprovalFilter { principal: Some(Arc::clone(principal)), ..ApprovalFilter::default() };
        self.withdraw_where(&of, why).await
    }

    /// Ends every call of this session that waits. Returns how many did.
    pub(crate) async fn withdraw_run(&self, session: SessionId) -> Result<usize, gantry_store::Error> {
        let of = ApprovalFilter { session: Some(session), ..ApprovalFilter::default() };
        self.withdraw_where(&of, "its run was canceled").await
    }

    async fn withdraw_where(&self, of: &ApprovalFilter, why: &str) -> Result<usize, gantry_store::Error> {
        let mut n_ended = 0;
        // In the order of the steps, so that a call that moves on meanwhile is met again.
        for state in WAITING {
            let mut filter = ApprovalFilter { state: Some(state), limit: PAGE, ..of.clone() };
            loop {
                let page = self.store.approvals(filter.clone()).await?;
                n_ended += self.withdraw_these(&page.items, why).await?;
                match page.next {
                    Some(next) => filter.cursor = Some(next),
                    None => break,
                }
            }
        }
        Ok(n_ended)
    }

    async fn withdraw_these(&self, rows: &[ApprovalRow], why: &str) -> Result<usize, gantry_store::Error> {
        // At once, so that they share a commit.
        let ended = join_all(rows.iter().map(|row| async {
            let ended = self.cancel_held(row, why).await?;
            if ended {
                // What another run asks for is a new call.
                self.store.collect(row.id).await?;
            }
            Ok(usize::from(ended))
        }));
        ended.await.into_iter().sum()
    }
}
