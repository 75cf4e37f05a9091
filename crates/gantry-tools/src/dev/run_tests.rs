//! `run_tests`: runs the tests of a project and reports how many passed, failed and were skipped.
//!
//! Runners are not asked for machine-readable reports: the counts come from the lines with which they close, and the end
//! of the output says what failed.

mod plan;
mod summary;

use super::ecosystem::Ecosystem;
use super::{CommandReport, DevContext, join_tails};
use crate::text::strip_ansi;
use crate::tool::prelude::*;
use gantry_sandbox::jail::{ExitReason, JobOutput};
use plan::TestPlan;
use std::time::Duration;
use summary::TestSummary;

/// The longest time limit that a call may set, in seconds.
const MAX_TIMEOUT: u32 = 3600;

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

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output, CallFailure> {
        let Self(context) = self;
        let wall = Duration::from_secs(call.args.timeout.into());
        let path = call.args.path.clone();
        let plan = move |context: &DevContext, project| {
            let plan = TestPlan::make(&project, &call.args, &context.runner.options.registries)?;
            Ok((plan, project.folder))
        };
        let (mut plan, folder) = context.look(&path, plan).await?;
        let mut ran = context.run(&plan.run, &folder, wall).await?;
        if let Some(unittest) = plan.unittest.take()
            && lacks_pytest(&ran)
        {
            (plan.runner, plan.run) = ("unittest", unittest);
            // The call has one time limit for both.
            ran = context.run(&plan.run, &folder, wall.saturating_sub(ran.duration)).await?;
        }
        context.result_of(ran, (Self::NAME, wall), move |ran| report(&plan, ran)).await
    }
}

/// Whether an interpreter said that it has no pytest, and so ran nothing.
fn lacks_pytest(ran: &JobOutput) -> bool {
    let said = ran.stderr.text();
    ran.end == ExitReason::Exited(1)
        && ran.stdout.total == 0
        && said.lines().count() == 1
        && said.trim_end().ends_with(": No module named pytest")
}

/// The result: the counts that the runner closed with, the end of its output, and how it ended.
fn report(plan: &TestPlan, ran: &JobOutput) -> Output {
    let (stdout, stderr) = (strip_ansi(&ran.stdout.text()), strip_ansi(&ran.stderr.text()));
    let summary = TestSummary::read(&format!("{stdout}\n{stderr}"));
    let mut report = CommandReport::new(&plan.run, ran);
    if report.truncated {
        // Lines about tests that passed make room for those about tests that failed.
        report.output = join_tails(&summary::without_passed(&stdout), &summary::without_passed(&stderr)).0;
    }
    let lacks_packages = ran.end != ExitReason::Exited(0)
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
