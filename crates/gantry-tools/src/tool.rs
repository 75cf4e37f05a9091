//! What one of Gantry's own tools is: a type that says in one file what the tool is called, what it takes and returns,
//! when it asks a person, and what it does. [`crate::toolbox::ToolBox`] makes a part of a provider of it.
//!
//! `docs/add-a-tool.md` shows a whole one.

use crate::failure;
use crate::toolbox::PermittedCall;
use gantry_core::Fault;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::{Annotations, OwnRule};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// One of Gantry's own tools.
pub(crate) trait Tool: Send + Sync + Debug + 'static {
    /// The name that agents call it by.
    const NAME: &'static str;
    /// A title for people.
    const TITLE: &'static str;
    /// What it may change.
    const HINTS: Annotations;
    /// When it asks for an approval. With [`OwnRule::Depends`], [`Tool::preflight`] answers for each call.
    const APPROVAL: OwnRule = OwnRule::Never;
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
    /// nothing. Only asked where the approval rule is [`OwnRule::Depends`].
    fn preflight(&self, _args: Self::Args) -> impl Future<Output = Result<OwnVerdict, Fault>> + Send {
        std::future::ready(Err(failure::no_preflight(Self::NAME)))
    }

    /// Does what the permit of the call is for.
    fn run(
        &self,
        call: PermittedCall<'_, Self::Args>,
    ) -> impl Future<Output = Result<Self::Output, Fault>> + Send;
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
