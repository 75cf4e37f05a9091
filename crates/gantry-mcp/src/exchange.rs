//! What passes between the two ends of a request while it is under way: the client channel of `gantry-provider`, and the
//! requests besides tool calls that a server can be sent.

pub use gantry_provider::BoxFuture;
pub use gantry_provider::client::{
    Capabilities, ClientChannel, ClientRequest, ClientRequestError, ClientResponse, ClientResponses,
    LogLevel, NoClient, RequestContext, ServerNotification,
};
pub use gantry_provider::resources::ForwardMethod;
