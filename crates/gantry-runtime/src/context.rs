//! The context that a call carries through the pipeline: caller, session, parent call, cancellation. A provider gets the part
//! of it that it needs as [`CallContext`].

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

#[derive(Debug, Clone)]
pub struct PipelineContext {
    pub id: CallId,
    pub session: Arc<Session>,
    /// The call below which it was made, if any.
    pub parent: Option<CallId>,
    /// The turn of the session in which it was made, counted from 1.
    pub turn: u32,
    /// Fires when the call is to stop.
    pub cancel: CancellationToken,
    /// Queue slots that calls above this one hold.
    pub held_slots: Held,
    /// The timers of the calls above this one, which are paused while it waits for a person.
    pub timers: TimerChain,
    /// The client behind the call, which can be notified and asked while it runs.
    pub client: Arc<dyn ClientChannel>,
    /// The person behind that client, if it is known that they may decide.
    pub decider: Option<Arc<Decider>>,
    /// What the client said about the call besides its arguments: the text of the `_meta` object of an MCP request.
    pub meta: Option<Arc<str>>,
}

impl PipelineContext {
    /// A call at the top of its session.
    pub fn new(session: &Arc<Session>) -> Self {
        /// One for all calls: most get a client of their own.
        static NO_CLIENT: LazyLock<Arc<NoClient>> = LazyLock::new(Arc::default);
        let client: Arc<dyn ClientChannel> = Arc::<NoClient>::clone(&NO_CLIENT);
        Self {
            id: CallId::generate(),
            session: Arc::clone(session),
            parent: None,
            turn: 1,
            cancel: session.cancellation().child_token(),
            held_slots: Held::default(),
            timers: TimerChain::default(),
            client,
            decider: None,
            meta: None,
        }
    }

    /// A call made below this one: it shares the session, stops with it, and reuses its slots.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            id: CallId::generate(),
            parent: Some(self.id),
            cancel: self.cancel.child_token(),
            meta: None,
            ..self.clone()
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
    pub fn from_provider(provider: &CallContext) -> Option<Self> {
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
            client: Arc::clone(&self.client),
            meta: self.meta.clone(),
            engine: Arc::new(self),
        }
    }

    pub fn caller(&self) -> &Caller {
        self.session.caller()
    }
}
