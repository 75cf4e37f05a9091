//! What holds in a runtime at the moment: the set-up, the providers and the pool, in one snapshot, and the toolsets that
//! follow from it.
//!
//! A call takes one snapshot at its start and goes by it to its end. So it is judged by the rules of one configuration and
//! run by the providers of the same one, also if the configuration changes meanwhile.

use super::Runtime;
use super::sources::Sources;
use crate::options::{AgentOptions, ApprovalOptions, Options};
use crate::session::{Resolved, Session};
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::policy::Policies;
use gantry_core::toolset::{Place, Pool, Selection};
use gantry_core::{CallRequest, ResolvedCall, Tool, Toolset};
use gantry_provider::Provider;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The limits that the stages look at for every call.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) tool_timeout: Duration,
    pub(crate) response_max_bytes: usize,
    pub(super) context_budget: Option<u64>,
    pub(super) retention: Duration,
    pub(super) max_depth: u32,
}

/// What holds at one moment.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// Counts the changes of rules and providers. What a session found under another one is looked at again.
    pub(super) revision: u64,
    pub(crate) setup: Arc<Setup>,
    pub(super) sources: Arc<Sources>,
    pub(super) pool: Arc<Pool>,
}

impl State {
    /// Tells the provider of this id from others that have had it.
    pub(crate) fn number_of(&self, id: &str) -> u64 {
        self.sources.get(id).map_or(0, |source| source.number)
    }

    /// Which provider it is exactly that has this id.
    pub(crate) fn identity_of(&self, id: &str) -> Option<Arc<str>> {
        self.sources.get(id)?.provider.identity()
    }

    /// Whether the settings of its provider offer a tool at all.
    fn offers(&self, tool: &Tool) -> bool {
        let source = self.sources.get(&tool.key.provider);
        source.is_none_or(|source| source.options.admits(source.provider.origin(), &tool.key.tool))
    }

    /// The provider of this id.
    pub(crate) fn provider(&self, id: &str) -> Result<Arc<dyn Provider>, Refusal> {
        self.sources.get(id).map(|source| Arc::clone(&source.provider)).ok_or_else(|| {
            let message = format!("provider {id} is not there any more; nothing was run");
            Refusal::new(ErrorCode::UpstreamUnavailable, message)
        })
    }
}

/// What a runtime is set up with.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) limits: Limits,
    pub(crate) policies: Arc<Policies>,
    pub(crate) approvals: ApprovalOptions,
    pub(super) agents: HashMap<Arc<str>, AgentOptions>,
}

impl Setup {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            limits: Limits {
                tool_timeout: options.tool_timeout,
                response_max_bytes: options.response_max_bytes,
                context_budget: options.context_budget,
                retention: options.retention,
                max_depth: options.max_depth,
            },
            policies: Arc::clone(&options.policies),
            approvals: options.approvals.clone(),
            agents: options.agents.clone(),
        }
    }

    /// What an agent asks to see; a caller without one sees everything.
    pub(super) fn selection(&self, agent: Option<&str>) -> Result<Cow<'_, Selection>, Refusal> {
        let Some(name) = agent else { return Ok(Cow::Owned(Selection::everything())) };
        let known = self.agents.get(name).map(|agent| Cow::Borrowed(&agent.selection));
        known.ok_or_else(|| unknown_agent(name, self.agents.keys()))
    }
}

/// What is said of an agent that is not configured.
pub(crate) fn unknown_agent<'a>(name: &str, known: impl Iterator<Item = &'a Arc<str>>) -> Refusal {
    let mut known: Vec<&str> = known.map(|name| &**name).collect();
    known.sort_unstable();
    let name: String = name.chars().take(64).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Refusal::new(ErrorCode::PermissionDenied, format!("there is no agent {name:?}; configured: {known}"))
}

/// The refusal for a tool that a session does not have.
fn not_found(now: &Toolset, spelling: &str) -> Refusal {
    let plain = || Refusal::new(ErrorCode::ToolNotFound, format!("tool not found: {spelling}"));
    now.find(spelling).map_or_else(|refusal| refusal, |_another| plain())
}

/// What each agent, or a caller without one, sees of the pool at each depth, resolved once.
/// Bounded by the agents that are configured times the depth that is allowed.
#[derive(Debug, Default)]
pub(super) struct Toolsets(Mutex<HashMap<Viewer, Resolved>>);

/// An agent, or none, and its depth.
type Viewer = (Option<Box<str>>, u32);

impl Toolsets {
    /// Forgets those of other pools, so that these can go.
    pub(super) fn forget_others(&self, pool: &Arc<Pool>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, resolved| resolved.toolset.is_of(pool));
    }

    /// Forgets all, when another set-up holds.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Runtime {
    /// What holds now.
    pub(crate) fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    /// What it is set up with now.
    pub(crate) fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.state.load().setup)
    }

    /// The providers of now.
    pub(super) fn sources(&self) -> Arc<Sources> {
        Arc::clone(&self.state.load().sources)
    }

    /// The provider of this id in a state.
    pub(crate) fn provider(&self, state: &State, id: &str) -> Result<Arc<dyn Provider>, Refusal> {
        if *id == *self.output_tool.key.provider {
            return Ok(Arc::clone(&self.output_provider) as _);
        }
        state.provider(id)
    }

    /// Whether there is a server of this id that cannot be reached at the moment.
    pub(crate) fn is_down(&self, id: &str) -> bool {
        let sources = self.sources();
        let server = sources.get(id).and_then(|source| source.server.clone());
        server.is_some_and(|server| server.tools_digest().is_none())
    }

    /// The place of a caller that no agent started.
    pub(super) fn top(&self) -> Place {
        Place::top(self.setup().limits.max_depth)
    }

    /// What an agent sees now, at a place.
    pub(super) fn resolved(&self, agent: Option<&str>, place: &Place) -> Result<Resolved, Refusal> {
        // Order: asked before the state is taken, so that a yes holds for the pool in it.
        let settled = self.has_settled();
        let resolved = self.resolved_in(&self.state(), agent, place)?;
        Ok(Resolved { settled, ..resolved })
    }

    /// What an agent sees of a state, at a place.
    fn resolved_in(&self, state: &State, agent: Option<&str>, place: &Place) -> Result<Resolved, Refusal> {
        let (pool, selection) = (&state.pool, state.setup.selection(agent)?);
        let key = (agent.map(Into::into), place.depth);
        let fits = |known: &&Resolved| known.revision == state.revision && known.toolset.is_of(pool);
        let cached = || self.toolsets.0.lock().unwrap_or_else(PoisonError::into_inner);
        if place.narrowed.is_none()
            && let Some(known) = cached().get(&key).filter(fits)
        {
            return Ok(known.clone());
        }
        // Not under the lock: a large pool takes a while, and others have theirs already.
        let (toolset, warnings) = Toolset::resolve(pool, &selection, place);
        let resolved = Resolved {
            revision: state.revision,
            toolset: Arc::new(toolset),
            warnings: warnings.into(),
            settled: false,
        };
        if place.narrowed.is_none() {
            cached().insert(key, resolved.clone());
        }
        Ok(resolved)
    }

    /// What an agent sees now at the top.
    ///
    /// # Errors
    /// The agent is not configured.
    pub fn toolset(&self, agent: Option<&str>) -> Result<Arc<Toolset>, Refusal> {
        self.resolved(agent, &self.top()).map(|resolved| resolved.toolset)
    }

    /// What a state leaves the session of a call that it found. What a session sees is fixed for as long as it runs, but a
    /// right that was taken away is gone at once, and how a tool is run is as it is configured now.
    pub(crate) fn still_has(
        &self,
        state: &State,
        session: &Session,
        call: ResolvedCall,
        request: &CallRequest,
    ) -> Result<ResolvedCall, Refusal> {
        if session.resolved().revision == state.revision {
            return Ok(call);
        }
        let now = self.resolved_in(state, session.caller().agent.as_deref(), session.place())?.toolset;
        match now.same(call.tool()).filter(|tool| state.offers(tool)) {
            Some(tool) if tool.fingerprint == call.tool().fingerprint => {
                ResolvedCall::of(Arc::clone(tool), request)
            }
            Some(tool) => {
                let message = format!("{} is another tool now; list the tools again", tool.name);
                Err(Refusal::new(ErrorCode::ToolQuarantined, message))
            }
            None => Err(not_found(&now, &request.tool)),
        }
    }

    /// What a session is answered about a spelling that means none of its tools: as the state words it, so that nothing is
    /// suggested that was taken away.
    pub(crate) fn unknown(
        &self,
        state: &State,
        session: &Session,
        refusal: Refusal,
        spelling: &str,
    ) -> Refusal {
        let is_other = refusal.error().code != ErrorCode::ToolNotFound;
        if is_other || session.resolved().revision == state.revision {
            return refusal;
        }
        let now = self.resolved_in(state, session.caller().agent.as_deref(), session.place());
        now.map_or_else(|refusal| refusal, |now| not_found(&now.toolset, spelling))
    }

    /// Whether a state lifts a tool's own rule for the agent of a session.
    pub(crate) fn auto_approves(&self, state: &State, session: &Session, call: &ResolvedCall) -> bool {
        let now = self.resolved_in(state, session.caller().agent.as_deref(), session.place());
        now.is_ok_and(|now| now.toolset.auto_approves(call.tool()))
    }
}
