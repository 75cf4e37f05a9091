//! What the tests of tools share.

use gantry_core::{Caller, Role};
use gantry_provider::CallContext;
use std::sync::Arc;
use std::time::Duration;

/// The context of a call without a client.
pub(crate) fn context() -> CallContext {
    let caller = Caller {
        principal: "p".into(),
        role: Role::Agent,
        agent: None,
        project: "default".into(),
        parent_agents: Arc::default(),
    };
    CallContext::detached(caller, Duration::from_secs(60))
}
