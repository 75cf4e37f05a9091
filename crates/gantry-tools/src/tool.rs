//! The trait of Gantry's own tools. A tool is a type that says in one file what the tool is called, what it takes and
//! returns, when it asks for an approval, and what it does. A [`crate::toolbox::ToolBox`] holds the tools of a family.
//!
//! `docs/add-a-tool.md` shows a whole one.

pub(crate) mod prelude;

use crate::failure::{self, Result};
use crate::toolbox::PermittedCall;
use gantry_core::EffectState;
use gantry_core::policy::Preflight;
use gantry_core::tool::{Annotations, ApprovalRule};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// One of Gantry's own tools.
pub(crate) trait Tool: Send + Sync + Debug + 'static {
    /// The name that agents call it by.
    const NAME: &'static str;
    const TITLE: &'static str;
    /// What it may change.
    const HINTS: Annotations;
    /// When it asks for an approval. With [`ApprovalRule::Depends`], [`Tool::preflight`] answers for each call.
    const APPROVAL: ApprovalRule = ApprovalRule::Never;
    /// The longest that a call takes, where that may be longer than what the configuration gives to every tool.
    const TIME_LIMIT: Option<Duration> = None;

    /// The arguments. The doc comment of this type describes the tool, those of its fields describe the arguments.
    type Args: DeserializeOwned + JsonSchema + Send + 'static;
    /// The result. The doc comments of its fields describe what it says.
    type Output: Serialize + JsonSchema + Send;

    /// What the description says besides, where that depends on how the tool is set up.
    fn note(&self) -> Option<String> {
        None
    }

    /// Looks at the world to say whether this call needs an approval, and what must still hold when it runs. Changes
    /// nothing. Only asked where the approval rule is [`ApprovalRule::Depends`].
    fn preflight(&self, _args: Self::Args) -> impl Future<Output = Result<Preflight>> + Send {
        std::future::ready(Err(failure::internal(format!(
            "internal error: {} declares a conditional approval rule, but has no preflight check; nothing was run",
            Self::NAME
        ))))
    }

    /// Does what the permit of the call is for.
    fn run(&self, call: PermittedCall<Self::Args>) -> impl Future<Output = Result<Self::Output>> + Send;
}

/// The hints of a tool that changes nothing.
pub(crate) const READS: Annotations = Annotations {
    read_only_hint: Some(true),
    destructive_hint: Some(false),
    idempotent_hint: Some(true),
    open_world_hint: Some(false),
};

/// The hints of a tool that changes something, which can be changed back.
pub(crate) const CHANGES: Annotations = Annotations {
    read_only_hint: Some(false),
    destructive_hint: Some(false),
    idempotent_hint: Some(false),
    open_world_hint: Some(false),
};

/// The folder that a call is about if it does not say: the root of the workspace.
pub(crate) fn default_path() -> String {
    ".".to_owned()
}

/// How long a call may take that says this; `most` seconds at most.
pub(crate) fn time_limit(seconds: f64, most: u64) -> Result<Duration> {
    let limit = Duration::try_from_secs_f64(seconds).ok();
    let fitting = limit.filter(|limit| !limit.is_zero() && *limit <= Duration::from_secs(most));
    fitting.ok_or_else(|| {
        failure::invalid(format!("the timeout is a number of seconds, more than 0 and up to {most}"))
    })
}

/// Does work that takes long or blocks, on a thread that may. `effect` is what may have happened if the work crashes.
pub(crate) async fn run_blocking<T: Send + 'static>(
    effect: EffectState,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|crash| failure::crashed(&crash, effect))
}
