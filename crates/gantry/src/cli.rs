//! The command line as the person types it.

mod actions;
mod approvals;
mod config;
mod openapi;
mod policy;

pub(crate) use actions::{
    Accept, AddServer, AgentsAction, Audit, LookAtLock, NamedServer, ServersAction, Switch,
};
pub(crate) use approvals::{
    ApprovalsAction, Approve, CreateKey, Deny, Grants, KeysAction, ListApprovals, ListKeys, OneApproval,
    RevokeGrant, Role, Scope, WatchApprovals,
};
pub(crate) use config::ConfigAction;
pub(crate) use openapi::{Inspect, OpenapiAction};
pub(crate) use policy::{PolicyAction, Replay, TestPolicy};

use crate::config::MAIN_PROJECT;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// The heading of the options that every command has, so that they follow its own.
const GLOBAL: &str = "Global options";

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
    #[arg(long, short, global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub(crate) config: Option<PathBuf>,
    /// Data folder [default: .gantry beside the configuration] [env: GANTRY_DATA]
    #[arg(long, global = true, value_name = "FOLDER", help_heading = GLOBAL)]
    pub(crate) data: Option<PathBuf>,
    /// Say more: -v tells every call, -vv everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = GLOBAL)]
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
        long_about = "Call a tool and print its result. A call that needs a person's approval is put to you on a terminal; elsewhere it is left waiting, and the answer says how to approve it. A call that has to wait for its time is waited for.",
        after_help = "Examples:\n  gantry call list_directory '{\"path\": \".\"}'\n  gantry call write_file @arguments.json --yes\n  echo '{\"path\": \"a.txt\"}' | gantry call read_file -\n  gantry call delete_file '{\"path\": \"a.txt\"}' --wait=600"
    )]
    Call(Call),
    /// List the tools
    #[command(
        after_help = "Examples:\n  gantry tools --agent researcher\n  gantry tools --format openai > tools.json"
    )]
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
    /// Decide about calls that wait for a person; list, show, approve, deny, watch them
    #[command(
        args_conflicts_with_subcommands = true,
        long_about = "Decide about calls that wait for a person; list, show, approve, deny, watch them. A yes is for one exact call and is used once; with --session or --always it is a grant for later calls of the tool too. Without a command it lists what waits.",
        after_help = "Examples:\n  gantry approvals\n  gantry approvals show 3f9c21\n  gantry approvals approve 3f9c21\n  gantry approvals deny 3f9c21 --reason \"not on a Friday\"\n  gantry approvals watch"
    )]
    Approvals {
        #[command(subcommand)]
        action: Option<ApprovalsAction>,
        #[command(flatten)]
        list: ListApprovals,
    },
    /// Show the MCP servers and how they are doing, add, remove or restart one
    #[command(args_conflicts_with_subcommands = true)]
    Servers {
        #[command(subcommand)]
        action: Option<ServersAction>,
        #[command(flatten)]
        of: OfProject,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the agents, all about one, or make one the active agent of its project
    #[command(
        args_conflicts_with_subcommands = true,
        long_about = "Show the agents, all about one, or make one the active agent of its project. While an agent is active, callers who name none are callers of that agent, and it has its servers for itself.",
        after_help = "Examples:\n  gantry agents\n  gantry agents show researcher\n  gantry agents switch researcher\n  gantry agents switch --none --project other"
    )]
    Agents {
        #[command(subcommand)]
        action: Option<AgentsAction>,
        #[command(flatten)]
        of: OfProject,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Pin the definitions of the servers' tools in gantry.lock, compare them, accept changes
    #[command(args_conflicts_with_subcommands = true)]
    Lock {
        #[command(subcommand)]
        look: Option<LookAtLock>,
        #[command(flatten)]
        place: InProject,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what happens: sessions, calls and other requests, servers, agents, the configuration
    #[command(
        long_about = "Show what happens: sessions, calls and other requests, servers that come up or go down, tools that change, agents that become active step by step, changes of the configuration, and the messages of servers with traceMCP. Where no Gantry runs, the calls that are on record. Times are UTC.",
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
    /// Make, list and revoke the keys of agents, approvers and administrators
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Examples:\n  gantry keys\n  gantry keys create --role approver --name ann\n  gantry keys revoke ann"
    )]
    Keys {
        #[command(subcommand)]
        action: Option<KeysAction>,
        #[command(flatten)]
        list: ListKeys,
    },
    /// Test the policies against examples, one call, or what is on record
    Policy {
        #[command(subcommand)]
        action: PolicyAction,
    },
    /// Check the configuration, show what applies, or print its schema for editors
    #[command(
        after_help = "Examples:\n  gantry config check\n  gantry config show\n  gantry config schema > gantry.schema.json"
    )]
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// See what would become of an OpenAPI document: its tools, their names, what is skipped and why
    Openapi {
        #[command(subcommand)]
        action: OpenapiAction,
    },
    /// Check the set-up, or explain a server, or why a tool is there or not
    #[command(
        after_help = "Examples:\n  gantry doctor\n  gantry doctor github__search_code --agent researcher\n  gantry doctor github --project other"
    )]
    Doctor(Doctor),
}

/// As whom.
#[derive(Debug, Args)]
pub(crate) struct Who {
    /// Act as this agent
    #[arg(long)]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) place: InProject,
}

/// Where.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct InProject {
    /// In this project [default: default]
    #[arg(long)]
    project: Option<String>,
}

impl InProject {
    /// The project.
    pub(crate) fn name(&self) -> &str {
        self.project.as_deref().unwrap_or(MAIN_PROJECT)
    }
}

/// Of what.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OfProject {
    /// Only of this project [default: all]
    #[arg(long)]
    pub(crate) project: Option<String>,
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
    #[command(flatten)]
    pub(crate) patience: Patience,
}

/// What to do while a call is held.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Patience {
    /// If it needs an approval, wait until somebody decides, so many seconds at most [default: for as long as it takes]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true)]
    pub(crate) wait: Option<Option<u64>>,
    /// If it has to wait, do not wait with it; ask nothing
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The tool or the MCP server to explain
    #[arg(value_name = "TOOL|SERVER")]
    pub(crate) what: Option<String>,
    /// The agent to explain a tool for
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// How far below the first agent it is, as one that another agent spawned
    #[arg(long, value_name = "LEVELS", default_value_t = 0)]
    pub(crate) depth: u32,
    /// Only this project [default: all; of a tool or server to explain, default]
    #[arg(long)]
    pub(crate) project: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Events {
    /// Stay and show what happens next
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) of: OfProject,
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
    #[command(flatten)]
    pub(crate) of: OfProject,
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
    /// As functions for OpenAI's chat completions
    #[value(name = "openai")]
    OpenAi,
    /// As tools for Anthropic's messages
    Anthropic,
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
    #[command(flatten)]
    pub(crate) of: OfProject,
    /// How many at most
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: u32,
    /// Print JSON
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
