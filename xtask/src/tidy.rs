//! `cargo xtask tidy`: the rules of this repository that a program can check.
//!
//! Every rule reads files and nothing else, so the whole check takes about a second and also runs as a test.
//! A file that cannot be read or parsed is a finding too: what was not checked must not look clean.

mod catalogue;
mod ceilings;
mod claims;
mod edges;
mod exceptions;
mod manifest;
pub(crate) mod source;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use exceptions::{EXCEPTIONS, Exception};
use manifest::Workspace;
use source::Source;

/// Where Rust sources live, relative to the root.
const SOURCE_ROOTS: [&str; 2] = ["crates", "xtask"];
/// A limit for the walk, so that a link loop or a stray checkout is an error and not a hang.
const MAX_FOLDER_DEPTH: usize = 24;

/// One thing that is wrong: where it is, what it is, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Checks the repository at `root`, prints what is wrong on standard output, and says whether it is tidy.
pub(crate) fn run(root: &Path) -> Result<bool> {
    let findings = check(root, EXCEPTIONS)?;
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => eprintln!("tidy: nothing to do"),
        n => eprintln!("tidy: findings: {n}"),
    }
    Ok(findings.is_empty())
}

fn check(root: &Path, exceptions: &[Exception]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let workspace = Workspace::read(root, &mut findings)?;
    edges::check(root, &workspace, &mut findings)?;
    catalogue::check(root, &workspace, &mut findings);

    let sources = read_sources(root, &mut findings)?;
    let mut excess = Vec::new();
    for source in &sources {
        words::check(source, &mut findings);
        claims::check(source, &mut findings);
        ceilings::check(source, &mut excess);
    }
    findings.extend(exceptions::apply(exceptions, excess));
    findings.sort();
    Ok(findings)
}

/// Every Rust file of the repository, tests included.
pub(crate) fn read_sources(root: &Path, findings: &mut Vec<Finding>) -> Result<Vec<Source>> {
    let mut paths = BTreeSet::new();
    for folder in SOURCE_ROOTS {
        collect_rust_files(root, folder, 0, &mut paths)?;
    }
    let mut sources = Vec::new();
    for path in &paths {
        let text = fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        match Source::parse(path, text) {
            Ok(source) => sources.push(source),
            Err(finding) => findings.push(finding),
        }
    }
    source::mark_declared_tests(&mut sources);
    Ok(sources)
}

/// Adds the Rust files under `folder` as paths relative to `root`, with `/` between the parts.
fn collect_rust_files(root: &Path, folder: &str, depth: usize, paths: &mut BTreeSet<String>) -> Result<()> {
    anyhow::ensure!(depth < MAX_FOLDER_DEPTH, "{folder} is nested deeper than {MAX_FOLDER_DEPTH} folders");
    let on_disk = root.join(folder);
    if !on_disk.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&on_disk).with_context(|| format!("cannot list {folder}"))? {
        let entry = entry.with_context(|| format!("cannot list {folder}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        let kind = entry.file_type().with_context(|| format!("cannot read the type of {path}"))?;
        if kind.is_dir() && !name.starts_with('.') && name != "node_modules" {
            collect_rust_files(root, &path, depth + 1, paths)?;
        } else if kind.is_file() && name.ends_with(".rs") {
            paths.insert(path);
        }
    }
    Ok(())
}
