//! A changed configuration: read and checked as a whole, then applied to the projects that it changes.

use super::slots::ActiveSlot;
use super::{DRAIN, Project, Projects};
use crate::event::EventKind;
use crate::options::Plan;
use crate::queue::Queues;
use crate::runtime::Runtime;
use crate::services::{ProcessOptions, Services};
use futures_util::future::join_all;
use gantry_provider::task;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Why the sessions of a project that is gone are evicted.
const GONE: &str = "the project is not configured any more";

/// What a configuration says, for all projects.
#[derive(Debug)]
pub struct Plans {
    /// For the process as a whole.
    pub process: ProcessOptions,
    /// The projects; one that is as it was when they were read last is not among them.
    pub changed: BTreeMap<Arc<str>, Plan>,
    /// The names of all projects.
    pub names: Vec<Arc<str>>,
}

/// Reads the configuration, which is the program's. What was read only counts as known once `keep` was called.
pub trait Load: Send + Sync + fmt::Debug {
    /// Reads it anew; nothing if it is as it was. Blocks.
    ///
    /// # Errors
    /// It cannot be used, for these reasons.
    fn load(&self) -> Result<Option<Plans>, String>;

    /// What was read last holds now.
    fn keep(&self);
}

/// What a changed configuration came to.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reloaded {
    /// The projects that are other than before.
    pub projects: Vec<Arc<str>>,
}

impl Projects {
    /// Reads the configuration and applies what has changed, to its end also if its caller is gone. A configuration that
    /// cannot be used changes nothing.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub async fn reload(self: &Arc<Self>) -> Result<Reloaded, Arc<str>> {
        let this = Arc::clone(self);
        let reload = task::spawn("reload", async move { this.reload_for(None).await });
        reload.await.unwrap_or_else(|error| Err(self.refuse(format!("applying it broke off: {error}"))))
    }

    /// The same in the task of its caller. A project that is about to switch is named with the agent that it switches to:
    /// its active agent may be gone from the configuration.
    pub(super) async fn reload_for(
        &self,
        switching: Option<(&str, Option<&str>)>,
    ) -> Result<Reloaded, Arc<str>> {
        let _reloading = self.reloading.enter().await;
        let Some(loader) = self.loader.clone() else { return Ok(Reloaded::default()) };
        let read = tokio::task::spawn_blocking(move || loader.load()).await;
        let plans = match read.unwrap_or_else(|error| Err(format!("reading it broke off: {error}"))) {
            Ok(Some(plans)) => plans,
            Ok(None) => {
                self.note_refusal(None);
                return Ok(Reloaded::default());
            }
            Err(reason) => return Err(self.refuse(reason)),
        };
        let queues = Queues::new(plans.process.queues.clone());
        if let Err(reason) = self.check(&plans, &queues, switching) {
            return Err(self.refuse(reason));
        }
        let projects = self.apply(plans).await;
        self.loader.iter().for_each(|loader| loader.keep());
        self.note_refusal(None);
        self.services.events.emit(None, EventKind::ConfigurationApplied { projects: projects.clone() });
        Ok(Reloaded { projects })
    }

    /// What would be wrong if this held.
    fn check(
        &self,
        plans: &Plans,
        queues: &Queues,
        switching: Option<(&str, Option<&str>)>,
    ) -> Result<(), String> {
        let known = self.projects.load();
        for (name, plan) in &plans.changed {
            let said = |error: &dyn fmt::Display| format!("project {name}: {error}");
            let effective = match known.get(name) {
                Some(project) => project.effective_of(plan, None),
                None => plan.clone(),
            };
            Runtime::check(&effective, queues).map_err(|error| said(&error))?;
            let is_there = |agent: &str| plan.options.agents.contains_key(agent);
            let leaves = switching.is_some_and(|(project, to)| *project == **name && to.is_none_or(is_there));
            let active = known.get(name).and_then(|project| {
                let slots = project.slots.borrow();
                slots.active_runtime().and_then(|runtime| runtime.active.clone())
            });
            if let Some(agent) = active.filter(|agent| !leaves && !is_there(agent)) {
                return Err(said(&format_args!(
                    "agent {agent} is active and would be gone; make another one active first: gantry agents switch"
                )));
            }
        }
        // A queue may go that a project uses whose own part of the file is as it was.
        for (name, project) in known.iter().filter(|(name, _)| !plans.changed.contains_key(*name)) {
            if plans.names.contains(name) {
                Runtime::check(&project.effective(None), queues)
                    .map_err(|error| format!("project {name}: {error}"))?;
            }
        }
        Ok(())
    }

    async fn apply(&self, plans: Plans) -> Vec<Arc<str>> {
        let Plans { process, changed, names } = plans;
        let before = self.services.queues.load_full();
        // Until every project goes by the new names, the old ones are there too.
        let queues = Arc::new(before.changed(process.queues));
        self.services.queues.store(Arc::new(queues.beside(&before)));
        self.services.max_calls.store(process.max_calls, Ordering::Relaxed);
        let known = self.projects.load_full();
        let mut projects: Vec<Arc<str>> = changed.keys().cloned().collect();
        let gone: Vec<_> =
            known.iter().filter(|(name, _)| !names.contains(name)).map(|(_, it)| Arc::clone(it)).collect();
        let mut now: BTreeMap<_, _> = known.iter().map(|(n, p)| (Arc::clone(n), Arc::clone(p))).collect();
        now.retain(|name, _| names.contains(name));
        self.projects.store(Arc::new(now.clone()));
        gone.iter().for_each(|project| project.evict_sessions());
        let applied = changed.into_iter().map(|(name, plan)| {
            let known = known.get(&name);
            async move {
                if let Some(project) = known {
                    project.reconfigure(plan, &self.services).await;
                    return None;
                }
                let began = Project::start(Arc::clone(&name), plan, &self.services).await;
                // It was checked, so this is a race with the world; the others go on.
                began.inspect_err(|error| tracing::error!("project {name} cannot be started: {error}")).ok()
            }
        });
        let began = join_all(applied).await;
        now.extend(began.into_iter().flatten().map(|project| (Arc::clone(&project.name), project)));
        self.projects.store(Arc::new(now));
        self.services.queues.store(queues);
        projects.extend(gone.iter().map(|project| Arc::clone(&project.name)));
        join_all(gone.iter().map(|project| project.end(&self.services))).await;
        projects
    }

    fn refuse(&self, reason: String) -> Arc<str> {
        let reason: Arc<str> = reason.into();
        // The same mistake is reported once, however often the configuration is read.
        if self.refused().as_ref() != Some(&reason) {
            self.services.events.emit(None, EventKind::ConfigurationRefused { reason: Arc::clone(&reason) });
        }
        self.note_refusal(Some(Arc::clone(&reason)));
        reason
    }

    fn note_refusal(&self, reason: Option<Arc<str>>) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}

impl Project {
    /// Another plan holds from now on.
    async fn reconfigure(&self, plan: Plan, services: &Arc<Services>) {
        let _changing = self.changing.enter().await;
        self.plan.store(Arc::new(plan));
        self.yield_to_file();
        let runtimes = self.runtimes();
        let changes = runtimes.iter().map(|it| it.reconfigure(self.effective(it.active.as_ref())));
        join_all(changes).await;
        self.retry_failed_agent(services).await;
    }

    /// Builds the active agent if it could not be built before and is configured now.
    async fn retry_failed_agent(&self, services: &Arc<Services>) {
        let failed = match &self.slots.borrow().active {
            ActiveSlot::Failed { agent, .. } => Arc::clone(agent),
            ActiveSlot::Free | ActiveSlot::Ready { .. } | ActiveSlot::Switching { .. } => return,
        };
        let Ok(agent) = self.configured(&failed) else { return };
        match Runtime::start(self.effective(Some(&agent)), services).await {
            Ok(runtime) => drop(self.set_active(ActiveSlot::Ready { agent, runtime })),
            Err(error) => tracing::error!("agent {agent} cannot be built: {error}"),
        }
    }

    /// Evicts all sessions: no caller is let in any more.
    fn evict_sessions(&self) {
        let why = GONE.into();
        for runtime in self.runtimes() {
            runtime.sessions.all().iter().for_each(|session| session.evict(&why));
        }
    }

    /// The project is not configured any more.
    async fn end(&self, services: &Services) {
        let _changing = self.changing.enter().await;
        self.ended.store(true, Ordering::Release);
        self.evict_sessions();
        let (why, runtimes) = (GONE.into(), self.runtimes());
        let ends = runtimes.iter().map(|runtime| async {
            let number = runtime.instance_id;
            services.wait_until_ended(|call| call.runtime == number, DRAIN).await;
            runtime.end(&why).await;
        });
        join_all(ends).await;
    }
}
