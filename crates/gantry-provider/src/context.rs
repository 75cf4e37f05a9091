//! What a provider knows about the call that it runs: who asked, when to stop, and the client behind it.

use crate::client::{ClientChannel, NoClient};
use gantry_core::Caller;
use gantry_core::id::{CallId, SessionId};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The context of one call, as its provider sees it.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The call itself.
    pub call: CallId,
    /// The session that it belongs to.
    pub session: SessionId,
    /// Who asked.
    pub caller: Arc<Caller>,
    /// Fires when the call is to stop.
    pub cancel: CancellationToken,
    /// How long its execution may take, from the moment it begins.
    pub limit: Duration,
    /// The client behind the call, which may be told and asked things while it runs.
    pub client: Arc<dyn ClientChannel>,
    /// What the client said about the call besides its arguments: the text of the `_meta` object of an MCP request.
    pub meta: Option<Arc<str>>,
    /// What the engine needs to make further calls below this one. Providers hand it back and never look inside.
    pub engine: Arc<dyn Any + Send + Sync>,
}

impl CallContext {
    /// A call of `caller` without a client and without an engine behind it, as tests of providers make them.
    #[must_use]
    pub fn detached(caller: Caller, limit: Duration) -> Self {
        Self {
            call: CallId::mint(),
            session: SessionId::mint(),
            caller: Arc::new(caller),
            cancel: CancellationToken::new(),
            limit,
            client: Arc::new(NoClient::default()),
            meta: None,
            engine: Arc::new(()),
        }
    }
}
