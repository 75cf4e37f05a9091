//! Which program runs the tests of a project, how, and how its answer is read.

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
/// The file that stands for "no tests" in a package that npm made.
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
    pub(super) files: Vec<(String, Vec<u8>)>,
    pub(super) reader: Reader,
}

/// How the answer of a runner is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Text of Rust's test harness.
    Libtest,
    /// The Test Anything Protocol.
    Tap,
    /// The JSON of jest, vitest or mocha.
    Json,
    /// The events of `go test -json`.
    Go,
    /// The report of our own script.
    Python,
    /// Whatever is recognised.
    Guess,
}

impl Plan {
    fn new(ecosystem: Ecosystem, runner: &'static str, program: &str, reader: Reader) -> Self {
        // Nobody watches, and nobody sees colours.
        let quiet = [("CI", "1"), ("NO_COLOR", "1"), ("FORCE_COLOR", "0"), ("RUST_BACKTRACE", "0")];
        let quiet =
            quiet.into_iter().chain([("CARGO_TERM_COLOR", "never"), ("NPM_CONFIG_UPDATE_NOTIFIER", "false")]);
        let env = quiet.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self {
            ecosystem,
            runner,
            program: program.to_owned(),
            args: Vec::new(),
            env,
            files: Vec::new(),
            reader,
        }
    }

    fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
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

/// How to run what a call asks for. Reads the project's files.
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
    let args = test.args.iter().map(String::as_str);
    match ecosystem {
        Ecosystem::Cargo => {
            let config = install::cargo_config(registries);
            Ok(Plan::new(ecosystem, "cargo test", "cargo", Reader::Libtest)
                .args(config)
                .args(["test", "--offline", "--no-fail-fast"])
                .args(filter)
                .args(args))
        }
        Ecosystem::Node => node(site, filter, args),
        Ecosystem::Python => {
            let mut plan = Plan::new(ecosystem, "python", &python::interpreter(site), Reader::Python)
                .args([python::script_path().as_str(), filter.unwrap_or_default()])
                .args(args);
            plan.files.push(python::script());
            Ok(plan)
        }
        Ecosystem::Go => {
            let filter = filter.map(|name| format!("-run={name}"));
            let mut plan = Plan::new(ecosystem, "go test", "go", Reader::Go);
            plan.env.extend(install::go_env(registries));
            plan.env.insert("GOPROXY".to_owned(), "off".to_owned());
            Ok(plan.args(["test", "-json"]).args(filter).args(args).args(["./..."]))
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
    Jest,
    Vitest,
    Mocha,
    /// Something else, behind which node itself may run the tests.
    Perhaps,
    Other,
    /// There is none.
    Nothing,
}

impl Script {
    pub(super) fn read(manifest: Option<&str>) -> Self {
        let manifest: Value = manifest.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let script = manifest.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
        if script.trim().is_empty() || script.contains(NO_TESTS) {
            return Self::Nothing;
        }
        let other = if script.contains("--test") { Self::Perhaps } else { Self::Other };
        let Some(words) = simple_words(script) else { return other };
        let mut words =
            words.into_iter().skip_while(|word| is_assignment(word) || word == "npx" || word == "cross-env");
        let program = words.next().unwrap_or_default();
        let rest: Vec<String> = words.collect();
        match program.as_str() {
            "node" if rest.iter().any(|word| word == "--test") => Self::Node(rest),
            "jest" => Self::Jest,
            "vitest" => Self::Vitest,
            "mocha" => Self::Mocha,
            _ => other,
        }
    }
}

fn is_assignment(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    word.contains('=') && !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

/// The words of a command that a shell would only split; none where it would do more.
fn simple_words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        end if end == c => break,
                        '$' | '`' | '\\' if c == '"' => return None,
                        other => word.push(other),
                    }
                }
            }
            '&' | '|' | ';' | '<' | '>' | '$' | '`' | '(' | ')' | '*' | '?' | '[' | '{' | '~' | '#'
            | '\\' | '\n' => {
                return None;
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

fn node<'a>(site: &Site, filter: Option<&str>, args: impl Iterator<Item = &'a str>) -> Result<Plan, Fault> {
    let ecosystem = Ecosystem::Node;
    let script = Script::read(site.text("package.json").as_deref());
    let npm = |runner, reader| Plan::new(ecosystem, runner, "npm", reader).args(["test", "--silent"]);
    let named = |option: &str| filter.map(|name| format!("{option}={name}"));
    match script {
        Script::Node(_) | Script::Nothing => {
            let rest = if let Script::Node(rest) = script { rest } else { vec!["--test".to_owned()] };
            // A reporter of the script's own would stand in the way.
            let rest = rest.into_iter().filter(|word| !word.starts_with("--test-reporter"));
            Ok(Plan::new(ecosystem, "node --test", "node", Reader::Tap)
                .args(["--test-reporter=tap"])
                .args(named("--test-name-pattern"))
                .args(args)
                .args(rest))
        }
        Script::Jest => {
            Ok(npm("jest", Reader::Json).args(["--", "--json"]).args(named("--testNamePattern")).args(args))
        }
        Script::Vitest => Ok(npm("vitest", Reader::Json)
            .args(["--", "--run", "--reporter=json"])
            .args(named("--testNamePattern"))
            .args(args)),
        Script::Mocha => {
            Ok(npm("mocha", Reader::Json).args(["--", "--reporter=json"]).args(named("--grep")).args(args))
        }
        Script::Perhaps | Script::Other if filter.is_some() => Err(fault::invalid(
            "the test script of package.json is none whose tests can be chosen by name; leave out filter, or give the \
             runner's own option in args",
        )),
        Script::Perhaps | Script::Other => {
            let mut plan = npm("npm test", Reader::Guess);
            // Asked like this, node answers in a form that is understood. Old ones do not take the question, so it is only
            // asked where node is used for tests.
            if script == Script::Perhaps {
                plan.env.insert("NODE_OPTIONS".to_owned(), "--test-reporter=tap".to_owned());
            }
            let mut args = args.peekable();
            let dashes = args.peek().map(|_| "--");
            Ok(plan.args(dashes).args(args))
        }
    }
}
