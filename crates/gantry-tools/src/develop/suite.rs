//! `run_tests`: runs the tests of a project and says what came of each that failed.

mod go;
mod libtest;
mod plan;
mod python;
mod script;
mod tap;

pub(super) use python::{environment, python_in};

use super::act::Test;
use super::ecosystem::Ecosystem;
use super::site::{Site, after_run, off_thread};
use super::{Develop, fault, words};
use crate::workshop::{Task, Workshop, exit_code, millis};
use gantry_core::Fault;
use gantry_sandbox::jail::{Access, End, Ran, WORKSPACE};
use plan::{Plan, Reader};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a suite may take, unless the call says otherwise.
pub(super) const WALL: Duration = Duration::from_mins(10);
/// How long a call may let it take.
pub(super) const WALL_LIMIT: Duration = Duration::from_hours(1);
/// What is read of each output of a suite. Results are at the end of it, so this is generous.
const OUTPUT_BYTES: usize = 16 * 1024 * 1024;
/// Failures that a result has; the rest is counted.
pub(super) const FAILURES: usize = 100;
/// The message of one failure.
pub(super) const MESSAGE_BYTES: usize = 4 * 1024;
/// A name of a test, a file or a runner.
const NAME_BYTES: usize = 1024;

/// What came of a suite.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    /// What ran the tests, where the program that was started chose it.
    runner: Option<String>,
    passed: u64,
    failed: u64,
    skipped: u64,
    failures: Vec<Failure>,
}

/// One test that failed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Failure {
    name: String,
    message: String,
    file: Option<String>,
    line: Option<u64>,
}

impl Tally {
    /// Counts tests. Programs say what they like, so that counts may be of any size.
    fn count(&mut self, [passed, failed, skipped]: [u64; 3]) {
        self.passed = self.passed.saturating_add(passed);
        self.failed = self.failed.saturating_add(failed);
        self.skipped = self.skipped.saturating_add(skipped);
    }

    /// Keeps a failure if there is room for it, and only then finds out about it. It is not counted here.
    fn note(&mut self, failure: impl FnOnce() -> Failure) {
        if self.failures.len() < FAILURES {
            let Failure { name, message, file, line } = failure();
            self.failures.push(Failure {
                name: words::head(&name, NAME_BYTES).to_owned(),
                message: words::head(message.trim_matches('\n'), MESSAGE_BYTES).to_owned(),
                file: file.map(|file| words::head(&file, NAME_BYTES).to_owned()),
                line,
            });
        }
    }
}

impl Failure {
    /// A failure at a place such as `src/lib.rs:7` or `src/lib.rs:7:1`.
    fn at(mut self, place: Option<&str>) -> Self {
        let mut parts = place.unwrap_or_default().rsplitn(3, ':');
        let (last, before, rest) = (parts.next(), parts.next(), parts.next());
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
        (self.file, self.line) = match (number(before), number(last)) {
            (Some(line), _) => (rest.map(str::to_owned), Some(line)),
            (None, Some(line)) => {
                let file = [rest, before].into_iter().flatten().collect::<Vec<_>>().join(":");
                (Some(file), Some(line))
            }
            (None, None) => (place.map(str::to_owned), None),
        };
        self.file = self.file.filter(|file| !file.is_empty());
        self
    }
}

pub(super) async fn run(develop: &Develop, test: Test) -> Result<Value, Fault> {
    let wall = test.timeout.map_or(WALL, |seconds| Duration::from_secs(seconds.into()).min(WALL_LIMIT));
    let site = Arc::new(Site::open(&develop.workshop, &test.path).await?);
    let plan = {
        let (site, registries) = (Arc::clone(&site), develop.registries.clone());
        off_thread(move || plan::of(&site, &test, &registries)).await??
    };
    let toolchains = develop.workshop.toolchains();
    if !plan.program.starts_with('/') && toolchains.program(&plan.program).is_none() {
        return Err(fault::no_program(&plan.program, plan.install()));
    }
    let quota = develop.workshop.options().builds;
    let task = Task {
        env: plan.env.clone(),
        folder: site.folder.clone(),
        access: Access::Write,
        packages: true,
        files: plan.files.clone(),
        output: OUTPUT_BYTES,
        ..Task::new(plan.program.clone(), quota, wall).args(&plan.args)
    };
    let ran = develop.workshop.run(task).await?;
    let result = after_run({
        let ran = ran.clone();
        move || report(&site, &plan, &ran)
    });
    let result = result.await?;
    match fault::limit(&ran, "run_tests", (wall, quota), result.clone()) {
        Some(fault) => Err(fault),
        None => Ok(result),
    }
}

/// The result: what the runner said of its tests, and how it ended.
fn report(site: &Site, plan: &Plan, ran: &Ran) -> Value {
    let (stdout, stderr) = (words::plain(&ran.stdout.text()), words::plain(&ran.stderr.text()));
    let tally = match plan.reader {
        Reader::Libtest => libtest::parse(&stdout, &stderr),
        Reader::Tap => tap::parse(&stdout),
        Reader::Json => script::json(&stdout),
        Reader::Go => go::parse(&stdout),
        Reader::Python => python::parse(&stderr),
        Reader::Guess => tap::parse(&stdout).or_else(|| script::summary(&format!("{stdout}\n{stderr}"))),
    };
    let parsed = tally.is_some();
    let tally = tally.unwrap_or_default();
    let (mut output, mut truncated) = match plan.reader {
        // Whole events and reports are for programs; what they are about is in the result.
        Reader::Go => (go::said(&stdout) + &stderr, ran.stdout.is_truncated()),
        Reader::Python => (stdout + python::without_report(&stderr), ran.stdout.is_truncated()),
        Reader::Libtest | Reader::Tap | Reader::Json | Reader::Guess => words::output(ran),
    };
    if output.len() > words::TAIL_BYTES {
        output = words::tail(&output, words::TAIL_BYTES).to_owned();
        truncated = true;
    }
    let command: Vec<&str> =
        [plan.program.as_str()].into_iter().chain(plan.args.iter().map(String::as_str)).collect();
    let mut result = json!({
        "ecosystem": plan.ecosystem.name(),
        "runner": tally.runner.as_deref().unwrap_or(plan.runner),
        "command": command,
        "parsed": parsed,
        "passed": tally.passed,
        "failed": tally.failed,
        "skipped": tally.skipped,
        "failures": tally.failures.iter().map(|failure| shown(site, failure)).collect::<Vec<_>>(),
        "exitCode": exit_code(ran.end),
        "duration": millis(ran.duration),
        "sandbox": Workshop::level(),
        "output": output,
    });
    if truncated || tally.failed > FAILURES as u64 {
        result["truncated"] = true.into();
    }
    if let Some(hint) = hint(plan, ran) {
        result["hint"] = hint.into();
    }
    result
}

/// What to do about a suite that failed for a reason that is plain.
fn hint(plan: &Plan, ran: &Ran) -> Option<&'static str> {
    if ran.end == End::Exited(0) {
        return None;
    }
    let said = format!("{}{}", ran.stdout.text(), ran.stderr.text());
    let missing: &[&str] = match plan.ecosystem {
        Ecosystem::Cargo => &["--offline", "failed to download", "no matching package"],
        Ecosystem::Node => &["Cannot find module", "ERR_MODULE_NOT_FOUND", ": not found"],
        Ecosystem::Python => &["No module named"],
        Ecosystem::Go => &["dial tcp", "missing go.sum entry", "no required module provides"],
    };
    let lacks = missing.iter().any(|words| said.contains(words));
    lacks.then_some(
        "packages seem to be missing, and tests have no network: install_package installs them first",
    )
}

fn shown(site: &Site, failure: &Failure) -> Value {
    let mut shown = Map::new();
    shown.insert("name".into(), relative(site, &failure.name).into());
    shown.insert("message".into(), failure.message.as_str().into());
    if let Some(file) = &failure.file {
        shown.insert("file".into(), relative(site, file).into());
    }
    if let Some(line) = failure.line {
        shown.insert("line".into(), line.into());
    }
    Value::Object(shown)
}

/// A file as the workspace has it: runners name them from where they run, or by where they are in the jail.
fn relative(site: &Site, file: &str) -> String {
    let file = file.strip_prefix("file://").unwrap_or(file);
    if let Some(inside) = file.strip_prefix(WORKSPACE).and_then(|inside| inside.strip_prefix('/')) {
        return inside.to_owned();
    }
    let from_folder = site.folder.join(file);
    let is_there = !Path::new(file).is_absolute() && site.is_file(&from_folder);
    if is_there { from_folder.display().to_string() } else { file.to_owned() }
}

/// The program that would run the tests, with its arguments.
#[cfg(test)]
pub(super) fn plan_of(
    site: &Site,
    test: &Test,
    registries: &super::Registries,
) -> Result<(String, Vec<String>), Fault> {
    plan::of(site, test, registries).map(|plan| (plan.program, plan.args))
}

#[cfg(test)]
mod tests;
