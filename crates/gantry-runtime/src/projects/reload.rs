//! A changed configuration: read and checked as a whole, then applied to the projects that it changes.

use super::slots::ActiveSlot;
use super::{DRAIN, Project, Projects};
use crate::event::EventKind;
use crate::options::Plan;
use crate::queue::Queues;
use crate::runtime::Runtime;
use crate::services::ProcessOptions;
use futures_util::future::join_all;
use gantry_provider::task;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
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
    /// The projects; none for one that is as it was when they were read last.
    pub projects: BTreeMap<Arc<str>, Option<Plan>>,
    /// Why it must not apply yet.
    pub held: Option<Held>,
}

/// A changed configuration that waits until an administrator applies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// Names exactly this change; to be sent to apply it.
    pub revision: String,
    /// What it takes away, and the files that it brings.
    pub reasons: Vec<String>,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; gantry config apply shows and applies it", self.reasons.join("; "))
    }
}

/// Reads the configuration, which is the program's. What was read only counts as known once `keep` was called.
pub trait Load: Send + Sync + fmt::Debug {
    /// Reads it anew; nothing if it is as it was. Blocks.
    fn load(&self) -> Result<Option<Plans>, String>;

    /// What was read last is about to hold. Blocks.
    fn keep(&self) -> Result<(), String>;
}

/// What a changed configuration came to.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reloaded {
    /// The projects that are other than before.
    pub projects: Vec<Arc<str>>,
    /// The change that was read and not applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
}

impl Projects {
    /// Reads the configuration and applies what has changed, to its end also if its caller is gone. A configuration that
    /// cannot be used changes nothing. A change that is held applies only if its revision is given; if that is of another
    /// one, nothing is applied and nothing returned.
    pub async fn reload(self: &Arc<Self>, revision: Option<&str>) -> Result<Option<Reloaded>, Arc<str>> {
        let (this, revision) = (Arc::clone(self), revision.map(str::to_owned));
        let reload = async move { this.reload_for(None, revision.as_deref()).await };
        let reload = task::spawn("reload", reload).await;
        reload.unwrap_or_else(|error| Err(self.refuse(format!("applying it broke off: {error}"))))
    }

    /// The same in the task of its caller. A project that is about to switch is named with the agent that it switches to:
    /// its active agent may be gone from the configuration.
    pub(super) async fn reload_for(
        &self,
        switching: Option<(&str, Option<&str>)>,
        revision: Option<&str>,
    ) -> Result<Option<Reloaded>, Arc<str>> {
        let _reloading = self.reloading.enter().await;
        let reloaded =
            self.load_and_apply(switching, revision).await.map_err(|reason| self.refuse(reason))?;
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(reloaded)
    }

    async fn load_and_apply(
        &self,
        switching: Option<(&str, Option<&str>)>,
        revision: Option<&str>,
    ) -> Result<Option<Reloaded>, String> {
        let unchanged = revision.is_none().then(Reloaded::default);
        let Some(loader) = self.loader.clone() else { return Ok(unchanged) };
        let reader = Arc::clone(&loader);
        let read = tokio::task::spawn_blocking(move || reader.load()).await;
        let read = read.unwrap_or_else(|error| Err(format!("reading it broke off: {error}")))?;
        let Some(plans) = read else {
            self.hold(None);
            return Ok(unchanged);
        };
        let queues = Queues::new(plans.process.queues.clone());
        for (name, plan) in &plans.projects {
            let checked = self.check(name, plan.as_ref(), &queues, switching);
            checked.map_err(|error| format!("project {name}: {error}"))?;
        }
        let held = plans.held.clone();
        if held.as_ref().map(|held| held.revision.as_str()) != revision {
            self.hold(held.clone());
            return Ok(revision.is_none().then(|| Reloaded { held, ..Reloaded::default() }));
        }
        let kept = tokio::task::spawn_blocking(move || loader.keep()).await;
        kept.unwrap_or_else(|error| Err(format!("keeping it broke off: {error}")))?;
        let projects = self.apply(plans).await;
        self.hold(None);
        self.services.events.emit(None, EventKind::ConfigurationApplied { projects: projects.clone() });
        Ok(Some(Reloaded { projects, held: None }))
    }

    /// What would be wrong with a project if this plan held, or the one that holds if there is no other.
    fn check(
        &self,
        name: &str,
        plan: Option<&Plan>,
        queues: &Queues,
        switching: Option<(&str, Option<&str>)>,
    ) -> Result<(), String> {
        let known = self.project(name).ok();
        let Some(effective) = (match (&known, plan) {
            (Some(project), Some(plan)) => Some(project.effective_of(plan, None)),
            // A queue may go that it uses.
            (Some(project), None) => Some(project.effective(None)),
            (None, plan) => plan.cloned(),
        }) else {
            return Ok(());
        };
        Runtime::check(&effective, queues).map_err(|error| error.to_string())?;
        let is_there = |agent: &str| effective.options.agents.contains_key(agent);
        let leaves = switching.is_some_and(|(project, to)| *project == *name && to.is_none_or(is_there));
        let active = known.and_then(|project| project.runtimes().iter().find_map(|it| it.active.clone()));
        match active.filter(|agent| !leaves && !is_there(agent)) {
            Some(agent) => Err(format!(
                "agent {agent} is active and would be gone; make another one active first: gantry agents switch"
            )),
            None => Ok(()),
        }
    }

    async fn apply(&self, Plans { process, projects, .. }: Plans) -> Vec<Arc<str>> {
        let before = self.services.queues.load_full();
        // Until every project goes by the new names, the old ones are there too.
        let queues = Arc::new(before.changed(process.queues));
        self.services.queues.store(Arc::new(queues.beside(&before)));
        self.services.max_calls.store(process.max_calls, Ordering::Relaxed);
        let known = self.projects.load_full();
        let (mut now, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = known
            .iter()
            .map(|(name, project)| (Arc::clone(name), Arc::clone(project)))
            .partition(|(name, _)| projects.contains_key(name));
        self.projects.store(Arc::new(now.clone()));
        gone.values().for_each(|project| project.evict_sessions());
        let changed: Vec<_> = projects.into_iter().filter_map(|(name, plan)| Some((name, plan?))).collect();
        let names = changed.iter().map(|(name, _)| name).chain(gone.keys()).cloned().collect();
        let applied = changed.into_iter().map(|(name, plan)| {
            let known = known.get(&name);
            async move {
                if let Some(project) = known {
                    project.reconfigure(plan).await;
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
        join_all(gone.values().map(|project| project.end())).await;
        names
    }

    /// Notes the change that is held now; the same reasons are reported once.
    fn hold(&self, held: Option<Held>) {
        let former =
            std::mem::replace(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner), held.clone());
        let is_known = |held: &Held| former.as_ref().is_some_and(|former| former.reasons == held.reasons);
        if let Some(held) = held.filter(|held| !is_known(held)) {
            let reason = held.to_string().into();
            self.services.events.emit(None, EventKind::ConfigurationHeld { reason });
        }
    }

    fn refuse(&self, reason: String) -> Arc<str> {
        self.hold(None);
        let reason: Arc<str> = reason.into();
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        // The same mistake is reported once, however often the configuration is read.
        if refused.replace(Arc::clone(&reason)).as_ref() != Some(&reason) {
            self.services.events.emit(None, EventKind::ConfigurationRefused { reason: Arc::clone(&reason) });
        }
        reason
    }
}

impl Project {
    /// Another plan holds from now on.
    async fn reconfigure(&self, plan: Plan) {
        let _changing = self.changing.enter().await;
        let overlay = self.overlay_beside(&plan);
        *self.overlay() = overlay;
        self.plan.store(Arc::new(plan));
        let runtimes = self.runtimes();
        let changes = runtimes.iter().map(|it| it.reconfigure(self.effective(it.active.as_ref())));
        join_all(changes).await;
        self.retry_failed_agent().await;
    }

    /// Builds the active agent if it could not be built before and is configured now.
    async fn retry_failed_agent(&self) {
        let failed = match &self.slots.borrow().active {
            ActiveSlot::Failed { agent, .. } => Arc::clone(agent),
            ActiveSlot::Free | ActiveSlot::Ready(_) | ActiveSlot::Switching { .. } => return,
        };
        let Ok(agent) = self.configured(&failed) else { return };
        match self.build(Some(&agent)).await {
            Ok(runtime) => self.slots.send_modify(|slots| slots.active = ActiveSlot::Ready(runtime)),
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
    async fn end(&self) {
        let _changing = self.changing.enter().await;
        self.changing.close();
        self.evict_sessions();
        let (why, runtimes) = (GONE.into(), self.runtimes());
        let ends = runtimes.iter().map(|runtime| async {
            self.services.wait_until_ended(|call| call.runtime == runtime.instance_id, DRAIN).await;
            runtime.end(&why).await;
        });
        join_all(ends).await;
    }
}
