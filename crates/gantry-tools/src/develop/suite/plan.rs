//! Which program runs the tests of a project, and how.

use super::python;
use crate::develop::act::Test;
use crate::develop::ecosystem::Ecosystem;
use crate::develop::site::Site;
use crate::develop::{Registries, fault, install};
use crate::own;
use gantry_core::Fault;
use serde_json::Value;
use std::collections::BTreeMap;

/// Arguments of a call, and the size of one.
const ARGS: usize = 50;
const ARG_BYTES: usize = 4096;
/// What the test script of a package says that `npm init` made and that has no tests.
const NO_TESTS: &str = "no test specified";

/// How to run the tests of a project.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) ecosystem: Ecosystem,
    /// What runs the tests, for people.
    pub(super) runner: &'static str,
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
}

impl Plan {
    fn new(ecosystem: Ecosystem, runner: &'static str, program: &str) -> Self {
        // No terminal shows what they print.
        let quiet = [("CI", "1"), ("NO_COLOR", "1"), ("FORCE_COLOR", "0"), ("RUST_BACKTRACE", "0")];
        let quiet =
            quiet.into_iter().chain([("CARGO_TERM_COLOR", "never"), ("NPM_CONFIG_UPDATE_NOTIFIER", "false")]);
        let env = quiet.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { ecosystem, runner, program: program.to_owned(), args: Vec::new(), env }
    }

    pub(super) fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// What has to be installed if its program is missing.
    pub(super) fn install(&self) -> &'static str {
        match self.ecosystem {
            Ecosystem::Cargo => "Rust (rustup)",
            Ecosystem::Node => "Node.js with npm",
            Ecosystem::Python => "Python 3",
            Ecosystem::Go => "Go",
        }
    }
}

/// How to run what a call asks for. Reads the project's files. Of Python, only the interpreter is chosen.
pub(super) fn of(site: &Site, test: &Test, registries: &Registries) -> Result<Plan, Fault> {
    check(test)?;
    if site.file.is_some() {
        return Err(fault::invalid(format!(
            "{} is a file; name the folder of a project, and choose tests with filter",
            own::shown(&test.path)
        )));
    }
    let ecosystem = Ecosystem::detect(site, test.ecosystem)?;
    let filter = test.filter.as_deref();
    let args = &test.args;
    match ecosystem {
        Ecosystem::Cargo => Ok(Plan::new(ecosystem, "cargo test", "cargo")
            .args(install::cargo_config(registries))
            .args(["test", "--offline", "--no-fail-fast"])
            .args(filter)
            .args(args)),
        Ecosystem::Node => node(site, filter, args),
        Ecosystem::Python => Ok(Plan::new(ecosystem, "python", &python::interpreter(site))),
        Ecosystem::Go => {
            let filter = filter.map(|name| format!("-run={name}"));
            let mut plan = Plan::new(ecosystem, "go test", "go");
            plan.env.extend(install::go_env(registries));
            plan.env.insert("GOPROXY".to_owned(), "off".to_owned());
            // Without -v it does not say which tests passed.
            Ok(plan.args(["test", "-v"]).args(filter).args(args).args(["./..."]))
        }
    }
}

fn check(test: &Test) -> Result<(), Fault> {
    let args = test.args.iter().chain(&test.filter);
    if test.args.len() > ARGS || args.clone().any(|arg| arg.len() > ARG_BYTES || arg.contains('\0')) {
        return Err(fault::invalid(format!(
            "at most {ARGS} args of {ARG_BYTES} bytes are taken, without NUL characters"
        )));
    }
    if test.filter.as_ref().is_some_and(|filter| filter.is_empty() || filter.starts_with('-')) {
        return Err(fault::invalid("filter is empty or starts with a dash; give a part of a test's name"));
    }
    Ok(())
}

/// The test script of a package, as far as it is understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// `node --test` with these arguments.
    Node(Vec<String>),
    /// One of [`RUNNERS`].
    Known(&'static ScriptRunner),
    Other,
    /// There is none.
    Nothing,
}

/// A runner that test scripts start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScriptRunner {
    pub(super) name: &'static str,
    /// What it needs to end by itself.
    args: &'static [&'static str],
    /// The option by which it runs only some tests.
    filter: &'static str,
}

const RUNNERS: [ScriptRunner; 3] = [
    ScriptRunner { name: "jest", args: &[], filter: "--testNamePattern" },
    ScriptRunner { name: "vitest", args: &["--run"], filter: "--testNamePattern" },
    ScriptRunner { name: "mocha", args: &[], filter: "--grep" },
];
/// Characters by which a shell does more with a command than to split it into words.
const SHELL_CHARACTERS: &str = "&|;<>$`()*?[{~#\\\n'\"";

impl Script {
    pub(super) fn read(manifest: Option<&str>) -> Self {
        let manifest: Value = manifest.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let script = manifest.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
        if script.trim().is_empty() || script.contains(NO_TESTS) {
            return Self::Nothing;
        }
        if script.contains(|c| SHELL_CHARACTERS.contains(c)) {
            return Self::Other;
        }
        let mut words = script
            .split_whitespace()
            .skip_while(|word| is_assignment(word) || matches!(*word, "npx" | "cross-env"));
        let program = words.next().unwrap_or_default();
        let rest: Vec<String> = words.map(str::to_owned).collect();
        if program == "node" && rest.iter().any(|word| word == "--test") {
            return Self::Node(rest);
        }
        RUNNERS.iter().find(|runner| runner.name == program).map_or(Self::Other, Self::Known)
    }
}

fn is_assignment(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    word.contains('=') && !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

fn node(site: &Site, filter: Option<&str>, args: &[String]) -> Result<Plan, Fault> {
    let ecosystem = Ecosystem::Node;
    let named = |option: &str| filter.map(|name| format!("{option}={name}"));
    let npm = |runner, options: Vec<String>| {
        let dashes = (options.len() + args.len() > 0).then_some("--");
        Plan::new(ecosystem, runner, "npm").args(["test", "--silent"]).args(dashes).args(options).args(args)
    };
    let direct = |rest: Vec<String>| {
        // A reporter of the script's own might not close with counts.
        let rest = rest.into_iter().filter(|word| !word.starts_with("--test-reporter"));
        Plan::new(ecosystem, "node --test", "node")
            .args(["--test-reporter=spec"])
            .args(named("--test-name-pattern"))
            .args(args)
            .args(rest)
    };
    match Script::read(site.text("package.json").as_deref()) {
        Script::Node(rest) => Ok(direct(rest)),
        Script::Nothing => Ok(direct(vec!["--test".to_owned()])),
        Script::Known(runner) => {
            let own = runner.args.iter().map(|&arg| arg.to_owned());
            Ok(npm(runner.name, own.chain(named(runner.filter)).collect()))
        }
        Script::Other if filter.is_some() => Err(fault::invalid(
            "the test script of package.json is none whose tests can be chosen by name; leave out filter, or give the \
             runner's own option in args",
        )),
        Script::Other => Ok(npm("npm test", Vec::new())),
    }
}
