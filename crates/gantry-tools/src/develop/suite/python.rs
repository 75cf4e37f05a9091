//! Runs the tests of Python projects by a script of our own, and reads its report.

use super::{Failure, NAME_BYTES, Tally};
use crate::develop::site::Site;
use crate::develop::words;
use crate::workshop::in_jail;
use gantry_sandbox::jail::FILES;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What runs the tests: pytest where the interpreter has it, else unittest.
const SCRIPT: &str = include_str!("run_tests.py");
const SCRIPT_NAME: &str = "run_tests.py";
/// What the line with the report begins with; the script has the same.
const MARK: &str = "\u{1e}gantry-tests:";
/// Folders in which projects usually keep their environment.
const ENVIRONMENTS: [&str; 2] = [".venv", "venv"];

#[derive(Debug, Deserialize)]
struct Report {
    runner: String,
    passed: u64,
    failed: u64,
    skipped: u64,
    failures: Vec<Failed>,
}

#[derive(Debug, Deserialize)]
struct Failed {
    name: String,
    message: String,
    file: Option<String>,
    line: Option<u64>,
}

pub(super) fn script() -> (String, Vec<u8>) {
    (SCRIPT_NAME.to_owned(), SCRIPT.as_bytes().to_vec())
}

pub(super) fn script_path() -> String {
    format!("{FILES}/{SCRIPT_NAME}")
}

/// The environment that a folder has, if any.
pub(in crate::develop) fn environment(site: &Site) -> Option<&'static str> {
    ENVIRONMENTS.into_iter().find(|name| site.has(python_in(name)))
}

/// The Python of an environment.
pub(in crate::develop) fn python_in(environment: &str) -> PathBuf {
    Path::new(environment).join("bin/python")
}

/// The Python of a folder: that of its environment, if it has one.
pub(super) fn interpreter(site: &Site) -> String {
    let own = environment(site).map(|name| in_jail(&site.folder.join(python_in(name))).display().to_string());
    own.unwrap_or_else(|| "python3".to_owned())
}

/// What the script reported; none if it did not get there.
pub(super) fn parse(stderr: &str) -> Option<Tally> {
    let line = stderr.lines().rev().find_map(|line| line.strip_prefix(MARK))?;
    let Report { runner, passed, failed, skipped, failures } = serde_json::from_str(line).ok()?;
    let runner = words::head(&runner, NAME_BYTES).to_owned();
    let mut tally = Tally { runner: Some(runner), passed, failed, skipped, ..Tally::default() };
    for Failed { name, message, file, line } in failures {
        tally.note(|| Failure { name, message, file, line });
    }
    Some(tally)
}

/// What was said besides the report.
pub(super) fn without_report(stderr: &str) -> &str {
    stderr.rfind(MARK).and_then(|at| stderr.get(..at)).unwrap_or(stderr)
}
