//! The conformance fixture: an MCP server, written with rmcp, that has everything the official suite asks of a server.
//!
//! What a tool asks of its client is written once, as a dialogue (`dialogue.rs`). How a question travels depends on
//! the client: as an `input_required` round, as the input of a task, or as a request of the server's own in the older
//! era. So every tool works in every era, and a gateway that translates between eras can be measured with all of them.

mod asking;
mod changes;
mod dialogue;
mod era;
mod media;
mod options;
mod plain;
mod prompts;
mod resources;
mod rounds;
mod serve;
mod server;
mod tasks;
mod tools;

pub use era::Era;
pub use options::{Door, Options, USAGE};
pub use serve::run;
