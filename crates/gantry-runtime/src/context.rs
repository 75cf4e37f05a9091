//! What a call knows about itself while it runs: who asked, in which session, below which call, and when to stop.

use crate::approvals::Decider;
pub use crate::pipeline::timer::TimerChain;
use crate::queue::Held;
use crate::session::Session;
use gantry_core::Caller;
use gantry_core::id::CallId;
use gantry_provider::CallContext;
use gantry_provider::client::{ClientChannel, NoClient};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The context of one call. Cheap to make and to clone.
#[derive(Debug, Clone)]
pub struct CallCx {
    /// The call itself.
    pub id: CallId,
    /// The session that it belongs to.
    pub session: Arc<Session>,
    /// The call below which it was made, if any.
    pub parent: Option<CallId>,
    /// The turn of the session in which it was made, counted from 1.
    pub turn: u32,
    /// Fires when the call is to stop.
    pub cancel: CancellationToken,
    /// Queue slots that calls above this one hold.
    pub held: Held,
    /// The watches of the calls above this one, which stand still while it waits for a person.
    pub watches: TimerChain,
    /// The client behind the call, which may be told and asked things while it runs.
    pub audience: Arc<dyn ClientChannel>,
    /// The person behind that client, if it is known that they may decide.
    pub person: Option<Arc<Decider>>,
    /// What the client said about the call besides its arguments: the text of the `_meta` object of an MCP request.
    pub meta: Option<Arc<str>>,
}

impl CallCx {
    /// A call at the top of its session.
    #[must_use]
    pub fn new(session: &Arc<Session>) -> Self {
        Self {
            id: CallId::mint(),
            session: Arc::clone(session),
            parent: None,
            turn: 1,
            cancel: session.cancellation().child_token(),
            held: Held::default(),
            watches: TimerChain::default(),
            audience: no_client(),
            person: None,
            meta: None,
        }
    }

    /// The same call with a client that can be notified and asked.
    #[must_use]
    pub fn with_client(mut self, audience: Arc<dyn ClientChannel>, meta: Option<Arc<str>>) -> Self {
        self.audience = audience;
        self.meta = meta;
        self
    }

    /// A call made below this one: it shares the session, stops with it, and reuses its slots.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            id: CallId::mint(),
            session: Arc::clone(&self.session),
            parent: Some(self.id),
            turn: self.turn,
            cancel: self.cancel.child_token(),
            held: self.held.clone(),
            watches: self.watches.clone(),
            audience: Arc::clone(&self.audience),
            person: self.person.clone(),
            meta: None,
        }
    }

    /// The same in the session of an agent that this call has started: it asks the same client and the same person.
    #[must_use]
    pub fn child_in_session(&self, session: &Arc<Session>) -> Self {
        let cancel = session.cancellation().child_token();
        Self { session: Arc::clone(session), turn: 1, cancel, ..self.child() }
    }

    /// The context of the call that a provider is running, to make further calls below it; none where the provider was
    /// not called by this engine.
    #[must_use]
    pub fn of(provider: &CallContext) -> Option<Self> {
        provider.engine.downcast_ref::<Self>().cloned()
    }

    /// The same call as its provider sees it; `limit` is how long it may take.
    pub(crate) fn for_provider(self, limit: Duration) -> CallContext {
        CallContext {
            call: self.id,
            session: self.session.id(),
            caller: Arc::clone(self.session.caller()),
            cancel: self.cancel.clone(),
            limit,
            client: Arc::clone(&self.audience),
            meta: self.meta.clone(),
            engine: Arc::new(self),
        }
    }

    /// Who asked.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        self.session.caller()
    }
}

fn no_client() -> Arc<dyn ClientChannel> {
    static NO_CLIENT: LazyLock<Arc<NoClient>> = LazyLock::new(Arc::default);
    Arc::clone(&NO_CLIENT) as Arc<dyn ClientChannel>
}
