//! The steps of `cargo xtask test`, as a table.

use std::path::Path;

use anyhow::{Result, bail};

use super::{Extent, Options, Outcome, clients, conformance, quick, servers, slowest, specs, tools};
use crate::shell::Program;
use crate::{build, reference, tidy};

/// One step: what it is called, what it does, what to do when it fails.
pub(super) struct Step {
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    pub(super) advice: &'static str,
    /// Whether `--quick` runs it.
    pub(super) is_quick: bool,
    pub(super) run: fn(&Path, &Options) -> Result<Outcome>,
}

pub(super) const STEPS: [Step; 13] = [
    Step {
        key: "tools",
        title: "the programs the tests need are here",
        advice: "install what is named above",
        is_quick: true,
        run: tools::ensure,
    },
    Step {
        key: "clients",
        title: "foreign MCP clients in Python and JavaScript, and what drives a browser",
        advice: "check that the Python and npm package indexes can be reached",
        is_quick: true,
        run: |root, _| clients::ensure(root),
    },
    Step {
        key: "servers",
        title: "foreign MCP servers in Python and JavaScript",
        advice: "check that the Python and npm package indexes can be reached",
        is_quick: true,
        run: |root, _| servers::ensure(root),
    },
    Step {
        key: "specs",
        title: "OpenAPI documents that others wrote",
        advice: "check that the npm package index can be reached",
        is_quick: true,
        run: |root, _| specs::ensure(root).map(|()| Outcome::Done),
    },
    Step { key: "format", title: "rustfmt", advice: "run `cargo fmt --all`", is_quick: true, run: format },
    Step { key: "lint", title: "clippy", advice: "mend the warnings above", is_quick: false, run: lint },
    Step {
        key: "tidy",
        title: "the rules of this repository",
        advice: "do what each finding above says",
        is_quick: true,
        run: check_tidy,
    },
    Step {
        key: "build",
        title: "every crate and test",
        advice: "mend the errors above",
        is_quick: true,
        run: build_all,
    },
    Step {
        key: "tests",
        title: "unit and end-to-end tests",
        advice: "read the first failure above, mend it",
        is_quick: true,
        run: run_tests,
    },
    Step {
        key: "conformance",
        title: "SRV-6: the official MCP suite, directly and through Gantry",
        advice: "read the checks above; what cannot pass belongs in exceptions.toml, with its reason",
        is_quick: false,
        run: |root, _| conformance::run(root),
    },
    Step {
        key: "doc",
        title: "documentation tests, with the proofs that a bypass does not compile",
        advice: "mend the examples above; a proof that compiles now is a hole in the pipeline",
        is_quick: false,
        run: run_doc_tests,
    },
    Step {
        key: "reference",
        title: "the generated reference pages are fresh",
        advice: "run `cargo xtask reference` and read the difference",
        is_quick: false,
        run: |root, _| reference::check(root).map(|()| Outcome::Done),
    },
    Step {
        key: "deny",
        title: "licences, sources and advisories of the dependencies",
        advice: "mend what is named above, or say in deny.toml why it is acceptable",
        is_quick: false,
        run: deny,
    },
];

fn format(root: &Path, _: &Options) -> Result<Outcome> {
    cargo(root, &["fmt", "--all", "--check"])
}

fn lint(root: &Path, _: &Options) -> Result<Outcome> {
    let clippy = Program::cargo(root).args(["clippy"]).args(build::EVERYTHING);
    clippy.args(["--", "-D", "warnings"]).run().map(|()| Outcome::Done)
}

fn check_tidy(root: &Path, _: &Options) -> Result<Outcome> {
    if !tidy::run(root)? {
        bail!("the repository is not tidy");
    }
    Ok(Outcome::Done)
}

fn build_all(root: &Path, _: &Options) -> Result<Outcome> {
    Program::cargo(root).args(["build"]).args(build::EVERYTHING).run().map(|()| Outcome::Done)
}

fn run_tests(root: &Path, options: &Options) -> Result<Outcome> {
    let mut nextest = Program::cargo(root)
        .args(["nextest", "run"])
        .args(build::EVERYTHING)
        .env("GANTRY_TEST_CLIENTS", clients::folder(root))
        .env("GANTRY_TEST_SERVERS", servers::folder(root))
        .env("GANTRY_TEST_SPECS", specs::folder(root));
    // That one which was seen to run; without any, the tests say what they miss.
    if let Some(browser) = tools::browser(root) {
        nextest = nextest.env(tools::BROWSER, browser);
    }
    match options.extent {
        Extent::Quick => nextest = nextest.args(["--filterset"]).long_arg(quick::filter(root)?),
        Extent::Usual => {}
        Extent::Long => nextest = nextest.env("GANTRY_TEST_LONG", "1"),
    }
    slowest::forget(root);
    let result = nextest.args(&options.nextest).run();
    slowest::print(root);
    result.map(|()| Outcome::Done)
}

/// Of the whole workspace: the features are those of the other steps, and no proof is left out because its crate is
/// not named here.
fn run_doc_tests(root: &Path, _: &Options) -> Result<Outcome> {
    cargo(root, &["test", "--doc", "--workspace"])
}

fn deny(root: &Path, _: &Options) -> Result<Outcome> {
    if Program::cargo(root).args(["deny", "--version"]).probe().is_none() {
        return Ok(Outcome::Skipped(
            "cargo-deny is not installed; `cargo install --locked cargo-deny` adds it",
        ));
    }
    cargo(root, &["deny", "check"])
}

fn cargo(root: &Path, args: &[&str]) -> Result<Outcome> {
    Program::cargo(root).args(args).run().map(|()| Outcome::Done)
}
