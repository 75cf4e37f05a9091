//! The tools that run programs which an agent chose, and the runner that they and other tools start programs with.

mod code;
pub mod runner;
mod shell;
pub(crate) mod toolchains;

pub use code::code_tools;
pub use shell::shell_tools;

use crate::failure::Result;
use gantry_sandbox::jail::{Access, Captured};
use runner::{CommandRunner, CommandSpec, NetworkAccess};
use schemars::JsonSchema;
use serde::Serialize;

/// The longest time that a call can ask for, in seconds.
pub const MAX_TIMEOUT: u64 = 3600;
/// Arguments and variables of one call.
const MAX_WORDS: usize = 1000;

/// The time that a program has without asking, in seconds.
fn default_timeout() -> f64 {
    60.0
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProgramResult {
    /// What it wrote to its standard output; at most 1 MiB. What is not UTF-8 is replaced.
    stdout: String,
    /// What it wrote to its standard error; at most 1 MiB.
    stderr: String,
    /// 0 for success; 128 and the number of the signal for one that a signal ended.
    exit_code: i32,
    /// How long it ran, in milliseconds.
    duration: u64,
    /// How it was confined.
    sandbox: &'static str,
    /// True if it wrote more than is kept; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// How much it wrote to its standard output, if that is not all kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_bytes: Option<u64>,
    /// How much it wrote to its standard error, if that is not all kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_bytes: Option<u64>,
}

/// Runs a program that an agent chose, on the workspace and with the network that such programs have.
async fn run_program(runner: &CommandRunner, mut command: CommandSpec, name: &str) -> Result<ProgramResult> {
    let (wall, limits) = (command.wall, command.limits);
    command.access = Access::Write;
    command.network = runner.options.network.then(NetworkAccess::default);
    let ran = runner.run(command).await?;
    if let Some(fault) = runner.limit_fault(&ran, name, wall, limits) {
        return Err(fault);
    }
    let total_if_cut = |captured: &Captured| captured.is_truncated().then_some(captured.total);
    Ok(ProgramResult {
        exit_code: runner::exit_code(ran.end),
        duration: runner::millis(ran.duration),
        sandbox: CommandRunner::level(),
        truncated: ran.stdout.is_truncated() || ran.stderr.is_truncated(),
        stdout_bytes: total_if_cut(&ran.stdout),
        stderr_bytes: total_if_cut(&ran.stderr),
        stdout: ran.stdout.text(),
        stderr: ran.stderr.text(),
    })
}
