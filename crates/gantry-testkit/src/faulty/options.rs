//! The command line: how the faulty server is reached, which era it speaks, and which faults it has.

use clap::{Args, Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// An MCP server that misbehaves on request
///
/// Over a socket it prints its URL on one line and runs until standard input ends.
#[derive(Debug, Default, Parser)]
#[command(name = "faulty")]
pub struct Options {
    /// How it is reached
    #[arg(long, value_enum, default_value = "stdio")]
    pub(super) over: Kind,
    /// The port of a socket, any free one for 0
    #[arg(long, default_value = "0")]
    pub(super) port: u16,
    /// What it speaks
    #[arg(long, value_enum, default_value = "legacy")]
    pub(super) era: Era,
    /// The only legacy version it knows
    #[arg(long, value_name = "DATE")]
    pub(super) revision: Option<String>,
    /// Where tools write down what really happened
    #[arg(long, value_name = "FILE")]
    pub(super) journal: Option<PathBuf>,
    /// Entries on a page of a list; all by default
    #[arg(long, value_name = "N")]
    pub(super) page: Option<usize>,
    /// Has one more tool, of this name; may be given several times
    #[arg(long = "tool", value_name = "NAME", allow_hyphen_values = true)]
    pub(super) tools: Vec<String>,
    /// The number in the description of the tool `versioned`
    #[arg(long, value_name = "N", default_value = "1")]
    pub(super) definition_version: u64,
    /// What it says of itself
    #[arg(long, value_name = "TEXT")]
    pub(super) instructions: Option<String>,
    #[command(flatten)]
    pub(super) faults: Faults,
}

/// What is wrong with it.
#[derive(Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each fault is a flag")]
pub(super) struct Faults {
    /// Reads, never answers
    #[arg(long)]
    pub(super) never_start: bool,
    /// Reads nothing before this time has passed
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    pub(super) start_after: Duration,
    /// Answers ping, and server/discover, after this time
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    pub(super) slow_ping: Duration,
    /// Over streamable HTTP answers all with 401, and quotes the Authorization header
    #[arg(long)]
    pub(super) refuse: bool,
    /// Exits with code 3 before anything else
    #[arg(long)]
    pub(super) exit_on_start: bool,
    /// Exits with code 7 on any call, as the tool `die` does
    #[arg(long)]
    pub(super) exit_mid_call: bool,
    /// Closes the connection on any call, as the tool `hang-up` does
    #[arg(long)]
    pub(super) close_socket_on_call: bool,
    /// Exits with code 4 on server/discover
    #[arg(long)]
    pub(super) exit_on_discover: bool,
    /// Never answers server/discover
    #[arg(long)]
    pub(super) silent_on_discover: bool,
    /// Speaks both eras, but refuses initialize on a connection that has seen server/discover
    #[arg(long)]
    pub(super) latch: bool,
    /// Has tools with schemas that are none, and one that breaks its own outputSchema
    #[arg(long)]
    pub(super) lying_schema: bool,
    /// Has tools with results that older versions do not know: an array, a link, rows
    #[arg(long)]
    pub(super) rich_results: bool,
    /// Has tools with hidden, reordering and control characters, and endless descriptions
    #[arg(long)]
    pub(super) poison: bool,
    /// Writes megabytes to standard error before it serves, and more with each call
    #[arg(long)]
    pub(super) stderr_flood: bool,
    /// Every page of a list has a next one (one entry a page unless --page says more)
    #[arg(long)]
    pub(super) endless_pages: bool,
    /// The cursor of the second page is the empty text
    #[arg(long)]
    pub(super) empty_cursor: bool,
    /// Starts a process in a session of its own with MARKER as an argument
    #[arg(long, value_name = "MARKER")]
    pub(super) spawn_grandchild: Option<String>,
    /// Is that process
    #[arg(long, value_name = "MARKER", hide = true)]
    pub(super) be_grandchild: Option<String>,
}

/// How it is reached.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Lines on standard input and output
    #[default]
    Stdio,
    /// Lines over TCP
    Tcp,
    /// Streamable HTTP at /mcp
    Http,
    /// HTTP+SSE at /sse and /messages
    Sse,
    /// WebSocket, subprotocol `mcp`
    Ws,
}

/// Which eras it speaks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Era {
    /// With a handshake, up to 2025-11-25
    #[default]
    Legacy,
    /// Without, 2026-07-28
    Modern,
    /// What the client speaks
    Dual,
}

fn milliseconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_millis)
}

impl Options {
    /// Which eras it speaks.
    pub(super) fn era(&self) -> Era {
        if self.faults.latch { Era::Dual } else { self.era }
    }
}
