//! `cargo xtask test`: every check and test of the repository, in the order that fails soonest.

mod clients;
mod conformance;
mod install;
mod servers;
pub(crate) mod specs;
mod steps;
mod tools;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use steps::{STEPS, Step};

/// What the user asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Also run the tests that take minutes.
    long: bool,
    /// Install missing programs with apt.
    install: bool,
    /// The keys of the steps to run; all of them when empty.
    only: Vec<&'static str>,
    /// Filters and options for the test runner.
    nextest: Vec<String>,
}

/// How a step that did not fail ended.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// It could not run here, and why that is acceptable.
    Skipped(&'static str),
}

/// A line of the summary.
struct Row {
    key: &'static str,
    result: String,
    took: Option<Duration>,
}

impl Options {
    pub(crate) fn parse(args: Vec<String>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--long" => options.long = true,
                "--install" => options.install = true,
                "--only" => {
                    let key = args.next().ok_or_else(|| format!("--only needs a step: {}", step_keys()))?;
                    options.only.push(find_step(&key)?);
                }
                "--" => options.nextest.extend(args.by_ref()),
                flag if flag.starts_with('-') => {
                    return Err(format!("`test` does not know `{flag}`; options of nextest come after `--`"));
                }
                _ => options.nextest.push(arg),
            }
        }
        Ok(options)
    }

    fn wants(&self, step: &Step) -> bool {
        self.only.is_empty() || self.only.contains(&step.key)
    }
}

fn find_step(key: &str) -> Result<&'static str, String> {
    let step = STEPS.iter().find(|step| step.key == key);
    step.map(|step| step.key)
        .ok_or_else(|| format!("there is no step `{key}`; the steps are {}", step_keys()))
}

fn step_keys() -> String {
    STEPS.map(|step| step.key).join(", ")
}

/// The help text, with the steps as they really are.
pub(crate) fn usage() -> String {
    let steps: String = STEPS.iter().map(|step| format!("  {:<11} {}\n", step.key, step.title)).collect();
    format!(
        "\
Usage: cargo xtask test [--long] [--install] [--only STEP]… [FILTER]… [-- NEXTEST OPTIONS]

Runs every step in order and stops at the first that fails.

  --long       Also run the tests that take minutes
  --install    Install missing programs with apt-get (needs root or sudo; also done when CI=true)
  --only STEP  Run just this step; may be given more than once
  FILTER       Run only the tests whose name contains this (the other steps run as ever)

Steps:
{steps}"
    )
}

/// Runs the steps and prints a summary; `true` when all is well.
pub(crate) fn run(root: &Path, options: &Options) -> bool {
    let started = Instant::now();
    let mut rows = Vec::new();
    let mut failed = None;
    for step in STEPS.iter().filter(|step| options.wants(step)) {
        if failed.is_some() {
            rows.push(Row { key: step.key, result: "not run".to_owned(), took: None });
            continue;
        }
        eprintln!("\n=== {}: {}", step.key, step.title);
        let step_started = Instant::now();
        let result = (step.run)(root, options);
        rows.push(Row { key: step.key, result: describe(&result), took: Some(step_started.elapsed()) });
        failed = result.err().map(|error| (step, error));
    }

    eprint!("\n{}", summary(&rows, started.elapsed()));
    let Some((step, error)) = failed else { return true };
    eprintln!("\nerror: {error:#}");
    eprintln!("what to do: {}; then `cargo xtask test --only {}`", step.advice, step.key);
    false
}

fn describe(result: &Result<Outcome>) -> String {
    match result {
        Ok(Outcome::Done) => "ok".to_owned(),
        Ok(Outcome::Skipped(why)) => format!("skipped: {why}"),
        Err(_) => "FAILED".to_owned(),
    }
}

fn summary(rows: &[Row], total: Duration) -> String {
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let mut text = String::new();
    for row in rows {
        let took = row.took.map(seconds).unwrap_or_default();
        text.push_str(&format!("{:<11} {took:>9}  {}\n", row.key, row.result));
    }
    text.push_str(&format!("{:<11} {:>9}\n", "total", seconds(total)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn filters_and_options_are_told_apart() {
        let options = parse("--long approvals --only lint --only tests cache -- --no-capture").unwrap();
        let nextest = ["approvals", "cache", "--no-capture"].map(str::to_owned).to_vec();
        assert_eq!(options, Options { long: true, install: false, only: vec!["lint", "tests"], nextest });
    }

    #[test]
    fn an_unknown_step_is_answered_with_the_list() {
        let error = parse("--only lnit").unwrap_err();
        assert!(error.contains("`lnit`") && error.contains("lint"), "{error}");
    }

    #[test]
    fn a_step_must_follow_only() {
        assert!(parse("--only").unwrap_err().contains("tools"));
    }

    #[test]
    fn an_unknown_flag_is_refused() {
        assert!(parse("--fast").unwrap_err().contains("`--fast`"));
    }

    #[test]
    fn the_summary_shows_what_ran_and_what_did_not() {
        let rows = [
            Row { key: "lint", result: "FAILED".to_owned(), took: Some(Duration::from_millis(1540)) },
            Row { key: "build", result: "not run".to_owned(), took: None },
        ];
        let expected = "\
lint            1.5 s  FAILED
build                  not run
total           2.0 s
";
        assert_eq!(summary(&rows, Duration::from_secs(2)), expected);
    }

    #[test]
    fn the_help_names_every_step() {
        let usage = usage();
        assert!(STEPS.iter().all(|step| usage.contains(step.key)), "{usage}");
    }
}
