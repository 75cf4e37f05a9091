//! MCP servers behind Gantry: connected to, watched, and offered to the engine as providers.
//!
//! [`UpstreamOptions`] is the factory that the program puts into a plan. For each runtime the engine opens one
//! [`gantry_provider::server::ServerGroup`] with it (`context.rs`), which makes the servers and holds what they share:
//! the pinned definitions, the catalog of resources and prompts, the subscriptions of sessions, and the key that signs
//! the ids of tasks.
//!
//! A server (`server.rs`) has one or more replicas, each kept alive by its own task (`supervise.rs`). The states of all
//! replicas make up the server's view (`view.rs`), which every request reads. Tool calls go through
//! [`gantry_provider::Provider::execute`] and need a permit (`call.rs`); every other request goes through `forward.rs`,
//! which finds the server that has what is asked for.
//!
//! What this crate guarantees: a call is sent at most once, to a replica that has the tool as it was judged; new or
//! changed tools of a pinned server are not called before a person accepts them; a caller reaches only servers that it
//! can see; and the process of a stdio server ends with Gantry.

mod answer;
mod call;
mod capability_sessions;
mod catalog;
mod context;
mod duplicate_keys;
mod eras;
mod forward;
mod health;
pub mod launch;
mod listing;
pub mod options;
mod output_check;
mod pins;
mod process;
mod replica;
mod server;
mod status;
mod subscriptions;
mod supervise;
mod suspicious;
mod task_token;
mod trace;
mod uri_map;
mod view;

pub use context::{LockTrust, UpstreamOptions};
pub use options::ServerSettings;

#[cfg(test)]
mod tests;
