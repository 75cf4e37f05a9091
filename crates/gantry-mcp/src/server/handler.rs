//! What stands behind the server: the trait that gives it sessions, lists, calls and news, and the words they share.

use crate::{
    ErrorObject, Version,
    client::ListKind,
    exchange::{Capabilities, ForwardMethod, RequestContext},
    headers::HeaderParam,
};
pub use gantry_provider::resources::{Change, Features};
use serde_json::value::RawValue;
use std::{borrow::Cow, sync::Arc};
use tokio::sync::broadcast;

/// The part of Gantry that knows tools. The server speaks the protocol, the handler does the work.
///
/// Texts that a handler returns are spliced into answers as they are, so they must be valid JSON.
pub trait Handler: Send + Sync + 'static {
    /// Who asks, and through which door: a session is only ever found again by an equal identity.
    type Identity: Clone + PartialEq + Send + Sync + 'static;
    /// What the handler keeps for one session.
    type Session: Send + Sync + 'static;
    /// A change, with what the handler has to know to tell whom it concerns.
    type Told: AsRef<Change> + Clone + Send + Sync + 'static;

    /// The name this server gives itself; asked once.
    fn server_info(&self) -> ServerInfo;

    /// Advice to the model on how to use this server.
    fn instructions(&self, identity: &Self::Identity) -> Option<String>;

    /// What there is besides tools.
    fn features(&self, identity: &Self::Identity) -> Features;

    /// Begins a session: a client shook hands over HTTP, or sent its first request on a connection of its own.
    fn open(
        &self,
        peer: Peer<'_, Self::Identity>,
    ) -> impl Future<Output = Result<Arc<Self::Session>, ErrorObject>> + Send;

    /// The session that a request without one (2026-07-28 over HTTP) belongs to. It is never closed.
    fn standing(
        &self,
        peer: Peer<'_, Self::Identity>,
    ) -> impl Future<Output = Result<Arc<Self::Session>, ErrorObject>> + Send;

    /// Everything of a kind in a session, in a stable order, as the text of a JSON array.
    ///
    /// Clients before 2026-07-28 refuse a whole list for one tool whose `outputSchema` is not an object schema,
    /// so what is listed may depend on the version.
    fn list(
        &self,
        session: &Arc<Self::Session>,
        kind: ListKind,
        version: Version,
    ) -> impl Future<Output = Result<Arc<str>, ErrorObject>> + Send;

    /// The arguments of a tool that a client of 2026-07-28 repeats in headers; none for an unknown tool.
    fn header_params(&self, session: &Arc<Self::Session>, tool: &str) -> Vec<HeaderParam>;

    /// Calls a tool. An unknown one is an error with [`crate::error::code::INVALID_PARAMS`]; a tool that fails is
    /// an answer with `is_error`.
    ///
    /// The future may be dropped. For a legacy client that means nothing: its connection is not its request. A client of
    /// 2026-07-28 has then withdrawn the call.
    fn call_tool(
        &self,
        session: &Arc<Self::Session>,
        call: ToolCall,
        turn: RequestContext,
    ) -> impl Future<Output = Result<Answer, ErrorObject>> + Send;

    /// Answers any other request; the answer is [`Answer::Raw`].
    ///
    /// [`ForwardMethod::Subscribe`] and [`ForwardMethod::Unsubscribe`] come in pairs: each `Unsubscribe` takes back one `Subscribe` of
    /// the same session and URI. The end of a session takes back the rest.
    fn request(
        &self,
        session: &Arc<Self::Session>,
        inquiry: Inquiry,
        turn: RequestContext,
    ) -> impl Future<Output = Result<Answer, ErrorObject>> + Send;

    /// What changes from now on, for all sessions. Receivers that read too slowly take it that every list is another.
    fn changes(&self) -> broadcast::Receiver<Self::Told>;

    /// Whether a session may hear of a change. Asked for every open stream, so it must be quick.
    fn concerns(&self, session: &Arc<Self::Session>, told: &Self::Told) -> bool;

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
    /// The program it claims to be. That is not checked: it is for display only.
    pub client: Option<ClientInfo<'a>>,
    /// What it says it can do.
    pub capabilities: &'a Capabilities,
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

/// Any other request as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inquiry {
    /// What is asked.
    pub method: ForwardMethod,
    /// The params, the text of an object, without `_meta` and without what answers questions.
    pub params: String,
    /// The exact `_meta` of the request, the text of an object.
    pub meta: Option<String>,
    /// The version the client speaks.
    pub version: Version,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A result that Gantry wrote.
    Own(ToolAnswer),
    /// A result object as a server sent it, of any version. It is changed only where the client's version needs it.
    Raw {
        /// The text of the object.
        result: Arc<str>,
    },
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
