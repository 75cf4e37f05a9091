//! `run_code`: runs Python or bash that an agent wrote, in the workshop.

use crate::own::{Part, arguments};
use crate::schema::{CHANGES, count, object, text, texts};
use crate::workshop::{self, Reach, Task, Workshop};
use gantry_core::schema::SchemaText;
use gantry_core::tool::{OwnRule, ToolSpec};
use gantry_core::{ErrorCode, Fault, Permit, ToolError};
use gantry_provider::BoxFuture;
use gantry_provider::CallContext;
use gantry_sandbox::jail::{Access, FILES, Ran, WORKSPACE};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The tool.
pub const RUN_CODE: &str = "run_code";
/// The longest time that a call can ask for, in seconds.
pub const MAX_TIMEOUT: u64 = 3600;
/// The time that it has without asking, in seconds.
const DEFAULT_TIMEOUT: u64 = 60;
/// Arguments and variables of one call.
const MAX_WORDS: usize = 1000;

/// What an agent should know before it runs anything.
const INSTRUCTIONS: &str = "Programs run in a sandbox: the workspace is /workspace and their working folder, what they \
write there stays, and everything else is gone with the run. They see nothing else of this machine.";

/// The tool that runs code.
#[derive(Debug)]
pub struct Code {
    workshop: Arc<Workshop>,
    tools: [ToolSpec; 1],
}

impl Code {
    /// The tool of this workshop.
    #[must_use]
    pub fn new(workshop: Arc<Workshop>) -> Self {
        let tools = [spec(&workshop)];
        Self { workshop, tools }
    }

    async fn run(&self, permit: &Permit) -> Result<String, Fault> {
        let call: Call = arguments(permit.arguments()).map_err(Fault::without_effect)?;
        let task = self.task(call).map_err(Fault::without_effect)?;
        run(&self.workshop, task, RUN_CODE).await
    }

    fn task(&self, call: Call) -> Result<Task, ToolError> {
        for name in call.env.keys() {
            may_set(name)?;
        }
        let options = self.workshop.options();
        let wall = wall(call.timeout)?;
        let (program, file) = match call.language {
            Language::Bash => ("bash".to_owned(), "main.sh"),
            Language::Python => (self.python(), "main.py"),
        };
        let mut task =
            Task::new(program, options.code, wall).args([format!("{FILES}/{file}")]).args(call.args);
        task.files = vec![(file.to_owned(), call.code.into_bytes())];
        if call.language == Language::Python {
            // Modules of the workspace can be imported, as if the code was a file in it.
            task.env = PYTHON.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        }
        task.env.extend(call.env);
        task.input = call.stdin.into_bytes();
        Ok(task)
    }

    /// The interpreter with the packages of the workspace, where there is one.
    fn python(&self) -> String {
        const VIRTUAL: &str = ".venv/bin/python3";
        // One that leads nowhere is none. What it leads to is of no matter: it runs in the jail like the rest.
        let has_own = self.workshop.options().workspace.join(VIRTUAL).exists();
        if has_own { format!("{WORKSPACE}/{VIRTUAL}") } else { "python3".to_owned() }
    }
}

const PYTHON: [(&str, &str); 3] =
    [("PYTHONPATH", WORKSPACE), ("PYTHONDONTWRITEBYTECODE", "1"), ("PYTHONUNBUFFERED", "1")];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    language: Language,
    code: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    stdin: String,
    timeout: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Language {
    Python,
    Bash,
}

/// How long a program may run of which a call says this.
pub(super) fn wall(seconds: Option<f64>) -> Result<Duration, ToolError> {
    let Some(seconds) = seconds else { return Ok(Duration::from_secs(DEFAULT_TIMEOUT)) };
    let wall = Duration::try_from_secs_f64(seconds).ok();
    let fitting = wall.filter(|wall| !wall.is_zero() && wall.as_secs() <= MAX_TIMEOUT);
    fitting.ok_or_else(|| {
        let message = format!("the timeout is a number of seconds, more than 0 and up to {MAX_TIMEOUT}");
        ToolError::new(ErrorCode::InvalidArguments, message)
    })
}

/// Variables that change which code a program runs before it does what it was asked to, or where it finds its own.
fn may_set(name: &str) -> Result<(), ToolError> {
    const REFUSED: [&str; 10] = [
        "PATH",
        "HOME",
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "BASHOPTS",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "PYTHONINSPECT",
        "IFS",
    ];
    const REFUSED_BEGINNINGS: [&str; 3] = ["LD_", "GIT_", "BASH_FUNC_"];
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !is_name {
        let message = format!("env: {name:?} cannot be the name of a variable; use letters, digits and _");
        return Err(ToolError::new(ErrorCode::InvalidArguments, message));
    }
    let upper = name.to_ascii_uppercase();
    let refused =
        REFUSED.contains(&upper.as_str()) || REFUSED_BEGINNINGS.iter().any(|begin| upper.starts_with(begin));
    if !refused {
        return Ok(());
    }
    let message =
        format!("env: {name} is set by the sandbox alone; set it in the code itself if it has to be");
    Err(ToolError::new(ErrorCode::PermissionDenied, message))
}

/// Runs a program that an agent chose, on the workspace and with the network that such programs have.
pub(super) async fn run(workshop: &Workshop, mut task: Task, name: &str) -> Result<String, Fault> {
    let limits = (task.wall, task.quota);
    task.access = Access::Write;
    task.network = workshop.options().network.then(Reach::default);
    let ran = workshop.run(task).await?;
    match workshop::limit_fault(&ran, name, limits) {
        Some(fault) => Err(fault),
        None => Ok(result(&ran).to_string()),
    }
}

/// What a program said and how it ended.
fn result(ran: &Ran) -> Value {
    let mut result = json!({
        "stdout": ran.stdout.text(),
        "stderr": ran.stderr.text(),
        "exitCode": workshop::exit_code(ran.end),
        "duration": workshop::millis(ran.duration),
        "sandbox": Workshop::level(),
    });
    for (name, captured) in [("stdoutBytes", &ran.stdout), ("stderrBytes", &ran.stderr)] {
        if captured.is_truncated() {
            result["truncated"] = true.into();
            result[name] = captured.total.into();
        }
    }
    result
}

/// The schema of such a result.
pub(super) fn result_schema() -> SchemaText {
    object(
        &["stdout", "stderr", "exitCode", "duration", "sandbox"],
        &json!({
            "stdout": text("What it wrote to its standard output; at most 1 MiB. What is not UTF-8 is replaced."),
            "stderr": text("What it wrote to its standard error; at most 1 MiB."),
            "exitCode": {
                "type": "integer",
                "description": "0 for success; 128 and the number of the signal for one that a signal ended.",
            },
            "duration": count("How long it ran, in milliseconds."),
            "sandbox": text("How it was confined."),
            "truncated": { "type": "boolean", "description": "True if it wrote more than is kept; absent otherwise." },
            "stdoutBytes": count("How much it wrote to its standard output, if that is not all kept."),
            "stderrBytes": count("How much it wrote to its standard error, if that is not all kept."),
        }),
    )
}

fn spec(workshop: &Workshop) -> ToolSpec {
    let network = if workshop.options().network {
        "The network can be used through the proxy in HTTPS_PROXY; private addresses cannot be reached."
    } else {
        "There is no network."
    };
    ToolSpec {
        name: RUN_CODE.into(),
        title: Some("Run code".into()),
        description: format!(
            "Runs Python or bash in a sandbox whose working folder is the workspace. Use it to compute, to transform \
             files and to try things out. Files that it writes to the workspace stay; everything else, and every \
             process that it started, is gone when it ends. {network} A code other than 0 is no error of the tool: \
             read exitCode and stderr."
        ),
        input_schema: object(
            &["language", "code"],
            &json!({
                "language": { "type": "string", "enum": ["python", "bash"], "description": "What the code is written in." },
                "code": text("The code; a whole program."),
                "args": at_most(texts("Its command-line arguments."), "maxItems"),
                "env": at_most(
                    json!({
                        "type": "object",
                        "additionalProperties": { "type": "string" },
                        "description": "Environment variables.",
                    }),
                    "maxProperties",
                ),
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

pub(super) fn at_most(mut schema: Value, word: &str) -> Value {
    schema[word] = MAX_WORDS.into();
    schema
}

pub(super) fn timeout_schema() -> Value {
    json!({
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": MAX_TIMEOUT,
        "default": DEFAULT_TIMEOUT,
        "description": "Seconds after which it is ended with everything that it started.",
    })
}

impl Part for Code {
    fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    fn objection(&self) -> Option<String> {
        Workshop::objection()
    }

    fn execute<'a>(&'a self, _: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(self.run(permit))
    }

    fn instructions(&self) -> Option<&str> {
        Some(INSTRUCTIONS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blt_2_variables_that_choose_what_runs_are_refused() {
        for name in
            ["LD_PRELOAD", "ld_preload", "PYTHONSTARTUP", "BASH_ENV", "ENV", "GIT_SSH_COMMAND", "PATH"]
        {
            assert_eq!(may_set(name).unwrap_err().code, ErrorCode::PermissionDenied, "{name}");
        }
        for name in ["", "A=B", "1A", "a b", "BASH_FUNC_x%%", "A\0"] {
            assert_eq!(may_set(name).unwrap_err().code, ErrorCode::InvalidArguments, "{name:?}");
        }
        for name in ["A", "_x1", "DATABASE_URL", "PYTHONPATH", "LDAP"] {
            may_set(name).unwrap();
        }
    }
}
