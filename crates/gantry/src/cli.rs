//! The command line: every command and option, as clap types.

mod actions;
mod approvals;
mod openapi;

pub(crate) use actions::{
    AddServer, AgentsAction, AuditAction, CreateKey, KeysAction, ListKeys, LockAction, NamedServer,
    PolicyAction, Replay, ServersAction, Switch, TestPolicy,
};
pub(crate) use approvals::{ApprovalsAction, Approve, ListApprovals};
pub(crate) use openapi::{Inspect, OpenapiAction};

use crate::config::MAIN_PROJECT;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use gantry_core::Priority;
use serde::de::DeserializeOwned;
use serde::de::value::{Error as ValueError, StringDeserializer};
use std::ffi::OsString;
use std::path::PathBuf;

/// The heading of the options that every command has, so that they follow its own.
const GLOBAL: &str = "Global options";

const PRIORITIES: [(&str, &str); 3] = [
    ("low", "After all other calls of the queue"),
    ("normal", "In the order of the calls"),
    ("high", "Before all other calls of the queue"),
];

/// A governed gateway between AI agents and their tools.
///
/// Gantry gives agents tools through one pipeline. Each call is resolved, authorised, approved by a person where a rule
/// asks for it, cached, queued, executed under limits, and recorded. Without a configuration file Gantry runs on
/// defaults: the working folder is the workspace, and the built-in tools are on.
#[derive(Debug, Parser)]
#[command(name = "gantry", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Examples:\n  gantry serve\n  gantry tools\n  gantry call read_file '{\"path\": \"README.md\"}'\n  gantry audit --since 1h"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The options of every command.
#[derive(Debug, Args)]
pub(crate) struct GlobalOptions {
    // The environment variables are read with the configuration, where an empty one counts as unset and errors name it.
    /// Configuration file [default: gantry.yaml, .json or .toml in the working folder] [env: GANTRY_CONFIG]
    #[arg(long, short, global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub(crate) config: Option<PathBuf>,
    /// Data folder [default: .gantry beside the configuration] [env: GANTRY_DATA]
    #[arg(long, global = true, value_name = "FOLDER", help_heading = GLOBAL)]
    pub(crate) data: Option<PathBuf>,
    /// Print data as JSON instead of text
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,
    /// Log more: -v logs every call, -vv everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = GLOBAL)]
    pub(crate) verbose: u8,
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
        caller: CallerArgs,
    },
    /// Call a tool and print its result
    #[command(
        long_about = "Call a tool and print its result. If the call needs an approval, Gantry asks you on a terminal; elsewhere the call is left waiting, and the error says how to approve it. If the call is delayed, the command waits for it.",
        after_help = "Examples:\n  gantry call list_directory '{\"path\": \".\"}'\n  gantry call write_file @arguments.json --yes\n  echo '{\"path\": \"a.txt\"}' | gantry call read_file -\n  gantry call delete_file '{\"path\": \"a.txt\"}' --wait=600"
    )]
    Call(Call),
    /// List the tools
    #[command(
        after_help = "Examples:\n  gantry tools --agent researcher\n  gantry tools --format openai > tools.json"
    )]
    Tools {
        #[command(flatten)]
        caller: CallerArgs,
        /// Output format; --json is the same as --format json
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// List calls that wait for an approval; show, approve, deny or watch them
    #[command(
        args_conflicts_with_subcommands = true,
        long_about = "List calls that wait for an approval or for their scheduled time; show, approve, deny or watch them. An approval is for one exact call and is used once; with --session or --always it also grants later calls of the tool.",
        after_help = "Examples:\n  gantry approvals\n  gantry approvals show 3f9c21\n  gantry approvals approve 3f9c21\n  gantry approvals deny 3f9c21 --reason \"not on a Friday\"\n  gantry approvals watch"
    )]
    Approvals {
        #[command(subcommand)]
        action: Option<ApprovalsAction>,
        #[command(flatten)]
        list: ListApprovals,
    },
    /// List the MCP servers and their state; add, remove or restart one
    #[command(args_conflicts_with_subcommands = true)]
    Servers {
        #[command(subcommand)]
        action: Option<ServersAction>,
        #[command(flatten)]
        list: ProjectFilter,
    },
    /// List the agents, show one, or switch the active agent of a project
    #[command(
        args_conflicts_with_subcommands = true,
        long_about = "List the agents, show one, or switch the active agent of a project. While an agent is active, clients that name no agent act as that agent, and its MCP servers run for it alone.",
        after_help = "Examples:\n  gantry agents\n  gantry agents show researcher\n  gantry agents switch researcher\n  gantry agents switch --none --project other"
    )]
    Agents {
        #[command(subcommand)]
        action: Option<AgentsAction>,
        #[command(flatten)]
        list: ProjectFilter,
    },
    /// Pin the tool definitions of the MCP servers in gantry.lock; compare them, accept changes
    #[command(args_conflicts_with_subcommands = true)]
    Lock {
        #[command(subcommand)]
        action: Option<LockAction>,
        #[command(flatten)]
        project: ProjectArg,
    },
    /// Show events: sessions, calls, MCP servers, agents, changes of the configuration
    #[command(
        long_about = "Show events: sessions, calls and other requests, MCP servers that come up or go down, tools that change, each step of switching agents, changes of the configuration, and the messages of servers with traceMCP. Without a running server, show the recorded calls. Times are UTC.",
        after_help = "Examples:\n  gantry events --follow\n  gantry events --json | jq 'select(.type == \"server_down\")'"
    )]
    Events(Events),
    /// List the recorded calls, or verify the ledger
    #[command(args_conflicts_with_subcommands = true)]
    Audit {
        #[command(subcommand)]
        action: Option<AuditAction>,
        #[command(flatten)]
        filter: Filter,
    },
    /// List runs, show one with its operations, or cancel it
    Runs(Runs),
    /// List, create and revoke API keys of agents, approvers and administrators
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
    /// Test the policies against their examples, against one call, or against recorded calls
    Policy {
        #[command(subcommand)]
        action: PolicyAction,
    },
    /// Check or show the configuration, apply held changes, or print its schema for editors
    #[command(
        after_help = "Examples:\n  gantry config check\n  gantry config show\n  gantry config apply\n  gantry config schema > gantry.schema.json"
    )]
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// Inspect an OpenAPI document: its tools, and which operations are skipped and why
    Openapi {
        #[command(subcommand)]
        action: OpenapiAction,
    },
    /// Check the whole setup, or explain one MCP server or tool
    #[command(
        after_help = "Examples:\n  gantry doctor\n  gantry doctor github__search_code --agent researcher\n  gantry doctor github --project other"
    )]
    Doctor(Doctor),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Check the configuration and report the problems, each with its file, line and key
    Check,
    /// Show every value that applies, and the file and line it comes from; variables and secrets are masked
    Show,
    /// Print the JSON Schema of the configuration, for editors
    Schema,
    /// Apply a change that is held, and accept files that were not there when Gantry last ran here
    #[command(
        long_about = "Apply a change of the configuration that a running Gantry holds, because it removes a policy, an agent or a project, widens a workspace, brings a file that was not there before, or is cut short. Without a running Gantry, accept the configuration files that were not there when Gantry last ran here: a tool may have written them. Both are shown first."
    )]
    Apply {
        /// Apply without asking
        #[arg(long, short)]
        yes: bool,
    },
}

/// The agent and the project that a command acts for.
#[derive(Debug, Args)]
pub(crate) struct CallerArgs {
    /// Act as this agent
    #[arg(long)]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) project: ProjectArg,
}

/// The project that a command works in.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProjectArg {
    /// Work in this project [default: default]
    #[arg(long)]
    project: Option<String>,
}

impl ProjectArg {
    /// The name of the project.
    pub(crate) fn name(&self) -> &str {
        self.project.as_deref().unwrap_or(MAIN_PROJECT)
    }
}

/// The project that a list is limited to.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProjectFilter {
    /// List only this project [default: all]
    #[arg(long)]
    project: Option<String>,
}

impl ProjectFilter {
    /// The name of the project, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.project.as_deref()
    }
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The tool, by any of its names
    pub(crate) tool: String,
    /// Its arguments as JSON; @FILE reads them from a file, - from standard input
    #[arg(default_value = "{}")]
    pub(crate) arguments: String,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
    /// Approve the call in advance if it needs an approval; recorded as your approval
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Repeating a call under the same key returns the first result and runs nothing
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Priority where calls have to queue
    #[arg(long, default_value = "normal", value_parser = choice::<Priority>(&PRIORITIES))]
    pub(crate) priority: Priority,
    /// Time limit in milliseconds, if it is below the configured one
    #[arg(long, value_name = "MS")]
    pub(crate) timeout: Option<u64>,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
}

/// What to do while a call is held.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct WaitArgs {
    /// If it needs an approval, wait for the decision, for so many seconds at most [default: no limit]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true)]
    pub(crate) wait: Option<Option<u64>>,
    /// Return at once if the call needs an approval or is delayed; do not ask
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The tool or the MCP server to explain
    #[arg(value_name = "TOOL|SERVER")]
    pub(crate) what: Option<String>,
    /// Explain the tool for this agent
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// How many agents are above this agent, if another agent started it
    #[arg(long, value_name = "LEVELS", default_value_t = 0)]
    pub(crate) depth: u32,
    /// Only this project [default: all; for a tool or server, default]
    #[arg(long)]
    pub(crate) project: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Events {
    /// Keep running and show new events; with --json, each event is one line
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) project: ProjectFilter,
}

#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// The run to show as a tree
    pub(crate) id: Option<String>,
    /// Cancel this run and all its calls
    #[arg(long, requires = "id")]
    pub(crate) cancel: bool,
    #[command(flatten)]
    pub(crate) project: ProjectFilter,
    /// List at most so many
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Table,
    /// Everything that Gantry knows about each tool
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
    /// Only calls that began after this: 2026-11-15T09:00:00Z, or back from now: 15m, 2h, 7d
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only calls that began before this
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only calls of this tool
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// Only calls in this state, such as OUTCOME_UNKNOWN
    #[arg(long)]
    pub(crate) state: Option<String>,
    #[command(flatten)]
    pub(crate) project: ProjectFilter,
    /// List at most so many
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: u32,
}

/// Parses an option into a type of another crate: the words that its `Deserialize` accepts, each with its help.
fn choice<T>(words: &[(&'static str, &'static str)]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let values = words.iter().map(|(word, help)| PossibleValue::new(*word).help(*help));
    let parser = PossibleValuesParser::new(values.collect::<Vec<_>>());
    parser.try_map(|word| T::deserialize(StringDeserializer::<ValueError>::new(word)))
}

/// Parses the command line.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(args).map_err(|mut error| {
        // A frequent mistake: no `--` before the program, so that its options are read as Gantry's.
        let stray = error.get(ContextKind::InvalidArg).map(ToString::to_string);
        let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
        if let Some(program) = stray.filter(|word| !word.starts_with('-') && usage.contains("servers add")) {
            let tip = format!(
                "write -- before the program: gantry servers add <ID> -- {} …",
                crate::term::sanitize(&program)
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
