//! The arguments of `gantry servers`, `agents`, `lock`, `audit`, `keys` and `policy`.

use super::{ProjectArg, ProjectFilter, choice};
use clap::{Args, Subcommand};
use gantry_core::Role;
use std::path::PathBuf;

const ROLES: [(&str, &str); 3] = [
    ("agent", "May list and call tools, and see its own calls"),
    ("approver", "May also decide about the calls of others"),
    ("admin", "May also see everything and administer Gantry"),
];

#[derive(Debug, Subcommand)]
pub(crate) enum ServersAction {
    #[command(hide = true)]
    List(ProjectFilter),
    /// Add an MCP server to the running Gantry until it stops
    #[command(
        override_usage = "gantry servers add [OPTIONS] <ID> -- <COMMAND> [ARGS]...\n       gantry servers add [OPTIONS] <ID> --url <URL>",
        after_help = "Examples:\n  gantry servers add memory -- npx -y @modelcontextprotocol/server-memory\n  gantry servers add remote --url https://mcp.example.com/mcp --header \"Authorization: Bearer $TOKEN\""
    )]
    Add(AddServer),
    /// Stop an MCP server of the running Gantry and remove its tools until Gantry stops
    Remove(NamedServer),
    /// Restart an MCP server of the running Gantry
    Restart(NamedServer),
}

#[derive(Debug, Args)]
pub(crate) struct NamedServer {
    /// The id of the server
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) project: ProjectArg,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("reach").required(true).args(["url", "command"]))]
pub(crate) struct AddServer {
    /// The id of the server, which is also the namespace of its tools
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) project: ProjectArg,
    /// Transport: stdio, http, sse, websocket or tcp [default: by the address or the command]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// An environment variable of the program; repeatable
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// A header to send with every request; repeatable
    #[arg(long, value_name = "NAME: VALUE", conflicts_with = "command")]
    pub(crate) header: Vec<String>,
    /// The address of a server that runs already
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// The program to start and its arguments, after --
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LockAction {
    /// Show how the present definitions differ from the pinned ones
    Diff {
        /// Compare only this server
        server: Option<String>,
        #[command(flatten)]
        project: ProjectArg,
    },
    /// Accept the present definitions of all servers, of one server, or of one tool
    Accept {
        /// What to accept [default: everything]
        #[arg(value_name = "SERVER[/TOOL]")]
        what: Option<String>,
        #[command(flatten)]
        project: ProjectArg,
        /// Accept without asking
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditAction {
    /// Check that no entry was changed, removed or inserted
    Verify,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsAction {
    #[command(hide = true)]
    List(ProjectFilter),
    /// Show one agent: its tools, the tools it may call, its prompt
    Show {
        /// The name of the agent
        name: String,
        #[command(flatten)]
        project: ProjectArg,
    },
    /// Make an agent the active one of its project, or none
    #[command(
        long_about = "Make an agent the active one of its project, or none. Running calls of the previous agent may take 5 seconds to end and are then cut off; its MCP servers are stopped, and those of the new agent start. Gantry remembers the choice for the next start.",
        after_help = "Examples:\n  gantry agents switch researcher\n  gantry agents switch --none"
    )]
    Switch(Switch),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("whom").required(true).args(["name", "none"]))]
pub(crate) struct Switch {
    /// The name of the agent
    pub(crate) name: Option<String>,
    /// Make no agent active
    #[arg(long)]
    pub(crate) none: bool,
    #[command(flatten)]
    pub(crate) project: ProjectArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysAction {
    #[command(hide = true)]
    List(ListKeys),
    /// Create a key. It is shown once; Gantry stores only its digest
    #[command(
        after_help = "Examples:\n  gantry keys create --role agent --name ci --project other --expires 30d\n  gantry keys create --role approver --name ann --tools \"db__*\"\n  KEY=$(gantry keys create --role agent --agent researcher)"
    )]
    Create(CreateKey),
    /// Revoke a key at once
    Revoke {
        /// The id or the name of the key
        #[arg(value_name = "ID|NAME")]
        key: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateKey {
    /// What the key allows
    #[arg(long, value_parser = choice::<Role>(&ROLES))]
    pub(crate) role: Role,
    /// Name in the record, and in rules that name approvers
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Only in this project; repeatable [default: all]
    #[arg(long, value_name = "PROJECT")]
    pub(crate) project: Vec<String>,
    /// Clients with this key always act as this agent
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only approvals of these tools; repeatable [default: all]
    #[arg(long, value_name = "GLOB")]
    pub(crate) tools: Vec<String>,
    /// Lifetime: 12h, 30d [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) expires: Option<String>,
}

/// A span of time as the API reads it.
fn span(typed: &str) -> Result<String, &'static str> {
    let count = typed.strip_suffix(['s', 'm', 'h', 'd']).and_then(|count| count.parse::<u32>().ok());
    match count {
        Some(1..) => Ok(typed.to_owned()),
        Some(0) | None => Err("write a span such as 90m, 12h or 30d"),
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct ListKeys {
    /// Also list revoked and expired keys
    #[arg(long, short)]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyAction {
    /// Test every rule against its own examples, or predict the decision about one call
    #[command(
        long_about = "Test every rule of the configuration against its own examples; the exit code is 1 if one fails. With a tool, predict what would be decided about a call of it: it would run (exit code 0), need an approval, or be denied (exit code 1). Nothing is run or recorded.",
        after_help = "Examples:\n  gantry policy test\n  gantry policy test --config proposed.yaml\n  gantry policy test write_file '{\"path\": \"a.txt\", \"content\": \"\"}' --agent researcher"
    )]
    Test(TestPolicy),
    /// Show which recorded calls would be held, denied or let through now
    #[command(
        long_about = "Apply the policies and approval rules of the configuration to the recorded calls, and show the calls with another outcome: held for an approval, denied, or let through. Nothing is run. Where a rule needs arguments that are cut or masked in the record, the outcome is unknown. For a tool whose own rule looks at files, the recorded result of that rule is used.",
        after_help = "Examples:\n  gantry policy replay --since 24h\n  gantry policy replay --since 7d --tool 'github__*'\n  gantry policy replay --under proposed.yaml"
    )]
    Replay(Replay),
}

#[derive(Debug, Args)]
pub(crate) struct TestPolicy {
    /// The tool to call, by any of its names [default: test the examples of all rules]
    pub(crate) tool: Option<String>,
    /// Its arguments as JSON; @FILE reads them from a file, - from standard input
    #[arg(default_value = "{}")]
    pub(crate) arguments: String,
    /// Call it as this agent
    #[arg(long, requires = "tool")]
    pub(crate) agent: Option<String>,
    /// Only this project [default: all; for a call, default]
    #[arg(long)]
    pub(crate) project: Option<String>,
    /// The caller: the name of a key, person for the owner of the data folder, or local for no key
    #[arg(long, value_name = "NAME", default_value = "local", requires = "tool")]
    pub(crate) principal: String,
    /// The role of the caller
    #[arg(long, default_value = "agent", value_parser = choice::<Role>(&ROLES), requires = "tool")]
    pub(crate) role: Role,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Only calls that began after this: 2026-11-15T09:00:00Z, or back from now: 15m, 2h, 7d [default: all]
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only calls that began before this
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only calls of these tools: a name or a glob
    #[arg(long, value_name = "GLOB")]
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) project: ProjectFilter,
    /// Apply this configuration instead of the present one
    #[arg(long, value_name = "FILE")]
    pub(crate) under: Option<PathBuf>,
    /// List at most so many; all are counted
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: usize,
}
