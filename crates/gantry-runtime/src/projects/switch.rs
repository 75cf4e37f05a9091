//! Turning a project to another agent: wait for what runs, tear down, load, build. Each step is told in the event stream.

use super::slots::ActiveSlot;
use super::{DRAIN, Project, Projects, active};
use crate::event::{EventKind, Events};
use crate::runtime::{Relocation, Runtime, unknown_agent};
use crate::services::{Call, Services};
use crate::session::Session;
use futures_util::future::join_all;
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::id::SessionId;
use gantry_provider::resources::{Change, ListKind};
use gantry_provider::task;
use serde::Serialize;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long calls that were told to stop may take to do so.
const STOP: Duration = Duration::from_secs(2);

/// Stands for no agent where one is named.
const NO_AGENT: &str = "(none)";

/// What a switch came to.
#[derive(Debug, Clone, Serialize)]
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

/// What leaves in a switch.
struct Leaving {
    agent: Option<Arc<str>>,
    runtime: Arc<Runtime>,
    /// Whether the runtime itself goes, or only some of its sessions.
    whole: bool,
    sessions: Vec<Arc<Session>>,
}

impl Projects {
    /// Makes an agent of a project the active one, or none. It is done to its end also if its caller is gone.
    ///
    /// # Errors
    /// There is no such project or agent, or the agent cannot be built: then callers of the active agent are refused.
    pub async fn activate(self: &Arc<Self>, project: &str, agent: Option<&str>) -> Result<Switched, Refusal> {
        let (this, project) = (Arc::clone(self), project.to_owned());
        let agent = agent.map(str::to_owned);
        let switch = task::spawn("switch agent", async move {
            // What is on the disk now holds for the new agent, as far as it can be used.
            let mut refused = this.reload_before_switch(&project, agent.as_deref()).await.err();
            let switched = this.project(&project)?.switch(&this.services, agent.as_deref()).await?;
            if refused.is_some() {
                // It may be refused only because it lacks the agent that was active until now.
                refused = this.reload().await.err();
            }
            Ok(Switched { refused, ..switched })
        });
        switch.await.unwrap_or_else(|error| {
            Err(Refusal::new(ErrorCode::InternalError, format!("the switch broke off: {error}")))
        })
    }
}

impl Project {
    async fn switch(&self, services: &Arc<Services>, agent: Option<&str>) -> Result<Switched, Refusal> {
        let begun = Instant::now();
        let _changing = self.changing.enter().await;
        self.is_there()?;
        let to = agent.map(|name| self.configured(name)).transpose()?;
        let (from, events) = (self.slots.active(), services.events.of(&self.name));
        if from == to && self.slots.is_settled() {
            return Ok(self.unchanged(to, begun));
        }
        let grace_ms = u64::try_from(DRAIN.as_millis()).unwrap_or(u64::MAX);
        events.emit(None, EventKind::AgentSwitchStarted { from: from.clone(), to: to.clone(), grace_ms });
        let moving = SwitchGuard::begin(self, to.clone());
        let why: Arc<str> = match &to {
            Some(to) => format!("the project turned to agent {to}").into(),
            None => "the project turned to no agent in particular".into(),
        };
        let leaving = self.leaving(services, moving.before(), to.as_ref(), &why);
        let torn_down = leaving.into_iter().map(|leaving| leaving.tear_down(services, &events, &why));
        let cut_off = join_all(torn_down).await.into_iter().sum();
        let built = self.start_target(to.as_ref(), services, &events).await;
        moving.done();
        let runtime = built.map_err(|reason| self.broken(to.clone(), &reason, &events))?;
        self.remember(to.as_ref()).await;
        for kind in [ListKind::Tools, ListKind::Resources, ListKind::Prompts] {
            // Evicted sessions list again; no other session listens to a provider without a name.
            runtime.tell(Change::ListChanged { provider: "".into(), kind });
        }
        runtime.settled().await;
        let tools = runtime.count_tools(to.as_deref());
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        events.emit(
            None,
            EventKind::AgentSwitchFinished { from: from.clone(), to: to.clone(), tools, took_ms },
        );
        let project = Arc::clone(&self.name);
        Ok(Switched { project, from, to, changed: true, cut_off, tools, refused: None, took_ms })
    }

    /// The agent of this name.
    pub(super) fn configured(&self, name: &str) -> Result<Arc<str>, Refusal> {
        let plan = self.plan.load();
        let known = plan.options.agents.get_key_value(name).map(|(name, _)| Arc::clone(name));
        known.ok_or_else(|| unknown_agent(name, plan.options.agents.keys()))
    }

    fn unchanged(&self, agent: Option<Arc<str>>, begun: Instant) -> Switched {
        let here = self.slots.peek(agent.as_deref());
        Switched {
            project: Arc::clone(&self.name),
            from: agent.clone(),
            tools: here.map_or(0, |here| here.runtime.count_tools(agent.as_deref())),
            to: agent,
            changed: false,
            cut_off: 0,
            refused: None,
            took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// What has to leave: the runtime of the active agent; of the shared one the callers that the seat is for, or all of it
    /// if no other caller needs it. They take no more calls from here on.
    fn leaving(
        &self,
        services: &Services,
        slot: &ActiveSlot,
        to: Option<&Arc<str>>,
        why: &Arc<str>,
    ) -> Vec<Leaving> {
        let mut leaving = Vec::new();
        if let ActiveSlot::Active { agent, runtime } = slot {
            let (agent, runtime) = (Some(Arc::clone(agent)), Arc::clone(runtime));
            // Order: closed before the sessions are listed, so that a session that opens later is seen or refused.
            runtime.close_to(Some(Relocation { agent: None, why: Arc::clone(why) }));
            leaving.push(Leaving { agent, sessions: runtime.live_sessions(), runtime, whole: true });
        }
        if let (Some(shared), Some(to)) = (self.slots.shared(), to) {
            shared.close_to(Some(Relocation { agent: Some(Arc::clone(to)), why: Arc::clone(why) }));
            let moves = |session: &Arc<Session>| shared.is_closed_to(session).is_some();
            let (moving, others): (Vec<_>, Vec<_>) = shared.live_sessions().into_iter().partition(moves);
            // A session without a connection is opened again with the next request.
            let is_needed = |session: &Arc<Session>| {
                let idle = session.is_standing() || session.parent().is_some();
                !idle || services.count(|call| call.session == session.id()) > 0
            };
            let whole = !others.iter().any(is_needed);
            let sessions = if whole {
                self.slots.take_shared();
                shared.close_to(Some(Relocation { agent: None, why: Arc::clone(why) }));
                shared.live_sessions()
            } else {
                moving
            };
            // Where no session is evicted and no runtime ends there is nothing to announce.
            if whole || !sessions.is_empty() {
                leaving.push(Leaving { agent: None, runtime: shared, whole, sessions });
            }
        }
        let sessions = leaving.iter().flat_map(|leaving| &leaving.sessions);
        sessions.for_each(|session| session.leave(why));
        leaving
    }

    /// Builds the runtime that the slot is for, and lets callers in.
    async fn start_target(
        &self,
        to: Option<&Arc<str>>,
        services: &Arc<Services>,
        events: &Events,
    ) -> Result<Arc<Runtime>, String> {
        if to.is_none()
            && let Some(shared) = self.slots.shared()
        {
            shared.close_to(None);
            self.slots.set_active(ActiveSlot::Free);
            return Ok(shared);
        }
        let servers =
            self.effective(to).options.servers.iter().map(|server| Arc::clone(server.id())).collect();
        events.emit(None, EventKind::Build { agent: to.cloned(), servers });
        let runtime = self.build(to, services).await.map_err(|error| error.to_string())?;
        match to {
            Some(agent) => {
                let (agent, runtime) = (Arc::clone(agent), Arc::clone(&runtime));
                self.slots.set_active(ActiveSlot::Active { agent, runtime });
            }
            None => {
                self.slots.set_shared(Arc::clone(&runtime));
                self.slots.set_active(ActiveSlot::Free);
            }
        }
        Ok(runtime)
    }

    /// The callers of an agent whose runtime could not be built are refused.
    fn broken(&self, to: Option<Arc<str>>, reason: &str, events: &Events) -> Refusal {
        let reason: Arc<str> = reason.into();
        events.emit(None, EventKind::AgentSwitchFailed { to: to.clone(), reason: Arc::clone(&reason) });
        let agent = to.unwrap_or_else(|| NO_AGENT.into());
        let message = format!("agent {agent} cannot be built: {reason}");
        self.slots.set_active(ActiveSlot::Broken { agent, reason });
        Refusal::new(ErrorCode::UpstreamUnavailable, message)
    }

    async fn remember(&self, agent: Option<&Arc<str>>) {
        let (data, agent) = (self.plan.load().options.data.clone(), agent.cloned());
        let written = tokio::task::spawn_blocking(move || active::write(&data, agent.as_ref())).await;
        let error = match written {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!(
            "which agent of {} is active could not be remembered; the next start begins with the one before: {error}",
            self.name
        );
    }
}

impl Leaving {
    /// Waits for what runs, then ends it and lets go of everything. Returns how many calls were cut off.
    async fn tear_down(self, services: &Services, events: &Events, why: &Arc<str>) -> usize {
        let Self { agent, runtime, whole, sessions } = self;
        let ids: HashSet<SessionId> = sessions.iter().map(|session| session.id()).collect();
        let number = runtime.number();
        // A session may have begun after we looked; if everything goes, its calls count too.
        let is_leaving = |call: &Call| call.runtime == number && (whole || ids.contains(&call.session));
        let cut_off = services.ended(is_leaving, DRAIN).await;
        events.emit(None, EventKind::Teardown { agent: agent.clone(), forced: cut_off > 0, calls: cut_off });
        for session in &sessions {
            runtime.close_session(session).await;
        }
        if cut_off > 0 {
            services.ended(is_leaving, STOP).await;
        }
        let servers = if whole { runtime.servers().len() } else { 0 };
        if whole {
            runtime.end(why).await;
        }
        events.emit(None, EventKind::TeardownFinished { agent, sessions: ids.len(), servers });
        cut_off
    }
}

/// A switch under way. If it breaks off, callers of the agent that was to become active are refused.
struct SwitchGuard<'a> {
    project: &'a Project,
    to: Option<Arc<str>>,
    before: ActiveSlot,
    done: bool,
}

impl<'a> SwitchGuard<'a> {
    fn begin(project: &'a Project, to: Option<Arc<str>>) -> Self {
        let before = project.slots.set_active(ActiveSlot::Moving { to: to.clone() });
        Self { project, to, before, done: false }
    }

    /// Who sat there.
    fn before(&self) -> &ActiveSlot {
        &self.before
    }

    /// The switch has ended, with an agent or without.
    fn done(mut self) {
        self.done = true;
    }
}

impl Drop for SwitchGuard<'_> {
    fn drop(&mut self) {
        if !self.done {
            let agent = self.to.take().unwrap_or_else(|| NO_AGENT.into());
            self.project
                .slots
                .set_active(ActiveSlot::Broken { agent, reason: "the switch broke off".into() });
        }
    }
}
