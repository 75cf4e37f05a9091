//! What passes between the two ends of a request while it is under way: the client channel of `gantry-provider`, and the
//! requests besides tool calls that a server can be sent.

pub use gantry_provider::BoxFuture;
pub use gantry_provider::client::{
    Answered, Audience, Capabilities, LogLevel, Nobody, Notice, Question, Turn, Unanswered,
};

/// What a server can be asked besides its lists, and besides running a tool: for that it takes a permit
/// ([`crate::client::Connection::call`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `resources/read`.
    ReadResource,
    /// `prompts/get`.
    GetPrompt,
    /// `completion/complete`.
    Complete,
    /// `resources/subscribe`, or a resource in the filter of `subscriptions/listen`.
    Subscribe,
    /// `resources/unsubscribe`, or the end of a `subscriptions/listen`.
    Unsubscribe,
    /// `logging/setLevel`.
    SetLevel,
    /// `tasks/get`.
    TaskGet,
    /// `tasks/update`.
    TaskUpdate,
    /// `tasks/cancel`.
    TaskCancel,
}

impl Method {
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
