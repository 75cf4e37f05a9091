//! MCP as raw JSON-RPC, in every protocol version: Gantry as a server and as a client.
//!
//! **Invariant:** a message is scanned once (`gantry_core::json::Object::scan`); later stages use the spans of that scan,
//! and everything else stays the text that came in. There is no typed model of MCP here, so no field is dropped, no
//! number rewritten and no key moved on the way through.
//!
//! Two eras are alive and share one endpoint. In the *legacy* versions a client shakes hands (`initialize`) and
//! then owns a session; since 2026-07-28, the *modern* one, every request carries its version and its
//! capabilities and belongs to no session. [`server::Server`] tells them apart message by message.

pub mod client;
mod envelope;
pub mod error;
pub mod exchange;
pub mod headers;
pub mod limits;
pub mod lines;
pub mod server;
pub mod version;

pub use error::ErrorObject;
pub use exchange::{ForwardMethod, RequestContext};
pub use gantry_core::raw;
pub use server::{
    Body, Change, ChangeNotice, EventStream, Features, ForwardRequest, Handler, Options, Outcome, Receipt,
    Server,
};
pub use version::Version;

/// Locks. A panic elsewhere leaves what is locked whole, because each change to it is one call.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
