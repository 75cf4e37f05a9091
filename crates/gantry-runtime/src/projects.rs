//! The projects of a process, and the runtime that a caller of one of them belongs to.
//!
//! A project has a *shared* runtime, in which every caller sees what its agent may see. While an agent is *active*, that
//! agent has a runtime for itself: its own connections, its own processes, nothing shared. Callers who name no
//! agent are then callers of the active one. Other agents can still be named; the shared runtime is for them, and is there
//! as long as a caller needs it.

mod active;
mod reload;
mod servers;
mod slots;
mod switch;

pub use reload::{Load, Loading, Plans, Reloaded};
pub use switch::Switched;

use crate::approvals;
use crate::event::Events;
use crate::options::{AgentOptions, Plan, Webhook};
use crate::queue;
use crate::runtime::{Error, Relocation, Runtime};
use crate::serial_gate::SerialGate;
use crate::services::Services;
use arc_swap::ArcSwap;
use futures_util::future::join_all;
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::id::SessionId;
use gantry_provider::task;
use gantry_store::Store;
use servers::Overlay;
use slots::{ActiveSlot, RuntimeSlots};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The project that the configuration file itself describes.
pub const DEFAULT: &str = "default";

/// How long calls may take to end when their agent, their server or their project goes away.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);

/// How often a caller whose place is gone when he gets there is shown the next one, before he is turned away.
pub const MOVES: usize = 4;

/// The projects of a process.
#[derive(Debug)]
pub struct Projects {
    services: Arc<Services>,
    projects: ArcSwap<BTreeMap<Arc<str>, Arc<Project>>>,
    loading: Loading,
    /// Held while a new configuration is applied.
    reloading: SerialGate,
    /// What was wrong with the configuration that was refused last, until one is accepted.
    refused: Mutex<Option<Arc<str>>>,
    /// Fires when nothing that waits is to be begun any more.
    stopping: CancellationToken,
}

/// One project.
#[derive(Debug)]
struct Project {
    name: Arc<str>,
    plan: ArcSwap<Plan>,
    overlay: Mutex<Overlay>,
    slots: RuntimeSlots,
    /// Held while its runtimes come and go.
    changing: SerialGate,
    /// Whether it is not configured any more. Set while `changing` is held.
    ended: AtomicBool,
}

/// Where a caller has come to.
#[derive(Debug, Clone)]
pub struct Context {
    /// The runtime.
    pub runtime: Arc<Runtime>,
    /// The agent as which the caller acts there.
    pub agent: Option<Arc<str>>,
}

/// An agent of a project, for those who list them.
#[derive(Debug, Clone)]
pub struct Agent {
    /// The project.
    pub project: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// What is configured of it.
    pub options: AgentOptions,
    /// Whether it is the active one.
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
        loading: Loading,
    ) -> Result<Arc<Self>, Error> {
        let mut projects = BTreeMap::new();
        for (name, plan) in plans {
            let project = Project::start(Arc::clone(&name), plan, &services).await?;
            projects.insert(name, project);
        }
        let stopping = CancellationToken::new();
        let projects = Arc::new(Self {
            services,
            projects: ArcSwap::from_pointee(projects),
            loading,
            reloading: SerialGate::default(),
            refused: Mutex::new(None),
            stopping: stopping.clone(),
        });
        task::spawn("approvals", approvals::run_due(Arc::downgrade(&projects), stopping.clone()));
        task::spawn(
            "approval changes",
            approvals::publish_changes(Arc::downgrade(&projects), stopping.clone()),
        );
        task::spawn("webhooks", approvals::deliver_webhooks(Arc::downgrade(&projects), stopping));
        Ok(projects)
    }

    /// The runtime for a caller of this project, as this agent or as none in particular. Waits while the project turns to
    /// another agent.
    ///
    /// # Errors
    /// There is no such project, or its active agent cannot be had.
    pub async fn context(&self, project: &str, agent: Option<&str>) -> Result<Context, Refusal> {
        let project = self.project(project)?;
        project.context(&self.services, agent).await
    }

    /// The same for those who cannot wait: nothing while there is nothing yet.
    #[must_use]
    pub fn peek(&self, project: &str, agent: Option<&str>) -> Option<Context> {
        self.project(project).ok()?.slots.peek(agent)
    }

    fn project(&self, name: &str) -> Result<Arc<Project>, Refusal> {
        let projects = self.projects.load();
        projects.get(name).cloned().ok_or_else(|| no_project(name))
    }

    /// Whether there is such a project.
    #[must_use]
    pub fn has(&self, project: &str) -> bool {
        self.projects.load().contains_key(project)
    }

    /// The names of the projects.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        self.projects.load().keys().cloned().collect()
    }

    /// The agents of a project, or of all.
    #[must_use]
    pub fn agents(&self, project: Option<&str>) -> Vec<Agent> {
        let projects = self.projects.load();
        let selected = projects.values().filter(|known| project.is_none_or(|name| *name == *known.name));
        selected.flat_map(|project| project.agents()).collect()
    }

    /// The active agent of a project.
    #[must_use]
    pub fn active(&self, project: &str) -> Option<Arc<str>> {
        self.projects.load().get(project)?.slots.active()
    }

    /// All runtimes that are there.
    #[must_use]
    pub fn runtimes(&self) -> Vec<Arc<Runtime>> {
        self.projects.load().values().flat_map(|project| project.slots.runtimes()).collect()
    }

    /// The ledger.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.services.store
    }

    /// What the runtimes share.
    #[must_use]
    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// The stream of events.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.services.events
    }

    /// The webhooks of the projects that have one.
    pub(crate) fn webhooks(&self) -> BTreeMap<Arc<str>, Webhook> {
        let projects = self.projects.load();
        let webhook = |project: &Arc<Project>| project.plan.load().options.approvals.webhook.clone();
        projects.values().filter_map(|project| Some((Arc::clone(&project.name), webhook(project)?))).collect()
    }

    /// How the queues are doing.
    #[must_use]
    pub fn queues(&self) -> Vec<queue::Snapshot> {
        self.services.queues.load().snapshot()
    }

    /// The page that `/metrics` serves.
    #[must_use]
    pub fn metrics_page(&self) -> String {
        let servers = self.servers(None);
        self.services.events.metrics().page(&self.queues(), self.services.store.stats(), &servers)
    }

    /// What was wrong with the configuration that was refused last, if none was accepted since.
    #[must_use]
    pub fn refused(&self) -> Option<Arc<str>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Cancels everything that a session has queued, running or waiting for a person. Returns whether there was such a
    /// session here, or such a call.
    ///
    /// # Errors
    /// The store failed, and calls that wait may wait on.
    pub async fn cancel_session(&self, id: SessionId) -> Result<bool, gantry_store::Error> {
        // First, so that a caller who waits for one of them reads why it ended.
        let held = self.services.withdraw_run(id).await;
        let mut is_live = false;
        for runtime in self.runtimes() {
            is_live |= runtime.cancel_session(id).await;
        }
        // What goes on in a session that was brought back for it, which no runtime remembers.
        let running = self.services.cancel_these(|call| call.session == id);
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
        let slot = match active::read(&plan.options.data) {
            None => None,
            Some(agent) => match plan.options.agents.get_key_value(&*agent) {
                Some((agent, _)) => Some(Ok(Arc::clone(agent))),
                None => Some(Err(agent)),
            },
        };
        let project = Arc::new(Self {
            name,
            plan: ArcSwap::from_pointee(plan),
            overlay: Mutex::default(),
            slots: RuntimeSlots::default(),
            changing: SerialGate::default(),
            ended: AtomicBool::new(false),
        });
        match slot {
            None => project.slots.set_shared(project.build(None, services).await?),
            Some(Ok(agent)) => {
                let runtime = project.build(Some(&agent), services).await?;
                project.slots.set_active(ActiveSlot::Active { agent, runtime });
            }
            Some(Err(agent)) => {
                let reason = "it was active when Gantry ran last, and is not configured any more".into();
                tracing::warn!("agent {agent} of project {}: {reason}", project.name);
                project.slots.set_active(ActiveSlot::Broken { agent, reason });
            }
        }
        Ok(project)
    }

    /// A runtime for this agent alone, or for all.
    async fn build(&self, agent: Option<&Arc<str>>, services: &Arc<Services>) -> Result<Arc<Runtime>, Error> {
        Runtime::start(self.effective(agent), services).await
    }

    async fn context(&self, services: &Arc<Services>, agent: Option<&str>) -> Result<Context, Refusal> {
        let mut is_new = self.slots.is_moving();
        loop {
            if let Some(context) = self.slots.find(agent).await? {
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
            let _changing = self.changing.enter().await;
            self.is_there()?;
            // Another caller may have started it in the meantime, or the project may have turned to another agent.
            if self.slots.peek(agent).is_some() || self.slots.is_moving() {
                continue;
            }
            let shared = self.build(None, services).await.map_err(|error| {
                let message = format!("the project cannot be started: {error}; nothing was run");
                Refusal::new(ErrorCode::UpstreamUnavailable, message)
            })?;
            if let Some(agent) = self.slots.active() {
                let why = format!("agent {agent} is active and has a place of its own").into();
                shared.close_to(Some(Relocation { agent: Some(agent), why }));
            }
            self.slots.set_shared(shared);
        }
    }

    /// Whether it is configured still. To be asked once a turn has come.
    fn is_there(&self) -> Result<(), Refusal> {
        if self.ended.load(Ordering::Acquire) {
            return Err(no_project(&self.name));
        }
        Ok(())
    }

    fn agents(&self) -> Vec<Agent> {
        let (plan, active) = (self.plan.load(), self.slots.active());
        let mut agents: Vec<Agent> = plan
            .options
            .agents
            .iter()
            .map(|(name, options)| Agent {
                project: Arc::clone(&self.name),
                name: Arc::clone(name),
                options: options.clone(),
                active: active.as_ref() == Some(name),
            })
            .collect();
        agents.sort_by(|a, b| a.name.cmp(&b.name));
        agents
    }
}
