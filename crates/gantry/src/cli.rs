//! The command line as the person types it.

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// The one door between AI agents and everything they can do.
///
/// Gantry gives agents tools through one governed pipeline: resolved, authorised, approved by a person where that is
/// due, cached, queued, executed under limits, shaped and recorded. Without a configuration file it runs on defaults:
/// the working folder is the workspace, and the built-in file tools are on.
#[derive(Debug, Parser)]
#[command(name = "gantry", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Examples:\n  gantry serve\n  gantry tools\n  gantry call read_file '{\"path\": \"README.md\"}'\n  gantry audit --since 1h"
)]
pub(crate) struct Cli {
    // The variables are read with the configuration, where an empty one counts as unset and errors name it.
    /// Configuration file [default: gantry.yaml, .json or .toml in the working folder] [env: GANTRY_CONFIG]
    #[arg(long, short, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Data folder [default: .gantry beside the configuration] [env: GANTRY_DATA]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    /// Say more: -v tells every call, -vv everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve MCP clients, the HTTP API and metrics
    Serve {
        /// Address to listen on instead of the configured one
        #[arg(long, value_name = "ADDRESS:PORT")]
        bind: Option<std::net::SocketAddr>,
    },
    /// Speak MCP on standard input and output, for a client that starts Gantry itself
    Mcp {
        #[command(flatten)]
        who: Who,
    },
    /// Call a tool and print its result
    #[command(
        after_help = "Examples:\n  gantry call list_directory '{\"path\": \".\"}'\n  gantry call write_file @arguments.json --yes\n  echo '{\"path\": \"a.txt\"}' | gantry call read_file -"
    )]
    Call(Call),
    /// List the tools
    Tools {
        #[command(flatten)]
        who: Who,
        /// How to print them
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
        /// The same as --format json
        #[arg(long)]
        json: bool,
    },
    /// Show the MCP servers and how they are doing, add, remove or restart one
    #[command(args_conflicts_with_subcommands = true)]
    Servers {
        #[command(subcommand)]
        action: Option<ServersAction>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Pin the definitions of the servers' tools in gantry.lock, compare them, accept changes
    #[command(args_conflicts_with_subcommands = true)]
    Lock {
        #[command(subcommand)]
        look: Option<LookAtLock>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what happens: sessions, calls and other requests, servers and their tools
    #[command(
        long_about = "Show what happens: sessions, calls and other requests, servers that come up or go down, tools that change, and the messages of servers with traceMCP. Where no Gantry runs, the calls that are on record. Times are UTC.",
        after_help = "Examples:\n  gantry events --follow\n  gantry events --json | jq 'select(.type == \"server_down\")'"
    )]
    Events(Events),
    /// Show or verify the audit trail
    #[command(args_conflicts_with_subcommands = true)]
    Audit {
        #[command(subcommand)]
        verify: Option<Audit>,
        #[command(flatten)]
        filter: Filter,
    },
    /// Show runs and their operations
    Runs(Runs),
    /// Check the set-up, or explain a server, or why a tool is there or not
    Doctor(Doctor),
}

/// As whom.
#[derive(Debug, Args)]
pub(crate) struct Who {
    /// Act as this agent
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// In this project
    #[arg(long, default_value = "default")]
    pub(crate) project: String,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The tool, by any of its names
    pub(crate) tool: String,
    /// Its arguments as JSON; @FILE reads them from a file, - from standard input
    #[arg(default_value = "{}")]
    pub(crate) arguments: String,
    #[command(flatten)]
    pub(crate) who: Who,
    /// Print the whole reply as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Say yes to whatever the call asks; recorded as your approval
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Repeating a call under the same key gives the first result and runs nothing
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// How urgent it is where calls have to wait
    #[arg(long, value_enum, default_value_t = Priority::Normal)]
    pub(crate) priority: Priority,
    /// Give up after so many milliseconds, if that is sooner than the configured limit
    #[arg(long, value_name = "MS")]
    pub(crate) timeout: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The tool or the MCP server to explain
    #[arg(value_name = "TOOL|SERVER")]
    pub(crate) what: Option<String>,
    /// The agent to explain a tool for
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Events {
    /// Stay and show what happens next
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print each event as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// The run to show as a tree
    pub(crate) id: Option<String>,
    /// Cancel this run and all its calls
    #[arg(long, requires = "id")]
    pub(crate) cancel: bool,
    /// How many to list
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Priority {
    Low,
    Normal,
    High,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Table,
    /// Everything that is known about each tool
    Json,
    /// As an MCP client gets them
    Mcp,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Prove that no entry was changed, removed or added in between
    Verify {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Begun after this: 2026-11-15T09:00:00Z, or back from now: 15m, 2h, 7d
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Begun before this
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Of this tool
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// In this state, such as OUTCOME_UNKNOWN
    #[arg(long)]
    pub(crate) state: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServersAction {
    /// Show the servers, as without a command
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a server to the running Gantry, until that stops
    #[command(
        override_usage = "gantry servers add [OPTIONS] <ID> -- <COMMAND> [ARGS]...\n       gantry servers add [OPTIONS] <ID> --url <URL>",
        after_help = "Examples:\n  gantry servers add memory -- npx -y @modelcontextprotocol/server-memory\n  gantry servers add remote --url https://mcp.example.com/mcp --header \"Authorization: Bearer $TOKEN\""
    )]
    Add(AddServer),
    /// Stop a server of the running Gantry and take its tools away, until that stops
    Remove(NamedServer),
    /// Stop a server of the running Gantry and start it anew
    Restart(NamedServer),
}

#[derive(Debug, Args)]
pub(crate) struct NamedServer {
    /// The server
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("reach").required(true).args(["url", "command"]))]
pub(crate) struct AddServer {
    /// Its id, the namespace of its tools
    pub(crate) id: String,
    /// How it is reached: stdio, http, sse, websocket or tcp [default: by the address or the command]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// A variable of its environment; repeatable
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// A header to send with every request; repeatable
    #[arg(long, value_name = "NAME: VALUE", conflicts_with = "command")]
    pub(crate) header: Vec<String>,
    /// Where it listens
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The program to start, after --, and its arguments
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LookAtLock {
    /// Show what is different between the pinned definitions and those of now
    Diff {
        /// Only of this server
        server: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Accept the definitions of now: of all servers, of one, or of one tool
    Accept(Accept),
}

#[derive(Debug, Args)]
pub(crate) struct Accept {
    /// What to accept
    #[arg(value_name = "SERVER[/TOOL]")]
    pub(crate) what: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print what was accepted as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads the command line.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(args).map_err(|mut error| {
        // The commonest mistake: a program without the -- that keeps its options from being read as Gantry's.
        let stray = error.get(ContextKind::InvalidArg).map(ToString::to_string);
        let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
        if let Some(program) = stray.filter(|word| !word.starts_with('-') && usage.contains("servers add")) {
            let tip = format!(
                "write -- before the program: gantry servers add <ID> -- {} …",
                crate::output::clean(&program)
            );
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        error
    })
}

/// The help of every command, for the reference page.
#[must_use]
pub fn reference() -> String {
    let mut page =
        String::from("# Command line\n\nGenerated from the program itself by `cargo xtask reference`.\n");
    let mut root = Cli::command().term_width(100);
    root.build();
    let mut pending = vec![root];
    while let Some(mut command) = pending.pop() {
        let name = command.get_bin_name().unwrap_or("gantry").to_owned();
        page.push_str(&format!("\n## {name}\n\n```text\n{}```\n", command.render_long_help()));
        let below: Vec<_> = command.get_subcommands().filter(|c| c.get_name() != "help").cloned().collect();
        pending.extend(below.into_iter().rev());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
