//! Sends webhooks messages about calls that wait for a person, and what became of them.
//!
//! The store is the outbox: each row says how much of it the webhook has taken, so neither a restart nor a webhook that is
//! away loses anything. Each webhook has its own task, so one that is slow or dead delays no other project's messages.
//!
//! **Invariant:** of one approval, one message is under way at a time, and what happened first is sent first.

mod message;
mod send;

use crate::event::Events;
use crate::options::Webhook;
use crate::projects::Projects;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use gantry_core::id::ApprovalId;
use gantry_provider::{BoxFuture, task};
use gantry_store::Unsent;
use send::{Target, display_host};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// How often the configuration and the store are read where nothing wakes a task: another process may have decided, or died.
const POLL: Duration = Duration::from_secs(2);

/// Approvals about which messages are sent or wait to be tried again. While there are so many, no others are begun.
const LIMIT: usize = 10_000;

const PAGE: u32 = 256;

/// How many seconds a message waits before each try, and before all further tries.
const PAUSES: [u64; 5] = [0, 1, 5, 30, 120];
const LONGEST_PAUSE: u64 = 600;

/// Different failures that are logged until the webhook takes something again.
const LOGGED: usize = 16;

/// Keeps one delivery task per configured webhook, until Gantry stops.
pub(crate) async fn run(projects: Weak<Projects>, stop: CancellationToken) {
    // They end with this task, also if it panics, so that no message is sent by two.
    let mut tasks: HashMap<Arc<str>, (Webhook, AbortOnDropHandle<()>)> = HashMap::new();
    loop {
        let Some(alive) = projects.upgrade() else { return };
        let webhooks = alive.webhooks();
        // The operator who has changed a webhook wants to see what comes of that: everything is tried anew.
        tasks.retain(|project, (webhook, task)| {
            !task.is_finished() && webhooks.get(project).is_some_and(|now| now == webhook)
        });
        for (project, webhook) in webhooks {
            tasks.entry(Arc::clone(&project)).or_insert_with(|| {
                let changes = alive.services().approvals().changes();
                let delivery =
                    Delivery::new(project, &webhook, alive.services().events.clone(), Weak::clone(&projects));
                (webhook, AbortOnDropHandle::new(task::spawn("webhook", delivery.run(changes))))
            });
        }
        drop(alive);
        if stop.run_until_cancelled(tokio::time::sleep(POLL)).await.is_none() {
            return;
        }
    }
}

struct Delivery {
    project: Arc<str>,
    target: Arc<Target>,
    events: Events,
    projects: Weak<Projects>,
    /// The approvals of which `attempts` has the next message.
    under_way: HashSet<ApprovalId>,
    attempts: FuturesUnordered<BoxFuture<'static, Attempt>>,
    /// The failures that were logged since the webhook took something.
    logged: BTreeSet<String>,
}

/// An approval, how often its next message had failed before, and whether there was a message that was taken now.
type Attempt = (ApprovalId, usize, Result<bool, String>);

impl Delivery {
    fn new(project: Arc<str>, webhook: &Webhook, events: Events, projects: Weak<Projects>) -> Self {
        Self {
            project,
            target: Arc::new(Target::new(webhook)),
            events,
            projects,
            under_way: HashSet::new(),
            attempts: FuturesUnordered::new(),
            logged: BTreeSet::new(),
        }
    }

    /// Delivers messages; `changes` moves on whenever an approval changes in this process.
    async fn run(mut self, mut changes: watch::Receiver<u64>) {
        while let Some(alive) = self.projects.upgrade() {
            // Order: before the store is read, so that what changes meanwhile is read in the next round.
            changes.mark_unchanged();
            if let Err(error) = self.begin_unsent(&alive).await {
                let project = &self.project;
                tracing::warn!("messages for the webhook of project {project} could not be read: {error}");
            }
            drop(alive);
            let poll = Instant::now() + POLL;
            loop {
                tokio::select! {
                    biased;
                    Some(attempt) = self.attempts.next() => self.completed(attempt),
                    _ = changes.changed() => break,
                    () = tokio::time::sleep_until(poll) => break,
                }
            }
        }
    }

    /// Begins to send what is this process's to send: it holds the approvals, or takes over from the process that did and is
    /// gone.
    async fn begin_unsent(&mut self, projects: &Projects) -> Result<(), gantry_store::Error> {
        let (store, approvals) = (projects.store(), projects.services().approvals());
        let (mut processes, mut after) = (HashMap::new(), None);
        loop {
            let unsent = store.unsent(Arc::clone(&self.project), after, PAGE).await?;
            for Unsent { id, process } in unsent.iter().copied() {
                after = Some(id);
                let is_ours = *processes.entry(process).or_insert_with(|| {
                    process == store.process() || (approvals.takes_over_orphans() && !store.is_alive(process))
                });
                if is_ours {
                    self.begin(id);
                }
            }
            if unsent.len() < PAGE as usize || self.under_way.len() >= LIMIT {
                return Ok(());
            }
        }
    }

    fn begin(&mut self, id: ApprovalId) {
        if self.under_way.len() < LIMIT && self.under_way.insert(id) {
            self.attempt(id, 0);
        }
    }

    /// Sends the next message about an approval when its pause is over and it is its turn.
    fn attempt(&self, id: ApprovalId, failures: usize) {
        let (projects, target) = (Weak::clone(&self.projects), Arc::clone(&self.target));
        let project = Arc::clone(&self.project);
        self.attempts.push(Box::pin(async move {
            tokio::time::sleep(pause(failures)).await;
            let _turn = target.turns.acquire().await;
            let Some(alive) = projects.upgrade() else { return (id, failures, Ok(false)) };
            // A webhook that was removed or replaced gets nothing more, also before this task is ended.
            if alive.webhooks().get(&project) != Some(&target.webhook) {
                return (id, failures, Ok(false));
            }
            let (store, page) = (alive.store().clone(), alive.services().approvals().page());
            drop(alive);
            // Boxed, so that messages that wait take little room.
            (id, failures, Box::pin(target.send(&store, id, page.as_deref())).await)
        }));
    }

    /// Takes note of how a message fared, and goes on with the approval until there is nothing more to send.
    fn completed(&mut self, (id, failures, sent): Attempt) {
        let (project, host) = (&self.project, display_host(&self.target.webhook.url));
        match sent {
            Ok(false) => {
                self.under_way.remove(&id);
            }
            Ok(true) => {
                self.events.metrics().count_webhook(project, "taken");
                if !std::mem::take(&mut self.logged).is_empty() {
                    tracing::info!("the webhook {host} of project {project} takes messages again");
                }
                self.attempt(id, 0);
            }
            Err(reason) => {
                self.events.metrics().count_webhook(project, "failed");
                if self.logged.len() < LOGGED && self.logged.insert(reason.clone()) {
                    tracing::warn!(
                        "the webhook {host} of project {project} was not told of {id}; it is tried again: {reason}"
                    );
                }
                self.attempt(id, failures + 1);
            }
        }
    }
}

/// How long a message waits that was not taken so many times.
fn pause(failures: usize) -> Duration {
    Duration::from_secs(PAUSES.get(failures).copied().unwrap_or(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery() -> Delivery {
        let webhook =
            Webhook { url: "https://h.example".into(), secret: "s3cret".into(), allow_private: Vec::new() };
        Delivery::new("p".into(), &webhook, Events::default(), Weak::new())
    }

    #[test]
    fn each_message_is_tried_again_after_longer_and_longer_pauses() {
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 99].map(|failures| pause(failures).as_secs()),
            [0, 1, 5, 30, 120, 600, 600]
        );
    }

    #[tokio::test]
    async fn of_one_approval_one_message_is_under_way_and_all_together_have_a_limit() {
        let (mut delivery, id) = (delivery(), ApprovalId::generate());
        delivery.begin(id);
        delivery.begin(id);
        assert_eq!(delivery.attempts.len(), 1);
        while delivery.under_way.len() < LIMIT {
            delivery.begin(ApprovalId::generate());
        }
        delivery.begin(ApprovalId::generate());
        assert_eq!(delivery.attempts.len(), LIMIT);
        // It is tried again, which takes nothing more, and another is begun when there is nothing more to send.
        delivery.completed((id, 0, Err("a".into())));
        delivery.completed((id, 1, Ok(true)));
        assert_eq!((delivery.attempts.len(), delivery.under_way.len()), (LIMIT + 2, LIMIT));
        delivery.completed((id, 0, Ok(false)));
        delivery.begin(ApprovalId::generate());
        assert_eq!((delivery.attempts.len(), delivery.under_way.len()), (LIMIT + 3, LIMIT));
    }

    #[tokio::test]
    async fn a_failure_is_logged_once_until_something_is_taken() {
        let mut delivery = delivery();
        for n in 0..100 {
            delivery.completed((ApprovalId::generate(), 0, Err("a".into())));
            delivery.completed((ApprovalId::generate(), 0, Err(n.to_string())));
        }
        assert_eq!(delivery.logged.len(), LOGGED);
        delivery.completed((ApprovalId::generate(), 0, Ok(true)));
        assert!(delivery.logged.is_empty());
    }
}
