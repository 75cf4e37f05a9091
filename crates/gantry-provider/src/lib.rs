//! The `Provider` trait, and the types that a provider and the engine exchange.
//!
//! A provider (an MCP server, a set of REST tools, Gantry's own tools) depends on this crate and not on the engine; the
//! engine depends on this crate and names no provider.

pub mod client;
pub mod clock;
mod context;
pub mod options;
mod output;
mod provider;
pub mod redact;
pub mod resources;
mod rpc_error;
pub mod server;
mod status;
pub mod task;
#[cfg(feature = "testing")]
pub mod testing;

pub use context::CallContext;
pub use output::{Content, RawOutput};
pub use provider::{BoxFuture, CallResult, Provider};
pub use rpc_error::{ErrorObject, code};
pub use status::{HealthStatus, ImportStatus, PinChoice, PinDiff, Pins, ProviderStatus, ReplicaStatus};
