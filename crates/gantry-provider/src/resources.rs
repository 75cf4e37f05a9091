//! What a server offers besides tools: resources, templates and prompts, requests about them, and notifications of changes.

use crate::client::{LogLevel, RequestContext};
use std::sync::Arc;

/// A request that is no tool call; [`ForwardMethod::as_str`] has their names on the wire. Running a tool takes a permit and goes
/// through [`crate::Provider::execute`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ForwardMethod {
    ReadResource,
    GetPrompt,
    Complete,
    /// Also a resource in the filter of `subscriptions/listen`.
    Subscribe,
    /// Also the end of a `subscriptions/listen`.
    Unsubscribe,
    SetLevel,
    TaskGet,
    TaskUpdate,
    TaskCancel,
}

impl ForwardMethod {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadResource => "resources/read",
            Self::GetPrompt => "prompts/get",
            Self::Complete => "completion/complete",
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
            Self::SetLevel => "logging/setLevel",
            Self::TaskGet => "tasks/get",
            Self::TaskUpdate => "tasks/update",
            Self::TaskCancel => "tasks/cancel",
        }
    }
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl ListKind {
    /// The method that lists.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The member of the result that holds the list.
    #[must_use]
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }
}

/// A request to a server that is no tool call.
#[derive(Debug)]
pub struct ForwardRequest {
    pub method: ForwardMethod,
    /// The params, the text of an object, without `_meta`.
    pub params: String,
    /// The client's `_meta`, the text of an object. Keys of the protocol and the progress token are replaced by
    /// Gantry's own.
    pub meta: Option<String>,
    /// The client behind the request, and the token that cancels it; the server is notified when it fires.
    pub context: RequestContext,
}

/// What servers offer besides tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a capability on the wire, and any set of them is one"
)]
pub struct Features {
    /// Resources and templates, which can be subscribed to.
    pub resources: bool,
    /// Prompts.
    pub prompts: bool,
    /// Completion of arguments.
    pub completions: bool,
    /// Log messages.
    pub logging: bool,
    /// Extensions and their settings, the text of an object; for clients of 2026-07-28 only.
    pub extensions: Option<String>,
}

/// A change that connected clients may be notified of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A list has changed. [`ListKind::Resources`] stands for templates too.
    ListChanged {
        /// Which list.
        kind: ListKind,
        /// The provider whose part of it changed.
        provider: Arc<str>,
    },
    /// A resource has changed.
    Updated {
        /// The provider of the resource.
        provider: Arc<str>,
        /// Its URI as clients know it.
        uri: Arc<str>,
        /// The params of `notifications/resources/updated`, an object with that URI.
        params: Arc<str>,
    },
    /// A log message that belongs to no request.
    Log {
        /// The provider that wrote it.
        provider: Arc<str>,
        /// How severe it is.
        level: LogLevel,
        /// The params of `notifications/message`, an object.
        params: Arc<str>,
    },
    /// A client has completed what it was sent to a URL for.
    ElicitationComplete {
        /// The provider that had asked for it.
        provider: Arc<str>,
        /// The params of `notifications/elicitation/complete`, an object.
        params: Arc<str>,
    },
}

/// A change, and the runtime in which it happened: two projects may have servers of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeNotice {
    /// The instance id of the runtime.
    pub runtime: u64,
    pub change: Change,
}
