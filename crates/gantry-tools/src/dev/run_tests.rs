//! `run_tests`: runs the tests of a project and reports how many passed, failed and were skipped.
//!
//! Runners are not asked for machine-readable reports: the counts come from the lines with which they close, and the end
//! of the output says what failed.

mod plan;
mod summary;

use super::ecosystem::Ecosystem;
use super::{CommandReport, DevContext, join_tails, project_command};
use crate::command::runner::CommandSpec;
use crate::text::strip_ansi;
use crate::tool::prelude::*;
use crate::tool::run_blocking;
use gantry_core::EffectState;
use gantry_sandbox::jail::{Access, End, Ran};
use plan::TestPlan;
use std::path::Path;
use std::time::{Duration, Instant};
use summary::TestSummary;

/// The longest time limit that a call may set, in seconds.
const MAX_TIMEOUT: u32 = 3600;
/// Time limit for finding out whether an interpreter has pytest.
const PROBE_TIME: Duration = Duration::from_secs(30);
/// What is read of each output of a suite. Results are at the end of it, so this is generous.
const OUTPUT_BYTES: usize = 16 * 1024 * 1024;

/// The tool.
#[derive(Debug)]
pub(super) struct RunTests(pub(super) Arc<DevContext>);

/// Runs the tests of a project in the workspace and returns how many passed and failed, with the end of the runner's
/// output; where that is long, lines about tests that passed are left out first. Finds out what runs them: cargo test,
/// node --test, jest, vitest, mocha or the package's test script, pytest or unittest, go test. Runs in the sandbox,
/// without network: call install_package first if packages are missing. Tests that fail are a result, not an error.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The folder of the project, relative to the workspace root.
    #[serde(default = "default_path")]
    path: String,
    /// What the project is of, where its folder holds several or says nothing.
    ecosystem: Option<Ecosystem>,
    /// Run only tests whose name contains this; for pytest an expression of -k, for go and node a regular expression.
    filter: Option<String>,
    /// Seconds after which the tests are ended.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1, max = MAX_TIMEOUT))]
    timeout: u32,
    /// Further arguments for the program that runs the tests.
    #[serde(default)]
    args: Vec<String>,
}

fn default_timeout() -> u32 {
    600
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// What the project is of.
    ecosystem: Ecosystem,
    /// What ran the tests.
    runner: &'static str,
    /// Whether the runner closed with counts that are known. If not, they are 0 and mean nothing; go by exitCode and
    /// output.
    parsed: bool,
    #[serde(flatten)]
    summary: TestSummary,
    /// What to do first, where that is plain; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    #[serde(flatten)]
    report: CommandReport,
}

impl Tool for RunTests {
    const NAME: &'static str = "run_tests";
    const TITLE: &'static str = "Run tests";
    const HINTS: Annotations = CHANGES;
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_secs(MAX_TIMEOUT as u64));
    type Args = Args;
    type Output = Output;

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output, Fault> {
        let Self(context) = self;
        let wall = Duration::from_secs(call.args.timeout.into());
        let path = call.args.path.clone();
        let plan = move |context: &DevContext, project| {
            let plan = TestPlan::make(&project, &call.args, &context.runner.options.registries)?;
            Ok((plan, project.folder))
        };
        let (mut plan, folder) = context.look(&path, plan).await?;
        context.require(&plan.run.program, plan.ecosystem.toolchain())?;
        let started = Instant::now();
        if let Some(unittest) = plan.unittest.take()
            && !self.has_pytest(&plan.run.program, &folder).await?
        {
            (plan.runner, plan.run) = ("unittest", unittest);
        }
        // The call has one time limit for both.
        let left = wall.saturating_sub(started.elapsed()).max(Duration::from_secs(1));
        let command = CommandSpec { folder, wall: left, output: OUTPUT_BYTES, ..plan.run.clone() };
        let ran = context.runner.run(command).await?;
        let read = move || (report(&plan, &ran), ran);
        let (output, ran) = run_blocking(EffectState::Done, read).await?;
        context.unless_limited(output, &ran, Self::NAME, wall)
    }
}

impl RunTests {
    /// Whether an interpreter can import pytest, which only the interpreter itself can tell.
    async fn has_pytest(&self, python: &str, folder: &Path) -> Result<bool, Fault> {
        let probe = project_command(python).args(["-c", "import pytest"]);
        let (folder, access) = (folder.to_owned(), Access::Read);
        let ran = self.0.runner.run(CommandSpec { folder, access, wall: PROBE_TIME, ..probe }).await?;
        Ok(ran.end == End::Exited(0))
    }
}

/// The result: the counts that the runner closed with, the end of its output, and how it ended.
fn report(plan: &TestPlan, ran: &Ran) -> Output {
    let (stdout, stderr) = (strip_ansi(&ran.stdout.text()), strip_ansi(&ran.stderr.text()));
    let summary = TestSummary::read(&format!("{stdout}\n{stderr}"));
    let mut report = CommandReport::new(&plan.run, ran, ran.duration);
    if report.truncated {
        // Lines about tests that passed make room for those about tests that failed.
        report.output = join_tails(&summary::without_passed(&stdout), &summary::without_passed(&stderr)).0;
    }
    let lacks_packages = ran.end != End::Exited(0)
        && missing_packages(plan.ecosystem)
            .iter()
            .any(|words| stdout.contains(words) || stderr.contains(words));
    Output {
        ecosystem: plan.ecosystem,
        runner: plan.runner,
        parsed: summary.is_some(),
        summary: summary.unwrap_or_default(),
        hint: lacks_packages.then_some(
            "packages seem to be missing, and tests have no network: install_package installs them first",
        ),
        report,
    }
}

/// What programs say when packages are missing.
fn missing_packages(ecosystem: Ecosystem) -> &'static [&'static str] {
    match ecosystem {
        Ecosystem::Cargo => &["--offline", "failed to download", "no matching package"],
        Ecosystem::Node => &["Cannot find module", "ERR_MODULE_NOT_FOUND", ": not found"],
        Ecosystem::Python => &["No module named"],
        Ecosystem::Go => &["dial tcp", "missing go.sum entry", "no required module provides"],
    }
}

#[cfg(test)]
pub(super) use plan::tests::plan_of;

#[cfg(test)]
mod tests;
