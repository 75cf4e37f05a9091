//! The program behind the MCP server: sessions, lists and calls, for one client.

use crate::client::ListKind;
use crate::exchange::{BoxFuture, RequestContext};
use crate::headers::HeaderParam;
use crate::{ErrorObject, Version};
use gantry_core::CallRequest;
pub use gantry_provider::resources::{Change, ChangeNotice, Features, ForwardRequest};
use std::any::Any;
use std::sync::Arc;

/// Serves one client at one endpoint: the server speaks the protocol, the handler does the work.
///
/// Over HTTP every message comes with a new handler, and the handler of `initialize` stays in the session. A connection of
/// its own has one handler. The server calls `open_session` or `join_session` until it succeeds once, before `list`,
/// `header_params`, `call_tool`, `request` and `is_visible`; a handler without a session only identifies its client.
///
/// Texts that a handler returns are spliced into responses as they are, so they must be valid JSON.
pub trait Handler: Any + Send + Sync {
    /// Whether both handlers are of the same identity at the same endpoint. Only such a handler finds a session or a request
    /// that waits for input again.
    fn is_same(&self, other: &dyn Handler) -> bool;

    /// Advice to the model on how to use this server.
    fn instructions(&self) -> Option<String>;

    fn features(&self) -> Features;

    /// Opens a session: a client sent `initialize` over HTTP, or its first request on a connection of its own.
    fn open_session(&self) -> BoxFuture<'_, Result<(), ErrorObject>>;

    /// Joins the session that an identity's requests without a session share (2026-07-28 over HTTP). The server never
    /// closes it.
    fn join_session(&self) -> BoxFuture<'_, Result<(), ErrorObject>>;

    /// Everything of a kind, in a stable order, as the text of a JSON array.
    ///
    /// Clients before 2026-07-28 refuse a whole list for one tool whose `outputSchema` is not an object schema,
    /// so the list may depend on the version.
    fn list(&self, kind: ListKind, version: Version) -> BoxFuture<'_, Result<Arc<str>, ErrorObject>>;

    /// The arguments of a tool that a client of 2026-07-28 repeats in headers; none for an unknown tool.
    fn header_params(&self, tool: &str) -> Result<Vec<HeaderParam>, ErrorObject>;

    /// Calls a tool. An unknown one is an error with [`crate::error::code::INVALID_PARAMS`]; a tool that fails is
    /// a result with `isError`. `meta` is the `_meta` of the request, the text of an object.
    ///
    /// The future may be dropped. A legacy client that hangs up has not withdrawn its call; a client of 2026-07-28 has.
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

    /// Ends the session that [`Handler::open_session`] opened. Calls may still be running in it.
    fn close_session(&self) -> BoxFuture<'_, ()>;
}

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
