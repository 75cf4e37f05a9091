//! The `tools` step: the programs that the tests need, installed where that is wanted and possible.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use super::Options;
use crate::shell::Program;

/// A program that the tests need.
struct Tool {
    name: &'static str,
    why: &'static str,
    is_here: fn(&Path) -> bool,
    /// Debian's packages. Only missing tools are installed: Node from elsewhere conflicts with Debian's npm.
    packages: &'static [&'static str],
}

const TOOLS: [Tool; 8] = [
    Tool {
        name: "Node.js 20 or newer",
        why: "MCP clients and servers in JavaScript",
        is_here: |root| {
            probe(root, "node", "--version").is_some_and(|version| node_major(&version) >= Some(20))
        },
        packages: &["nodejs"],
    },
    Tool {
        name: "npm",
        why: "the packages of these clients and servers",
        is_here: |root| answers(root, "npm"),
        packages: &["npm"],
    },
    Tool { name: "git", why: "the git tools", is_here: |root| answers(root, "git"), packages: &["git"] },
    Tool {
        name: "Python 3.10 or newer with venv",
        why: "MCP clients and servers in Python",
        is_here: |root| Program::new("python3", root).args(["-c", PYTHON_CHECK]).probe().is_some(),
        packages: &["python3", "python3-venv"],
    },
    Tool {
        name: "Chromium or Google Chrome (GANTRY_TEST_BROWSER may name another)",
        why: "the approvals page",
        is_here: |root| browser(root).is_some(),
        packages: &["chromium"],
    },
    Tool {
        name: "bubblewrap as /usr/bin/bwrap",
        why: "the sandbox",
        is_here: |root| answers(root, "/usr/bin/bwrap"),
        packages: &["bubblewrap"],
    },
    Tool {
        name: "ripgrep",
        why: "what `search_code` finds is compared with it",
        is_here: |root| answers(root, "rg"),
        packages: &["ripgrep"],
    },
    Tool {
        name: "PostgreSQL",
        why: "the statements of gantry-store",
        is_here: has_postgres,
        packages: &["postgresql"],
    },
];

/// A version that the pinned toolchain is known to build.
const NEXTEST: &str = "cargo-nextest@0.9.143";
/// Fails unless Python is new enough and can make virtual environments, which is a package of its own on Debian.
const PYTHON_CHECK: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
/// The same as in the tests.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Names the browser to use, by its path or as one of the search path.
pub(super) const BROWSER: &str = "GANTRY_TEST_BROWSER";

pub(super) fn ensure(root: &Path, options: &Options) -> Result<()> {
    if Program::cargo(root).args(["nextest", "--version"]).probe().is_none() {
        // It is compiled once and used for minutes: a quick build is worth more than a fast runner.
        Program::cargo(root)
            .args(["install", "--locked", NEXTEST])
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .run()?;
    }
    let missing = || TOOLS.iter().filter(|tool| !(tool.is_here)(root));
    let packages: Vec<&str> = missing().flat_map(|tool| tool.packages).copied().collect();
    // A change of this machine has to be asked for, or the machine exists for this run only.
    let is_wanted = options.install || env::var("CI").is_ok_and(|value| value == "true");
    if is_wanted && !packages.is_empty() && answers(root, "apt-get") {
        install(root, &packages)?;
    }
    let complaints: Vec<String> =
        missing().map(|tool| format!("missing: {}, for {}", tool.name, tool.why)).collect();
    if !complaints.is_empty() {
        let advice = "on Debian, `cargo xtask test --install` installs these programs as root or with sudo";
        bail!("{}\n{advice}", complaints.join("\n"));
    }
    Ok(())
}

/// Installs Debian packages, as root or by a `sudo` that asks for no password.
fn install(root: &Path, packages: &[&str]) -> Result<()> {
    let is_root = probe(root, "id", "-u").as_deref() == Some("0");
    let apt = || {
        let env =
            if is_root { Program::new("env", root) } else { Program::new("sudo", root).args(["-n", "env"]) };
        env.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"])
    };
    apt().args(["update"]).run()?;
    apt().args(["install", "--yes", "--no-install-recommends"]).args(packages).run()
}

fn probe(root: &Path, program: &str, arg: &str) -> Option<String> {
    Program::new(program, root).args([arg]).probe()
}

fn answers(root: &Path, program: &str) -> bool {
    probe(root, program, "--version").is_some()
}

/// The major version in the answer of `node --version`, such as `v20.1.0`.
fn node_major(version: &str) -> Option<u32> {
    version.trim_start_matches('v').split('.').next()?.parse().ok()
}

/// Debian keeps the server off the search path.
fn has_postgres(root: &Path) -> bool {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut servers = installed.map(|version| version.path().join("bin/postgres").display().to_string());
    servers.any(|server| answers(root, &server)) || answers(root, "postgres")
}

/// The browser for the tests: the one that is named, or the first that runs.
pub(super) fn browser(root: &Path) -> Option<String> {
    let candidates = env::var(BROWSER).map_or(BROWSERS.map(str::to_owned).to_vec(), |named| vec![named]);
    candidates.into_iter().find(|name| answers(root, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_must_be_new_enough() {
        assert_eq!(["v20.0.0", "v100.2.3", "nightly", ""].map(node_major), [Some(20), Some(100), None, None]);
    }
}
