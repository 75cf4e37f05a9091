//! Named queues: how many calls may run at once, and which one is next.
//!
//! Waiting is first in, first out within a priority, fair between sessions (each session's oldest call in turn), and
//! bounded. A call made below one that holds a slot borrows that slot while its parent waits for it, so a queue can
//! never be deadlocked by its own descendants; siblings borrow one after the other, so the limit still holds.

use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::id::SessionId;
use gantry_core::{Priority, ToolError};
use gantry_provider::options::{Limit, Positive, read_as};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// A queue, which bounds how many calls run at once.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename = "Queue", rename_all = "camelCase", deny_unknown_fields)]
pub struct Options {
    /// The key of the entry, which the reader of the file fills in.
    #[serde(skip)]
    pub name: Arc<str>,
    /// How many calls of this queue run at once.
    #[serde(deserialize_with = "read_as::<Positive<65_536>, _, _>")]
    #[schemars(with = "Positive<65_536>")]
    pub concurrent: usize,
    /// How many calls may wait; more are refused with QUEUE_FULL.
    #[serde(default = "default_max_waiting", deserialize_with = "read_as::<MaxWaiting, _, _>")]
    #[schemars(with = "MaxWaiting")]
    pub max_waiting: usize,
    /// Where the bound counts: `node` is this process.
    #[serde(default)]
    pub scope: QueueScope,
}

type MaxWaiting = Limit<1000, 100_000>;

fn default_max_waiting() -> usize {
    MaxWaiting::default().size()
}

/// Where the bound of a queue counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum QueueScope {
    /// This process.
    #[default]
    Node,
}

/// How a queue is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Queue")]
pub struct Snapshot {
    /// Its name.
    pub name: Arc<str>,
    /// Calls that may run at once.
    pub concurrent: usize,
    /// Calls that may wait.
    pub max_waiting: usize,
    /// Calls that run.
    pub in_use: usize,
    /// Calls that wait.
    pub depth: usize,
    /// Calls that were let through since the start.
    pub admitted: u64,
    /// Calls that were turned away since the start.
    pub rejected: u64,
    /// The last wait.
    pub last_wait_ms: u64,
    /// All waits together.
    pub total_wait_ms: u64,
}

#[derive(Debug, Default)]
pub struct Queues(BTreeMap<Arc<str>, Arc<Queue>>);

impl Queues {
    pub fn new(options: Vec<Options>) -> Self {
        Self::default().changed(options)
    }

    /// These queues after a change. A queue that stays keeps the calls that run and wait in it, under its new bounds.
    #[must_use]
    pub fn changed(&self, options: Vec<Options>) -> Self {
        let queue = |options: Options| {
            let name = Arc::clone(&options.name);
            let Some(known) = self.get(&name) else { return (name, Arc::new(Queue::new(options))) };
            known.resize(&options);
            (name, Arc::clone(known))
        };
        Self(options.into_iter().map(queue).collect())
    }

    /// These and those, where a name is in both these.
    #[must_use]
    pub fn beside(&self, those: &Self) -> Self {
        let mut all = those.0.clone();
        all.extend(self.0.iter().map(|(name, queue)| (Arc::clone(name), Arc::clone(queue))));
        Self(all)
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Queue>> {
        self.0.get(name)
    }

    pub fn snapshot(&self) -> Vec<Snapshot> {
        self.0.values().map(|queue| queue.snapshot()).collect()
    }
}

#[derive(Debug)]
pub struct Queue {
    name: Arc<str>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The bounds, and what was counted so far. How many calls wait is read from `waiting`.
    now: Snapshot,
    next_ticket: u64,
    waiting: BTreeMap<Turn, (SessionId, oneshot::Sender<Slot>)>,
    /// The round of the call that was let through last, by priority.
    rounds: HashMap<Priority, u64>,
}

/// When a waiting call is let through: the most urgent first; then in rounds, in each of which a session has one call; then
/// by the ticket.
type Turn = (Reverse<Priority>, u64, u64);

/// The right to run, given back when dropped. The default is that of a call that passes no queue.
#[derive(Debug, Default)]
#[must_use = "a slot that is dropped is given back"]
pub struct Slot {
    queue: Option<Arc<Queue>>,
    /// Held only to be given back.
    _borrowed: Option<OwnedSemaphorePermit>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            queue.release();
        }
    }
}

/// The queue slots that the calls above a call hold, the nearest last, each of which one descendant at a time may borrow.
#[derive(Debug, Clone, Default)]
pub struct Held(Arc<[(Arc<str>, Arc<Semaphore>)]>);

impl Held {
    /// The same, with a slot of this queue added.
    #[must_use]
    pub fn with(&self, queue: &Arc<str>) -> Self {
        let slot = (Arc::clone(queue), Arc::new(Semaphore::new(1)));
        Self(self.0.iter().cloned().chain([slot]).collect())
    }

    /// What can be borrowed of this queue, from the nearest holder.
    fn lender(&self, queue: &str) -> Option<Arc<Semaphore>> {
        self.0.iter().rev().find(|(name, _)| **name == *queue).map(|(_, lender)| Arc::clone(lender))
    }
}

impl Queue {
    fn new(options: Options) -> Self {
        let Options { name, concurrent, max_waiting, scope: QueueScope::Node } = options;
        let now = Snapshot { name: Arc::clone(&name), concurrent, max_waiting, ..Snapshot::default() };
        Self { name, state: Mutex::new(State { now, ..State::default() }) }
    }

    /// Waits for a slot.
    ///
    /// Cancel-safety: dropping the future gives the place in the line, or the slot, back.
    pub async fn admit(
        self: &Arc<Self>,
        session: SessionId,
        priority: Priority,
        held: &Held,
    ) -> Result<Slot, Refusal> {
        let started = Instant::now();
        let slot = match held.lender(&self.name) {
            None => self.own(session, priority).await?,
            Some(lender) => match Arc::clone(&lender).try_acquire_owned() {
                Ok(permit) => Slot { queue: None, _borrowed: Some(permit) },
                Err(_) => tokio::select! {
                    permit = lender.acquire_owned() => Slot { queue: None, _borrowed: permit.ok() },
                    slot = self.own(session, priority) => slot?,
                },
            },
        };
        self.note_wait(started.elapsed());
        Ok(slot)
    }

    async fn own(self: &Arc<Self>, session: SessionId, priority: Priority) -> Result<Slot, Refusal> {
        let (ticket, granted) = {
            let mut state = self.state();
            if state.now.in_use < state.now.concurrent {
                state.now.in_use += 1;
                return Ok(self.slot());
            }
            if state.waiting.len() >= state.now.max_waiting {
                state.now.rejected += 1;
                return Err(self.full(state.now.max_waiting));
            }
            state.enqueue(session, priority)
        };
        let _place = Place { queue: self, ticket };
        granted.await.map_err(|_closed| self.full(0))
    }

    fn slot(self: &Arc<Self>) -> Slot {
        Slot { queue: Some(Arc::clone(self)), _borrowed: None }
    }

    /// Frees a slot, and lets the next in line run if there is room.
    fn release(self: Arc<Self>) {
        let mut state = self.state();
        state.now.in_use = state.now.in_use.saturating_sub(1);
        self.fill(&mut state);
    }

    /// Lets as many run as there is room for.
    fn fill(self: &Arc<Self>, state: &mut State) {
        while state.now.in_use < state.now.concurrent {
            let Some(((Reverse(priority), round, _), (_, grant))) = state.waiting.pop_first() else { return };
            state.rounds.insert(priority, round);
            state.now.in_use += 1;
            if let Err(mut slot) = grant.send(self.slot()) {
                // It gave up a moment ago. Its slot is not to be given back: that would take the lock that is held.
                slot.queue = None;
                state.now.in_use -= 1;
            }
        }
    }

    /// Other bounds hold from now on. Calls that run go on, also if they are more than may run now.
    fn resize(self: &Arc<Self>, options: &Options) {
        let mut state = self.state();
        (state.now.concurrent, state.now.max_waiting) = (options.concurrent, options.max_waiting);
        self.fill(&mut state);
    }

    fn full(&self, max_waiting: usize) -> Refusal {
        let name = &self.name;
        let message = format!(
            "queue {name} is full: {max_waiting} calls wait already. Nothing was run; try again later."
        );
        Refusal::from(
            ToolError::new(ErrorCode::QueueFull, message).with_details(serde_json::json!({ "queue": name })),
        )
    }

    fn note_wait(&self, wait: Duration) {
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let now = &mut self.state().now;
        now.admitted += 1;
        now.last_wait_ms = ms;
        now.total_wait_ms = now.total_wait_ms.saturating_add(ms);
    }

    fn snapshot(&self) -> Snapshot {
        let state = self.state();
        Snapshot { depth: state.waiting.len(), ..state.now.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enqueue(&mut self, session: SessionId, priority: Priority) -> (u64, oneshot::Receiver<Slot>) {
        let (grant, granted) = oneshot::channel();
        let own = self
            .waiting
            .iter()
            .filter(|((Reverse(other), ..), (of, _))| *other == priority && *of == session);
        let own_round = own.map(|((_, round, _), _)| *round).max().unwrap_or_default();
        let round = own_round.max(self.rounds.get(&priority).copied().unwrap_or_default()) + 1;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting.insert((Reverse(priority), round, ticket), (session, grant));
        (ticket, granted)
    }

    /// Takes a call out of the line, if it is still there; later calls of its session move up, each into the round before.
    fn leave(&mut self, ticket: u64) {
        let Some(left) = self.waiting.keys().find(|turn| turn.2 == ticket).copied() else { return };
        let Some((session, _)) = self.waiting.remove(&left) else { return };
        let same_priority = self.waiting.range(left..).take_while(|(turn, _)| turn.0 == left.0);
        let own = same_priority.filter(|(_, (of, _))| *of == session);
        let later: Vec<Turn> = own.map(|(turn, _)| *turn).collect();
        let mut free = left.1;
        for (priority, round, ticket) in later {
            if let Some(call) = self.waiting.remove(&(priority, round, ticket)) {
                self.waiting.insert((priority, free, ticket), call);
            }
            free = round;
        }
    }
}

/// A place in the line, which is left when the wait has ended or is given up.
struct Place<'a> {
    queue: &'a Queue,
    ticket: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.queue.state().leave(self.ticket);
    }
}

#[cfg(test)]
mod tests;
