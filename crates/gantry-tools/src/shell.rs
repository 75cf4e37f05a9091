//! `shell_exec` of the tool catalogue: runs some commands and no others, in the workshop.
//!
//! There is no shell: a command is a program and its arguments. Which program that is does not depend on what it is
//! called in a call or by whom: names are looked up in folders that no job can write, once for the list and once for
//! the call, and what is found is compared. The folder is compared by where it really is, the name as it is written:
//! one file can be many programs, by the name it is called.

use crate::code::{self, at_most, result_schema, timeout_schema};
use crate::own::{Part, arguments};
use crate::schema::{CHANGES, object, text, texts};
use crate::workshop::{Task, Workshop};
use gantry_core::tool::{OwnRule, ToolSpec};
use gantry_core::{ErrorCode, Fault, Permit, ToolError};
use gantry_provider::BoxFuture;
use gantry_provider::CallContext;
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The tool.
pub const SHELL_EXEC: &str = "shell_exec";

/// The tool that runs some commands.
#[derive(Debug)]
pub struct Shell {
    workshop: Arc<Workshop>,
    /// As they are configured.
    commands: Vec<String>,
    /// The longest time that a command has.
    limit: Option<Duration>,
    tools: [ToolSpec; 1],
}

impl Shell {
    /// The tool of an entry of the tool catalogue.
    #[must_use]
    pub fn new(workshop: Arc<Workshop>, commands: Vec<String>, limit: Option<Duration>) -> Self {
        let tools = [spec(&commands)];
        Self { workshop, commands, limit, tools }
    }

    async fn run(&self, permit: &Permit) -> Result<String, Fault> {
        let call: Call = arguments(permit.arguments()).map_err(Fault::without_effect)?;
        let program = self.allowed(&call.command).map_err(Fault::without_effect)?;
        let asked = code::wall(call.timeout).map_err(Fault::without_effect)?;
        let wall = self.limit.map_or(asked, |limit| limit.min(asked));
        let quota = self.workshop.options().code;
        let mut task = Task::new(program.to_string_lossy(), quota, wall).args(call.args);
        task.folder = call.cwd.into();
        task.input = call.stdin.into_bytes();
        code::run(&self.workshop, task, &call.command).await
    }

    /// The program that a command means, if it is on the list.
    fn allowed(&self, command: &str) -> Result<PathBuf, ToolError> {
        let list = || self.commands.join(", ");
        let find = |command: &str| self.workshop.program(command);
        let Some(program) = find(command) else {
            let hint = if command.contains(char::is_whitespace) {
                "; give its arguments in args, there is no shell"
            } else {
                ""
            };
            let message = format!("{command:?} is no program in the sandbox{hint}. Allowed are: {}", list());
            return Err(ToolError::new(ErrorCode::PermissionDenied, message));
        };
        if self.commands.iter().filter_map(|allowed| find(allowed)).any(|allowed| allowed == program) {
            return Ok(program);
        }
        let message = format!("{command} may not be run here. Allowed are: {}", list());
        Err(ToolError::new(ErrorCode::PermissionDenied, message))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    stdin: String,
    timeout: Option<f64>,
}

fn spec(commands: &[String]) -> ToolSpec {
    ToolSpec {
        name: SHELL_EXEC.into(),
        title: Some("Run a command".into()),
        description: format!(
            "Runs one command in a sandbox whose working folder is the workspace. There is no shell: no pipes, no \
             redirections, no variables. Allowed commands: {}. A code other than 0 is no error of the tool: read \
             exitCode and stderr.",
            commands.join(", ")
        ),
        input_schema: object(
            &["command"],
            &json!({
                "command": text("The name of the program, or its absolute path."),
                "args": at_most(texts("Its arguments, each as it is."), "maxItems"),
                "cwd": text("The folder of the workspace that it runs in; the workspace itself unless given."),
                "stdin": text("What it reads on its standard input; nothing unless given."),
                "timeout": timeout_schema(),
            }),
        ),
        output_schema: Some(result_schema()),
        annotations: CHANGES,
        own_rule: OwnRule::Never,
        raw: None,
        target: None,
    }
}

impl Part for Shell {
    fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    fn objection(&self) -> Option<String> {
        Workshop::objection()
    }

    fn execute<'a>(&'a self, _: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(self.run(permit))
    }
}
