//! Gantry as an MCP client: one type of connection for every transport and both eras.
//!
//! A [`Target`] says how to reach a server; [`connect`] reaches it, finds out its era and completes the handshake; a
//! [`Connection`] carries requests. Results are passed on as the text that the server sent.
//!
//! From the wire inwards: a *link* moves messages, a *dispatcher* gives them to the requests that wait for them, and
//! `ConnectionInner` writes requests in the way of an era.

mod client_requests;
mod connection;
mod dispatcher;
mod duplex;
mod handshake;
mod http;
mod inner;
mod input_required;
mod limits;
mod lines;
mod list;
mod message;
mod meta;
mod notifications;
mod pending;
mod queue;
mod sse;
mod subscriptions;
mod tasks;
#[cfg(test)]
mod tests;
mod tools;
mod transport;
mod types;
mod websocket;

pub use connection::{Connection, connect};
pub use types::{
    Change, ForwardRequest, IoStreams, ListKind, OfferedCapabilities, Protocol, Spawn, Target, Trace,
    Transport, UpstreamError, UpstreamInfo,
};
