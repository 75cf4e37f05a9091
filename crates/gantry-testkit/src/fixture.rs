//! The conformance fixture: an MCP server, written with rmcp, that has everything the official suite asks of a server.
//!
//! What a tool asks of its client is written once, as a dialogue (`dialogue.rs`). How a question travels depends on
//! the client: as an `input_required` round, as the input of a task, or as a request of the server's own in the older
//! era. So every tool works in every era, and a gateway that translates between eras can be measured with all of them.

mod catalogue;
mod changes;
mod converse;
mod dialogue;
mod era;
mod plain;
mod serve;
mod server;
mod tasks;

pub use era::Era;
pub use serve::run;

use clap::Parser;
use rmcp::model::PaginatedRequestParams;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

type Answer<T> = Result<T, ErrorData>;
type Context = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;

/// An MCP server with everything that the official conformance suite asks for.
#[derive(Debug, Parser)]
#[command(name = "fixture")]
pub struct Options {
    /// The revisions it speaks
    #[arg(long, value_enum, default_value = "dual")]
    era: Era,
    /// Speak on standard input and output
    #[arg(long)]
    stdio: bool,
    /// Listen on 127.0.0.1, on any free port for 0; the first line on standard output is the URL
    #[arg(long, default_value = "0", conflicts_with = "stdio")]
    port: u16,
}
