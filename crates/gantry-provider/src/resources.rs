//! What a server offers besides tools: resources, templates and prompts, requests about them, and notifications of changes.

use crate::client::{LogLevel, RequestContext};
use gantry_core::words;
use std::sync::Arc;

words! {
    /// A request that is no tool call, with its name on the wire. Running a tool takes a permit and goes through
    /// [`crate::Provider::execute`].
    pub enum ForwardMethod {
        ReadResource = "resources/read",
        GetPrompt = "prompts/get",
        Complete = "completion/complete",
        /// Also a resource in the filter of `subscriptions/listen`.
        Subscribe = "resources/subscribe",
        /// Also the end of a `subscriptions/listen`.
        Unsubscribe = "resources/unsubscribe",
        SetLevel = "logging/setLevel",
        TaskGet = "tasks/get",
        TaskUpdate = "tasks/update",
        TaskCancel = "tasks/cancel",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl ListKind {
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The member of the result that holds the list.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }
}

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
    pub prompts: bool,
    pub completions: bool,
    pub logging: bool,
    /// Extensions and their settings, the text of an object; for clients of 2026-07-28 only.
    pub extensions: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A list has changed. [`ListKind::Resources`] stands for templates too.
    ListChanged {
        kind: ListKind,
        provider: Arc<str>,
    },
    Updated {
        provider: Arc<str>,
        /// Its URI as clients know it.
        uri: Arc<str>,
        /// The params of `notifications/resources/updated`, an object with that URI.
        params: Arc<str>,
    },
    Log {
        provider: Arc<str>,
        level: LogLevel,
        params: Arc<str>,
    },
    /// A client has completed what it was sent to a URL for.
    ElicitationComplete {
        provider: Arc<str>,
        /// The params of `notifications/elicitation/complete`, an object.
        params: Arc<str>,
    },
}

/// A change, and the runtime in which it happened: two projects may have servers of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeNotice {
    pub runtime: u64,
    pub change: Change,
}
