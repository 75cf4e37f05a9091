//! A changed configuration: read and checked as a whole, then applied to the projects that it changes.

use super::slots::ActiveSlot;
use super::{DRAIN, Project, Projects};
use crate::event::EventKind;
use crate::options::Plan;
use crate::queue::Queues;
use crate::runtime::Runtime;
use crate::services::{Process, Services};
use futures_util::future::join_all;
use gantry_provider::task;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// What is said to those who were in a project that is gone.
const GONE: &str = "the project is not configured any more";

/// What a configuration says, for all projects.
#[derive(Debug)]
pub struct Plans {
    /// For the process as a whole.
    pub process: Process,
    /// The projects; one that is as it was when they were read last is not among them.
    pub changed: BTreeMap<Arc<str>, Plan>,
    /// The names of all projects.
    pub names: Vec<Arc<str>>,
}

/// Reads the configuration anew; nothing if it is as it was. Blocks. The program brings it, because the configuration is
/// the program's. What was read only counts as known once `keep` was called.
pub trait Load: Send + Sync {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be used, for these reasons.
    fn load(&self) -> Result<Option<Plans>, String>;

    /// What was read last holds now.
    fn keep(&self);
}

/// Where the configuration comes from.
#[derive(Clone)]
pub struct Loading(pub Arc<dyn Load>);

impl fmt::Debug for Loading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Loading").finish_non_exhaustive()
    }
}

impl Loading {
    /// A configuration that never changes.
    #[must_use]
    pub fn never() -> Self {
        struct Never;
        impl Load for Never {
            fn load(&self) -> Result<Option<Plans>, String> {
                Ok(None)
            }
            fn keep(&self) {}
        }
        Self(Arc::new(Never))
    }
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
        self.reloaded(None).await
    }

    /// The same for a project that is about to turn to this agent: the one before may be gone.
    pub(super) async fn reload_before_switch(
        self: &Arc<Self>,
        project: &str,
        to: Option<&str>,
    ) -> Result<Reloaded, Arc<str>> {
        self.reloaded(Some(Leaving { project: project.into(), to: to.map(Into::into) })).await
    }

    async fn reloaded(self: &Arc<Self>, leaving: Option<Leaving>) -> Result<Reloaded, Arc<str>> {
        let this = Arc::clone(self);
        let reload = task::spawn("reload", async move { this.reload_now(leaving.as_ref()).await });
        reload.await.unwrap_or_else(|error| Err(self.refuse(format!("applying it broke off: {error}"))))
    }

    async fn reload_now(&self, leaving: Option<&Leaving>) -> Result<Reloaded, Arc<str>> {
        let _reloading = self.reloading.enter().await;
        let load = Arc::clone(&self.loading.0);
        let read = tokio::task::spawn_blocking(move || load.load()).await;
        let plans = match read.unwrap_or_else(|error| Err(format!("reading it broke off: {error}"))) {
            Ok(Some(plans)) => plans,
            Ok(None) => {
                self.note_refusal(None);
                return Ok(Reloaded::default());
            }
            Err(reason) => return Err(self.refuse(reason)),
        };
        let queues = Queues::default().changed(plans.process.queues.clone());
        if let Err(reason) = self.check(&plans, &queues, leaving) {
            return Err(self.refuse(reason));
        }
        let projects = self.apply(plans).await;
        self.loading.0.keep();
        self.note_refusal(None);
        self.services.events.emit(None, EventKind::ConfigurationApplied { projects: projects.clone() });
        Ok(Reloaded { projects })
    }

    /// What would be wrong if this held.
    fn check(&self, plans: &Plans, queues: &Queues, leaving: Option<&Leaving>) -> Result<(), String> {
        let known = self.projects.load();
        for (name, plan) in &plans.changed {
            let said = |error: &dyn fmt::Display| format!("project {name}: {error}");
            let effective = match known.get(name) {
                Some(project) => project.effective_of(plan, None),
                None => plan.clone(),
            };
            Runtime::check(&effective, queues).map_err(|error| said(&error))?;
            let is_there = |agent: &Arc<str>| plan.options.agents.contains_key(agent);
            let leaves = leaving
                .is_some_and(|leaving| leaving.project == *name && leaving.to.as_ref().is_none_or(is_there));
            let active = known.get(name).and_then(|project| project.slots.available_agent());
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
        self.services.set_max_calls(process.max_calls);
        let known = self.projects.load_full();
        let mut projects: Vec<Arc<str>> = changed.keys().cloned().collect();
        let gone: Vec<_> =
            known.iter().filter(|(name, _)| !names.contains(name)).map(|(_, it)| Arc::clone(it)).collect();
        let mut now: BTreeMap<_, _> = known.iter().map(|(n, p)| (Arc::clone(n), Arc::clone(p))).collect();
        now.retain(|name, _| names.contains(name));
        self.projects.store(Arc::new(now.clone()));
        gone.iter().for_each(|project| project.leave());
        let applied = changed.into_iter().map(|(name, plan)| {
            let known = known.get(&name);
            async move {
                match known {
                    Some(project) => project.reconfigure(plan, &self.services).await,
                    None => return self.began(name, plan).await,
                }
                None
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

    async fn began(&self, name: Arc<str>, plan: Plan) -> Option<Arc<Project>> {
        let began = Project::start(Arc::clone(&name), plan, &self.services).await;
        // It was checked, so this is a race with the world; the others go on.
        began.inspect_err(|error| tracing::error!("project {name} cannot be started: {error}")).ok()
    }

    fn refuse(&self, reason: String) -> Arc<str> {
        let reason: Arc<str> = reason.into();
        // The same mistake is told once, however often it is looked at.
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

/// A project that turns to another agent as soon as the configuration is read.
#[derive(Debug)]
struct Leaving {
    project: Arc<str>,
    to: Option<Arc<str>>,
}

impl Project {
    /// Another plan holds from now on.
    async fn reconfigure(&self, plan: Plan, services: &Arc<Services>) {
        let _changing = self.changing.enter().await;
        self.plan.store(Arc::new(plan));
        self.yield_to_file();
        let runtimes = self.slots.runtimes();
        let changes = runtimes.iter().map(|it| it.reconfigure(self.effective(it.active())));
        join_all(changes).await;
        self.mend(services).await;
    }

    /// Builds the active agent if it could not be had before and is configured now.
    async fn mend(&self, services: &Arc<Services>) {
        let Some(Ok(agent)) = self.slots.broken().map(|agent| self.configured(&agent)) else { return };
        match self.build(Some(&agent), services).await {
            Ok(runtime) => drop(self.slots.set_active(ActiveSlot::Active { agent, runtime })),
            Err(error) => tracing::error!("agent {agent} cannot be built: {error}"),
        }
    }

    /// No caller is let in any more.
    fn leave(&self) {
        let why = GONE.into();
        for runtime in self.slots.runtimes() {
            runtime.live_sessions().iter().for_each(|session| session.leave(&why));
        }
    }

    /// The project is not configured any more.
    async fn end(&self, services: &Services) {
        let _changing = self.changing.enter().await;
        self.ended.store(true, Ordering::Release);
        self.leave();
        let (why, runtimes) = (GONE.into(), self.slots.runtimes());
        let ends = runtimes.iter().map(|runtime| async {
            let number = runtime.number();
            services.ended(|call| call.runtime == number, DRAIN).await;
            runtime.end(&why).await;
        });
        join_all(ends).await;
    }
}
