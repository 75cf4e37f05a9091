//! The development tools: run the tests of a project, format its code, install its packages.
//!
//! They find out themselves what kind of project a folder holds, run its own programs by the command runner, and report
//! as data what came of it: counts of tests, files that changed. A suite that fails is a result and no error; an error
//! is what kept it from being run to its end.

mod ecosystem;
mod format_code;
mod install_package;
mod project_dir;
mod run_tests;

use crate::command::runner::{CommandRunner, CommandSpec, LimitKind, exit_code, millis};
use crate::failure::{self, Result};
use crate::options::Registries;
use crate::text::{strip_ansi, tail};
use crate::tool::run_blocking;
use crate::toolbox::ToolBox;
use crate::workspace::Error;
use crate::workspace::root::WorkspaceRoot;
use format_code::FormatCode;
use gantry_core::{CallFailure, EffectState};
use gantry_sandbox::jail::{Access, JobOutput, STORE};
use install_package::InstallPackage;
use project_dir::ProjectDir;
use run_tests::RunTests;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of each of a program's two outputs in a result, counted from its end.
const TAIL_BYTES: usize = 16 * 1024;
/// The interpreter of the environment that an installation makes where a project of Python has none.
const NEW_PYTHON: &str = ".venv/bin/python";

/// The development tools on the workspace of a runner.
pub fn dev_tools(runner: Arc<CommandRunner>) -> Result<ToolBox, Error> {
    let root = WorkspaceRoot::open(&runner.workspace, runner.protected.clone())?;
    let context = Arc::new(DevContext { root, runner });
    Ok(ToolBox::new()
        .with(RunTests(Arc::clone(&context)))
        .with(FormatCode(Arc::clone(&context)))
        .with(InstallPackage(context))
        .unavailable_if(CommandRunner::unavailable_reason))
}

#[derive(Debug)]
struct DevContext {
    root: WorkspaceRoot,
    runner: Arc<CommandRunner>,
}

impl DevContext {
    /// Looks at the project at a path, on a thread that may block.
    async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        path: &str,
        look: impl FnOnce(&Self, ProjectDir) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (context, path) = (Arc::clone(self), path.to_owned());
        let open_and_look = move || look(&context, ProjectDir::open(&context.root, &path)?);
        run_blocking(EffectState::None, open_and_look).await?
    }

    /// Runs a program in a folder of the workspace, or refuses one that is not there.
    async fn run(&self, command: &CommandSpec, folder: &Path, wall: Duration) -> Result<JobOutput> {
        let program = &command.program;
        if !program.starts_with('/') && self.runner.toolchains.program(program).is_none() {
            return Err(missing_program(program));
        }
        let folder = folder.to_owned();
        self.runner.run(CommandSpec { folder, wall, ..command.clone() }).await
    }

    /// The result of a run, which is read on a thread that may block; or the error of a run that a limit ended, with that
    /// result as its details.
    async fn result_of<T: Serialize + Send + 'static>(
        &self,
        ran: JobOutput,
        (tool, wall): (&str, Duration),
        read: impl FnOnce(&JobOutput) -> T + Send + 'static,
    ) -> Result<T> {
        let (result, ran) = run_blocking(EffectState::Done, move || (read(&ran), ran)).await?;
        match self.runner.limit_fault(&ran, tool, wall, LimitKind::Builds) {
            Some(fault) => Err(failure::with_details(fault, result)),
            None => Ok(result),
        }
    }
}

fn missing_program(names: &str) -> CallFailure {
    failure::failed(format!(
        "there is no program `{names}` in the sandbox, so nothing was run; if it is a package, install_package installs \
         it in the project; otherwise ask a person to install it on the machine that Gantry runs on, or to name its \
         folder in code.toolchains"
    ))
}

/// A program that may change the project and reads its packages, with the variables that tell it that there is no terminal.
fn project_command(program: impl Into<String>) -> CommandSpec {
    let go_path = format!("{STORE}/go");
    let env = [
        ("CI", "1"),
        ("NO_COLOR", "1"),
        ("CARGO_TERM_COLOR", "never"),
        ("GOPATH", go_path.as_str()),
        ("GOTELEMETRY", "off"),
    ];
    let command = CommandSpec::new(program, LimitKind::Builds, Duration::ZERO).env(env);
    CommandSpec { access: Access::Write, packages: Some(Access::Read), ..command }
}

/// The options by which cargo takes packages from a registry that replaces crates.io.
fn cargo_config(registries: &Registries) -> Vec<String> {
    let Some(registry) = &registries.cargo else { return Vec::new() };
    let address = format!("sparse+{}/", registry.trim_end_matches('/'));
    let settings = [
        r#"source.crates-io.replace-with="gantry""#.to_owned(),
        format!("source.gantry.registry={}", serde_json::Value::from(address)),
    ];
    settings.into_iter().flat_map(|setting| ["--config".to_owned(), setting]).collect()
}

/// The interpreter in the environment of Python that a project has, as the jail has it, if there is one.
fn own_python(project: &ProjectDir) -> Option<String> {
    let known = [NEW_PYTHON, "venv/bin/python"].into_iter();
    known.filter(|path| project.has(path)).map(|path| project.in_jail(path)).next()
}

/// How a program ended and what it said, as results have it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CommandReport {
    /// The program that was run, with its arguments; the last one, if there were several.
    command: Vec<String>,
    /// The exit code of the program; 128 and a signal's number if that ended it.
    exit_code: i32,
    /// How long it took, in milliseconds.
    duration: u64,
    /// How the program was confined.
    sandbox: &'static str,
    /// The end of the program's output.
    output: String,
    /// True if there was more than output has; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl CommandReport {
    fn new(run: &CommandSpec, ran: &JobOutput) -> Self {
        let (output, truncated) = output_of(ran);
        Self {
            command: run.command_line(),
            exit_code: exit_code(ran.end),
            duration: millis(ran.duration),
            sandbox: CommandRunner::level(),
            output,
            truncated,
        }
    }
}

/// The end of what a program printed on both its outputs, and whether there was more.
fn output_of(ran: &JobOutput) -> (String, bool) {
    let (output, is_cut) = join_tails(&strip_ansi(&ran.stdout.text()), &strip_ansi(&ran.stderr.text()));
    (output, is_cut || ran.stdout.is_truncated() || ran.stderr.is_truncated())
}

/// The ends of two outputs, and whether there was more. The standard error comes last: there programs say why they failed.
fn join_tails(stdout: &str, stderr: &str) -> (String, bool) {
    let (out, err) = (tail(stdout, TAIL_BYTES), tail(stderr, TAIL_BYTES));
    let gap = if out.is_empty() || err.is_empty() || out.ends_with('\n') { "" } else { "\n" };
    (format!("{out}{gap}{err}"), out.len() < stdout.len() || err.len() < stderr.len())
}

#[cfg(test)]
mod tests;
