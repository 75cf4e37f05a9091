//! Sends webhooks messages about calls that wait for a person, and what became of them.
//!
//! The store is the outbox: each row says how much of it the webhook has taken, so neither a restart nor a webhook that is
//! away loses anything. Each webhook has its own task, so one that is slow or dead delays no other project's messages.
//!
//! **Invariant:** of one approval, one message is under way at a time, and what happened first is sent first.

mod message;
mod retry;
mod send;

use crate::metrics::Metrics;
use crate::projects::Projects;
use futures_util::future::join_all;
use gantry_core::id::ApprovalId;
use gantry_provider::task;
use gantry_store::Unsent;
use retry::Retries;
use send::{Sent, Target, display_host};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// How often the configuration and the store are read where nothing wakes a task: another process may have decided, or died.
const POLL: Duration = Duration::from_secs(2);

/// Messages that are sent to one webhook at once, each about another approval. When all were taken or have failed, the next
/// ones are sent.
const AT_ONCE: usize = 8;

/// Approvals that are listed at once.
const PAGE: u32 = 256;

/// Keeps one delivery task per configured webhook, until Gantry stops.
pub(crate) async fn run(projects: Weak<Projects>, stop: CancellationToken) {
    // They end with this task, also if it panics, so that no message is sent by two.
    let mut tasks: HashMap<Arc<str>, AbortOnDropHandle<()>> = HashMap::new();
    loop {
        let Some(alive) = projects.upgrade() else { return };
        tasks.retain(|_, task| !task.is_finished());
        for (project, webhook) in alive.webhooks() {
            tasks.entry(Arc::clone(&project)).or_insert_with(|| {
                let (target, retries) = (Target::new(&webhook), Retries::default());
                let changes = alive.services().approvals().changes();
                let delivery = Delivery { project, target, changes, retries };
                let run = delivery.run(Weak::clone(&projects), stop.clone());
                AbortOnDropHandle::new(task::spawn("webhook", run))
            });
        }
        drop(alive);
        if stop.run_until_cancelled(tokio::time::sleep(POLL)).await.is_none() {
            return;
        }
    }
}

/// What the task of one webhook works with.
struct Delivery {
    project: Arc<str>,
    target: Target,
    /// Moves on whenever an approval changes in this process.
    changes: watch::Receiver<u64>,
    retries: Retries,
}

impl Delivery {
    /// Delivers messages until Gantry stops, or the project has no webhook any more.
    async fn run(mut self, projects: Weak<Projects>, stop: CancellationToken) {
        loop {
            let Some(alive) = projects.upgrade() else { return };
            let Some(webhook) = alive.webhooks().remove(&self.project) else { return };
            if self.target.webhook != webhook {
                // The operator who has changed it wants to see what comes of that.
                (self.target, self.retries) = (Target::new(&webhook), Retries::default());
            }
            // Order: before the store is read, so that what changes meanwhile is read in the next round.
            self.changes.mark_unchanged();
            let now = Instant::now();
            let (due, retry) = match self.due(&alive, now).await {
                Ok(due) if due.is_empty() => (due, self.retries.next(now)),
                Ok(due) => (due, None),
                Err(error) => {
                    let project = &self.project;
                    tracing::warn!(
                        "messages for the webhook of project {project} could not be read: {error}"
                    );
                    (Vec::new(), None)
                }
            };
            let (store, page) = (alive.store().clone(), alive.services().approvals().page());
            let events = alive.services().events.clone();
            drop(alive);
            let sends = due.iter().map(|id| self.target.send(&store, *id, page.as_deref()));
            let Some(sent) = stop.run_until_cancelled(join_all(sends)).await else { return };
            for (id, sent) in due.iter().zip(&sent) {
                self.completed(events.metrics(), *id, sent);
            }
            if due.is_empty() {
                let poll = now + POLL;
                let wake = retry.map_or(poll, |retry| retry.min(poll));
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    _ = self.changes.changed() => {}
                    () = tokio::time::sleep_until(wake) => {}
                }
            }
        }
    }

    /// The approvals about which a message is due that is this process's to send: it holds them, or takes over from the
    /// process that did and is gone.
    async fn due(&self, projects: &Projects, now: Instant) -> Result<Vec<ApprovalId>, gantry_store::Error> {
        let (store, approvals) = (projects.store(), projects.services().approvals());
        let (mut nodes, mut after, mut due) = (HashMap::new(), 0, Vec::new());
        loop {
            let unsent = store.unsent(Arc::clone(&self.project), after, PAGE).await?;
            for Unsent { seq, id, node } in unsent.iter().copied() {
                after = seq;
                let is_ours = *nodes.entry(node).or_insert_with(|| {
                    node == store.node() || (approvals.takes_over_orphans() && !store.is_alive(node))
                });
                if is_ours && self.retries.is_due(id, now) {
                    due.push(id);
                }
                if due.len() == AT_ONCE {
                    return Ok(due);
                }
            }
            if unsent.len() < PAGE as usize {
                return Ok(due);
            }
        }
    }

    /// Takes note of how a message fared.
    fn completed(&mut self, metrics: &Metrics, id: ApprovalId, sent: &Sent) {
        let (project, host) = (&self.project, display_host(&self.target.webhook.url));
        match sent {
            Sent::Skipped => {}
            Sent::Taken => {
                metrics.count_webhook(project, "taken");
                if self.retries.taken(id) {
                    tracing::info!("the webhook {host} of project {project} takes messages again");
                }
            }
            Sent::Failed(reason) => {
                metrics.count_webhook(project, "failed");
                if self.retries.failed(id, reason, Instant::now()) {
                    tracing::warn!(
                        "the webhook {host} of project {project} was not told of {id}; it is tried again: {reason}"
                    );
                }
            }
        }
    }
}
