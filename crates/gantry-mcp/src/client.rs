//! Gantry as an MCP client: one type of connection, whatever the transport and whatever the era.
//!
//! A [`Target`] says how to reach a server; [`connect`] reaches it, finds out which era it speaks and shakes hands; a
//! [`Connection`] carries requests. What a server sends is passed on as the text that it sent.
//!
//! From the wire inwards: a *link* moves messages, a *dispatcher* knows who waits for which, and the *core* puts
//! requests into the words of an era.

mod connection;
mod core;
mod detect;
mod dispatcher;
mod duplex;
mod event_link;
mod hello;
mod http;
mod limits;
mod link;
mod list;
mod listen;
mod message;
mod meta;
mod notices;
mod pipes;
mod questions;
mod renewal;
mod rounds;
mod tasks;
#[cfg(test)]
mod tests;
mod tools;
mod types;
mod websocket;

pub use connection::{Connection, connect};
pub use types::{
    About, Declared, Dial, Event, Failure, ForwardRequest, ListKind, Protocol, Target, Trace, Transport,
    Wires,
};
