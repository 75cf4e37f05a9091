//! The arguments of `gantry servers`, `agents`, `lock` and `audit`.

use super::{ProjectArg, ProjectFilter};
use clap::{Args, Subcommand};

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
    Accept(Accept),
}

#[derive(Debug, Args)]
pub(crate) struct Accept {
    /// What to accept [default: everything]
    #[arg(value_name = "SERVER[/TOOL]")]
    pub(crate) what: Option<String>,
    #[command(flatten)]
    pub(crate) project: ProjectArg,
    /// Accept without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
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
