//! The arguments of `gantry policy`.

use super::{ProjectFilter, choice, keys::ROLES};
use clap::{Args, Subcommand};
use gantry_core::Role;
use std::path::PathBuf;

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
