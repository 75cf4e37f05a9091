//! `run_tests`: runs the tests of a project and reports how many passed, failed and were skipped.
//!
//! Runners are not asked for machine-readable reports: the counts come from the lines with which they close, and the end
//! of the output says what failed.

mod plan;
mod python;
mod summary;

pub(super) use python::{environment, python_in};

use super::act::Test;
use super::ecosystem::Ecosystem;
use super::site::{Site, after_run, off_thread};
use super::{Develop, fault, words};
use crate::command::runner::{CommandRunner, CommandSpec, exit_code, millis};
use gantry_core::Fault;
use gantry_sandbox::jail::{Access, End, Ran};
use plan::Plan;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use summary::TestSummary;

/// Time limit of a suite, unless the call says otherwise.
pub(super) const WALL: Duration = Duration::from_mins(10);
/// The longest time limit that a call may set.
pub(super) const WALL_LIMIT: Duration = Duration::from_hours(1);
/// Time limit for finding out whether an interpreter has pytest.
const PROBE_WALL: Duration = Duration::from_secs(30);
/// What is read of each output of a suite. Results are at the end of it, so this is generous.
const OUTPUT_BYTES: usize = 16 * 1024 * 1024;

pub(super) async fn run(develop: &Develop, test: Test) -> Result<Value, Fault> {
    let wall = test.timeout.map_or(WALL, |seconds| Duration::from_secs(seconds.into()).min(WALL_LIMIT));
    let mut left = wall;
    let site = Arc::new(Site::open(&develop.runner, &test.path).await?);
    let mut plan = {
        let (site, registries) = (Arc::clone(&site), develop.registries.clone());
        let test = test.clone();
        off_thread(move || plan::of(&site, &test, &registries)).await??
    };
    if !plan.program.starts_with('/') && develop.runner.toolchains().program(&plan.program).is_none() {
        return Err(fault::no_program(&plan.program, plan.install()));
    }
    if plan.ecosystem == Ecosystem::Python {
        let asked = Instant::now();
        let has_pytest = has_pytest(develop, &site, &plan).await?;
        // The call has one time limit for both.
        left = wall.saturating_sub(asked.elapsed()).max(Duration::from_secs(1));
        let site = Arc::clone(&site);
        plan = off_thread(move || python::with_runner(plan, &site, &test, has_pytest)).await?;
    }
    let quota = develop.runner.options().builds;
    let ran = develop.runner.run(task(develop, &site, &plan, left)).await?;
    let result = after_run({
        let ran = ran.clone();
        move || report(&plan, &ran)
    });
    let result = result.await?;
    match fault::limit(&ran, "run_tests", (wall, quota), result.clone()) {
        Some(fault) => Err(fault),
        None => Ok(result),
    }
}

fn task(develop: &Develop, site: &Site, plan: &Plan, wall: Duration) -> CommandSpec {
    CommandSpec {
        env: plan.env.clone(),
        folder: site.folder.clone(),
        access: Access::Write,
        packages: true,
        output: OUTPUT_BYTES,
        ..CommandSpec::new(plan.program.clone(), develop.runner.options().builds, wall).args(&plan.args)
    }
}

/// Whether the interpreter of a plan can import pytest, which only the interpreter itself can tell.
async fn has_pytest(develop: &Develop, site: &Site, plan: &Plan) -> Result<bool, Fault> {
    let task = CommandSpec { access: Access::Read, ..task(develop, site, plan, PROBE_WALL) };
    let ran = develop.runner.run(task.args(["-c", "import pytest"])).await?;
    Ok(ran.end == End::Exited(0))
}

/// The result: the counts that the runner closed with, the end of its output, and how it ended.
fn report(plan: &Plan, ran: &Ran) -> Value {
    let (stdout, stderr) = (words::plain(&ran.stdout.text()), words::plain(&ran.stderr.text()));
    let summary = TestSummary::read(&format!("{stdout}\n{stderr}"));
    let parsed = summary.is_some();
    let TestSummary { passed, failed, skipped } = summary.unwrap_or_default();
    let (mut output, truncated) = words::output(ran);
    if truncated {
        // Lines about tests that passed make room for those about tests that failed.
        output = words::joined(&summary::without_passed(&stdout), &summary::without_passed(&stderr)).0;
    }
    let command: Vec<&str> =
        [plan.program.as_str()].into_iter().chain(plan.args.iter().map(String::as_str)).collect();
    let mut result = json!({
        "ecosystem": plan.ecosystem.name(),
        "runner": plan.runner,
        "command": command,
        "parsed": parsed,
        "passed": passed,
        "failed": failed,
        "skipped": skipped,
        "exitCode": exit_code(ran.end),
        "duration": millis(ran.duration),
        "sandbox": CommandRunner::level(),
        "output": output,
    });
    if truncated {
        result["truncated"] = true.into();
    }
    if let Some(hint) = hint(plan, ran) {
        result["hint"] = hint.into();
    }
    result
}

/// What to do about a suite that failed because packages are missing.
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

/// The program that would run the tests, with its arguments.
#[cfg(test)]
pub(super) fn plan_of(
    site: &Site,
    test: &Test,
    registries: &super::Registries,
    has_pytest: bool,
) -> Result<(String, Vec<String>), Fault> {
    let mut plan = plan::of(site, test, registries)?;
    if plan.ecosystem == Ecosystem::Python {
        plan = python::with_runner(plan, site, test, has_pytest);
    }
    Ok((plan.program, plan.args))
}

#[cfg(test)]
mod tests;
