//! What the store does for calls that wait: hold them, settle them, list them.
//!
//! What is written here is durable when it returns, so the reads need not wait for the writer.

use crate::approval::{
    Announced, ApprovalFilter, ApprovalRow, HeldAs, HoldLimits, NewApproval, Ready, RefusedDecision, Settled,
    Unsent,
};
use crate::grant::GrantRow;
use crate::keep;
use crate::node;
use crate::options::{JOINED_FOR, REASON_MAX};
use crate::row::Page;
use crate::table::{self, approvals};
use crate::writer::Abandoned;
use crate::{Error, Store, limit, limit_head};
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, NodeId};
use gantry_core::limits::ARGUMENT_BYTES;
use std::sync::Arc;

impl Store {
    /// Holds a call; durable when it returns. If the same request waits already, runs, or ended within the last hour
    /// and nobody was given its outcome, it is joined.
    ///
    /// One that supersedes another ends that one as `CancelledBySystem` in the same transaction. It has the same call,
    /// and no limit keeps it out.
    ///
    /// Cancel-safety: a caller that stops waiting leaves the call held or not; whoever repeats the request joins it.
    ///
    /// # Errors
    /// `TooManyHeld` beyond the limits; `Taken` for a call that has an entry, for the other call that has used the key,
    /// and for an approval that cannot be superseded because it does not let its call run (any more). Nothing is held
    /// then.
    pub async fn hold(&self, new: NewApproval, limits: HoldLimits) -> Result<HeldAs, Error> {
        limit_head(&new.head, new.idempotency.as_ref())?;
        limit("arguments", new.row.asked.arguments.len(), ARGUMENT_BYTES)?;
        self.write(Abandoned::LeftOut, move |ledger| ledger.hold(&new, limits)).await
    }

    /// The call that is the same request as another and that a repetition would join, at that moment.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn same_as(&self, dedup_key: Digest, now_us: i64) -> Result<Option<ApprovalRow>, Error> {
        let since = keep::before(now_us, JOINED_FOR);
        self.look(move |conn| approvals::same_as(conn, dedup_key, since)).await
    }

    /// Moves an approval on, and its call with it, if its state allows that step; durable when it returns. The inner
    /// error is the row as it stands: somebody else was first, or it is another's turn.
    ///
    /// The steps are those of decisions, of time and of withdrawal. To run it, intend its call; to end it then, close
    /// the call; to ask about it again, hold one that supersedes it.
    ///
    /// # Errors
    /// `UnknownApproval`, or the store cannot be written.
    pub async fn settle(
        &self,
        id: ApprovalId,
        step: Settled,
    ) -> Result<Result<Box<ApprovalRow>, Box<ApprovalRow>>, Error> {
        self.settle_with(id, step, None).await
    }

    /// The same with a grant that is given by the step, or not at all. A step that denies what was approved before also
    /// takes back the grant that was given then.
    ///
    /// # Errors
    /// As [`Store::settle`], and `TooManyGrants`, which leaves everything as it was.
    pub async fn settle_with(
        &self,
        id: ApprovalId,
        step: Settled,
        grant: Option<GrantRow>,
    ) -> Result<Result<Box<ApprovalRow>, Box<ApprovalRow>>, Error> {
        if let Some(decision) = &step.decision {
            limit("the reason", decision.reason.as_ref().map_or(0, |reason| reason.len()), REASON_MAX)?;
            limit("arguments", decision.modified_args.as_ref().map_or(0, |text| text.len()), ARGUMENT_BYTES)?;
        }
        self.write(Abandoned::Done, move |ledger| ledger.settle(id, &step, grant.as_ref())).await
    }

    /// Records that a decision was turned away; durable when it returns. Of one call, a hundred are recorded.
    ///
    /// # Errors
    /// `UnknownApproval`, or the store cannot be written.
    pub async fn refuse(&self, refused: RefusedDecision) -> Result<(), Error> {
        limit("the reason", refused.why.len(), REASON_MAX)?;
        self.write(Abandoned::Done, move |ledger| ledger.refuse(&refused)).await
    }

    /// Notes that a caller was given the outcome of the call that this approval is about. Durable when it returns.
    /// Returns whether this was the first one; before the end there is no outcome, and nothing is noted.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn collect(&self, id: ApprovalId) -> Result<bool, Error> {
        self.change(move |conn| approvals::collect(conn, id).map(Ok)).await
    }

    /// Notes how much of an approval the webhook has taken. Durable when it returns.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn announced(&self, id: ApprovalId, announced: Announced) -> Result<(), Error> {
        self.change(move |conn| approvals::announced(conn, id, announced).map(Ok)).await
    }

    /// The approval with that id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn approval(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, Error> {
        self.look(move |conn| approvals::find(conn, id)).await
    }

    /// The newest approval of a call.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn approval_of(&self, call: CallId) -> Result<Option<ApprovalRow>, Error> {
        self.look(move |conn| approvals::newest_of(conn, call)).await
    }

    /// The approvals that pass the filter, the newest first. Of arguments that have more than 16 KiB only the size is
    /// given, and a page may be short because it has many bytes.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn approvals(&self, filter: ApprovalFilter) -> Result<Page<ApprovalRow>, Error> {
        self.look(move |conn| approvals::list(conn, &filter)).await
    }

    /// The calls that a process holds and that may run at that moment: those that were approved, and then the scheduled
    /// ones, the longest due first. At most `limit`, up to 1000, of those after one that was found before.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn ready(
        &self,
        node: NodeId,
        now_us: i64,
        after: Option<Ready>,
        limit: u32,
    ) -> Result<Vec<Ready>, Error> {
        self.look(move |conn| approvals::ready(conn, node, now_us, after, limit)).await
    }

    /// The processes that hold calls that run now or at their time, alive or not; a thousand at most.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn holders(&self) -> Result<Vec<NodeId>, Error> {
        self.look(approvals::holders).await
    }

    /// Pending ones whose time was over at that moment, the longest first. At most `limit`, up to 1000,
    /// without long arguments.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn expired(&self, now_us: i64, limit: u32) -> Result<Vec<ApprovalRow>, Error> {
        self.look(move |conn| approvals::expired(conn, now_us, limit)).await
    }

    /// When something is due next; 0 means at once, because it was approved.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn next_due(&self) -> Result<Option<i64>, Error> {
        self.look(approvals::next_due).await
    }

    /// The approvals of a project of which its webhook has not taken everything, the oldest first. At most `limit`, up to
    /// 1000, after one that was found before (0 for the first).
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn unsent(&self, project: Arc<str>, after: i64, limit: u32) -> Result<Vec<Unsent>, Error> {
        self.look(move |conn| approvals::unsent(conn, &project, after, limit)).await
    }

    /// A number that grows whenever any process has changed an approval, a grant or a key. Cheap: for those who look
    /// often.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn version(&self) -> Result<i64, Error> {
        self.look(table::version).await
    }

    /// Whether the process that holds an approval is alive.
    #[must_use]
    pub fn is_alive(&self, node: NodeId) -> bool {
        node == self.inner.node || node::is_alive(&self.inner.nodes, node)
    }
}
