//! Waiting with a caller whose call is held: put the question to the person behind the client if there is a way, keep the
//! call alive, and tell what came of it.

use super::Waiter;
use super::decide::Decider;
use super::hold::told;
use super::question::{Way, given, question, way};
use crate::context::CallCx;
use crate::options::{ApprovalOptions, Delivery};
use crate::pipeline::stopwatch::Stopped;
use crate::reply::Reply;
use crate::runtime::Runtime;
use futures_util::future::{Either, select};
use gantry_core::State;
use gantry_core::id::ApprovalId;
use gantry_provider::client::{Notice, Question};
use gantry_store::ApprovalRow;
use serde_json::json;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;

/// How often a waiting caller looks whether another process has changed something.
const LOOK: Duration = Duration::from_millis(500);

/// How long a client is kept waiting that hears nothing meanwhile: less than most of them wait for an answer.
const SILENT: Duration = Duration::from_secs(45);

/// How often a client hears that its call still waits.
const PROGRESS: Duration = Duration::from_secs(5);

/// What ended the waiting.
enum Ended {
    Over(Box<ApprovalRow>),
    /// The caller has waited long enough.
    Late,
    /// The caller has withdrawn the call.
    Withdrawn,
    /// Gantry, or this part of it, stops.
    Stopping,
}

/// How far the waiting for one approval has come.
struct Vigil {
    /// How long the caller is kept waiting while nobody is asked; none means for as long as it takes.
    limit: Option<Duration>,
    stage: watch::Sender<Stage>,
    /// The watches of the calls above, which stand still until the call goes on.
    paused: Mutex<Vec<Stopped>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The person behind the client has a question to answer.
    Asked,
    /// Nobody there has, since then.
    Held(Instant),
    /// It runs, or will in a moment.
    GoesOn,
}

impl Vigil {
    fn new(limit: Option<Duration>, stage: Stage, paused: Vec<Stopped>) -> Self {
        Self { limit, stage: watch::Sender::new(stage), paused: Mutex::new(paused) }
    }

    /// Until when the caller is kept waiting.
    fn until(&self) -> Option<Instant> {
        match *self.stage.borrow() {
            Stage::Held(since) => Some(since + self.limit?),
            // A question has a limit of its own. What runs ends by its time limit, and is worth waiting for.
            Stage::Asked | Stage::GoesOn => None,
        }
    }

    /// The person has answered, or was not reached.
    fn answered(&self) {
        self.stage.send_if_modified(|stage| {
            let asked = *stage == Stage::Asked;
            if asked {
                *stage = Stage::Held(Instant::now());
            }
            asked
        });
    }

    /// Nothing has to be decided any more.
    fn goes_on(&self) {
        self.stage.send_if_modified(|stage| std::mem::replace(stage, Stage::GoesOn) != Stage::GoesOn);
        self.paused.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn is_going_on(&self) -> bool {
        *self.stage.borrow() == Stage::GoesOn
    }
}

impl Runtime {
    /// Waits with the caller of a held call. The reply is what came of it, or that it still waits.
    pub(crate) async fn accompany(self: Arc<Self>, cx: CallCx, reply: Reply) -> Reply {
        let Some(mut row) = reply.approval.clone().filter(|_| reply.is_held()) else { return reply };
        let options = self.setup().approvals.clone();
        if options.delivery == Delivery::Pending && cx.parent.is_none() {
            self.commons.approvals.told(row.id);
            return reply;
        }
        // What has changed since the row was read is seen, because the waiter is there first.
        let mut waiter = self.commons.approvals.wait(&row, &cx);
        loop {
            match self.wait_with(&waiter, &cx, &row, &options).await {
                Ended::Over(ended) => match self.next(&ended).await {
                    Some(next) => {
                        // It is asked about again.
                        waiter = waiter.instead(&next, &cx);
                        row = Arc::new(next);
                    }
                    None => return self.outcome(&cx, *ended).await,
                },
                Ended::Late | Ended::Stopping => {
                    self.commons.approvals.told(row.id);
                    return self.left(&cx, row, reply).await;
                }
                Ended::Withdrawn => return self.withdrawn(&waiter, cx, row, reply).await,
            }
        }
    }

    /// Waits with the caller for one approval, and asks the person behind the client meanwhile.
    async fn wait_with(
        &self,
        waiter: &Waiter,
        cx: &CallCx,
        row: &ApprovalRow,
        options: &ApprovalOptions,
    ) -> Ended {
        let page = self.commons.approvals.page();
        let way = way(options, page.as_deref(), cx, row);
        let question = question(row, way, page.as_deref()).filter(|_| row.state == State::PendingApproval);
        let stage = if question.is_some() { Stage::Asked } else { Stage::Held(Instant::now()) };
        let vigil = Vigil::new(patience(options, cx, way, row), stage, cx.watches.stop());
        let beside = async {
            tokio::join!(self.put_question(cx, row, question, &vigil), keep_alive(cx, row, &vigil)).1
        };
        let ended = match select(pin!(self.ended(waiter, cx, &vigil)), pin!(beside)).await {
            Either::Left((ended, _)) => ended,
            Either::Right((never, _)) => match never {},
        };
        if way == Way::Url && matches!(ended, Ended::Over(_)) {
            let params = json!({ "elicitationId": row.id }).to_string().into();
            cx.audience.notify(Notice::Other { method: "notifications/elicitation/complete".into(), params });
        }
        ended
    }

    /// The caller does not want the call any more.
    async fn withdrawn(&self, waiter: &Waiter, cx: CallCx, row: Arc<ApprovalRow>, reply: Reply) -> Reply {
        // What others wait for, or may come back for, is not this caller's to withdraw.
        if row.call != cx.id || !waiter.is_alone() {
            return self.left(&cx, row, reply).await;
        }
        let own = Some(&*row.principal);
        let withdrawn = self.commons.withdraw(row.call, own, "its caller withdrew it").await;
        let withdrawn = withdrawn.unwrap_or_else(|error| {
            tracing::warn!("{} could not be withdrawn: {error}", row.id);
            false
        });
        if !withdrawn {
            // It runs already.
            self.commons.cancel_call(row.call, own);
        }
        let cx = CallCx { cancel: CancellationToken::new(), ..cx };
        let vigil = Vigil::new(Some(SILENT), Stage::Held(Instant::now()), Vec::new());
        match tokio::time::timeout(SILENT, self.ended(waiter, &cx, &vigil)).await {
            Ok(Ended::Over(ended)) => self.outcome(&cx, *ended).await,
            Ok(Ended::Late | Ended::Withdrawn | Ended::Stopping) | Err(_) => reply,
        }
    }

    /// The reply to a caller who leaves a call that goes on: how it stands now. It may have begun, or been asked about anew,
    /// under another id, since the reply was made.
    async fn left(&self, cx: &CallCx, row: Arc<ApprovalRow>, reply: Reply) -> Reply {
        let row = match self.store.approval_of(row.call).await {
            // Who is gone is given nothing: somebody else may come for the outcome.
            Ok(Some(now)) if now.state.is_over() && !cx.cancel.is_cancelled() => {
                return self.outcome(cx, now).await;
            }
            Ok(Some(now)) if !now.state.is_over() => Arc::new(now),
            Ok(_) | Err(_) => row,
        };
        let told = told(&row);
        let (state, effect) = (told.state, told.effect());
        Reply { state, effect, outcome: Err(told.error()), approval: Some(row), ..reply }
    }

    /// Waits until the approval is over, or there is a reason to wait no longer.
    async fn ended(&self, waiter: &Waiter, cx: &CallCx, vigil: &Vigil) -> Ended {
        let (mut changed, mut stage) = (waiter.changed.clone(), vigil.stage.subscribe());
        loop {
            match self.store.approval(waiter.id).await {
                Ok(Some(row)) if row.state.is_over() => return Ended::Over(Box::new(row)),
                Ok(Some(row)) if row.state == State::Executing && !self.store.is_alive(row.node) => {
                    match self.abandoned(row.id).await {
                        Ok(Some(row)) => return Ended::Over(Box::new(row)),
                        Ok(None) => {}
                        Err(error) => tracing::warn!("{} could not be looked at: {error}", waiter.id),
                    }
                }
                Ok(Some(row)) if !waits(row.state) => vigil.goes_on(),
                Ok(_) => {}
                Err(error) => tracing::warn!("{} could not be looked at: {error}", waiter.id),
            }
            stage.mark_unchanged();
            let late = async {
                match vigil.until() {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.stopping() => return Ended::Stopping,
                () = cx.cancel.cancelled() => {
                    // Its session ends because Gantry turns elsewhere; the call waits on.
                    let leaves = cx.session.is_displaced() || self.is_closing();
                    return if leaves { Ended::Stopping } else { Ended::Withdrawn };
                }
                _ = changed.changed() => {}
                _ = stage.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
                () = late => return Ended::Late,
            }
        }
    }

    /// How a call ended whose process is gone. That one may have recorded it right before, so it is looked at once more;
    /// otherwise nobody knows. The next start records that; who waits need not wait for it.
    pub(super) async fn abandoned(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, gantry_store::Error> {
        let row = self.store.approval(id).await?;
        Ok(row.map(|row| {
            let state = if row.state == State::Executing { State::OutcomeUnknown } else { row.state };
            ApprovalRow { state, ..row }
        }))
    }

    /// The approval that took the place of one that is over, if one did.
    async fn next(&self, ended: &ApprovalRow) -> Option<ApprovalRow> {
        if ended.state != State::CancelledBySystem {
            return None;
        }
        let newest = self.store.approval_of(ended.call).await.ok().flatten();
        newest.filter(|newest| newest.id != ended.id)
    }

    /// Puts the question to the person behind the client, if there is one for them, and decides by the answer.
    async fn put_question(&self, cx: &CallCx, row: &ApprovalRow, question: Option<Question>, vigil: &Vigil) {
        let Some(question) = question else { return };
        let is_form =
            gantry_core::raw::string_member(&question.params, "mode").is_some_and(|mode| mode == "form");
        let answers = cx.audience.ask(vec![question]).await;
        vigil.answered();
        let answers = match answers {
            Ok(answers) => answers,
            Err(unanswered) => {
                tracing::debug!("{} was not put to the client: {unanswered}", row.id);
                return;
            }
        };
        // To have opened an address is not to have decided.
        let (Some(answer), Some(person), true) = (answers.into_iter().next(), &cx.person, is_form) else {
            return;
        };
        let Some(given) = given(&answer) else { return };
        let by = Decider { via: "elicitation".into(), ..(**person).clone() };
        let approved = given.approved;
        if let Err(error) = self.commons.decide(row.id, &by, given, None).await {
            self.commons.not_decided(row.id, &by, approved, &error).await;
        }
    }
}

/// How long the caller is kept waiting while nobody is asked. A call below another is waited for as long as it takes.
fn patience(options: &ApprovalOptions, cx: &CallCx, way: Way, row: &ApprovalRow) -> Option<Duration> {
    if cx.parent.is_some() {
        return None;
    }
    if way == Way::Hold && !cx.audience.wants_progress() {
        return Some(SILENT.min(options.hold));
    }
    // A call that only waits for its time is worth waiting for.
    let due = (row.state == State::ScheduledForExecution).then_some(row.deadline_us).flatten();
    let due = due.map(|due| due.saturating_sub(crate::clock::steady_us()).max(0).unsigned_abs());
    Some(options.hold + due.map_or(Duration::ZERO, Duration::from_micros))
}

/// Tells the client now and then that its call still waits; at once, unless it was asked something.
async fn keep_alive(cx: &CallCx, row: &ApprovalRow, vigil: &Vigil) -> Infallible {
    if !cx.audience.wants_progress() {
        return std::future::pending().await;
    }
    let asked = *vigil.stage.borrow() == Stage::Asked;
    let start = Instant::now() + if asked { PROGRESS } else { Duration::ZERO };
    let (mut every, mut count) = (interval_at(start, PROGRESS), 0_u32);
    loop {
        every.tick().await;
        if vigil.is_going_on() {
            return std::future::pending().await;
        }
        count = count.saturating_add(1);
        // Small steps, so that the tool itself can still report more than this.
        let progress = f64::from(count) / 1_000_000.0;
        let what = if row.state == State::ScheduledForExecution { "its time" } else { "approval" };
        let message = format!("waiting for {what} ({})", row.id);
        let params = json!({ "progress": progress, "message": message });
        cx.audience.notify(Notice::Progress(params.to_string().into()));
    }
}

/// Whether nothing has been decided, or the time has not come.
fn waits(state: State) -> bool {
    matches!(state, State::PendingApproval | State::ScheduledForExecution)
}
