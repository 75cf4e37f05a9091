//! Switching a project to another agent: wait for running calls, tear down, load, build. Each step is an event.

use super::slots::ActiveSlot;
use super::{DRAIN, Project, Projects, STOP, active};
use crate::event::EventKind;
use crate::runtime::{Error, Relocation, Runtime, unknown_agent};
use crate::services::InFlightCall;
use crate::session::Session;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::id::SessionId;
use gantry_provider::resources::{Change, ListKind};
use gantry_provider::task;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

/// Stands for no agent where one is named.
const NO_AGENT: &str = "(none)";

/// What a switch came to.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Switched {
    /// The project.
    pub project: Arc<str>,
    /// The agent that was active.
    pub from: Option<Arc<str>>,
    /// The agent that is active now.
    pub to: Option<Arc<str>>,
    /// Whether anything had to be done for it.
    pub changed: bool,
    /// Calls that did not end in time and were cut off.
    pub cut_off: usize,
    /// How many tools it has.
    pub tools: usize,
    /// Why the configuration on the disk was not loaded; the one before holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Arc<str>>,
    /// How long it took.
    pub took_ms: u64,
}

impl Projects {
    /// Makes an agent of a project the active one, or none. It is done to its end also if its caller is gone.
    ///
    /// # Errors
    /// There is no such project or agent, or the agent cannot be built: then callers of the active agent are refused.
    pub async fn activate(self: &Arc<Self>, project: &str, agent: Option<&str>) -> Result<Switched, Refusal> {
        let (this, name, agent) = (Arc::clone(self), project.to_owned(), agent.map(str::to_owned));
        let switch = task::spawn("switch agent", async move {
            let to = agent.as_deref();
            // What is on the disk now holds for the new agent, as far as it can be used.
            let refused = match this.reload_for(Some((&name, to)), None).await {
                Ok(reloaded) => {
                    reloaded.and_then(|it| it.held).map(|held| format!("it is held: {held}").into())
                }
                Err(reason) => Some(reason),
            };
            Ok(Switched { refused, ..this.project(&name)?.switch(to).await? })
        });
        switch.await.unwrap_or_else(|error| {
            Err(Refusal::new(ErrorCode::InternalError, format!("the switch broke off: {error}")))
        })
    }
}

impl Project {
    async fn switch(&self, agent: Option<&str>) -> Result<Switched, Refusal> {
        let begun = Instant::now();
        let took_ms = || u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let _changing = self.begin_change().await?;
        let to = agent.map(|name| self.configured(name)).transpose()?;
        let (from, runtime) = {
            let slots = self.slots.borrow();
            let is_ready = matches!(slots.active, ActiveSlot::Free | ActiveSlot::Ready(_));
            let here = if is_ready { slots.find(to.as_deref())? } else { None };
            (slots.active_agent().cloned(), here.map(|here| here.runtime))
        };
        let (runtime, cut_off, changed) = match runtime.filter(|_| from == to) {
            Some(runtime) => (runtime, 0, false),
            None => {
                let grace_ms = u64::try_from(DRAIN.as_millis()).unwrap_or(u64::MAX);
                let (from, to) = (from.clone(), to.clone());
                self.events.emit(None, EventKind::AgentSwitchStarted { from, to: to.clone(), grace_ms });
                let replaced = AssertUnwindSafe(self.replace_active(to.as_ref())).catch_unwind().await;
                let (runtime, cut_off) = match replaced {
                    Ok(replaced) => {
                        replaced.map_err(|reason| self.fail_switch(to.as_ref(), reason.into()))?
                    }
                    Err(_panic) => {
                        self.fail_switch(to.as_ref(), "the switch broke off".into());
                        let message = "the switch broke off; the log says more";
                        return Err(Refusal::new(ErrorCode::InternalError, message));
                    }
                };
                (runtime, cut_off, true)
            }
        };
        let tools = runtime.toolset(to.as_deref()).map_or(0, |toolset| toolset.len());
        if changed {
            let (from, to) = (from.clone(), to.clone());
            self.events.emit(None, EventKind::AgentSwitchFinished { from, to, tools, took_ms: took_ms() });
        }
        let project = Arc::clone(&self.name);
        Ok(Switched { project, from, to, changed, cut_off, tools, refused: None, took_ms: took_ms() })
    }

    /// Tears down what belongs to the agent before and builds what the new one has. Returns the runtime of the new one,
    /// and how many calls were cut off.
    async fn replace_active(&self, to: Option<&Arc<str>>) -> Result<(Arc<Runtime>, usize), String> {
        let mut former = ActiveSlot::Switching { to: to.cloned() };
        self.slots.send_modify(|slots| std::mem::swap(&mut slots.active, &mut former));
        let why: Arc<str> = match to {
            Some(to) => format!("the project turned to agent {to}").into(),
            None => "the project turned to no agent in particular".into(),
        };
        let draining = self.draining(&former, to, &why);
        let torn_down = draining.into_iter().map(|draining| self.tear_down(draining, &why));
        let cut_off = join_all(torn_down).await.into_iter().sum();
        let runtime = self.start_target(to).await.map_err(|error| error.to_string())?;
        self.remember(to).await;
        for kind in [ListKind::Tools, ListKind::Resources, ListKind::Prompts] {
            // Evicted sessions list again; no other session listens to a provider without a name.
            runtime.notify_clients(Change::ListChanged { provider: "".into(), kind });
        }
        runtime.settled().await;
        Ok((runtime, cut_off))
    }

    pub(super) fn configured(&self, name: &str) -> Result<Arc<str>, Refusal> {
        let plan = self.plan.load();
        let known = plan.options.agents.get_key_value(name).map(|(name, _)| Arc::clone(name));
        known.ok_or_else(|| unknown_agent(name, plan.options.agents.keys()))
    }

    /// Callers of the agent that could not be switched to are refused; a runtime that is ready stays.
    fn fail_switch(&self, to: Option<&Arc<str>>, reason: Arc<str>) -> Refusal {
        let agent = to.cloned().unwrap_or_else(|| NO_AGENT.into());
        let message = format!("agent {agent} cannot be built: {reason}");
        self.slots.send_modify(|slots| {
            if slots.is_switching() {
                let failed = EventKind::AgentSwitchFailed { to: to.cloned(), reason: Arc::clone(&reason) };
                self.events.emit(None, failed);
                slots.active = ActiveSlot::Failed { agent, reason };
            }
        });
        Refusal::new(ErrorCode::UpstreamUnavailable, message)
    }

    /// What has to leave: the runtime of the active agent; of the shared one the callers that belong to the new agent, or all
    /// of it if no other caller needs it. Their sessions take no more calls from here on.
    fn draining(&self, former: &ActiveSlot, to: Option<&Arc<str>>, why: &Arc<str>) -> Vec<Draining> {
        let mut draining = Vec::new();
        if let ActiveSlot::Ready(runtime) = former {
            // Order: closed before the sessions are listed, so that a session that opens later is seen or refused.
            runtime.close_to(Some(Relocation { agent: None, why: Arc::clone(why) }));
            let sessions = runtime.sessions.all();
            draining.push(Draining { runtime: Arc::clone(runtime), sessions, whole: true });
        }
        let shared = self.slots.borrow().shared.clone();
        if let (Some(shared), Some(to)) = (shared, to) {
            shared.close_to(Some(Relocation { agent: Some(Arc::clone(to)), why: Arc::clone(why) }));
            let moves = |session: &Arc<Session>| shared.is_closed_to(session).is_some();
            let (moving, others): (Vec<_>, Vec<_>) = shared.sessions.all().into_iter().partition(moves);
            // A session without a connection is opened again with the next request.
            let is_needed = |session: &Arc<Session>| {
                let idle = session.head.shared || session.head.parent.is_some();
                !idle || self.services.count_where(|call| call.session == session.id()) > 0
            };
            let whole = !others.iter().any(is_needed);
            let sessions = if whole {
                self.slots.send_modify(|slots| slots.shared = None);
                shared.close_to(Some(Relocation { agent: None, why: Arc::clone(why) }));
                shared.sessions.all()
            } else {
                moving
            };
            // Where no session is evicted and no runtime ends there is nothing to announce.
            if whole || !sessions.is_empty() {
                draining.push(Draining { runtime: shared, sessions, whole });
            }
        }
        draining.iter().flat_map(|it| &it.sessions).for_each(|session| session.evict(why));
        draining
    }

    /// Builds the runtime that the slot is for, and lets callers in.
    async fn start_target(&self, to: Option<&Arc<str>>) -> Result<Arc<Runtime>, Error> {
        let shared = self.slots.borrow().shared.clone().filter(|_| to.is_none());
        let runtime = match shared {
            Some(shared) => {
                shared.close_to(None);
                shared
            }
            None => {
                let servers = self.effective(to).options.servers;
                let servers = servers.iter().map(|server| Arc::clone(server.id())).collect();
                self.events.emit(None, EventKind::Build { agent: to.cloned(), servers });
                self.build(to).await?
            }
        };
        self.slots.send_modify(|slots| match to {
            Some(_) => slots.active = ActiveSlot::Ready(Arc::clone(&runtime)),
            None => (slots.active, slots.shared) = (ActiveSlot::Free, Some(Arc::clone(&runtime))),
        });
        Ok(runtime)
    }

    async fn remember(&self, agent: Option<&Arc<str>>) {
        let (data, agent) = (self.plan.load().options.data.clone(), agent.cloned());
        let written = tokio::task::spawn_blocking(move || active::write(&data, agent.as_ref())).await;
        if let Err(error) = written.map_err(Into::into).flatten() {
            tracing::error!(
                "which agent of {} is active could not be remembered; the next start begins with the one before: {error}",
                self.name
            );
        }
    }

    /// Waits for what runs, then ends it and lets go of everything. Returns how many calls were cut off.
    async fn tear_down(&self, Draining { runtime, sessions, whole }: Draining, why: &Arc<str>) -> usize {
        let (agent, ids): (_, HashSet<SessionId>) =
            (runtime.active.clone(), sessions.iter().map(|session| session.id()).collect());
        // A session may have begun after the sessions were listed; if everything goes, its calls count too.
        let is_leaving = |call: &InFlightCall| {
            call.runtime == runtime.instance_id && (whole || ids.contains(&call.session))
        };
        let cut_off = self.services.wait_until_ended(is_leaving, DRAIN).await;
        let teardown = EventKind::Teardown { agent: agent.clone(), forced: cut_off > 0, calls: cut_off };
        self.events.emit(None, teardown);
        for session in &sessions {
            runtime.close_session(session).await;
        }
        if cut_off > 0 {
            self.services.wait_until_ended(is_leaving, STOP).await;
        }
        let servers = if whole { runtime.servers().len() } else { 0 };
        if whole {
            runtime.end(why).await;
        }
        self.events.emit(None, EventKind::TeardownFinished { agent, sessions: ids.len(), servers });
        cut_off
    }
}

struct Draining {
    runtime: Arc<Runtime>,
    sessions: Vec<Arc<Session>>,
    /// Whether the runtime itself goes, or only these of its sessions.
    whole: bool,
}
