//! Which program runs the tests of a project, and how.

use super::Args;
use crate::command::runner::CommandSpec;
use crate::dev::ecosystem::Ecosystem;
use crate::dev::project_dir::ProjectDir;
use crate::dev::{cargo_config, own_python, project_command};
use crate::failure::{self, Result};
use crate::options::Registries;
use serde_json::Value;
use std::path::Path;

/// Arguments of a call, and the size of one.
const ARGS: usize = 50;
const ARG_BYTES: usize = 4096;
/// What the test script of a package says that `npm init` made and that has no tests.
const NO_TESTS: &str = "no test specified";
/// Folders in which projects of Python usually keep their tests.
const TEST_FOLDERS: [&str; 2] = ["tests", "test"];
/// What is read of each output of a suite. Results are at the end of it, so this is generous.
const OUTPUT_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct TestPlan {
    pub(super) ecosystem: Ecosystem,
    /// What runs the tests, for people.
    pub(super) runner: &'static str,
    pub(super) run: CommandSpec,
    /// What is run instead where that is pytest and the interpreter does not have it.
    pub(super) unittest: Option<CommandSpec>,
}

impl TestPlan {
    /// How to run what a call asks for. Reads the project's files.
    pub(super) fn make(project: &ProjectDir, args: &Args, registries: &Registries) -> Result<Self> {
        check(args)?;
        let ecosystem = Ecosystem::detect(project, args.ecosystem)?;
        let (runner, run) = match ecosystem {
            Ecosystem::Cargo => {
                let cargo = program("cargo").args(cargo_config(registries)).args(["test", "--offline"]);
                ("cargo test", cargo.args(["--no-fail-fast"]).args(&args.filter).args(&args.args))
            }
            Ecosystem::Node => node(project, args)?,
            Ecosystem::Python => {
                ("pytest", python(project, "pytest").args(filter_words(args)).args(&args.args))
            }
            Ecosystem::Go => {
                let filter = args.filter.as_ref().map(|name| format!("-run={name}"));
                // Without -v it does not say which tests passed.
                let go = program("go").args(["test", "-v"]).args(filter).args(&args.args).args(["./..."]);
                ("go test", go.env([("GOPROXY", "off")]))
            }
        };
        let unittest = (ecosystem == Ecosystem::Python).then(|| unittest(project, args));
        Ok(Self { ecosystem, runner, run, unittest })
    }
}

fn check(args: &Args) -> Result<()> {
    let all = args.args.iter().chain(&args.filter);
    if args.args.len() > ARGS || all.clone().any(|arg| arg.len() > ARG_BYTES || arg.contains('\0')) {
        return Err(failure::invalid(format!(
            "at most {ARGS} args of {ARG_BYTES} bytes are taken, without NUL characters"
        )));
    }
    if args.filter.as_ref().is_some_and(|filter| filter.is_empty() || filter.starts_with('-')) {
        return Err(failure::invalid("filter is empty or starts with a dash; give a part of a test's name"));
    }
    Ok(())
}

fn program(name: &str) -> CommandSpec {
    let quiet = [("FORCE_COLOR", "0"), ("RUST_BACKTRACE", "0"), ("NPM_CONFIG_UPDATE_NOTIFIER", "false")];
    CommandSpec { output: OUTPUT_BYTES, ..project_command(name).env(quiet) }
}

/// The runners that test scripts start, with what each needs to end by itself, and its option to run only some tests.
const RUNNERS: [(&str, Option<&str>, &str); 3] = [
    ("jest", None, "--testNamePattern"),
    ("vitest", Some("--run"), "--testNamePattern"),
    ("mocha", None, "--grep"),
];
/// Characters by which a shell does more with a command than to split it into words.
const SHELL_CHARACTERS: &str = "&|;<>$`()*?[{~#\\\n'\"";

/// How the test script of a package is run, as far as it is understood.
fn node(project: &ProjectDir, args: &Args) -> Result<(&'static str, CommandSpec)> {
    let filter_by = |option: &str| args.filter.as_ref().map(|name| format!("{option}={name}"));
    let npm = |options: Vec<String>| {
        let dashes = (options.len() + args.args.len() > 0).then_some("--");
        program("npm").args(["test", "--silent"]).args(dashes).args(options).args(&args.args)
    };
    let direct = |rest: &[&str]| {
        // A reporter of the script's own might not close with counts.
        let rest = rest.iter().copied().filter(|word| !word.starts_with("--test-reporter"));
        let run = program("node").args(["--test-reporter=spec"]).args(filter_by("--test-name-pattern"));
        ("node --test", run.args(&args.args).args(rest))
    };
    let manifest = project.text(&project.folder.join("package.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_str(&manifest).unwrap_or_default();
    let script = manifest.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    if script.trim().is_empty() || script.contains(NO_TESTS) {
        return Ok(direct(&["--test"]));
    }
    let words = plain_words(script);
    if let Some((&"node", rest)) = words.split_first()
        && rest.contains(&"--test")
    {
        return Ok(direct(rest));
    }
    if let Some((name, end, filter)) = RUNNERS.iter().find(|(name, ..)| words.first() == Some(name)) {
        let options = end.map(str::to_owned).into_iter().chain(filter_by(filter));
        return Ok((name, npm(options.collect())));
    }
    if args.filter.is_some() {
        return Err(failure::invalid(
            "the test script of package.json is none whose tests can be chosen by name; leave out filter, or give the \
             runner's own option in args",
        ));
    }
    Ok(("npm test", npm(Vec::new())))
}

/// The words of a script that is one plain command, from its program on; nothing of any other script.
fn plain_words(script: &str) -> Vec<&str> {
    if script.contains(|c| SHELL_CHARACTERS.contains(c)) {
        return Vec::new();
    }
    // What stands before the program sets variables for it.
    let is_prefix = |word: &&str| word.contains('=') || matches!(*word, "npx" | "cross-env");
    script.split_whitespace().skip_while(is_prefix).collect()
}

/// A module that the project's interpreter of Python runs.
fn python(project: &ProjectDir, module: &str) -> CommandSpec {
    program(own_python(project).as_deref().unwrap_or("python3")).args(["-m", module])
}

/// The option of pytest and unittest to run only some tests.
fn filter_words(args: &Args) -> impl Iterator<Item = &str> {
    args.filter.iter().flat_map(|filter| ["-k", filter])
}

fn unittest(project: &ProjectDir, args: &Args) -> CommandSpec {
    let unittest = python(project, "unittest");
    if !args.args.is_empty() {
        return unittest.args(filter_words(args)).args(&args.args);
    }
    let start = test_folder(project).into_iter().flat_map(|folder| ["-s", folder]);
    unittest.args(["discover"]).args(start).args(filter_words(args))
}

/// The folder that unittest has to start in: one that is no package is not found from above it.
fn test_folder(project: &ProjectDir) -> Option<&'static str> {
    let is_test =
        |name: &Path| name.to_str().is_some_and(|name| name.starts_with("test") && name.ends_with(".py"));
    let is_start =
        |name: &&str| !project.has(&format!("{name}/__init__.py")) && project.has_file(name, is_test);
    if project.has_file("", is_test) { None } else { TEST_FOLDERS.into_iter().find(is_start) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The program that would run the tests, with its arguments.
    pub(in crate::dev) fn plan_of(
        project: &ProjectDir,
        args: &Args,
        has_pytest: bool,
    ) -> Result<Vec<String>> {
        let plan = TestPlan::make(project, args, &Registries::default())?;
        let run = plan.unittest.filter(|_| !has_pytest).unwrap_or(plan.run);
        Ok(run.command_line())
    }

    #[test]
    fn scripts_of_packages_are_understood_where_they_are_plain() {
        let check = |script: &str, expected: &str| {
            assert_eq!(plain_words(script).join(" "), expected, "{script}");
        };
        check("node --test", "node --test");
        check("NODE_ENV=test node --test test/", "node --test test/");
        check("jest --coverage", "jest --coverage");
        check("npx vitest run", "vitest run");
        check("cross-env CI=1 mocha", "mocha");
        for other in ["tsc && node --test", "node --test *.js", "node --test \"$FILES\"", "node --test 'a b'"]
        {
            check(other, "");
        }
    }
}
