//! The arguments of `gantry policy`.

use super::OfProject;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyAction {
    /// Hold every rule against its own examples, or say what would be decided about one call
    #[command(
        long_about = "Hold every rule of the configuration against its own examples; 1 is the exit code if one fails. With a tool, say what would be decided about a call of it: it would run (exit code 0), be held for a person, or be denied (exit code 1). Nothing is run, recorded or asked.",
        after_help = "Examples:\n  gantry policy test\n  gantry policy test --config proposed.yaml\n  gantry policy test write_file '{\"path\": \"a.txt\", \"content\": \"\"}' --agent researcher"
    )]
    Test(TestPolicy),
    /// Show which recorded calls would be held, denied or let through now
    #[command(
        long_about = "Judge the calls on record by the policies and approvals of the configuration, and show those that would come to something else now: held for a person, denied, or let through. Nothing is run. Rules that look at arguments which are cut or masked in the record cannot be told, and own rules of tools that look at files are taken to say what they said.",
        after_help = "Examples:\n  gantry policy replay --since 24h\n  gantry policy replay --since 7d --tool 'github__*'\n  gantry policy replay --under proposed.yaml"
    )]
    Replay(Replay),
}

#[derive(Debug, Args)]
pub(crate) struct TestPolicy {
    /// The tool that would be called, by any of its names [default: test the examples of all rules]
    pub(crate) tool: Option<String>,
    /// Its arguments as JSON; @FILE reads them from a file, - from standard input
    #[arg(default_value = "{}")]
    pub(crate) arguments: String,
    /// As this agent
    #[arg(long, requires = "tool")]
    pub(crate) agent: Option<String>,
    /// Only this project [default: all; of a call, default]
    #[arg(long)]
    pub(crate) project: Option<String>,
    /// Who would call: the name of a key, or person
    #[arg(long, value_name = "NAME", default_value = "local", requires = "tool")]
    pub(crate) principal: String,
    /// In which role
    #[arg(long, value_enum, default_value_t = RoleWord::Agent, requires = "tool")]
    pub(crate) role: RoleWord,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RoleWord {
    Agent,
    Approver,
    Admin,
}

impl RoleWord {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Approver => "approver",
            Self::Admin => "admin",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Begun after this: 2026-11-15T09:00:00Z, or back from now: 15m, 2h, 7d [default: all that is on record]
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Begun before this
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Of these tools: a name or a glob
    #[arg(long, value_name = "GLOB")]
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) of: OfProject,
    /// Judge by this configuration instead of the one that holds here
    #[arg(long, value_name = "FILE")]
    pub(crate) under: Option<PathBuf>,
    /// How many to list at most; all are counted
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
