//! Waiting with a caller whose call is held: ask the person behind the client if there is a way, keep the call alive, and
//! reply with what came of it.

use super::Waiter;
use super::decide::Decider;
use super::hold::describe_held;
use super::question::{DeliveryMethod, decision_of, delivery_method, question};
use super::resume::judge_again;
use crate::context::PipelineContext;
use crate::options::{ApprovalOptions, Delivery};
use crate::pipeline::sleep_until_opt;
use crate::reply::Reply;
use crate::runtime::Runtime;
use gantry_core::State;
use gantry_provider::client::{ClientRequest, ServerNotification};
use gantry_store::{ApprovalRow, Scope};
use serde_json::json;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;

/// How long a client that gets no progress is kept waiting: less than most of them wait for an answer.
const SILENT: Duration = Duration::from_secs(45);

/// How often a client is sent progress while its call waits.
const PROGRESS: Duration = Duration::from_secs(5);

enum Ended {
    /// The call is over, or another approval has taken the place of the one that it waited for.
    Over(Arc<ApprovalRow>),
    /// The caller has waited long enough, or Gantry, or this part of it, stops. The call waits on.
    Left,
    Withdrawn,
}

impl Runtime {
    /// Waits with the caller of a held call. The reply is what came of it, or that it still waits.
    pub(crate) async fn wait_for_decision(self: Arc<Self>, cx: PipelineContext, reply: Reply) -> Reply {
        let Some(mut row) = reply.approval.clone().filter(|_| reply.is_held()) else { return reply };
        let options = self.snapshot().options.approvals.clone();
        if options.delivery == Delivery::Pending && cx.parent.is_none() {
            self.services.approvals.mark_reported(row.call);
            return reply;
        }
        let mut waiter = self.services.approvals.wait(&row, &cx);
        loop {
            match self.wait_with(&mut waiter, &cx, &row, &options).await {
                // It is asked about again.
                Ended::Over(now) if now.id != row.id => row = now,
                Ended::Over(ended) => return self.outcome(&cx, Arc::unwrap_or_clone(ended)).await,
                Ended::Left => {
                    self.services.approvals.mark_reported(row.call);
                    return self.leave(&cx, row, reply).await;
                }
                Ended::Withdrawn => return self.withdraw_waiting(waiter, cx, row, reply).await,
            }
        }
    }

    /// Waits with the caller for one approval, and asks the person behind the client meanwhile.
    async fn wait_with(
        &self,
        waiter: &mut Waiter,
        cx: &PipelineContext,
        row: &ApprovalRow,
        options: &ApprovalOptions,
    ) -> Ended {
        let page = self.services.approvals.page();
        let method = delivery_method(options, page.as_deref(), cx, row);
        let question = question(row, method, page.as_deref()).filter(|_| row.state == State::PendingApproval);
        let limit = wait_limit(options, cx, method, row);
        // The timers of the calls above stand still until the call proceeds.
        let mut paused = cx.timers.stop();
        // Since when no question is open; none while the person behind the client has one to answer.
        let mut held_since = question.is_none().then(Instant::now);
        // A client that was not asked anything is sent progress at once.
        let first = Instant::now() + if question.is_some() { PROGRESS } else { Duration::ZERO };
        let (mut progress, wants_progress) = (interval_at(first, PROGRESS), cx.client.wants_progress());
        let (mut is_answered, mut count) = (false, 0);
        let mut asking = pin!(self.ask_client(cx, row, method, question));
        let ended = loop {
            let now = Arc::clone(&waiter.row.borrow_and_update());
            if now.state.is_over() || now.id != row.id {
                break Ended::Over(now);
            }
            let waits = matches!(now.state, State::PendingApproval | State::ScheduledForExecution);
            if !waits {
                paused.clear();
            }
            // A question has a limit of its own. What runs ends by its time limit, and is worth waiting for.
            let deadline = held_since.filter(|_| waits).and_then(|since| Some(since + limit?));
            tokio::select! {
                biased;
                () = self.closing.cancelled() => break Ended::Left,
                () = cx.cancel.cancelled() => {
                    // Its session ends because Gantry turns elsewhere; the call waits on.
                    let leaves = cx.session.is_evicted() || self.closing.is_cancelled();
                    break if leaves { Ended::Left } else { Ended::Withdrawn };
                }
                _ = waiter.row.changed() => {}
                () = &mut asking, if !is_answered => {
                    is_answered = true;
                    held_since.get_or_insert_with(Instant::now);
                }
                _ = progress.tick(), if waits && wants_progress => send_progress(cx, row, &mut count),
                () = sleep_until_opt(deadline.map(Instant::into_std)) => break Ended::Left,
            }
        };
        if method == DeliveryMethod::Url && matches!(ended, Ended::Over(_)) {
            let params = json!({ "elicitationId": row.id }).to_string().into();
            cx.client.notify(ServerNotification::Other {
                method: "notifications/elicitation/complete".into(),
                params,
            });
        }
        ended
    }

    async fn withdraw_waiting(
        &self,
        mut waiter: Waiter,
        cx: PipelineContext,
        row: Arc<ApprovalRow>,
        reply: Reply,
    ) -> Reply {
        // What others wait for, or may come back for, is not this caller's to withdraw.
        if row.call != cx.id || !waiter.is_alone() {
            return self.leave(&cx, row, reply).await;
        }
        let own = Some(&*row.principal);
        let withdrawn = self.services.withdraw(row.call, own, "its caller withdrew it").await;
        let withdrawn = withdrawn.unwrap_or_else(|error| {
            tracing::warn!("{} could not be withdrawn: {error}", row.id);
            false
        });
        if !withdrawn {
            // It runs already.
            self.services.cancel_call(row.call, own);
        }
        // What came of it is read although the caller has left.
        let cx = PipelineContext { cancel: CancellationToken::new(), ..cx };
        let ended = tokio::select! {
            biased;
            ended = waiter.row.wait_for(|row| row.state.is_over()) => ended.ok().map(|row| Arc::clone(&row)),
            () = self.closing.cancelled() => None,
            () = tokio::time::sleep(SILENT) => None,
        };
        match ended {
            Some(ended) => self.outcome(&cx, Arc::unwrap_or_clone(ended)).await,
            // The poller may have stopped before this runtime: the row itself says whether it is over.
            None => match self.store.approval_of(row.call).await {
                Ok(Some(now)) if now.state.is_over() => self.outcome(&cx, now).await,
                Ok(_) | Err(_) => reply,
            },
        }
    }

    /// The reply to a caller that leaves a call that goes on: how it stands now. It may have begun, or been asked about anew,
    /// under another id, since the reply was made.
    async fn leave(&self, cx: &PipelineContext, row: Arc<ApprovalRow>, reply: Reply) -> Reply {
        let row = match self.store.approval_of(row.call).await {
            // A caller that is gone is given nothing: another may come for the outcome.
            Ok(Some(now)) if now.state.is_over() && !cx.cancel.is_cancelled() => {
                return self.outcome(cx, now).await;
            }
            Ok(Some(now)) if !now.state.is_over() => Arc::new(now),
            Ok(_) | Err(_) => row,
        };
        let held = describe_held(&row);
        let (state, effect) = (held.state, held.effect());
        Reply { state, effect, outcome: Err(held.error()), approval: Some(row), ..reply }
    }

    /// Puts the question to the person behind the client, if there is one for them, and decides by the answer.
    async fn ask_client(
        &self,
        cx: &PipelineContext,
        row: &ApprovalRow,
        method: DeliveryMethod,
        question: Option<ClientRequest>,
    ) {
        let Some(question) = question else { return };
        let answers = match cx.client.ask(vec![question]).await {
            Ok(answers) => answers,
            Err(unanswered) => {
                tracing::debug!("{} was not put to the client: {unanswered}", row.id);
                return;
            }
        };
        // To have opened an address is not to have decided.
        let answer = answers.first().filter(|_| method == DeliveryMethod::Form);
        let (Some(input), Some(person)) = (answer.and_then(decision_of), &cx.decider) else { return };
        let by = Decider { via: "elicitation".into(), ..(**person).clone() };
        let approved = input.approved;
        let decided = async {
            if approved && input.scope != Scope::Once {
                judge_again(self, cx, (row, None), &by, input.scope).await?;
            }
            self.services.decide(row.id, &by, input, None).await
        };
        if let Err(error) = decided.await {
            self.services.record_decision_error(row.id, &by, approved, &error).await;
        }
    }
}

/// How long the caller is kept waiting while no question is open. A call below another is waited for as long as it takes.
fn wait_limit(
    options: &ApprovalOptions,
    cx: &PipelineContext,
    method: DeliveryMethod,
    row: &ApprovalRow,
) -> Option<Duration> {
    if cx.parent.is_some() {
        return None;
    }
    if method == DeliveryMethod::Hold && !cx.client.wants_progress() {
        return Some(SILENT.min(options.hold.get()));
    }
    // A call that only waits for its time is worth waiting for.
    let due = (row.state == State::ScheduledForExecution).then_some(row.deadline_us).flatten();
    let due = due.map(|due| due.saturating_sub(crate::clock::steady_us()).max(0).unsigned_abs());
    Some(options.hold.get() + due.map_or(Duration::ZERO, Duration::from_micros))
}

fn send_progress(cx: &PipelineContext, row: &ApprovalRow, count: &mut u32) {
    *count = count.saturating_add(1);
    // Small steps, so that the tool itself can still report more than this.
    let progress = f64::from(*count) / 1_000_000.0;
    let what = if row.state == State::ScheduledForExecution { "its time" } else { "approval" };
    let message = format!("waiting for {what} ({})", row.id);
    let params = json!({ "progress": progress, "message": message });
    cx.client.notify(ServerNotification::Progress(params.to_string().into()));
}
