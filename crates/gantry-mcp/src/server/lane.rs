//! One client with a handshake or a connection of its own: its session and what it has chosen.

use super::{
    Handler,
    caller::{Caller, Habits, Manner, Wishes},
    flight::Flights,
    questions::Questions,
};
use crate::{Version, exchange::Capabilities};
use std::sync::Arc;

/// A session and what is needed to run requests in it.
pub(super) struct Lane<H: Handler> {
    pub(super) session: Arc<H::Session>,
    pub(super) version: Version,
    pub(super) flights: Flights,
    pub(super) capabilities: Arc<Capabilities>,
    /// Tells this client from all others.
    pub(super) number: u64,
    pub(super) questions: Arc<Questions>,
    pub(super) habits: Arc<Habits>,
}

/// Whether a legacy client can be told and asked things while it waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Open,
    OnlyTheAnswer,
}

impl<H: Handler> Lane<H> {
    /// The client, for one of its legacy requests.
    pub(super) fn caller(&self, reach: Reach, wishes: Wishes) -> Arc<Caller> {
        let manner = match reach {
            Reach::Open => {
                Manner::Legacy { questions: Arc::clone(&self.questions), habits: Arc::clone(&self.habits) }
            }
            Reach::OnlyTheAnswer => Manner::Mute,
        };
        Arc::new(Caller::new(Arc::clone(&self.capabilities), self.number, manner, wishes))
    }
}
