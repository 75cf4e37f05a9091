//! `cargo xtask bench`: what a call costs, beside a minimal server, in one run on one machine.
//!
//! CPU time is the figure to compare: wall time on a shared machine says as much about other processes as about
//! Gantry. Every measurement is repeated in [`ROUNDS`] rounds that visit everything in turn, so that a busy minute
//! falls on both sides of a comparison; tables show the median with the least and the most.

pub mod alloc;
mod client;
mod cpu;
mod http;
mod load;
mod machine;
mod minimal;
mod pipeline;
mod report;
mod upstream;

use anyhow::{Context as _, Result};
use clap::{Parser, ValueEnum};
use report::Table;
use std::io::Write;
use std::time::Duration;

const ROUNDS: usize = 3;

/// How long a server may take after the last answer to write what it has put off: the ledger's last group.
const SETTLE: Duration = Duration::from_millis(50);

const WARM_UP: Duration = Duration::from_millis(300);

/// Measures what calls cost. Tables go to standard output, progress to standard error.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
pub struct Options {
    /// Seconds per measurement and round, 0.1 to 60
    #[arg(long, value_name = "S", default_value = "3", value_parser = time)]
    seconds: Duration,
    /// Run one section
    #[arg(long, value_enum)]
    only: Option<Section>,
    /// Be the server that Gantry is compared with, or is put in front of; the bench starts itself so
    #[arg(long, value_enum, hide = true)]
    minimal: Option<minimal::Kind>,
}

/// A part of the bench that can be run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// A call through the pipeline, in this process
    Pipeline,
    /// `tools/call` over HTTP
    Mcp,
    /// `tools/call` of an MCP server, directly and through Gantry
    Upstream,
    /// Memory of a Gantry that has nothing to do
    Idle,
}

impl Section {
    fn name(self) -> String {
        self.to_possible_value().expect("no section is skipped").get_name().to_owned()
    }

    async fn measure(self, time: Duration) -> Result<Table> {
        match self {
            Self::Pipeline => pipeline::measure(time).await,
            Self::Mcp => http::measure(time).await,
            Self::Upstream => upstream::measure(time).await,
            Self::Idle => upstream::idle().await,
        }
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds| (0.1..=60.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "takes a number from 0.1 to 60".to_owned())
}

/// Does what the command line says; tables go to `out`, progress to standard error.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    // The same kind of runtime as `gantry serve` has.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match options.minimal {
        Some(kind) => runtime.block_on(minimal::serve(kind, out)),
        None => runtime.block_on(measure(options, out)),
    }
}

async fn measure(options: &Options, out: &mut impl Write) -> Result<()> {
    let seconds = options.seconds.as_secs_f64();
    writeln!(out, "{}", machine::describe()?)?;
    writeln!(out, "{ROUNDS} rounds of {seconds} s each; figures are the median (least–most) of the rounds")?;
    let wanted = |section: &&Section| options.only.is_none_or(|only| only == **section);
    for section in Section::value_variants().iter().filter(wanted) {
        let table = section.measure(options.seconds).await.with_context(|| section.name())?;
        write!(out, "\n{table}")?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_read_and_times_have_limits() {
        let parse =
            |line: &str| Options::try_parse_from(["bench"].into_iter().chain(line.split_whitespace()));
        let options = parse("--seconds 0.5 --only idle").unwrap();
        assert_eq!((options.seconds, options.only), (Duration::from_millis(500), Some(Section::Idle)));
        assert!(parse("--minimal http").is_ok_and(|options| options.minimal.is_some()));
        for bad in ["--seconds 0", "--seconds nan", "--only all", "1", "--minimal x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
