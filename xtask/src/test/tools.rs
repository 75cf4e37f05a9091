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
/// The only place where Gantry takes it from.
const BUBBLEWRAP: &str = "/usr/bin/bwrap";
/// The browsers that will do, the same as in the tests.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Names the browser to use, by its path or as one of the search path.
pub(super) const BROWSER: &str = "GANTRY_TEST_BROWSER";

/// A program that the tests need and this machine lacks.
struct Missing {
    complaint: String,
    /// What brings it on Debian. Nothing else is installed: Node from elsewhere does not suffer Debian's npm beside it.
    packages: &'static [&'static str],
}

pub(super) fn ensure(root: &Path, options: &Options) -> Result<Outcome> {
    ensure_nextest(root)?;
    let mut missing = missing_programs(root);
    if !missing.is_empty() && may_install(root, options) {
        install_with_apt(&missing, root)?;
        missing = missing_programs(root);
    }
    if !missing.is_empty() {
        let complaints: Vec<_> = missing.into_iter().map(|program| program.complaint).collect();
        bail!(
            "{}\nInstall git, Node.js {MIN_NODE} or newer (https://nodejs.org), Python 3.10 or newer with venv \
             (https://python.org), Chromium (Debian's package `chromium`) or Google Chrome, bubblewrap as {BUBBLEWRAP}, \
             ripgrep and PostgreSQL; on Debian, `cargo xtask test --install` as root or with sudo tries apt-get",
            complaints.join("\n")
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

/// What is missing or too old.
fn missing_programs(root: &Path) -> Vec<Missing> {
    let probe = |name: &str, args: &[&str]| Program::new(name, root).args(args).probe();
    let absent = |answer: Option<String>, complaint: &str| answer.is_none().then(|| complaint.to_owned());
    let needs: [(Option<String>, &[&str]); 8] = [
        (node_complaint(probe("node", &["--version"]).as_deref()), &["nodejs"]),
        (absent(probe("npm", &["--version"]), "npm was not found"), &["npm"]),
        (absent(probe("git", &["--version"]), "git was not found"), &["git"]),
        (
            absent(
                probe("python3", &["-c", PYTHON_CHECK]),
                "python3, version 3.10 or newer with venv, was not found",
            ),
            &["python3", "python3-venv"],
        ),
        (absent(browser(root), &browser_complaint(env::var(BROWSER).ok().as_deref())), &["chromium"]),
        (
            absent(probe(BUBBLEWRAP, &["--version"]), &format!("bubblewrap was not found at {BUBBLEWRAP}")),
            &["bubblewrap"],
        ),
        (absent(probe("rg", &["--version"]), "rg (ripgrep) was not found"), &["ripgrep"]),
        (absent(postgres(root), "PostgreSQL (initdb, postgres, psql) was not found"), &["postgresql"]),
    ];
    let missing =
        needs.into_iter().map(|(complaint, packages)| Some(Missing { complaint: complaint?, packages }));
    missing.flatten().collect()
}

/// A PostgreSQL server: Debian keeps it off the path.
fn postgres(root: &Path) -> Option<String> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut servers = installed.map(|version| version.path().join("bin/postgres").display().to_string());
    let runs = |name: &String| Program::new(name, root).args(["--version"]).probe().is_some();
    servers.find(runs).or_else(|| Some("postgres".to_owned()).filter(runs))
}

/// The browser for the tests: the one that is named, or the first that runs.
pub(super) fn browser(root: &Path) -> Option<String> {
    let runs = |name: &String| Program::new(name, root).args(["--version"]).probe().is_some();
    match env::var(BROWSER) {
        Ok(named) => Some(named).filter(runs),
        Err(_) => BROWSERS.map(str::to_owned).into_iter().find(runs),
    }
}

fn browser_complaint(named: Option<&str>) -> String {
    match named {
        Some(name) => format!("`{name}`, which {BROWSER} names, does not run"),
        None => format!("no browser was found ({}); {BROWSER} may name another", BROWSERS.join(", ")),
    }
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
    let has_apt = || Program::new("apt-get", root).args(["--version"]).probe().is_some();
    // Without a password: nobody may be there to type it.
    let has_sudo = || Program::new("sudo", root).args(["-n", "true"]).probe().is_some();
    is_wanted && has_apt() && (is_root(root) || has_sudo())
}

fn is_root(root: &Path) -> bool {
    Program::new("id", root).args(["-u"]).probe().as_deref() == Some("0")
}

fn install_with_apt(missing: &[Missing], root: &Path) -> Result<()> {
    let apt = || {
        let env = if is_root(root) {
            Program::new("env", root)
        } else {
            Program::new("sudo", root).args(["-n", "env"])
        };
        env.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"])
    };
    apt().args(["update"]).run()?;
    let packages = missing.iter().flat_map(|program| program.packages);
    apt().args(["install", "--yes", "--no-install-recommends"]).args(packages).run()
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
    fn a_browser_that_is_named_is_the_one_complained_of() {
        assert!(browser_complaint(Some("/opt/b")).contains("`/opt/b`"));
        assert!(browser_complaint(None).contains("chromium"));
    }

    #[test]
    fn node_that_is_absent_or_unintelligible_is_missing() {
        assert!(node_complaint(None).is_some());
        assert!(node_complaint(Some("")).is_some());
        assert!(node_complaint(Some("nightly")).is_some());
    }
}
