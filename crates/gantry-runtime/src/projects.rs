//! The projects of a process, and the runtime that a caller of one of them belongs to.
//!
//! A project has a *shared* runtime, in which every caller sees what its agent may see. While an agent is *active*, that
//! agent has a runtime for itself: its own connections, its own processes, nothing shared. Callers that name no
//! agent are then callers of the active one. Other agents can still be named; the shared runtime is for them, and is there
//! as long as a caller needs it.

mod active;
mod reload;
mod servers;
mod slots;
mod switch;

pub use reload::{Held, Load, Plans, Reloaded};
pub use switch::Switched;

use crate::approvals;
use crate::event::Events;
use crate::options::{AgentOptions, Plan, ServerPlan, Webhook};
use crate::queue;
use crate::runtime::{Error, Relocation, Runtime};
use crate::serial_gate::SerialGate;
use crate::services::Services;
use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::id::SessionId;
use gantry_provider::task;
use gantry_store::Store;
use slots::{ActiveSlot, Slots};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{SemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

/// The project that the configuration file itself describes.
pub const DEFAULT: &str = "default";

/// How long calls may take to end when their agent, their server or their project goes away.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);

/// How long canceled calls may take to end.
pub(crate) const STOP: Duration = Duration::from_secs(2);

/// How long a caller waits while a project switches agents: running calls end or are cut off, and the runtime of the new
/// agent is built.
const SWITCH_TIMEOUT: Duration = Duration::from_secs(30);

/// How long after a background task that has failed is started again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// How often a caller whose runtime is gone when it gets there is given the next one, before it is refused.
pub const MOVES: usize = 4;

#[derive(Debug)]
pub struct Projects {
    services: Arc<Services>,
    projects: ArcSwap<BTreeMap<Arc<str>, Arc<Project>>>,
    /// Reads the configuration anew; none for one that never changes.
    loader: Option<Arc<dyn Load>>,
    /// Held while a new configuration is applied.
    reloading: SerialGate,
    /// What was wrong with the configuration that was refused last, until one is accepted.
    refused: Mutex<Option<Arc<str>>>,
    /// The change of the configuration that waits until an administrator applies it.
    held: Mutex<Option<Held>>,
    /// Fires when nothing that waits is to be begun any more.
    stopping: CancellationToken,
}

#[derive(Debug)]
struct Project {
    name: Arc<str>,
    services: Arc<Services>,
    events: Events,
    plan: ArcSwap<Plan>,
    /// Servers that were added while the process runs; none for one of the plan that was removed.
    overlay: Mutex<BTreeMap<Arc<str>, Option<ServerPlan>>>,
    slots: watch::Sender<Slots>,
    /// Held while its runtimes come and go. Closed when it is not configured any more.
    changing: SerialGate,
}

#[derive(Debug, Clone)]
pub struct Context {
    pub runtime: Arc<Runtime>,
    pub agent: Option<Arc<str>>,
}

#[derive(Debug, Clone)]
pub struct Agent {
    pub project: Arc<str>,
    pub name: Arc<str>,
    pub options: AgentOptions,
    pub active: bool,
}

impl Projects {
    /// Starts these projects, each with the agent that was active in it last.
    ///
    /// # Errors
    /// The tools of a project clash or name a queue that is not configured.
    pub async fn start(
        services: Arc<Services>,
        plans: BTreeMap<Arc<str>, Plan>,
        loader: Option<Arc<dyn Load>>,
    ) -> Result<Arc<Self>, Error> {
        let mut projects = BTreeMap::new();
        for (name, plan) in plans {
            let project = Project::start(Arc::clone(&name), plan, &services).await?;
            projects.insert(name, project);
        }
        let projects = Arc::new(Self {
            services,
            projects: ArcSwap::from_pointee(projects),
            loader,
            reloading: SerialGate::default(),
            refused: Mutex::new(None),
            held: Mutex::new(None),
            stopping: CancellationToken::new(),
        });
        projects.keep_running("approvals", approvals::run_due);
        projects.keep_running("approval changes", approvals::publish_changes);
        projects.keep_running("webhooks", approvals::deliver_webhooks);
        Ok(projects)
    }

    /// Runs a background task of the process until Gantry stops; one that panics is started again.
    fn keep_running<F>(self: &Arc<Self>, name: &'static str, run: fn(Weak<Self>, CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (projects, stop) = (Arc::downgrade(self), self.stopping.clone());
        task::spawn(name, async move {
            while AssertUnwindSafe(run(Weak::clone(&projects), stop.clone())).catch_unwind().await.is_err() {
                tracing::error!("the task of {name} failed; it is started again");
                tokio::time::sleep(RESTART_PAUSE).await;
            }
        });
    }

    /// The runtime for a caller of this project, as this agent or as none in particular. Waits while the project switches
    /// agents.
    ///
    /// # Errors
    /// There is no such project, or its active agent cannot be had.
    pub async fn context(&self, project: &str, agent: Option<&str>) -> Result<Context, Refusal> {
        self.project(project)?.context(agent).await
    }

    /// The same for callers that cannot wait: none while there is no runtime yet.
    pub fn peek(&self, project: &str, agent: Option<&str>) -> Option<Context> {
        self.project(project).ok()?.slots.borrow().find(agent).ok()?
    }

    fn project(&self, name: &str) -> Result<Arc<Project>, Refusal> {
        let projects = self.projects.load();
        projects.get(name).cloned().ok_or_else(|| no_project(name))
    }

    pub fn names(&self) -> Vec<Arc<str>> {
        self.projects.load().keys().cloned().collect()
    }

    /// The project of this name.
    pub fn named(&self, name: &str) -> Option<Arc<str>> {
        self.projects.load().get_key_value(name).map(|(name, _)| Arc::clone(name))
    }

    pub fn agents(&self, project: Option<&str>) -> Vec<Agent> {
        self.selected(project).iter().flat_map(|project| project.agents()).collect()
    }

    pub fn active(&self, project: &str) -> Option<Arc<str>> {
        self.projects.load().get(project)?.slots.borrow().active_agent().cloned()
    }

    pub(crate) fn runtimes(&self) -> Vec<Arc<Runtime>> {
        self.selected(None).iter().flat_map(|project| project.runtimes()).collect()
    }

    fn selected(&self, project: Option<&str>) -> Vec<Arc<Project>> {
        let projects = self.projects.load();
        projects.values().filter(|known| project.is_none_or(|name| *name == *known.name)).cloned().collect()
    }

    pub fn store(&self) -> &Store {
        &self.services.store
    }

    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    pub(crate) fn webhooks(&self) -> BTreeMap<Arc<str>, Webhook> {
        let projects = self.projects.load();
        let webhook = |project: &Arc<Project>| project.plan.load().options.approvals.webhook.clone();
        projects.values().filter_map(|project| Some((Arc::clone(&project.name), webhook(project)?))).collect()
    }

    pub fn queues(&self) -> Vec<queue::Snapshot> {
        self.services.queues.load().snapshot()
    }

    pub fn metrics_page(&self) -> String {
        let servers = self.servers(None);
        self.services.events.metrics().page(&self.queues(), self.services.store.stats(), &servers)
    }

    /// What was wrong with the configuration that was refused last, if none was accepted since.
    pub fn refused(&self) -> Option<Arc<str>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The change of the configuration that waits until an administrator applies it.
    pub fn held(&self) -> Option<Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Cancels everything that a session has queued, running or waiting for a person. Returns whether there was such a
    /// session here, or such a call.
    ///
    /// # Errors
    /// The store failed, and calls that wait may wait on.
    pub async fn cancel_session(&self, id: SessionId) -> Result<bool, gantry_store::Error> {
        // First, so that a caller that waits for one of them reads why it ended.
        let held = self.services.withdraw_run(id).await;
        let mut is_live = false;
        for runtime in self.runtimes() {
            is_live |= runtime.cancel_session(id).await;
        }
        // What goes on in a session that was brought back for it, which no runtime remembers.
        let running = self.services.cancel_where(|call| call.session == id);
        // What was being held meanwhile.
        let late = self.services.withdraw_run(id).await?;
        Ok(is_live || held? + running + late > 0)
    }

    /// Waits until the servers of every project were ready once or have failed.
    pub async fn settled(&self) {
        join_all(self.runtimes().iter().map(|runtime| runtime.settled())).await;
    }

    /// Takes no new calls and lets the running ones end, for as long as `grace`.
    pub async fn drain(&self, grace: Duration) {
        self.stopping.cancel();
        join_all(self.runtimes().iter().map(|runtime| runtime.drain(grace))).await;
    }

    /// Lets running calls end for as long as `grace`, then closes everything, the ledger last.
    pub async fn shutdown(&self, grace: Duration) {
        self.stopping.cancel();
        let _reloading = tokio::time::timeout(DRAIN * 2, self.reloading.enter()).await;
        let projects = self.projects.load_full();
        // A runtime that a switch is leaving is closed by that switch.
        let turning = join_all(projects.values().map(|project| project.changing.enter()));
        let _turns = tokio::time::timeout(DRAIN * 2, turning).await;
        join_all(self.runtimes().iter().map(|runtime| runtime.shutdown(grace))).await;
        if let Err(error) = self.services.store.shutdown().await {
            tracing::error!("the ledger could not be closed cleanly: {error}");
        }
    }
}

fn no_project(name: &str) -> Refusal {
    let shown: String = name.chars().take(64).collect();
    Refusal::new(ErrorCode::PermissionDenied, format!("there is no project {shown:?}"))
}

impl Project {
    async fn start(name: Arc<str>, plan: Plan, services: &Arc<Services>) -> Result<Arc<Self>, Error> {
        let last_active = active::read(&plan.options.data);
        let project = Arc::new(Self {
            services: Arc::clone(services),
            events: services.events.for_project(&name),
            name,
            plan: ArcSwap::from_pointee(plan),
            overlay: Mutex::default(),
            slots: watch::Sender::default(),
            changing: SerialGate::default(),
        });
        let slots = match last_active {
            None => Slots { shared: Some(project.build(None).await?), ..Slots::default() },
            Some(agent) if project.configured(&agent).is_ok() => {
                Slots { active: ActiveSlot::Ready(project.build(Some(&agent)).await?), shared: None }
            }
            Some(agent) => {
                let reason = "it was active when Gantry ran last, and is not configured any more".into();
                tracing::warn!("agent {agent} of project {}: {reason}", project.name);
                Slots { active: ActiveSlot::Failed { agent, reason }, shared: None }
            }
        };
        project.slots.send_replace(slots);
        Ok(project)
    }

    /// Starts a runtime for this agent alone, or the shared one.
    async fn build(&self, agent: Option<&Arc<str>>) -> Result<Arc<Runtime>, Error> {
        Box::pin(Runtime::start(self.effective(agent), &self.services)).await
    }

    async fn context(&self, agent: Option<&str>) -> Result<Context, Refusal> {
        let mut is_new = self.slots.borrow().is_switching();
        loop {
            if let Some(context) = self.find_runtime(agent).await? {
                if is_new {
                    // A caller that has waited for it sees all tools, not those so far.
                    context.runtime.settled().await;
                }
                return Ok(context);
            }
            if let Some(agent) = agent {
                // An unknown name must not start anything.
                self.configured(agent)?;
            }
            is_new = true;
            self.start_shared(agent).await?;
        }
    }

    /// The runtime that a caller belongs to, once no switch is under way for it; none if the shared runtime has to be
    /// started.
    async fn find_runtime(&self, agent: Option<&str>) -> Result<Option<Context>, Refusal> {
        // The usual case needs no receiver and no timer.
        {
            let slots = self.slots.borrow();
            if !slots.is_switching_for(agent) {
                return slots.find(agent);
            }
        }
        let mut slots = self.slots.subscribe();
        let switched = slots.wait_for(|slots| !slots.is_switching_for(agent));
        match tokio::time::timeout(SWITCH_TIMEOUT, switched).await {
            Ok(Ok(slots)) => slots.find(agent),
            _ => {
                let message = "the project is turning to another agent; nothing was run. Try again later.";
                Err(Refusal::new(ErrorCode::UpstreamUnavailable, message))
            }
        }
    }

    /// Starts the shared runtime for a caller, unless there is one for it by now.
    async fn start_shared(&self, agent: Option<&str>) -> Result<(), Refusal> {
        let _changing = self.begin_change().await?;
        {
            // Another caller may have started it in the meantime, or the project may have turned to another agent.
            let slots = self.slots.borrow();
            if slots.is_switching() || slots.find(agent)?.is_some() {
                return Ok(());
            }
        }
        let shared = self.build(None).await.map_err(|error| {
            let message = format!("the project cannot be started: {error}; nothing was run");
            Refusal::new(ErrorCode::UpstreamUnavailable, message)
        })?;
        self.slots.send_modify(|slots| {
            if let Some(agent) = slots.active_agent().cloned() {
                let why = format!("agent {agent} is active and has a place of its own").into();
                shared.close_to(Some(Relocation { agent: Some(agent), why }));
            }
            slots.shared = Some(shared);
        });
        Ok(())
    }

    /// Waits for the turn to change its runtimes, unless it is not configured any more.
    async fn begin_change(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        self.changing.enter().await.ok_or_else(|| no_project(&self.name))
    }

    fn runtimes(&self) -> Vec<Arc<Runtime>> {
        self.slots.borrow().runtimes()
    }

    fn agents(&self) -> Vec<Agent> {
        let (plan, active) = (self.plan.load(), self.slots.borrow().active_agent().cloned());
        let agent = |(name, options): (&Arc<str>, &AgentOptions)| Agent {
            project: Arc::clone(&self.name),
            name: Arc::clone(name),
            options: options.clone(),
            active: active.as_ref() == Some(name),
        };
        plan.options.agents.iter().map(agent).collect()
    }
}
