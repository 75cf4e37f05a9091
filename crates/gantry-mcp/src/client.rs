//! Gantry as an MCP client: one type of connection, whatever the transport and whatever the era.
//!
//! A [`Target`] says how to reach a server; [`connect`] reaches it, finds out which era it speaks and shakes hands; a
//! [`Connection`] carries requests. What a server sends is passed on as the text that it sent.

mod connection;
mod types;

pub use connection::{Connection, connect};
pub use types::{
    About, Declared, Dial, Event, Failure, ListKind, Outgoing, Protocol, Target, Trace, Transport, Wires,
};
