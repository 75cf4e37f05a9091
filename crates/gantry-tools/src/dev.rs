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
use crate::failure;
use crate::text::{strip_ansi, tail};
use crate::tool::run_blocking;
use crate::toolbox::ToolBox;
use crate::workspace::Error;
use crate::workspace::root::WorkspaceRoot;
use format_code::FormatCode;
use gantry_core::{EffectState, Fault};
use gantry_sandbox::jail::{Access, Ran};
use install_package::InstallPackage;
use project_dir::ProjectDir;
use run_tests::RunTests;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a program's output in a result, counted from its end.
const TAIL_BYTES: usize = 20 * 1024;

/// The development tools on the workspace of a runner.
///
/// # Errors
/// The workspace cannot be opened.
pub fn dev_tools(runner: Arc<CommandRunner>) -> Result<ToolBox, Error> {
    let root = WorkspaceRoot::open(&runner.workspace, runner.protected.clone())?;
    let context = Arc::new(DevContext { root, runner });
    Ok(ToolBox::new()
        .with(RunTests(Arc::clone(&context)))
        .with(FormatCode(Arc::clone(&context)))
        .with(InstallPackage(context))
        .unavailable_if(CommandRunner::unavailable_reason))
}

/// What the development tools share.
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
        look: impl FnOnce(&Self, ProjectDir) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let (context, path) = (Arc::clone(self), path.to_owned());
        let open_and_look = move || look(&context, ProjectDir::open(&context.root, &path)?);
        run_blocking(EffectState::None, open_and_look).await?
    }

    /// Refuses a program that is not there; `toolchain` is what has to be installed then.
    fn require(&self, program: &str, toolchain: &str) -> Result<(), Fault> {
        let is_there = program.starts_with('/') || self.runner.toolchains.program(program).is_some();
        if is_there { Ok(()) } else { Err(missing_program(program, toolchain)) }
    }

    /// The result of a run; or the error of a run that a limit ended, with that result as its details.
    fn unless_limited<T: Serialize>(
        &self,
        result: T,
        ran: &Ran,
        tool: &str,
        wall: Duration,
    ) -> Result<T, Fault> {
        match self.runner.limit_fault(ran, tool, wall, LimitKind::Builds) {
            Some(fault) => Err(with_result(fault, &result)),
            None => Ok(result),
        }
    }
}

fn missing_program(program: &str, toolchain: &str) -> Fault {
    failure::failed(format!(
        "there is no program `{program}` in the sandbox, so nothing was run; ask a person to install {toolchain} on the \
         machine that Gantry runs on, or to name its folder in code.toolchains"
    ))
}

/// A program that may change the project and has its packages, with the variables that tell it that there is no terminal.
/// The tool that runs it sets its folder and its time limit.
fn project_command(program: impl Into<String>) -> CommandSpec {
    let env = [("CI", "1"), ("NO_COLOR", "1"), ("CARGO_TERM_COLOR", "never")];
    let command = CommandSpec::new(program, LimitKind::Builds, Duration::ZERO).env(env);
    CommandSpec { access: Access::Write, packages: true, ..command }
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
    fn new(run: &CommandSpec, ran: &Ran, duration: Duration) -> Self {
        let (output, truncated) = output_of(ran);
        Self {
            command: run.command_line(),
            exit_code: exit_code(ran.end),
            duration: millis(duration),
            sandbox: CommandRunner::level(),
            output,
            truncated,
        }
    }
}

/// The end of what a program printed on both its outputs, and whether there was more.
fn output_of(ran: &Ran) -> (String, bool) {
    let (output, is_cut) = join_tails(&strip_ansi(&ran.stdout.text()), &strip_ansi(&ran.stderr.text()));
    (output, is_cut || ran.stdout.is_truncated() || ran.stderr.is_truncated())
}

/// The end of two outputs, and whether there was more. The standard error comes last: there programs say why they failed.
fn join_tails(stdout: &str, stderr: &str) -> (String, bool) {
    let gap = if stdout.is_empty() || stderr.is_empty() || stdout.ends_with('\n') { "" } else { "\n" };
    // Neither output takes all the room from the other.
    let half = TAIL_BYTES / 2;
    let both = if stdout.len() > half && stderr.len() > half {
        format!("{}\n{}", tail(stdout, half - 1), tail(stderr, half))
    } else {
        format!("{stdout}{gap}{stderr}")
    };
    let kept = tail(&both, TAIL_BYTES).to_owned();
    let is_cut = kept.len() < stdout.len() + gap.len() + stderr.len();
    (kept, is_cut)
}

/// A fault with a result as its details.
fn with_result(fault: Fault, result: &impl Serialize) -> Fault {
    failure::with_details(fault, serde_json::to_value(result).unwrap_or_default())
}

#[cfg(test)]
mod tests;
