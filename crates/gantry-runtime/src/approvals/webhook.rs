//! Tells webhooks what waits for a person, and what became of it.
//!
//! The store is the outbox: each row says how much of it the webhook has taken, so neither a restart nor a webhook that is
//! away loses anything. Each webhook has its own task, so one that is slow or dead delays no other project's messages.
//!
//! **Invariant:** of one approval, one message is under way at a time, and what happened first is sent first.

mod message;
mod retry;
mod send;

use crate::projects::Projects;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use gantry_core::id::ApprovalId;
use gantry_provider::task;
use gantry_store::Unsent;
use retry::Retries;
use send::{Sent, Target};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often the configuration and the store are read where nothing wakes a task: another process may have decided, or died.
const POLL: Duration = Duration::from_secs(2);

/// Messages to one webhook that are under way at once.
const AT_ONCE: usize = 8;

/// Approvals that are listed at once.
const PAGE: u32 = 256;

/// Keeps one delivery task per configured webhook, until it is told to stop.
pub(crate) async fn run(projects: Weak<Projects>, stop: CancellationToken) {
    let mut tasks: HashMap<Arc<str>, JoinHandle<()>> = HashMap::new();
    loop {
        let Some(alive) = projects.upgrade() else { return };
        tasks.retain(|_, task| !task.is_finished());
        for (project, webhook) in alive.webhooks() {
            tasks.entry(Arc::clone(&project)).or_insert_with(|| {
                let delivery = Delivery {
                    projects: Weak::clone(&projects),
                    project,
                    target: Target::new(&webhook),
                    changes: alive.services().approvals().changes(),
                    under_way: FuturesUnordered::new(),
                    tries: HashMap::new(),
                    retries: Retries::default(),
                };
                task::spawn("webhook", delivery.run(stop.clone()))
            });
        }
        drop(alive);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// What the task of one webhook works with.
struct Delivery {
    projects: Weak<Projects>,
    project: Arc<str>,
    target: Target,
    /// Moves on whenever an approval changes in this process.
    changes: watch::Receiver<u64>,
    under_way: FuturesUnordered<BoxFuture<'static, (ApprovalId, Sent)>>,
    /// How often the messages under way were tried before.
    tries: HashMap<ApprovalId, u32>,
    retries: Retries,
}

impl Delivery {
    /// Delivers messages until it is told to stop, or the project has no webhook any more.
    async fn run(mut self, stop: CancellationToken) {
        loop {
            let Some(alive) = self.projects.upgrade() else { return };
            let Some(webhook) = alive.webhooks().remove(&self.project) else { return };
            if !self.target.is(&webhook) {
                // The operator who has changed it wants to see what comes of that.
                (self.target, self.retries) = (Target::new(&webhook), Retries::default());
            }
            // Order: before the store is read, so that what changes meanwhile is read in the next round.
            self.changes.mark_unchanged();
            let wake = self.send_due(&alive).await.unwrap_or_else(|error| {
                tracing::warn!(
                    "what the webhook of project {} has to be told could not be read: {error}",
                    self.project
                );
                None
            });
            drop(alive);
            let poll = Instant::now() + POLL;
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some((id, sent)) = self.under_way.next() => self.completed(id, &sent),
                _ = self.changes.changed() => {}
                () = tokio::time::sleep_until(wake.map_or(poll, |wake| wake.min(poll))) => {}
            }
        }
    }

    /// Sends what is due and this process's to send: what it holds, and what processes that are gone have left, where this
    /// one takes over from them. Returns when the next retry is due, if that is known.
    async fn send_due(&mut self, projects: &Projects) -> Result<Option<Instant>, gantry_store::Error> {
        let (store, approvals) = (projects.store(), projects.services().approvals());
        let (now, mut nodes, mut after) = (Instant::now(), HashMap::new(), 0);
        loop {
            let unsent = store.unsent(Arc::clone(&self.project), after, PAGE).await?;
            for Unsent { seq, id, node } in unsent.iter().copied() {
                if self.under_way.len() >= AT_ONCE {
                    return Ok(None);
                }
                after = seq;
                let is_ours = *nodes.entry(node).or_insert_with(|| {
                    node == store.node() || (approvals.takes_over_orphans() && !store.is_alive(node))
                });
                if is_ours && !self.tries.contains_key(&id) {
                    let due = self.retries.begin(id, now);
                    due.into_iter().for_each(|tries| self.send(projects, id, tries));
                }
            }
            if unsent.len() < PAGE as usize {
                return Ok(self.retries.next(now));
            }
        }
    }

    /// Sends the next message about an approval.
    fn send(&mut self, projects: &Projects, id: ApprovalId, tries: u32) {
        let (target, store) = (self.target.clone(), projects.store().clone());
        let page = projects.services().approvals().page();
        self.tries.insert(id, tries);
        self.under_way.push(Box::pin(async move { (id, target.send(&store, id, page.as_deref()).await) }));
    }

    /// Takes note of how a message fared.
    fn completed(&mut self, id: ApprovalId, sent: &Sent) {
        let tries = self.tries.remove(&id).unwrap_or_default();
        let (project, host) = (&self.project, self.target.host());
        let Some(alive) = self.projects.upgrade() else { return };
        let metrics = alive.events().metrics();
        match sent {
            Sent::Skipped => {}
            Sent::Taken => {
                metrics.count_webhook(project, "taken");
                if self.retries.recovered() {
                    tracing::info!("the webhook {host} of project {project} takes messages again");
                }
            }
            Sent::Failed(reason) => {
                metrics.count_webhook(project, "failed");
                if self.retries.failed(id, tries, reason, Instant::now()) {
                    tracing::warn!(
                        "the webhook {host} of project {project} was not told of {id}; it is tried again: {reason}"
                    );
                }
            }
        }
    }
}
