//! `install_package`: installs packages into a project. Always waits for an approval, because it reaches the network and
//! brings code of others.
//!
//! An approval is bound to the command lines, the registry with its hosts, and the manifests, lock files and settings in
//! the project's folder and above it. If one of them is different by the time the call runs, nothing is installed. Only the hosts of
//! the registry can be reached, also where the project names others.

mod package_name;
mod plan;

use super::ecosystem::Ecosystem;
use super::project_dir::ProjectDir;
use super::{CommandReport, DevContext};
use crate::command::runner::CommandSpec;
use crate::text::display_text;
use crate::tool::prelude::*;
use gantry_core::EffectState;
use gantry_sandbox::jail::{ExitReason, JobOutput};
use plan::{InstallPlan, host};
use std::path::Path;
use std::time::Duration;

/// How long an installation may take, with all its steps.
const WALL: Duration = Duration::from_mins(15);

#[derive(Debug)]
pub(super) struct InstallPackage(pub(super) Arc<DevContext>);

/// Installs packages from a registry into a project of the workspace: npm, pnpm or yarn, pip (into .venv), cargo, go.
/// Without packages, installs what the project declares. Always waits for a person's approval, because it reaches the
/// network and brings code of others. Runs in the sandbox; install scripts of npm packages are not run unless scripts is
/// true.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The folder of the project, relative to the workspace root.
    #[serde(default = "default_path")]
    path: String,
    /// Names in the registry, with a version if need be: react@^18, requests>=2, serde@1, golang.org/x/text@v0.21.0. No
    /// paths, addresses or options.
    #[serde(default)]
    packages: Vec<String>,
    /// What the project is of, where its folder holds several or says nothing.
    ecosystem: Option<Ecosystem>,
    /// Whether they are only for development (npm and cargo).
    #[serde(default)]
    dev: bool,
    /// Whether packages of npm may run their install scripts.
    #[serde(default)]
    scripts: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// What the project is of.
    ecosystem: Ecosystem,
    /// Manifests, lock files and settings of the project that changed, relative to the workspace root.
    changed: Vec<String>,
    #[serde(flatten)]
    report: CommandReport,
}

impl Tool for InstallPackage {
    const NAME: &'static str = "install_package";
    const TITLE: &'static str = "Install packages";
    const HINTS: Annotations = Annotations { open_world_hint: Some(true), ..CHANGES };
    // It always asks; as `Depends` the question can say what would be installed from where.
    const APPROVAL: ApprovalRule = ApprovalRule::Depends;
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_mins(30));
    type Args = Args;
    type Output = Output;

    async fn preflight(&self, args: Args) -> Result<Preflight> {
        let path = args.path.clone();
        let look = move |context: &DevContext, project: ProjectDir| {
            let plan = InstallPlan::make(&project, &args, &context.runner.options.registries)?;
            Ok(Preflight {
                ask: Some(question(&args, &plan, &project.shown())),
                precondition: Some(plan.precondition.into()),
            })
        };
        self.0.look(&path, look).await
    }

    /// Installs if everything is as it was when the call was judged.
    async fn run(&self, call: PermittedCall<Args>) -> Result<Output> {
        let precondition = call.precondition().map(str::to_owned);
        let (Self(context), args) = (self, call.args);
        let path = args.path.clone();
        let look = move |context: &DevContext, project: ProjectDir| {
            let plan = InstallPlan::make(&project, &args, &context.runner.options.registries)?;
            if precondition.as_ref() != Some(&plan.precondition) {
                return Err(failure::outdated(
                    "what the project declares, or where its packages come from, changed after the call was judged; \
                     nothing was installed. Call again to have it judged as it is now",
                ));
            }
            Ok((project, plan))
        };
        let (project, plan) = context.look(&path, look).await?;
        let (step, ran) = self.run_steps(&plan.steps, &project.folder).await?;
        let advice = plan.advice(&step);
        let read = move |ran: &JobOutput| Output {
            ecosystem: plan.manager.ecosystem,
            changed: changed_files(&project, &plan),
            report: CommandReport::new(&step, ran),
        };
        let output = context.result_of(ran, (Self::NAME, WALL), read).await?;
        let report = &output.report;
        if report.exit_code == 0 {
            return Ok(output);
        }
        let fault = failure::failed(format!(
            "`{}` failed with code {}; the details have what it said and what it changed; {advice}",
            report.command.join(" "),
            report.exit_code,
        ));
        Err(CallFailure { effect: EffectState::Done, ..failure::with_details(fault, output) })
    }
}

/// The question: what, from where, and what it may do.
fn question(args: &Args, plan: &InstallPlan, folder: &str) -> String {
    let what = if args.packages.is_empty() {
        "everything that the project declares".to_owned()
    } else {
        args.packages.join(", ")
    };
    let scripts = match (plan.manager.ecosystem, args.scripts) {
        (Ecosystem::Node, true) => ", running the packages' own install scripts",
        (Ecosystem::Node, false) => {
            ", without the packages' install scripts; what the project's own settings name, such as .pnpmfile.cjs or \
             plugins of yarn, still runs in the sandbox"
        }
        (Ecosystem::Python, _) => "; a package without a wheel runs code of its own to be built",
        (Ecosystem::Cargo, _) => {
            "; what the project's own settings name, such as wrappers of the compiler, runs in the sandbox"
        }
        (Ecosystem::Go, _) => "",
    };
    let (manager, registry) = (plan.manager.name, host(&plan.source));
    // What lies in the workspace is what runs with the network.
    let own = plan.steps.first().map(|step| display_text(&step.program)).filter(|it| it.starts_with('/'));
    let by = own.map(|program| format!(", by the project's own {program},")).unwrap_or_default();
    let hosts = plan.hosts.join(", ");
    format!(
        "it installs packages of others with {manager}{by} from {registry} into {folder}: {what}{scripts}; while it \
         runs it can reach the network, and there only {hosts}"
    )
}

impl InstallPackage {
    /// Runs the steps of a plan until one fails: the last one that was run, and how it ended, with the time that all of
    /// them took.
    async fn run_steps(&self, steps: &[CommandSpec], folder: &Path) -> Result<(CommandSpec, JobOutput)> {
        let mut last: Option<(CommandSpec, JobOutput)> = None;
        for step in steps {
            let before = last.as_ref().map_or(Duration::ZERO, |(_, ran)| ran.duration);
            let ran = self.0.run(step, folder, WALL.saturating_sub(before)).await;
            let mut ran = ran.map_err(|fault| {
                // Earlier steps have changed something.
                if last.is_some() { CallFailure { effect: EffectState::Done, ..fault } } else { fault }
            })?;
            ran.duration += before;
            let has_failed = ran.end != ExitReason::Exited(0);
            last = Some((step.clone(), ran));
            if has_failed {
                break;
            }
        }
        last.ok_or_else(|| failure::internal("there was nothing to run"))
    }
}

/// Those of the manager's files that are different now. What cannot be read any more has changed too.
fn changed_files(project: &ProjectDir, plan: &InstallPlan) -> Vec<String> {
    let is_same = |path: &Path, before| project.digest(path).is_ok_and(|now| now == before);
    let changed = plan.files.iter().filter(|(path, before)| !is_same(path, *before));
    changed.map(|(path, _)| path.display().to_string()).collect()
}

/// The programs that an installation would run.
#[cfg(test)]
pub(super) fn steps_of(
    project: &ProjectDir,
    args: &Args,
    registries: &crate::options::Registries,
) -> Result<Vec<CommandSpec>> {
    Ok(InstallPlan::make(project, args, registries)?.steps)
}
