//! The gateway behind the server: the traits that give it sessions, lists and calls.

use crate::{
    ErrorObject, Version,
    client::ListKind,
    exchange::{BoxFuture, RequestContext},
    headers::HeaderParam,
};
use gantry_core::CallRequest;
pub use gantry_provider::resources::{Change, ChangeNotice, Features, ForwardRequest};
use std::{any::Any, sync::Arc};

/// The gateway for one client at one endpoint. The server speaks the protocol, the handler opens sessions.
///
/// Texts that a handler or a session returns are spliced into responses as they are, so they must be valid JSON.
pub trait Handler: Any + Send + Sync {
    /// Whether the other is for the same client at the same endpoint. A session is only ever found again by such a one.
    fn is_same(&self, other: &dyn Handler) -> bool;

    /// Advice to the model on how to use this server.
    fn instructions(&self) -> Option<String>;

    /// The features besides tools.
    fn features(&self) -> Features;

    /// Opens a session: a client sent `initialize` over HTTP, or its first request on a connection of its own.
    fn open_session(&self) -> BoxFuture<'_, Result<Arc<dyn Session>, ErrorObject>>;

    /// The session of all requests without one (2026-07-28 over HTTP). It is never closed.
    fn shared_session(&self) -> BoxFuture<'_, Result<Arc<dyn Session>, ErrorObject>>;
}

/// One session of a client.
pub trait Session: Send + Sync {
    /// Everything of a kind, in a stable order, as the text of a JSON array.
    ///
    /// Clients before 2026-07-28 refuse a whole list for one tool whose `outputSchema` is not an object schema,
    /// so the list may depend on the version.
    fn list(&self, kind: ListKind, version: Version) -> BoxFuture<'_, Result<Arc<str>, ErrorObject>>;

    /// The arguments of a tool that a client of 2026-07-28 repeats in headers; none for an unknown tool.
    fn header_params(&self, tool: &str) -> Vec<HeaderParam>;

    /// Calls a tool. An unknown one is an error with [`crate::error::code::INVALID_PARAMS`]; a tool that fails is
    /// a result with `isError`. `meta` is the `_meta` of the request, the text of an object.
    ///
    /// The future may be dropped. For a legacy client that means nothing: its connection is not its request. A client of
    /// 2026-07-28 has then withdrawn the call.
    fn call_tool(
        &self,
        call: CallRequest,
        meta: Option<Arc<str>>,
        version: Version,
        context: RequestContext,
    ) -> BoxFuture<'_, Outcome>;

    /// Answers any other request with the text of a result object of any protocol version.
    ///
    /// Subscribing and unsubscribing come in pairs: each `Unsubscribe` takes back one `Subscribe` of the same session and
    /// URI. The end of a session takes back the rest.
    fn request(&self, request: ForwardRequest) -> BoxFuture<'_, Result<String, ErrorObject>>;

    /// Whether the client may be notified of a change. Asked for every open stream, so it must be quick.
    fn is_visible(&self, notice: &ChangeNotice) -> bool;

    /// Ends a session that [`Handler::open_session`] opened. Calls may still be running in it.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// The outcome of a request.
pub struct Outcome {
    /// The text of a result object of any protocol version, or the error. A result is changed only where the client's
    /// version needs it.
    pub result: Result<Arc<str>, ErrorObject>,
    /// Records that the client gets the result. It is awaited right before the response is sent, and dropped if the
    /// client is not there to take it.
    pub receipt: Option<Receipt>,
}

/// See [`Outcome::receipt`].
pub type Receipt = BoxFuture<'static, ()>;

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outcome").field("result", &self.result).finish_non_exhaustive()
    }
}

impl From<Result<Arc<str>, ErrorObject>> for Outcome {
    fn from(result: Result<Arc<str>, ErrorObject>) -> Self {
        Self { result, receipt: None }
    }
}
