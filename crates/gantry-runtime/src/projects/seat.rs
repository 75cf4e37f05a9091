//! Who sits where in a project: the runtime of the active agent, and the one that the others share.

use super::Context;
use crate::runtime::Runtime;
use gantry_core::error::{ErrorCode, Refusal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long somebody waits for a project that turns to another agent: the time for running calls to end, for what does not
/// end to be closed, and for the new agent to be built.
const PATIENCE: Duration = Duration::from_secs(30);

/// The place of the active agent.
#[derive(Debug, Clone, Default)]
pub(super) enum Seat {
    /// No agent is active: everybody is in the shared runtime.
    #[default]
    Free,
    /// An agent is active.
    Active { agent: Arc<str>, runtime: Arc<Runtime> },
    /// The project turns to another agent.
    Moving { to: Option<Arc<str>> },
    /// An agent is active that cannot be had. Nobody gets more for that.
    Broken { agent: Arc<str>, reason: Arc<str> },
}

/// The places of a project.
#[derive(Debug)]
pub(super) struct Seats {
    taken: Mutex<Taken>,
    moved: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Taken {
    seat: Seat,
    shared: Option<Arc<Runtime>>,
}

impl Default for Seats {
    fn default() -> Self {
        Self { taken: Mutex::default(), moved: watch::Sender::new(0) }
    }
}

/// What is at the moment for somebody who comes.
enum Found {
    Here(Context),
    /// Wait until it has moved.
    Moving,
    /// The shared runtime has to be started.
    Nothing,
    Refused(Refusal),
}

impl Seats {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a caller belongs. Waits while the seat that is his moves; nothing if the shared runtime is to be started.
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
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_elapsed| {
            let message = "the project is turning to another agent; nothing was run. Try again later.";
            Err(Refusal::new(ErrorCode::UpstreamUnavailable, message))
        })
    }

    /// Where a caller belongs, if that is there at this moment.
    pub(super) fn peek(&self, agent: Option<&str>) -> Option<Context> {
        match self.look(agent) {
            Found::Here(context) => Some(context),
            Found::Moving | Found::Nothing | Found::Refused(_) => None,
        }
    }

    fn look(&self, agent: Option<&str>) -> Found {
        let taken = self.taken();
        let is_meant = |active: &Arc<str>| agent.is_none_or(|agent| *agent == **active);
        match &taken.seat {
            Seat::Active { agent, runtime } if is_meant(agent) => {
                return Found::Here(Context { runtime: Arc::clone(runtime), agent: Some(Arc::clone(agent)) });
            }
            Seat::Moving { to } if agent.is_none() || to.as_deref() == agent => return Found::Moving,
            Seat::Broken { agent, reason } if is_meant(agent) => {
                let message = format!(
                    "agent {agent} is active here and cannot be had: {reason}. Nothing was run. \
                     `gantry agents switch` makes another one active, or none"
                );
                return Found::Refused(Refusal::new(ErrorCode::UpstreamUnavailable, message));
            }
            Seat::Free | Seat::Active { .. } | Seat::Moving { .. } | Seat::Broken { .. } => {}
        }
        match &taken.shared {
            Some(runtime) => {
                Found::Here(Context { runtime: Arc::clone(runtime), agent: agent.map(Into::into) })
            }
            None => Found::Nothing,
        }
    }

    /// Whether the project turns to another agent.
    pub(super) fn is_moving(&self) -> bool {
        matches!(self.taken().seat, Seat::Moving { .. })
    }

    /// Whether whoever is active, or nobody, can be had.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.taken().seat, Seat::Free | Seat::Active { .. })
    }

    /// The active agent, if it can be had.
    pub(super) fn sitting(&self) -> Option<Arc<str>> {
        match &self.taken().seat {
            Seat::Active { agent, .. } => Some(Arc::clone(agent)),
            Seat::Free | Seat::Moving { .. } | Seat::Broken { .. } => None,
        }
    }

    /// The active agent, if it cannot be had.
    pub(super) fn broken(&self) -> Option<Arc<str>> {
        match &self.taken().seat {
            Seat::Broken { agent, .. } => Some(Arc::clone(agent)),
            Seat::Free | Seat::Active { .. } | Seat::Moving { .. } => None,
        }
    }

    /// The active agent.
    pub(super) fn active(&self) -> Option<Arc<str>> {
        match &self.taken().seat {
            Seat::Active { agent, .. } | Seat::Broken { agent, .. } => Some(Arc::clone(agent)),
            Seat::Moving { to } => to.clone(),
            Seat::Free => None,
        }
    }

    /// Puts somebody else into the seat and returns who was there.
    pub(super) fn sit(&self, seat: Seat) -> Seat {
        let before = std::mem::replace(&mut self.taken().seat, seat);
        self.moved.send_modify(|moved| *moved += 1);
        before
    }

    /// The shared runtime.
    pub(super) fn shared(&self) -> Option<Arc<Runtime>> {
        self.taken().shared.clone()
    }

    /// From now on this is the shared runtime.
    pub(super) fn share(&self, runtime: Arc<Runtime>) {
        self.taken().shared = Some(runtime);
        self.moved.send_modify(|moved| *moved += 1);
    }

    /// From now on there is none.
    pub(super) fn unshare(&self) -> Option<Arc<Runtime>> {
        self.taken().shared.take()
    }

    /// All that are there.
    pub(super) fn runtimes(&self) -> Vec<Arc<Runtime>> {
        let taken = self.taken();
        let active = match &taken.seat {
            Seat::Active { runtime, .. } => Some(Arc::clone(runtime)),
            Seat::Free | Seat::Moving { .. } | Seat::Broken { .. } => None,
        };
        taken.shared.iter().cloned().chain(active).collect()
    }
}
