//! `shell_exec` of the tool catalogue: runs some commands and no others, in the sandbox.
//!
//! There is no shell: a command is a program and its arguments. Which program that is does not depend on how a call
//! spells it: names are looked up in folders that no job can write, once for the list and once for the call, and what is
//! found is compared. The folder is compared by where it really is, the name as it is written: one file can be many
//! programs, by the name it is called.

use super::runner::{CommandRunner, CommandSpec, LimitKind};
use super::{MAX_TIMEOUT, MAX_WORDS, ProgramResult, default_timeout, run_program};
use crate::options::ShellPolicy;
use crate::tool::prelude::*;
use crate::tool::time_limit;
use crate::toolbox::ToolBox;
use std::path::PathBuf;
use std::time::Duration;

/// The tool of an entry of the tool catalogue.
#[must_use]
pub fn shell_tools(runner: Arc<CommandRunner>, policy: ShellPolicy) -> ToolBox {
    ToolBox::new().with(ShellExec { runner, policy }).unavailable_if(CommandRunner::unavailable_reason)
}

#[derive(Debug)]
struct ShellExec {
    runner: Arc<CommandRunner>,
    policy: ShellPolicy,
}

/// Runs one command in a sandbox whose working folder is the workspace. There is no shell: no pipes, no redirections, no
/// variables. A code other than 0 is no error of the tool: read exitCode and stderr.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The name of the program, or its absolute path.
    command: String,
    /// Its arguments, each as it is.
    #[serde(default)]
    #[schemars(length(max = MAX_WORDS))]
    args: Vec<String>,
    /// The folder of the workspace that it runs in; the workspace itself unless given.
    #[serde(default)]
    cwd: String,
    /// What it reads on its standard input; nothing unless given.
    #[serde(default)]
    stdin: String,
    /// Seconds after which it is ended with everything that it started.
    #[serde(default = "default_timeout")]
    #[schemars(range(max = MAX_TIMEOUT), extend("exclusiveMinimum" = 0))]
    timeout: f64,
}

impl Tool for ShellExec {
    const NAME: &'static str = "shell_exec";
    const TITLE: &'static str = "Run a command";
    const HINTS: Annotations = CHANGES;
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_secs(MAX_TIMEOUT));
    type Args = Args;
    type Output = ProgramResult;

    fn note(&self) -> Option<String> {
        Some(format!("Allowed commands: {}.", self.policy.allowed_commands.join(", ")))
    }

    async fn run(&self, call: PermittedCall<Args>) -> Result<ProgramResult> {
        let args = call.args;
        let program = self.allowed_program(&args.command)?;
        let asked = time_limit(args.timeout, MAX_TIMEOUT)?;
        let wall = self.policy.timeout.some().map_or(asked, |limit| limit.min(asked));
        let mut command = CommandSpec::new(program.to_string_lossy(), LimitKind::Code, wall).args(args.args);
        command.folder = args.cwd.into();
        command.input = args.stdin.into_bytes();
        run_program(&self.runner, command, &args.command).await
    }
}

impl ShellExec {
    /// The program that a command names, if it is on the list.
    fn allowed_program(&self, command: &str) -> Result<PathBuf> {
        let allowed = &self.policy.allowed_commands;
        let find = |command: &str| self.runner.program(command);
        let why = match find(command) {
            Some(program) if allowed.iter().filter_map(|allowed| find(allowed)).any(|it| it == program) => {
                return Ok(program);
            }
            Some(_) => format!("{command} may not be run here"),
            None if command.contains(char::is_whitespace) => {
                format!(
                    "{command:?} is no program in the sandbox; give its arguments in args, there is no shell"
                )
            }
            None => format!("{command:?} is no program in the sandbox"),
        };
        Err(failure::denied(format!("{why}. Allowed are: {}", allowed.join(", "))))
    }
}
