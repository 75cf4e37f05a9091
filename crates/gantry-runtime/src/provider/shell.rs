//! `shell_exec` of the tool catalogue: runs some commands and no others, in the workshop.
//!
//! There is no shell: a command is a program and its arguments. Which program that is does not depend on what it is
//! called in a call or by whom: names are looked up in folders that no job can write, once for the list and once for
//! the call, and what is found is compared. The folder is compared by where it really is, the name as it is written:
//! one file can be many programs, by the name it is called.

use super::code::{arguments, at_most, default_timeout, result, result_schema, timeout_schema};
use super::schema::{CHANGES, object, text, texts};
use super::workshop::{self, Reach, Task, Workshop};
use super::{BoxFuture, Provider, RawOutput};
use crate::context::CallCx;
use gantry_core::names::Style;
use gantry_core::tool::{Origin, OwnRule, ToolSpec};
use gantry_core::{ErrorCode, Fault, Permit, ToolError, ToolKind};
use gantry_sandbox::jail::Access;
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
    origin: Origin,
    workshop: Arc<Workshop>,
    /// As they are configured.
    commands: Vec<String>,
    /// The longest time that a command has.
    limit: Option<Duration>,
    spec: ToolSpec,
}

impl Shell {
    /// The tool of an entry of the tool catalogue, under the entry's id.
    #[must_use]
    pub fn new(id: &str, workshop: Arc<Workshop>, commands: Vec<String>, limit: Option<Duration>) -> Self {
        let origin = Origin { provider: id.into(), namespace: id.into(), kind: ToolKind::Builtin };
        let spec = spec(&commands);
        Self { origin, workshop, commands, limit, spec }
    }

    async fn run(&self, permit: &Permit) -> Result<RawOutput, Fault> {
        let call: Call = arguments(permit).map_err(Fault::without_effect)?;
        let program = self.allowed(&call.command).map_err(Fault::without_effect)?;
        let options = self.workshop.options();
        let asked = Duration::from_secs(call.timeout);
        let wall = self.limit.map_or(asked, |limit| limit.min(asked));
        let mut task = Task::new(program.to_string_lossy(), options.code, wall).args(call.args);
        task.folder = call.cwd.into();
        task.input = call.stdin.into_bytes();
        task.access = Access::Write;
        task.network = options.network.then(Reach::default);
        let ran = self.workshop.run(task).await?;
        match workshop::limit_fault(&ran, &call.command, (wall, options.code)) {
            Some(fault) => Err(fault),
            None => Ok(RawOutput::Json(result(&ran).to_string())),
        }
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
    #[serde(default = "default_timeout")]
    timeout: u64,
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
    }
}

impl Provider for Shell {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn style(&self) -> Style {
        Style::Prefixed
    }

    fn tools(&self) -> Vec<ToolSpec> {
        vec![self.spec.clone()]
    }

    fn has_tool(&self, name: &str) -> bool {
        name == SHELL_EXEC
    }

    fn objection(&self, _tool: &str) -> Option<String> {
        Workshop::objection()
    }

    fn execute<'a>(&'a self, _: &'a CallCx, permit: &'a Permit) -> BoxFuture<'a, Result<RawOutput, Fault>> {
        Box::pin(self.run(permit))
    }
}
