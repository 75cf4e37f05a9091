//! The arguments of commands within commands.

use super::{InProject, OfProject};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ServersAction {
    /// Show the servers, as without a command
    List {
        #[command(flatten)]
        of: OfProject,
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
    #[command(flatten)]
    pub(crate) place: InProject,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("reach").required(true).args(["url", "command"]))]
pub(crate) struct AddServer {
    /// Its id, the namespace of its tools
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) place: InProject,
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
        #[command(flatten)]
        place: InProject,
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
    #[command(flatten)]
    pub(crate) place: InProject,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print what was accepted as JSON
    #[arg(long)]
    pub(crate) json: bool,
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

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsAction {
    /// Show the agents, as without a command
    List {
        #[command(flatten)]
        of: OfProject,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show all about one agent: its tools, what it may call, its prompt
    Show {
        /// The agent
        name: String,
        #[command(flatten)]
        place: InProject,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make an agent the active one of its project, or none
    #[command(
        long_about = "Make an agent the active one of its project, or none. Running calls of the one before may take 5 seconds to end and are then cut off; all that it had is closed, and the new one gets its own. Gantry remembers it for the next start.",
        after_help = "Examples:\n  gantry agents switch researcher\n  gantry agents switch --none"
    )]
    Switch(Switch),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("whom").required(true).args(["name", "none"]))]
pub(crate) struct Switch {
    /// The agent
    pub(crate) name: Option<String>,
    /// Make no agent active
    #[arg(long)]
    pub(crate) none: bool,
    #[command(flatten)]
    pub(crate) place: InProject,
    /// Print what it came to as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
