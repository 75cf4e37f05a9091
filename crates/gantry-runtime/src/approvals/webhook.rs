//! Tells webhooks what waits for a person, and what became of it.
//!
//! That a call waits is told until the webhook has taken it, also after a restart: the store knows what was not taken yet.
//! What became of it is told at best effort, from the events of this process: a restart forgets it, and so does a webhook
//! that is away for some minutes. Who has to be sure asks for the approval.
//!
//! Each project has a lane of its own, so a webhook that is slow or dead delays nobody else's messages.

mod lane;
mod message;
mod send;

use crate::event::{Event, EventKind, Events};
use crate::options::Webhook;
use crate::projects::Projects;
use gantry_core::State;
use gantry_core::id::{ApprovalId, CallId, NodeId};
use gantry_store::{ApprovalFilter, ApprovalRow};
use lane::{Errand, Lane, Sent};
use send::Target;
use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often the store is asked for requests that nobody was told of: those of processes that are gone, and others that
/// were missed.
const LOOK: Duration = Duration::from_secs(2);

/// How often all that waits is looked through, if there is more than a page of requests that nobody was told of.
const WALK: Duration = Duration::from_secs(60);

/// Rows that are read at once; their arguments may be long.
const PAGE: u32 = 32;

/// Calls whose end is waited for, to tell it. Of more, the oldest are forgotten.
const CALLS: usize = 10_000;

/// Tells webhooks what happens until it is told to stop.
pub(crate) async fn run(projects: Weak<Projects>, stop: CancellationToken) {
    let mut is_start = true;
    loop {
        let Some(alive) = projects.upgrade() else { return };
        // Who listens to the events makes each a little dearer, so nobody does without need.
        if !alive.webhooks().is_empty() {
            let all = alive.events().clone();
            let (past, events) = all.subscribe();
            let mut announcer = Announcer::new(Weak::clone(&projects), all, events);
            if is_start {
                announcer.recall(&alive, &past).await;
            }
            drop(alive);
            announcer.work(&stop).await;
        } else {
            drop(alive);
        }
        is_start = false;
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// A message that is under way.
struct UnderWay {
    project: Arc<str>,
    host: String,
    errand: Errand,
}

struct Announcer {
    projects: Weak<Projects>,
    all: Events,
    events: broadcast::Receiver<Arc<Event>>,
    /// By project.
    lanes: HashMap<Arc<str>, Lane>,
    targets: HashMap<Arc<str>, Target>,
    flights: JoinSet<Sent>,
    under_way: HashMap<Id, UnderWay>,
    /// Calls that wait or run, with their project and their approval.
    calls: BTreeMap<CallId, (Arc<str>, ApprovalId)>,
    /// When to ask the store again, and when to look through all that waits.
    look: Instant,
    walk: Instant,
}

impl Announcer {
    fn new(projects: Weak<Projects>, all: Events, events: broadcast::Receiver<Arc<Event>>) -> Self {
        let now = Instant::now();
        Self {
            projects,
            all,
            events,
            lanes: HashMap::new(),
            targets: HashMap::new(),
            flights: JoinSet::new(),
            under_way: HashMap::new(),
            calls: BTreeMap::new(),
            look: now,
            walk: now,
        }
    }

    /// Works until it is told to stop, or there is no webhook any more.
    async fn work(&mut self, stop: &CancellationToken) {
        loop {
            let Some(alive) = self.projects.upgrade() else { return };
            let webhooks = alive.webhooks();
            if webhooks.is_empty() {
                return;
            }
            if self.look <= Instant::now() {
                if let Err(error) = self.look(&alive, &webhooks).await {
                    tracing::warn!("what webhooks have to be told could not be read: {error}");
                }
                self.look = Instant::now() + LOOK;
            }
            self.dispatch(&alive, &webhooks);
            drop(alive);
            let lanes = self.lanes.values().filter_map(Lane::wakes);
            let wake = lanes.chain([self.look]).min().unwrap_or(self.look);
            if self.wait(wake, stop).await.is_none() {
                return;
            }
        }
    }

    /// Waits until there is something to do; nothing means that it is to stop.
    async fn wait(&mut self, wake: Instant, stop: &CancellationToken) -> Option<()> {
        let mut asleep = pin!(tokio::time::sleep_until(wake));
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                () = &mut asleep => return Some(()),
                Some(landed) = self.flights.join_next_with_id() => {
                    self.landed(landed);
                    return Some(());
                }
                event = self.events.recv() => match event {
                    Ok(event) if self.heard(&event) => return Some(()),
                    // Most of them are of no interest here.
                    Ok(_) => {}
                    Err(RecvError::Lagged(missed)) => {
                        tracing::warn!("{missed} events were missed; webhooks may not hear of all decisions");
                        self.look = Instant::now();
                        return Some(());
                    }
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }

    /// Takes up what was found out at the start: calls that nobody knows the end of.
    async fn recall(&mut self, projects: &Projects, past: &[Arc<Event>]) {
        for event in past {
            let EventKind::CallsRecovered { calls } = &event.kind else {
                self.heard(event);
                continue;
            };
            for call in calls {
                match projects.store().approval_of(*call).await {
                    Ok(Some(row)) => self.lane(&row.project).tell(row.id, None, event.at_us, Instant::now()),
                    Ok(None) => {}
                    Err(error) => tracing::warn!("the approval of {call} could not be read: {error}"),
                }
            }
        }
    }

    /// Takes note of an event. Returns whether there may be something to do.
    fn heard(&mut self, event: &Event) -> bool {
        if let EventKind::Approval(changed) = &event.kind {
            self.changed(&changed.row, event.at_us);
            return true;
        }
        let EventKind::ToolFinished(finished) = &event.kind else { return false };
        let Some((project, id)) = self.calls.remove(&finished.call) else { return false };
        self.lane(&project).tell(id, None, event.at_us, Instant::now());
        true
    }

    /// An approval was asked for, or has changed.
    fn changed(&mut self, row: &ApprovalRow, at_us: i64) {
        if row.state.is_over() {
            self.calls.remove(&row.call);
        } else {
            self.calls.insert(row.call, (Arc::clone(&row.project), row.id));
            // Another process may have ended some, of which nobody hears here.
            if self.calls.len() > CALLS {
                self.calls.pop_first();
            }
        }
        let now = Instant::now();
        let lane = self.lane(&row.project);
        if row.state != State::PendingApproval {
            lane.tell(row.id, Some(row.state), at_us, now);
            return;
        }
        if let Some(before) = row.supersedes {
            lane.tell(before, None, at_us, now);
        }
        lane.ask(row.id, now);
    }

    fn lane(&mut self, project: &Arc<str>) -> &mut Lane {
        self.lanes.entry(Arc::clone(project)).or_default()
    }

    /// Asks the store for requests that nobody was told of.
    async fn look(
        &mut self,
        projects: &Projects,
        webhooks: &BTreeMap<Arc<str>, Webhook>,
    ) -> Result<(), gantry_store::Error> {
        let store = projects.store();
        let mut nodes = HashMap::new();
        let rows = store.unannounced(PAGE).await?;
        let is_full = rows.len() >= PAGE as usize;
        self.admit(projects, webhooks, rows, &mut nodes).await?;
        // The oldest may be those of a dead webhook, and must not hide the others.
        if !is_full || self.walk > Instant::now() {
            return Ok(());
        }
        let mut cursor = None;
        loop {
            let state = Some(State::PendingApproval);
            let filter = ApprovalFilter { state, cursor, limit: PAGE, ..ApprovalFilter::default() };
            let page = store.approvals(filter).await?;
            let open = page.items.into_iter().filter(|row| !row.announced).collect();
            self.admit(projects, webhooks, open, &mut nodes).await?;
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        self.walk = Instant::now() + WALK;
        Ok(())
    }

    /// Takes up requests that are this process's to tell of: its own, and those of processes that are gone.
    async fn admit(
        &mut self,
        projects: &Projects,
        webhooks: &BTreeMap<Arc<str>, Webhook>,
        rows: Vec<ApprovalRow>,
        nodes: &mut HashMap<NodeId, bool>,
    ) -> Result<(), gantry_store::Error> {
        let store = projects.store();
        let adopting = projects.commons().approvals().is_adopting();
        for row in rows {
            let mine = *nodes
                .entry(row.node)
                .or_insert_with(|| row.node == store.node() || (adopting && !store.is_alive(row.node)));
            if !mine {
                continue;
            }
            if webhooks.contains_key(&row.project) {
                self.lane(&row.project).ask(row.id, Instant::now());
            } else {
                // There is nobody to tell any more.
                store.announced(row.id).await?;
            }
        }
        Ok(())
    }

    /// Sends what is due.
    fn dispatch(&mut self, projects: &Projects, webhooks: &BTreeMap<Arc<str>, Webhook>) {
        self.lanes.retain(|project, lane| webhooks.contains_key(project) && !lane.is_idle());
        self.targets.retain(|project, _| webhooks.contains_key(project));
        let (now, page) = (Instant::now(), projects.commons().approvals().page());
        let Self { lanes, targets, flights, under_way, .. } = self;
        for (project, lane) in lanes {
            let Some(webhook) = webhooks.get(project) else { continue };
            let target = targets.entry(Arc::clone(project)).or_insert_with(|| Target::new(webhook));
            if !target.is(webhook) {
                // Who has changed it wants to see what comes of that.
                *target = Target::new(webhook);
                lane.hurry(now);
            }
            while let Some(errand) = lane.next(now) {
                let flight = target.clone().run(projects.store().clone(), errand, page.clone());
                let id = flights.spawn(flight).id();
                let host = target.host().to_owned();
                under_way.insert(id, UnderWay { project: Arc::clone(project), host, errand });
            }
        }
    }

    /// Takes note of how a message fared.
    fn landed(&mut self, landed: Result<(Id, Sent), JoinError>) {
        let (id, sent) = match landed {
            Ok(landed) => landed,
            Err(error) => (error.id(), Sent::Failed("Gantry failed while sending it".into())),
        };
        let Some(UnderWay { project, host, errand }) = self.under_way.remove(&id) else { return };
        let metrics = self.all.metrics();
        // Its webhook may have been configured away meanwhile.
        let Some(lane) = self.lanes.get_mut(&project) else { return };
        match &sent {
            Sent::Moot => {}
            Sent::Taken => {
                metrics.count_webhook(&project, "taken");
                if lane.recovered() {
                    tracing::info!("the webhook {host} of project {project} takes messages again");
                }
            }
            Sent::Failed(reason) => {
                metrics.count_webhook(&project, "failed");
                if lane.failed(reason) {
                    let id = errand.id;
                    tracing::warn!(
                        "the webhook {host} of project {project} was not told of {id}; it is tried again: {reason}"
                    );
                }
            }
        }
        lane.landed(errand, &sent, Instant::now());
    }
}
