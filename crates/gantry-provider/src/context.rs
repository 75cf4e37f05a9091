//! What a provider knows about the call that it runs: caller, cancellation, time limit, and the client behind it.

use crate::client::ClientChannel;
use gantry_core::Caller;
use gantry_core::id::{CallId, SessionId};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone)]
pub struct CallContext {
    pub call: CallId,
    pub session: SessionId,
    pub caller: Arc<Caller>,
    /// Fires when the call is to stop.
    pub cancel: CancellationToken,
    /// How long its execution may take, from the moment it begins.
    pub limit: Duration,
    /// The client behind the call, which can be notified and asked while it runs.
    pub client: Arc<dyn ClientChannel>,
    /// The text of the `_meta` object that came with an MCP request.
    pub meta: Option<Arc<str>>,
    /// What the engine needs to make further calls below this one. Providers hand it back and never look inside.
    pub engine: Arc<dyn Any + Send + Sync>,
}
