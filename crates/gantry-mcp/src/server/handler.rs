//! What stands behind the server: the trait that gives it sessions, tools and calls, and the words they share.

use crate::{ErrorObject, Version};
use serde_json::value::RawValue;
use std::{borrow::Cow, sync::Arc};
use tokio_util::sync::CancellationToken;

/// The part of Gantry that knows tools. The server speaks the protocol, the handler does the work.
///
/// Texts that a handler returns are spliced into answers as they are, so they must be valid JSON.
pub trait Handler: Send + Sync + 'static {
    /// Who asks, and through which door: a session is only ever found again by an equal identity.
    type Identity: Clone + PartialEq + Send + Sync + 'static;
    /// What the handler keeps for one session.
    type Session: Send + Sync + 'static;

    /// The name this server gives itself; asked once.
    fn server_info(&self) -> ServerInfo;

    /// Advice to the model on how to use this server.
    fn instructions(&self, identity: &Self::Identity) -> Option<String>;

    /// Begins a session: a client shook hands over HTTP, or sent its first request on a stdio connection.
    fn open(
        &self,
        peer: Peer<'_, Self::Identity>,
    ) -> impl Future<Output = Result<Arc<Self::Session>, ErrorObject>> + Send;

    /// The session that a request without one (2026-07-28 over HTTP) belongs to. It is never closed.
    fn standing(
        &self,
        peer: Peer<'_, Self::Identity>,
    ) -> impl Future<Output = Result<Arc<Self::Session>, ErrorObject>> + Send;

    /// All tools of a session, in a stable order, as the text of a JSON array.
    ///
    /// Clients before 2026-07-28 refuse a whole list for one tool whose `outputSchema` is not an object schema,
    /// so what is listed may depend on the version.
    fn list_tools(
        &self,
        session: &Arc<Self::Session>,
        version: Version,
    ) -> impl Future<Output = Result<Arc<str>, ErrorObject>> + Send;

    /// Calls a tool. An unknown one is an error with [`crate::error::code::INVALID_PARAMS`]; a tool that fails is
    /// an answer with `is_error`.
    ///
    /// `cancel` fires when the client withdraws the request. The future may also be dropped, which means nothing
    /// for a legacy client: its connection is not its request.
    fn call_tool(
        &self,
        session: &Arc<Self::Session>,
        call: ToolCall,
        cancel: CancellationToken,
    ) -> impl Future<Output = Result<ToolAnswer, ErrorObject>> + Send;

    /// Ends a session that [`Handler::open`] began. Calls may still be running in it.
    fn close(&self, session: Arc<Self::Session>) -> impl Future<Output = ()> + Send;
}

/// The other side, as far as it is known when a session begins.
#[derive(Debug)]
pub struct Peer<'a, I> {
    /// Who the transport says it is.
    pub identity: &'a I,
    /// The version that is spoken with it.
    pub version: Version,
    /// The program it claims to be. Nobody checked that: it is for display only.
    pub client: Option<ClientInfo<'a>>,
}

/// A client's own name and version, each cut to a length that can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientInfo<'a> {
    /// The name of the program.
    pub name: Cow<'a, str>,
    /// Its version; empty if it gave none.
    pub version: Cow<'a, str>,
}

/// This server's own name and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// The name for programs.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The version of the program.
    pub version: String,
}

/// A call as the client sent it.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// The exact text of the arguments, always an object; `None` means no arguments.
    pub arguments: Option<Arc<str>>,
    /// The exact `_meta` of the request, always an object.
    pub meta: Option<Box<RawValue>>,
    /// The version the client speaks.
    pub version: Version,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    /// The content blocks, as the text of a JSON array.
    pub content: String,
    /// The structured result, as JSON text.
    pub structured: Option<String>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// More about the result, as the text of a JSON object. Keys of the protocol itself are not passed on.
    pub meta: Option<String>,
}
