//! Runtime slots of a project: the shared runtime, and the active agent's own. They are one value behind a `watch`, so that
//! a caller either finds its runtime or waits for the slot to change.

use super::Context;
use crate::runtime::Runtime;
use gantry_core::error::{ErrorCode, Refusal};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) enum ActiveSlot {
    /// No agent is active: all callers are in the shared runtime.
    #[default]
    Free,
    /// An agent is active: that of this runtime.
    Ready(Arc<Runtime>),
    /// The project is switching to this agent, or to none.
    Switching { to: Option<Arc<str>> },
    /// The runtime of the active agent could not be built. Its callers are refused.
    Failed { agent: Arc<str>, reason: Arc<str> },
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    pub(super) active: ActiveSlot,
    /// None until a caller needs it.
    pub(super) shared: Option<Arc<Runtime>>,
}

impl Slots {
    /// The runtime that a caller belongs to; none if it has to be waited for or started.
    pub(super) fn find(&self, agent: Option<&str>) -> Result<Option<Context>, Refusal> {
        let active = self.active_agent().filter(|active| agent.is_none_or(|agent| *agent == ***active));
        match (&self.active, active) {
            (ActiveSlot::Ready(runtime), Some(active)) => {
                Ok(Some(Context { runtime: Arc::clone(runtime), agent: Some(Arc::clone(active)) }))
            }
            (ActiveSlot::Failed { agent, reason }, Some(_)) => {
                let message = format!(
                    "agent {agent} is active here and cannot be had: {reason}. Nothing was run. \
                     `gantry agents switch` makes another one active, or none"
                );
                Err(Refusal::new(ErrorCode::UpstreamUnavailable, message))
            }
            _ => {
                let shared = self.shared.as_ref().filter(|_| !self.is_switching_for(agent));
                Ok(shared.map(|it| Context { runtime: Arc::clone(it), agent: agent.map(Into::into) }))
            }
        }
    }

    /// Whether a caller has to wait until the switch has ended.
    pub(super) fn is_switching_for(&self, agent: Option<&str>) -> bool {
        matches!(&self.active, ActiveSlot::Switching { to } if agent.is_none() || to.as_deref() == agent)
    }

    pub(super) fn is_switching(&self) -> bool {
        matches!(self.active, ActiveSlot::Switching { .. })
    }

    /// The active agent, also one whose runtime is not ready.
    pub(super) fn active_agent(&self) -> Option<&Arc<str>> {
        match &self.active {
            ActiveSlot::Ready(runtime) => runtime.active.as_ref(),
            ActiveSlot::Failed { agent, .. } => Some(agent),
            ActiveSlot::Switching { to } => to.as_ref(),
            ActiveSlot::Free => None,
        }
    }

    pub(super) fn runtimes(&self) -> Vec<Arc<Runtime>> {
        let active = match &self.active {
            ActiveSlot::Ready(runtime) => Some(runtime),
            ActiveSlot::Free | ActiveSlot::Switching { .. } | ActiveSlot::Failed { .. } => None,
        };
        self.shared.iter().chain(active).cloned().collect()
    }
}
