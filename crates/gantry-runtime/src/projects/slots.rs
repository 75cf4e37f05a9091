//! Runtime slots of a project: the shared runtime, and the active agent's own.

use super::Context;
use crate::runtime::Runtime;
use gantry_core::error::{ErrorCode, Refusal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long a caller waits while a project switches agents: running calls end or are cut off, and the runtime of the new
/// agent is built.
const SWITCH_TIMEOUT: Duration = Duration::from_secs(30);

/// The slot of the active agent.
#[derive(Debug, Clone, Default)]
pub(super) enum ActiveSlot {
    /// No agent is active: all callers are in the shared runtime.
    #[default]
    Free,
    /// An agent is active.
    Active { agent: Arc<str>, runtime: Arc<Runtime> },
    /// The project is switching agents.
    Moving { to: Option<Arc<str>> },
    /// The runtime of the active agent could not be built. Its callers are refused.
    Broken { agent: Arc<str>, reason: Arc<str> },
}

/// Both slots.
#[derive(Debug)]
pub(super) struct RuntimeSlots {
    slots: Mutex<Slots>,
    moved: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Slots {
    slot: ActiveSlot,
    shared: Option<Arc<Runtime>>,
}

impl Default for RuntimeSlots {
    fn default() -> Self {
        Self { slots: Mutex::default(), moved: watch::Sender::new(0) }
    }
}

/// The state of the slot that a caller belongs to.
enum Found {
    Here(Context),
    /// The switch has to end first.
    Moving,
    /// The shared runtime has to be started.
    Nothing,
    Refused(Refusal),
}

impl RuntimeSlots {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runtime that a caller belongs to. Waits while its slot is switching; `None` if the shared runtime has to be
    /// started first.
    pub(super) async fn find(&self, agent: Option<&str>) -> Result<Option<Context>, Refusal> {
        let mut moved = self.moved.subscribe();
        let found = async {
            loop {
                match self.look(agent) {
                    Found::Here(context) => return Ok(Some(context)),
                    Found::Nothing => return Ok(None),
                    Found::Refused(refusal) => return Err(refusal),
                    // The sender is ours, so it is there.
                    Found::Moving => drop(moved.changed().await),
                }
            }
        };
        tokio::time::timeout(SWITCH_TIMEOUT, found).await.unwrap_or_else(|_elapsed| {
            let message = "the project is turning to another agent; nothing was run. Try again later.";
            Err(Refusal::new(ErrorCode::UpstreamUnavailable, message))
        })
    }

    /// The runtime that a caller belongs to, if it is ready at this moment.
    pub(super) fn peek(&self, agent: Option<&str>) -> Option<Context> {
        match self.look(agent) {
            Found::Here(context) => Some(context),
            Found::Moving | Found::Nothing | Found::Refused(_) => None,
        }
    }

    fn look(&self, agent: Option<&str>) -> Found {
        let slots = self.slots();
        let is_selected = |active: &Arc<str>| agent.is_none_or(|agent| *agent == **active);
        match &slots.slot {
            ActiveSlot::Active { agent, runtime } if is_selected(agent) => {
                return Found::Here(Context { runtime: Arc::clone(runtime), agent: Some(Arc::clone(agent)) });
            }
            ActiveSlot::Moving { to } if agent.is_none() || to.as_deref() == agent => return Found::Moving,
            ActiveSlot::Broken { agent, reason } if is_selected(agent) => {
                let message = format!(
                    "agent {agent} is active here and cannot be had: {reason}. Nothing was run. \
                     `gantry agents switch` makes another one active, or none"
                );
                return Found::Refused(Refusal::new(ErrorCode::UpstreamUnavailable, message));
            }
            ActiveSlot::Free
            | ActiveSlot::Active { .. }
            | ActiveSlot::Moving { .. }
            | ActiveSlot::Broken { .. } => {}
        }
        match &slots.shared {
            Some(runtime) => {
                Found::Here(Context { runtime: Arc::clone(runtime), agent: agent.map(Into::into) })
            }
            None => Found::Nothing,
        }
    }

    /// Whether the project is switching agents.
    pub(super) fn is_moving(&self) -> bool {
        matches!(self.slots().slot, ActiveSlot::Moving { .. })
    }

    /// Whether no agent is active, or the active one is ready.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.slots().slot, ActiveSlot::Free | ActiveSlot::Active { .. })
    }

    /// The active agent, if it is ready.
    pub(super) fn available_agent(&self) -> Option<Arc<str>> {
        match &self.slots().slot {
            ActiveSlot::Active { agent, .. } => Some(Arc::clone(agent)),
            ActiveSlot::Free | ActiveSlot::Moving { .. } | ActiveSlot::Broken { .. } => None,
        }
    }

    /// The active agent, if its runtime could not be built.
    pub(super) fn broken(&self) -> Option<Arc<str>> {
        match &self.slots().slot {
            ActiveSlot::Broken { agent, .. } => Some(Arc::clone(agent)),
            ActiveSlot::Free | ActiveSlot::Active { .. } | ActiveSlot::Moving { .. } => None,
        }
    }

    /// The active agent.
    pub(super) fn active(&self) -> Option<Arc<str>> {
        match &self.slots().slot {
            ActiveSlot::Active { agent, .. } | ActiveSlot::Broken { agent, .. } => Some(Arc::clone(agent)),
            ActiveSlot::Moving { to } => to.clone(),
            ActiveSlot::Free => None,
        }
    }

    /// Replaces the slot of the active agent and returns the former one.
    pub(super) fn set_active(&self, slot: ActiveSlot) -> ActiveSlot {
        let before = std::mem::replace(&mut self.slots().slot, slot);
        self.moved.send_modify(|moved| *moved += 1);
        before
    }

    /// The shared runtime.
    pub(super) fn shared(&self) -> Option<Arc<Runtime>> {
        self.slots().shared.clone()
    }

    /// From now on this is the shared runtime.
    pub(super) fn set_shared(&self, runtime: Arc<Runtime>) {
        self.slots().shared = Some(runtime);
        self.moved.send_modify(|moved| *moved += 1);
    }

    /// Empties the slot of the shared runtime.
    pub(super) fn take_shared(&self) -> Option<Arc<Runtime>> {
        self.slots().shared.take()
    }

    /// All runtimes that are ready.
    pub(super) fn runtimes(&self) -> Vec<Arc<Runtime>> {
        let slots = self.slots();
        let active = match &slots.slot {
            ActiveSlot::Active { runtime, .. } => Some(Arc::clone(runtime)),
            ActiveSlot::Free | ActiveSlot::Moving { .. } | ActiveSlot::Broken { .. } => None,
        };
        slots.shared.iter().cloned().chain(active).collect()
    }
}
