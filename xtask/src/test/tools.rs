//! The `tools` step: the programs the tests need, installed where that is possible.

use std::env;
use std::path::Path;

use anyhow::{Result, bail};

use super::{Options, Outcome};
use crate::shell::Program;

/// A version that the pinned toolchain is known to build.
const NEXTEST: &str = "cargo-nextest@0.9.143";
const MIN_NODE: u32 = 20;
/// Fails unless Python is new enough and can make virtual environments, which Debian packages apart.
const PYTHON_CHECK: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
const APT_PACKAGES: [&str; 5] = ["git", "nodejs", "npm", "python3", "python3-venv"];

pub(super) fn ensure(root: &Path, options: &Options) -> Result<Outcome> {
    ensure_nextest(root)?;
    let mut missing = missing_programs(root);
    if !missing.is_empty() && may_install(root, options) {
        install_with_apt(root)?;
        missing = missing_programs(root);
    }
    if !missing.is_empty() {
        bail!(
            "{}\nInstall git, Node.js {MIN_NODE} or newer (https://nodejs.org) and Python 3.10 or newer with venv \
             (https://python.org); on Debian, `cargo xtask test --install` as root tries apt-get",
            missing.join("\n")
        );
    }
    Ok(Outcome::Done)
}

fn ensure_nextest(root: &Path) -> Result<()> {
    if Program::cargo(root).args(["nextest", "--version"]).probe().is_some() {
        return Ok(());
    }
    // It is compiled once and used for minutes: a quick build is worth more than a fast runner.
    Program::cargo(root)
        .args(["install", "--locked", NEXTEST])
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .run()
}

/// What is missing or too old, a sentence each.
fn missing_programs(root: &Path) -> Vec<String> {
    let probe = |name: &str, args: &[&str]| Program::new(name, root).args(args).probe();
    let python = probe("python3", &["-c", PYTHON_CHECK]);
    [
        node_complaint(probe("node", &["--version"]).as_deref()),
        probe("npm", &["--version"]).is_none().then(|| "npm was not found".to_owned()),
        probe("git", &["--version"]).is_none().then(|| "git was not found".to_owned()),
        python.is_none().then(|| "python3, version 3.10 or newer with venv, was not found".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Judges the answer of `node --version`, such as `v20.1.0`.
fn node_complaint(version: Option<&str>) -> Option<String> {
    let Some(version) = version else { return Some("node was not found".to_owned()) };
    let major: Option<u32> =
        version.trim_start_matches('v').split('.').next().and_then(|part| part.parse().ok());
    match major {
        Some(major) if major >= MIN_NODE => None,
        _ => Some(format!("node says its version is `{version}`; {MIN_NODE} or newer is needed")),
    }
}

/// Changing the machine needs a person's word, or a machine that exists for this run only.
fn may_install(root: &Path, options: &Options) -> bool {
    let is_wanted = options.install || env::var("CI").is_ok_and(|value| value == "true");
    let is_root = || Program::new("id", root).args(["-u"]).probe().as_deref() == Some("0");
    let has_apt = || Program::new("apt-get", root).args(["--version"]).probe().is_some();
    is_wanted && is_root() && has_apt()
}

fn install_with_apt(root: &Path) -> Result<()> {
    let apt = || Program::new("apt-get", root).env("DEBIAN_FRONTEND", "noninteractive");
    apt().args(["update"]).run()?;
    apt().args(["install", "--yes", "--no-install-recommends"]).args(APT_PACKAGES).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_must_be_new_enough() {
        assert_eq!(node_complaint(Some("v20.0.0")), None);
        assert_eq!(node_complaint(Some("v100.2.3")), None);
        assert!(node_complaint(Some("v18.19.1")).unwrap().contains("v18.19.1"));
    }

    #[test]
    fn node_that_is_absent_or_unintelligible_is_missing() {
        assert!(node_complaint(None).is_some());
        assert!(node_complaint(Some("")).is_some());
        assert!(node_complaint(Some("nightly")).is_some());
    }
}
