//! `cargo xtask test`: every check and test of the repository, in the order that fails soonest.

mod clients;
mod conformance;
mod cpu;
mod install;
mod quick;
mod servers;
mod slowest;
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
    extent: Extent,
    /// Install missing programs with apt.
    install: bool,
    /// The keys of the steps to run; all of them when empty.
    only: Vec<&'static str>,
    /// Filters and options for the test runner.
    nextest: Vec<String>,
}

/// How much is tested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Extent {
    /// The steps and the choice of tests that take a few minutes.
    Quick,
    #[default]
    Usual,
    /// Also the tests that take minutes.
    Long,
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
    took: Option<Spent>,
}

/// What a step cost.
#[derive(Debug, Clone, Copy)]
struct Spent {
    wall: Duration,
    /// Of this process and of all that it started, where the kernel tells it.
    cpu: Option<Duration>,
}

/// Where the times of a step begin.
struct Clock {
    started: Instant,
    cpu: Option<Duration>,
}

impl Clock {
    fn start() -> Self {
        Self { started: Instant::now(), cpu: cpu::spent() }
    }

    fn read(&self) -> Spent {
        let cpu = cpu::spent().zip(self.cpu).map(|(now, before)| now.saturating_sub(before));
        Spent { wall: self.started.elapsed(), cpu }
    }
}

impl Options {
    pub(crate) fn parse(args: Vec<String>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--long" => options.choose(Extent::Long)?,
                "--quick" => options.choose(Extent::Quick)?,
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

    fn choose(&mut self, extent: Extent) -> Result<(), String> {
        if self.extent != Extent::Usual && self.extent != extent {
            return Err("`test` is either --quick or --long".to_owned());
        }
        self.extent = extent;
        Ok(())
    }

    fn wants(&self, step: &Step) -> bool {
        match self.only.as_slice() {
            [] => self.extent != Extent::Quick || step.is_quick,
            only => only.contains(&step.key),
        }
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
    let line = |step: &Step| {
        let mark = if step.is_quick { '*' } else { ' ' };
        format!("  {:<11}{mark} {}\n", step.key, step.title)
    };
    let steps: String = STEPS.iter().map(line).collect();
    format!(
        "\
Usage: cargo xtask test [--quick | --long] [--install] [--only STEP]… [FILTER]… [-- NEXTEST OPTIONS]

Runs every step in order and stops at the first that fails. Prints what each cost, and the slowest tests.

  --quick      Run the steps with a star, and of the tests a choice that takes a few minutes:
               {}
  --long       Also run the tests that take minutes
  --install    Install missing programs with apt-get (needs root or sudo; also done when CI=true)
  --only STEP  Run just this step; may be given more than once
  FILTER       Run only the tests whose name contains this (the other steps run as ever)

Steps:
{steps}",
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
            rows.push(Row { key: step.key, result: "not run".to_owned(), took: None });
            continue;
        }
        eprintln!("\n=== {}: {}", step.key, step.title);
        let step_clock = Clock::start();
        let result = (step.run)(root, options);
        rows.push(Row { key: step.key, result: describe(&result), took: Some(step_clock.read()) });
        failed = result.err().map(|error| (step, error));
    }

    eprint!("\n{}", summary(&rows, clock.read()));
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

fn summary(rows: &[Row], total: Spent) -> String {
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let line = |key: &str, took: Option<Spent>, result: &str| {
        let wall = took.map(|spent| seconds(spent.wall)).unwrap_or_default();
        let cpu = took.and_then(|spent| spent.cpu).map(seconds).unwrap_or_default();
        format!("{key:<11} {wall:>9}  {cpu:>9}  {result}").trim_end().to_owned() + "\n"
    };
    let mut text = format!("{:<11} {:>9}  {:>9}\n", "step", "time", "CPU");
    for row in rows {
        text.push_str(&line(row.key, row.took, &row.result));
    }
    text.push_str(&line("total", Some(total), ""));
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
        let only = vec!["lint", "tests"];
        assert_eq!(options, Options { extent: Extent::Long, install: false, only, nextest });
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
        let spent = |wall, cpu: Option<u64>| Spent {
            wall: Duration::from_millis(wall),
            cpu: cpu.map(Duration::from_millis),
        };
        let rows = [
            Row { key: "tidy", result: "ok".to_owned(), took: Some(spent(300, None)) },
            Row { key: "lint", result: "FAILED".to_owned(), took: Some(spent(1540, Some(2960))) },
            Row { key: "build", result: "not run".to_owned(), took: None },
        ];
        let expected = "\
step             time        CPU
tidy            0.3 s             ok
lint            1.5 s      3.0 s  FAILED
build                             not run
total           2.0 s      3.0 s
";
        assert_eq!(summary(&rows, spent(2000, Some(2960))), expected);
    }

    #[test]
    fn quick_runs_some_steps_and_only_names_any() {
        let runs = |line: &str| -> Vec<&str> {
            let options = parse(line).unwrap();
            STEPS.iter().filter(|step| options.wants(step)).map(|step| step.key).collect()
        };
        let quick = runs("--quick");
        assert!(quick.contains(&"build") && quick.contains(&"tests"), "{quick:?}");
        assert!(!quick.contains(&"lint") && !quick.contains(&"conformance"), "{quick:?}");
        assert_eq!(runs("--quick --only lint --only tests"), ["lint", "tests"]);
        assert_eq!(runs("").len(), STEPS.len());
    }

    #[test]
    fn quick_and_long_exclude_each_other() {
        assert!(parse("--quick --long").unwrap_err().contains("--quick"));
        assert_eq!(parse("--quick --quick").unwrap().extent, Extent::Quick);
    }

    #[test]
    fn the_help_says_how_quick_chooses() {
        assert!(usage().contains(quick::RULE));
    }

    #[test]
    fn the_help_names_every_step() {
        let usage = usage();
        assert!(STEPS.iter().all(|step| usage.contains(step.key)), "{usage}");
    }
}
