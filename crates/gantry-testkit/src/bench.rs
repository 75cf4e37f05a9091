//! `cargo xtask bench`: what a call costs, beside a server that only echoes, in one run on one machine.
//!
//! CPU time is the figure to compare: wall time on a shared machine says as much about the neighbours as about
//! Gantry. Every measurement is repeated in [`ROUNDS`] rounds that visit everything in turn, so that a busy minute
//! falls on both sides of a comparison; tables show the median with the least and the most.

pub mod alloc;
mod approvals;
mod client;
mod cpu;
mod echo;
mod list;
mod load;
mod machine;
mod mcp;
mod options;
mod pipeline;
mod projects;
mod report;
mod sandbox;
mod search;
mod toolset;
mod upstream;

use anyhow::{Context as _, Result};
use machine::{Machine, Neighbours};
pub use options::{Command, Options, USAGE};
use report::Table;
use serde_json::json;
use std::io::Write;
use std::time::Duration;

/// How often everything is measured.
const ROUNDS: usize = 3;

/// How long a server may take after the last answer to write what it has put off: the ledger's last group.
const SETTLE: Duration = Duration::from_millis(50);

/// How long a load runs before it is measured.
const WARM_UP: Duration = Duration::from_millis(300);

/// A part of the bench that can be run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// A call through the pipeline, in this process.
    Pipeline,
    /// `tools/call` over HTTP.
    Mcp,
    /// Finding out which tools an agent sees.
    Toolset,
    /// Agents and changes of the configuration in large projects.
    Projects,
    /// Calls that wait for a person.
    Approvals,
    /// `tools/list` over HTTP.
    List,
    /// `tools/call` of an MCP server, directly and through Gantry.
    Upstream,
    /// Programs in the sandbox.
    Sandbox,
    /// `search_code`.
    Search,
    /// Memory of a Gantry that has nothing to do.
    Idle,
}

impl Section {
    const ALL: [Self; 10] = [
        Self::Pipeline,
        Self::Mcp,
        Self::Toolset,
        Self::Projects,
        Self::Approvals,
        Self::List,
        Self::Upstream,
        Self::Sandbox,
        Self::Search,
        Self::Idle,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Pipeline => "pipeline",
            Self::Mcp => "mcp",
            Self::Toolset => "toolset",
            Self::Projects => "projects",
            Self::Approvals => "approvals",
            Self::List => "list",
            Self::Upstream => "upstream",
            Self::Sandbox => "sandbox",
            Self::Search => "search",
            Self::Idle => "idle",
        }
    }

    async fn measure(self, time: Duration) -> Result<Table> {
        match self {
            Self::Pipeline => pipeline::measure(time).await,
            Self::Mcp => mcp::measure(time).await,
            Self::Toolset => toolset::measure(time),
            Self::Projects => projects::measure(time).await,
            Self::Approvals => approvals::measure(time).await,
            Self::List => list::measure(time).await,
            Self::Upstream => upstream::measure(time).await,
            Self::Sandbox => sandbox::measure(time).await,
            Self::Search => search::measure(time).await,
            Self::Idle => upstream::idle().await,
        }
    }
}

/// Does what the command line says; tables go to `out`, progress to standard error.
///
/// # Errors
/// A server does not start, a reply is wrong, or the machine does not say what it is.
pub fn run(command: Command, out: &mut impl Write) -> Result<()> {
    // The same kind of runtime as `gantry serve` has.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match command {
        Command::Help => out.write_all(USAGE.as_bytes()).context("cannot print"),
        Command::Echo { list_bytes } => runtime.block_on(echo::serve(list_bytes, out)),
        Command::Thin(kind) => runtime.block_on(upstream::serve(kind, out)),
        Command::Measure(options) => runtime.block_on(measure(&options, out)),
    }
}

async fn measure(options: &Options, out: &mut impl Write) -> Result<()> {
    let machine = Machine::here()?;
    writeln!(out, "{machine}")?;
    let seconds = options.time.as_secs_f64();
    writeln!(out, "{ROUNDS} rounds of {seconds} s each; figures are the median (least–most) of the rounds")?;
    let before = Neighbours::now()?;
    let mut sections = serde_json::Map::new();
    for section in Section::ALL.into_iter().filter(|section| options.only.is_none_or(|only| only == *section))
    {
        let table = section.measure(options.time).await.with_context(|| section.name())?;
        write!(out, "\n{table}")?;
        sections.insert(section.name().to_owned(), table.to_json());
    }
    let neighbours = Neighbours::now()?.cores_since(before);
    writeln!(out, "\nother work on this machine meanwhile: {neighbours:.2} cores")?;
    if let Some(path) = &options.json {
        let report = json!({
            "machine": machine, "seconds": seconds, "rounds": ROUNDS, "otherCores": neighbours, "sections": sections,
        });
        let text = serde_json::to_string_pretty(&report)? + "\n";
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "progress is for the person who waits")]
fn progress(section: Section, round: usize, what: &str) {
    eprintln!("{} {}/{ROUNDS}: {what}", section.name(), round + 1);
}

fn per_call(total: Duration, calls: u64) -> f64 {
    total.as_secs_f64() * 1e6 / calls.max(1) as f64
}
