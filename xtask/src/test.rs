//! `cargo xtask test`: every check and test of the repository, in the order that fails soonest.

mod conformance;
mod cost;
mod packages;
mod quick;
mod slowest;
mod steps;
mod tools;

use std::path::Path;
use std::time::Duration;

use clap::builder::PossibleValuesParser;

use cost::{Clock, Cost};
use steps::{STEPS, Step};

/// What the user asked for.
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
#[command(after_help = steps_help())]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Options {
    /// Run the steps with a star, and a choice of the tests that takes a few minutes
    #[arg(long, conflicts_with = "long")]
    quick: bool,
    /// Also run the tests that take minutes
    #[arg(long)]
    long: bool,
    /// Install missing programs with apt-get, as root or with sudo (also done when CI=true)
    #[arg(long)]
    install: bool,
    /// Run this step alone; may be given more than once
    #[arg(long, value_name = "STEP", value_parser = PossibleValuesParser::new(STEPS.map(|step| step.key)))]
    #[arg(hide_possible_values = true)]
    only: Vec<String>,
    /// Run only the tests that have this in their name; other steps run as usual
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
    /// Options for `cargo nextest run`
    #[arg(last = true, value_name = "NEXTEST OPTION")]
    nextest: Vec<String>,
}

/// A line of the summary: the step, what it cost if it ran, and how it ended.
type Row = (&'static str, Option<Cost>, &'static str);

impl Options {
    fn wants(&self, step: &Step) -> bool {
        match self.only.as_slice() {
            [] => !self.quick || step.is_quick,
            only => only.iter().any(|key| key == step.key),
        }
    }
}

/// The steps, for `--help`.
fn steps_help() -> String {
    let line = |step: &Step| {
        let mark = if step.is_quick { '*' } else { ' ' };
        format!("  {:<11}{mark} {}\n", step.key, step.title)
    };
    let steps: String = STEPS.iter().map(line).collect();
    format!(
        "Steps, which run in this order until one fails:\n{steps}\nThe choice of `--quick`: {}.",
        quick::RULE
    )
}

/// Runs the steps and prints a summary; `true` when all is well.
pub(crate) fn run(root: &Path, options: &Options) -> bool {
    let clock = Clock::start();
    let mut rows = Vec::new();
    let mut failed = None;
    for step in STEPS.iter().filter(|step| options.wants(step)) {
        if failed.is_some() {
            rows.push((step.key, None, "not run"));
            continue;
        }
        eprintln!("\n=== {}: {}", step.key, step.title);
        let step_clock = Clock::start();
        let result = (step.run)(root, options);
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        rows.push((step.key, Some(step_clock.read()), word));
        failed = result.err().map(|error| (step, error));
    }

    eprint!("\n{}", summary(&rows, clock.read()));
    let Some((step, error)) = failed else { return true };
    eprintln!("\nerror: {error:#}");
    eprintln!("what to do: {}; then `cargo xtask test --only {}`", step.advice, step.key);
    false
}

fn summary(rows: &[Row], total: Cost) -> String {
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let line = |(key, cost, result): &Row| {
        let wall = cost.map(|cost| seconds(cost.wall)).unwrap_or_default();
        let cpu = cost.and_then(|cost| cost.cpu).map(seconds).unwrap_or_default();
        format!("{key:<11} {wall:>9}  {cpu:>9}  {result}").trim_end().to_owned() + "\n"
    };
    let head = format!("{:<11} {:>9}  {:>9}\n", "step", "time", "CPU");
    let rows: String = rows.iter().map(line).collect();
    head + &rows + &line(&("total", Some(total), ""))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        options: Options,
    }

    fn parse(line: &str) -> Result<Options, String> {
        let words = ["test"].into_iter().chain(line.split_whitespace());
        CommandLine::try_parse_from(words).map(|line| line.options).map_err(|error| error.to_string())
    }

    #[test]
    fn steps_filters_and_options_of_nextest_are_read_apart() {
        let options = parse("--long approvals --only lint --only tests cache -- --no-capture").unwrap();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let expected = Options {
            long: true,
            only: words(&["lint", "tests"]),
            filters: words(&["approvals", "cache"]),
            nextest: words(&["--no-capture"]),
            ..Options::default()
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn wrong_usage_is_answered_with_what_there_is() {
        let error = parse("--only lnit").unwrap_err();
        assert!(error.contains("'lnit'") && error.contains("lint, tidy"), "{error}");
        assert!(parse("--quick --long").unwrap_err().contains("cannot be used with"));
    }

    #[test]
    fn the_summary_shows_what_ran_and_what_did_not() {
        let cost = |wall, cpu: Option<u64>| Cost {
            wall: Duration::from_millis(wall),
            cpu: cpu.map(Duration::from_millis),
        };
        let rows = [
            ("tidy", Some(cost(300, None)), "ok"),
            ("lint", Some(cost(1540, Some(2960))), "FAILED"),
            ("build", None, "not run"),
        ];
        let expected = "\
step             time        CPU
tidy            0.3 s             ok
lint            1.5 s      3.0 s  FAILED
build                             not run
total           2.0 s      3.0 s
";
        assert_eq!(summary(&rows, cost(2000, Some(2960))), expected);
    }

    #[test]
    fn quick_runs_some_steps_and_only_names_any() {
        let runs = |line: &str| -> Vec<&str> {
            let options = parse(line).unwrap();
            STEPS.iter().filter(|step| options.wants(step)).map(|step| step.key).collect()
        };
        let quick = runs("--quick");
        assert!(quick.contains(&"build") && !quick.contains(&"lint"), "{quick:?}");
        assert_eq!(runs("--quick --only lint --only tests"), ["lint", "tests"]);
        assert_eq!(runs("").len(), STEPS.len());
    }
}
