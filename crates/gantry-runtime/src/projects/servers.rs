//! The MCP servers of all projects, and those that were added or removed while the process runs.

use super::{Project, Projects};
use crate::options::{Plan, ServerPlan};
use crate::runtime::Runtime;
use futures_util::future::join_all;
use gantry_provider::{ProviderStatus, task};
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Servers that are added while Gantry runs, at most.
const MAX_ADDED: usize = 1000;

impl Projects {
    pub fn servers(&self, project: Option<&str>) -> Vec<ProviderStatus> {
        let runtimes = self.selected(project).into_iter().flat_map(|project| project.runtimes());
        runtimes.flat_map(|runtime| runtime.servers()).collect()
    }

    pub fn apis(&self, project: Option<&str>) -> Vec<ProviderStatus> {
        let runtimes = self.selected(project).into_iter().flat_map(|project| project.runtimes());
        runtimes.flat_map(|runtime| runtime.apis()).collect()
    }

    /// Starts one more server in a project, also if its caller is gone. It is there until it is removed or the process ends.
    ///
    /// # Errors
    /// There is no such project, there is a provider of that id already, or the settings cannot be used.
    pub async fn add_server(self: &Arc<Self>, project: &str, server: ServerPlan) -> Result<(), String> {
        let project = self.project(project).map_err(|refusal| refusal.error().message.clone())?;
        let this = Arc::clone(self);
        let adding = task::spawn("add server", async move {
            // Not while a configuration is checked, which knows only the servers that were added before.
            let _reloading = this.reloading.enter().await;
            if this.stopping.is_cancelled() {
                return Err("Gantry is shutting down".to_owned());
            }
            project.add_server(server).await
        });
        adding.await.unwrap_or_else(|error| Err(format!("adding it broke off: {error}")))
    }

    /// Stops a server and takes its tools away, until the process ends, also if its caller is gone. Returns whether there
    /// was one.
    pub async fn remove_server(&self, project: &str, id: &str) -> bool {
        let (Ok(project), id) = (self.project(project), id.to_owned()) else { return false };
        let removing = task::spawn("remove server", async move { project.remove_server(&id).await });
        removing.await.unwrap_or_else(|error| {
            tracing::error!("removing a server broke off: {error}");
            false
        })
    }

    /// Stops a server and starts it anew, at once. Returns whether there is one.
    pub async fn restart_server(&self, project: &str, id: &str) -> bool {
        let Ok(project) = self.project(project) else { return false };
        project.runtimes().iter().filter(|runtime| runtime.restart_server(id)).count() > 0
    }

    /// The runtime of a project that has this server, or else the one of callers that name no agent.
    pub fn with_server(&self, project: &str, server: Option<&str>) -> Option<Arc<Runtime>> {
        let runtimes = self.projects.load().get(project)?.runtimes();
        let has = |runtime: &&Arc<Runtime>| {
            server.is_none_or(|id| runtime.servers().iter().any(|server| *server.id == *id))
        };
        runtimes.iter().find(has).or(runtimes.first()).cloned()
    }

    /// Lets every runtime of a project look at its pins again.
    pub async fn look_at_pins(&self, project: &str) {
        let runtimes = self.projects.load().get(project).map(|project| project.runtimes());
        join_all(runtimes.iter().flatten().map(|runtime| runtime.refresh())).await;
    }
}

impl Project {
    async fn add_server(&self, server: ServerPlan) -> Result<(), String> {
        let _changing = self.begin_change().await.map_err(|refusal| refusal.error().message.clone())?;
        let mut plan = self.effective(None);
        if plan.options.servers.iter().any(|known| known.id() == server.id()) {
            return Err(format!("there is a provider {} already; remove it first", server.id()));
        }
        if self.overlay().values().flatten().count() >= MAX_ADDED {
            return Err(format!("{MAX_ADDED} servers were added already; remove some, or write them down"));
        }
        plan.options.servers.push(server.clone());
        Runtime::check(&plan, &self.services.queues.load()).map_err(|error| error.to_string())?;
        self.overlay().insert(Arc::clone(server.id()), Some(server));
        self.apply_overlay().await;
        Ok(())
    }

    async fn remove_server(&self, id: &str) -> bool {
        let Ok(_changing) = self.begin_change().await else { return false };
        let has = |plan: &Plan| plan.options.servers.iter().any(|server| **server.id() == *id);
        if !has(&self.effective(None)) {
            return false;
        }
        if has(&self.plan.load()) {
            self.overlay().insert(id.into(), None);
        } else {
            // One that was never in the file is not missing there, should it come into it later.
            self.overlay().remove(id);
        }
        self.apply_overlay().await;
        true
    }

    /// Starts what was added and closes what was removed, in every runtime that it is for.
    async fn apply_overlay(&self) {
        for runtime in self.runtimes() {
            let gone = runtime.apply(self.effective(runtime.active.as_ref()), false).await;
            join_all(gone.iter().map(|server| server.close())).await;
        }
    }

    pub(super) fn overlay(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Option<ServerPlan>>> {
        self.overlay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan with what was added and removed since, for one agent alone or for all: an agent that has a runtime for
    /// itself has the servers in it that it may use.
    pub(super) fn effective(&self, agent: Option<&Arc<str>>) -> Plan {
        self.effective_of(&self.plan.load(), agent)
    }

    pub(super) fn effective_of(&self, plan: &Plan, agent: Option<&Arc<str>>) -> Plan {
        let (mut plan, overlay) = (plan.clone(), self.overlay_beside(plan));
        let options = &mut plan.options;
        options.servers.retain(|server| !overlay.contains_key(server.id()));
        options.servers.extend(overlay.into_values().flatten());
        options.active = agent.cloned();
        if let Some(agent) = agent {
            // An agent that is not there has nothing.
            let agent = options.agents.get(agent);
            options.servers.retain(|server| {
                let (id, is_prefixed) = (server.id(), server.config.is_prefixed());
                agent.is_some_and(|agent| agent.selection.may_need(id, id, is_prefixed))
            });
        }
        plan
    }

    /// What was added and removed, as it holds with a plan. An id that has come into the file since it was added is the
    /// file's: what the file gives, the file takes away again.
    pub(super) fn overlay_beside(&self, plan: &Plan) -> BTreeMap<Arc<str>, Option<ServerPlan>> {
        let (former, mut overlay) = (self.plan.load(), self.overlay().clone());
        let has = |plan: &Plan, id: &Arc<str>| plan.options.servers.iter().any(|server| server.id() == id);
        overlay.retain(|id, added| added.is_none() || has(&former, id) || !has(plan, id));
        overlay
    }
}
