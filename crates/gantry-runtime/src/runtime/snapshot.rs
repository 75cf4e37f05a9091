//! What holds in a runtime at one moment: options, providers and pool, and the toolsets that follow from them.
//!
//! A call takes one snapshot at its start and goes by it to its end. So it is judged by the rules of one configuration and
//! run by the providers of the same one, also if the configuration changes meanwhile.

use super::pool::PoolBuild;
use super::providers::Providers;
use crate::options::Options;
use crate::session::{Resolved, Session};
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::toolset::{Pool, Selection, SpawnContext};
use gantry_core::{CallRequest, ResolvedCall, Toolset};
use gantry_provider::Provider;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Counts the changes of options and providers. What a session found under another revision is checked again.
    pub(super) revision: u64,
    pub(crate) options: Arc<Options>,
    pub(super) providers: Arc<Providers>,
    pub(super) build: Arc<PoolBuild>,
    /// Whether every configured server was ready once or has failed, and the pool shows it. From then on this stays so.
    pub(super) discovered: bool,
    toolsets: Arc<ToolsetCache>,
}

/// What each agent, or a caller without one, sees of the pool at each depth, resolved once.
/// Bounded by the agents that are configured times the depth that is allowed; sessions from before another limit add theirs.
type ToolsetCache = Mutex<HashMap<(Option<Box<str>>, u32, u32), Resolved>>;

impl Snapshot {
    pub(super) fn empty(options: Arc<Options>) -> Self {
        let (providers, build, toolsets) = <(Arc<Providers>, Arc<PoolBuild>, Arc<ToolsetCache>)>::default();
        Self { revision: 0, options, providers, build, discovered: false, toolsets }
    }

    pub(super) fn next(
        &self,
        options: Arc<Options>,
        providers: Arc<Providers>,
        build: Arc<PoolBuild>,
        discovered: bool,
    ) -> Self {
        let is_same = Arc::ptr_eq(&self.options, &options) && Arc::ptr_eq(&self.providers, &providers);
        let sees_same =
            is_same && self.discovered == discovered && Arc::ptr_eq(&self.build.pool, &build.pool);
        let toolsets = if sees_same { Arc::clone(&self.toolsets) } else { Arc::default() };
        let revision = self.revision + u64::from(!is_same);
        Self { revision, options, providers, build, discovered, toolsets }
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.build.pool
    }

    /// Tells the provider of this id from others that have had it.
    pub(crate) fn instance_of(&self, provider: &str) -> u64 {
        self.providers.get(provider).map_or(0, |entry| entry.instance_id)
    }

    /// Which provider it is exactly that has this id.
    pub(crate) fn identity_of(&self, provider: &str) -> Option<Arc<str>> {
        self.providers.get(provider)?.provider.identity()
    }

    pub(crate) fn provider(&self, id: &str) -> Result<Arc<dyn Provider>, Refusal> {
        self.providers.get(id).map(|entry| Arc::clone(&entry.provider)).ok_or_else(|| {
            let message = format!("provider {id} is not there any more; nothing was run");
            Refusal::new(ErrorCode::UpstreamUnavailable, message)
        })
    }

    /// The place of a caller that no agent started.
    pub(super) fn top(&self) -> SpawnContext {
        SpawnContext::top(self.options.limits.max_depth.into())
    }

    /// What an agent asks to see; a caller without one sees everything.
    pub(super) fn selection(&self, agent: Option<&str>) -> Result<Cow<'_, Selection>, Refusal> {
        let Some(name) = agent else { return Ok(Cow::Owned(Selection::everything())) };
        let agents = &self.options.agents;
        let known = agents.get(name).map(|agent| Cow::Borrowed(&agent.selection));
        known.ok_or_else(|| unknown_agent(name, agents.keys()))
    }

    /// What an agent sees, at a place.
    pub(super) fn resolve_toolset(
        &self,
        agent: Option<&str>,
        place: &SpawnContext,
    ) -> Result<Resolved, Refusal> {
        let selection = self.selection(agent)?;
        let key = (agent.map(Into::into), place.depth, place.max_depth);
        let cached = || self.toolsets.lock().unwrap_or_else(PoisonError::into_inner);
        if place.parent_limit.is_none()
            && let Some(known) = cached().get(&key)
        {
            return Ok(known.clone());
        }
        // Not under the lock: a large pool takes a while, and others have theirs already.
        let (toolset, warnings) = Toolset::resolve(self.pool(), &selection, place);
        let (toolset, warnings) = (Arc::new(toolset), warnings.into());
        let resolved = Resolved { revision: self.revision, toolset, warnings, discovered: self.discovered };
        if place.parent_limit.is_none() {
            cached().insert(key, resolved.clone());
        }
        Ok(resolved)
    }

    /// What the agent of a session sees now.
    fn toolset_of(&self, session: &Session) -> Result<Arc<Toolset>, Refusal> {
        Ok(self.resolve_toolset(session.caller().agent.as_deref(), session.place())?.toolset)
    }

    /// Whether nothing has changed since a session was given its tools.
    pub(super) fn is_current(&self, known: &Resolved) -> bool {
        known.revision == self.revision
            && known.discovered == self.discovered
            && known.toolset.is_of(self.pool())
    }

    /// Finds the tool that a session means. What a session sees is fixed for as long as it runs, but a right that was taken
    /// away is gone at once, and is not suggested any more, and how a tool is run is as it is configured now. `seen` is
    /// what the tool is looked for in: another call may have renewed the session meanwhile.
    pub(crate) fn resolve_call(
        &self,
        session: &Session,
        seen: &Resolved,
        request: &CallRequest,
    ) -> Result<ResolvedCall, Refusal> {
        let found = ResolvedCall::resolve(&seen.toolset, request);
        if seen.revision == self.revision {
            return found;
        }
        let call = match found {
            Err(refusal) if refusal.error().code == ErrorCode::ToolNotFound => {
                return Err(not_found(&*self.toolset_of(session)?, &request.tool));
            }
            other => other?,
        };
        let now = self.toolset_of(session)?;
        match now.same(call.tool()) {
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

    /// Whether the agent of a session is configured to run a tool without its own question.
    pub(crate) fn auto_approves(&self, session: &Session, call: &ResolvedCall) -> bool {
        self.toolset_of(session).is_ok_and(|now| now.auto_approves(call.tool()))
    }
}

pub(crate) fn unknown_agent<'a>(name: &str, known: impl Iterator<Item = &'a Arc<str>>) -> Refusal {
    let known: Vec<&str> = known.map(|name| &**name).collect();
    let name: String = name.chars().take(64).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Refusal::new(ErrorCode::PermissionDenied, format!("there is no agent {name:?}; configured: {known}"))
}

fn not_found(now: &Toolset, spelling: &str) -> Refusal {
    let plain = || Refusal::new(ErrorCode::ToolNotFound, format!("tool not found: {spelling}"));
    now.find(spelling).map_or_else(|refusal| refusal, |_another| plain())
}
