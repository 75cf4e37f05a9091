//! `run_code`: runs Python or bash that an agent wrote, in the sandbox.

use super::runner::{CommandRunner, CommandSpec, LimitKind};
use super::{MAX_TIMEOUT, MAX_WORDS, ProgramResult, default_timeout, run_program};
use crate::tool::prelude::*;
use crate::tool::time_limit;
use crate::toolbox::ToolBox;
use gantry_sandbox::jail::{FILES, WORKSPACE};
use std::collections::BTreeMap;
use std::time::Duration;

/// What an agent should know before it runs anything.
const INSTRUCTIONS: &str = "Programs run in a sandbox: the workspace is /workspace and their working folder, what they \
write there stays, and everything else is gone with the run. They see nothing else of this machine.";

#[must_use]
pub fn code_tools(runner: Arc<CommandRunner>) -> ToolBox {
    ToolBox::new()
        .with(RunCode(runner))
        .with_instructions(INSTRUCTIONS)
        .unavailable_if(CommandRunner::unavailable_reason)
}

#[derive(Debug)]
struct RunCode(Arc<CommandRunner>);

/// Runs Python or bash in a sandbox whose working folder is the workspace. Use it to compute, to transform files and to
/// try things out. Files that it writes to the workspace stay; everything else, and every process that it started, is
/// gone when it ends. A code other than 0 is no error of the tool: read exitCode and stderr.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// What the code is written in.
    language: Language,
    /// The code; a whole program.
    code: String,
    /// Its command-line arguments.
    #[serde(default)]
    #[schemars(length(max = MAX_WORDS))]
    args: Vec<String>,
    /// Environment variables.
    #[serde(default)]
    #[schemars(extend("maxProperties" = MAX_WORDS))]
    env: BTreeMap<String, String>,
    /// What it reads on its standard input; nothing unless given.
    #[serde(default)]
    stdin: String,
    /// Seconds after which it is ended with everything that it started.
    #[serde(default = "default_timeout")]
    #[schemars(range(max = MAX_TIMEOUT), extend("exclusiveMinimum" = 0))]
    timeout: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Language {
    Python,
    Bash,
}

impl Tool for RunCode {
    const NAME: &'static str = "run_code";
    const TITLE: &'static str = "Run code";
    const HINTS: Annotations = CHANGES;
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_secs(MAX_TIMEOUT));
    type Args = Args;
    type Output = ProgramResult;

    fn note(&self) -> Option<String> {
        let network = if self.0.options.network {
            "The network can be used through the proxy in HTTPS_PROXY; private addresses cannot be reached."
        } else {
            "There is no network."
        };
        Some(network.to_owned())
    }

    async fn run(&self, call: PermittedCall<Args>) -> Result<ProgramResult> {
        run_program(&self.0, self.command(call.args)?, Self::NAME).await
    }
}

impl RunCode {
    fn command(&self, args: Args) -> Result<CommandSpec> {
        for name in args.env.keys() {
            check_variable(name)?;
        }
        let wall = time_limit(args.timeout, MAX_TIMEOUT)?;
        let (program, file) = match args.language {
            Language::Bash => ("bash".to_owned(), "main.sh"),
            Language::Python => (self.python(), "main.py"),
        };
        let command = CommandSpec::new(program, LimitKind::Code, wall);
        let mut command = command.args([format!("{FILES}/{file}")]).args(args.args);
        command.files = vec![(file.to_owned(), args.code)];
        if args.language == Language::Python {
            // Modules of the workspace can be imported, as if the code was a file in it.
            command = command.env(PYTHON);
        }
        command.env.extend(args.env);
        command.input = args.stdin.into_bytes();
        Ok(command)
    }

    /// The interpreter with the packages of the workspace, where there is one.
    fn python(&self) -> String {
        const VIRTUAL: &str = ".venv/bin/python3";
        // One that leads nowhere is none. What it leads to is of no matter: it runs in the jail like the rest.
        let has_own = self.0.workspace.join(VIRTUAL).exists();
        if has_own { format!("{WORKSPACE}/{VIRTUAL}") } else { "python3".to_owned() }
    }
}

const PYTHON: [(&str, &str); 3] =
    [("PYTHONPATH", WORKSPACE), ("PYTHONDONTWRITEBYTECODE", "1"), ("PYTHONUNBUFFERED", "1")];

/// Variables that change which code a program runs before it does what it was asked to, or where it finds its own.
fn check_variable(name: &str) -> Result<()> {
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
        return Err(failure::invalid(format!(
            "env: {name:?} cannot be the name of a variable; use letters, digits and _"
        )));
    }
    let upper = name.to_ascii_uppercase();
    let refused =
        REFUSED.contains(&upper.as_str()) || REFUSED_BEGINNINGS.iter().any(|begin| upper.starts_with(begin));
    if !refused {
        return Ok(());
    }
    Err(failure::denied(format!(
        "env: {name} is set by the sandbox alone; set it in the code itself if it has to be"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::ErrorCode;

    #[test]
    fn blt_2_variables_that_choose_what_runs_are_refused() {
        for name in
            ["LD_PRELOAD", "ld_preload", "PYTHONSTARTUP", "BASH_ENV", "ENV", "GIT_SSH_COMMAND", "PATH"]
        {
            assert_eq!(check_variable(name).unwrap_err().error.code, ErrorCode::PermissionDenied, "{name}");
        }
        for name in ["", "A=B", "1A", "a b", "BASH_FUNC_x%%", "A\0"] {
            assert_eq!(check_variable(name).unwrap_err().error.code, ErrorCode::InvalidArguments, "{name:?}");
        }
        for name in ["A", "_x1", "DATABASE_URL", "PYTHONPATH", "LDAP"] {
            check_variable(name).unwrap();
        }
    }
}
