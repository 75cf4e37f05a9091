//! The steps of `cargo xtask test`, as a table.

use std::path::Path;

use anyhow::{Result, ensure};

use super::{Options, conformance, packages, quick, slowest, tools};
use crate::shell::{EVERYTHING, Program};
use crate::{reference, tidy};

/// One step: its name, what it does, and what to do when it fails.
pub(super) struct Step {
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    pub(super) advice: &'static str,
    /// Whether `--quick` runs it.
    pub(super) is_quick: bool,
    pub(super) run: fn(&Path, &Options) -> Result<()>,
}

pub(super) const STEPS: [Step; 12] = [
    Step {
        key: "tools",
        title: "the programs that the tests need",
        advice: "install the programs named above",
        is_quick: true,
        run: tools::ensure,
    },
    Step {
        key: "clients",
        title: "MCP clients that others wrote, in Python and JavaScript, and a driver for the browser",
        advice: "check that PyPI and the npm registry can be reached",
        is_quick: true,
        run: |root, _| packages::install_clients(root),
    },
    Step {
        key: "servers",
        title: "MCP servers that others wrote, in Python and JavaScript",
        advice: "check that PyPI and the npm registry can be reached",
        is_quick: true,
        run: |root, _| packages::install_servers(root),
    },
    Step {
        key: "specs",
        title: "OpenAPI documents that others wrote",
        advice: "check that the npm registry can be reached",
        is_quick: true,
        run: |root, _| packages::install_specs(root),
    },
    Step {
        key: "format",
        title: "rustfmt",
        advice: "run `cargo fmt --all`",
        is_quick: true,
        run: |root, _| Program::cargo(root).args(["fmt", "--all", "--check"]).run(),
    },
    Step {
        key: "lint",
        title: "clippy",
        advice: "mend the warnings above",
        is_quick: false,
        run: |root, _| {
            Program::cargo(root).args(["clippy"]).args(EVERYTHING).args(["--", "-D", "warnings"]).run()
        },
    },
    Step {
        key: "tidy",
        title: "the rules of this repository: dependencies, licences, file lengths, words",
        advice: "do what each finding above says",
        is_quick: true,
        run: |root, _| {
            ensure!(tidy::run(root)?, "the repository is not tidy");
            Ok(())
        },
    },
    Step {
        key: "build",
        title: "every crate and test",
        advice: "mend the errors above",
        is_quick: true,
        run: |root, _| Program::cargo(root).args(["build"]).args(EVERYTHING).run(),
    },
    Step {
        key: "tests",
        title: "unit and end-to-end tests",
        advice: "read the first failure above and mend it",
        is_quick: true,
        run: run_tests,
    },
    Step {
        key: "conformance",
        title: "the official MCP suite, directly and through Gantry",
        advice: "read the checks above; a check that cannot pass belongs in exceptions.toml, with its reason",
        is_quick: false,
        run: |root, _| conformance::run(root),
    },
    // Of the whole workspace: the features are those of the other steps, and the proofs of every crate are run.
    Step {
        key: "doc",
        title: "documentation tests, with the proofs that a bypass does not compile",
        advice: "mend the examples above; a proof that compiles now is a hole in the pipeline",
        is_quick: false,
        run: |root, _| Program::cargo(root).args(["test", "--doc", "--workspace"]).run(),
    },
    Step {
        key: "reference",
        title: "the generated reference pages are up to date",
        advice: "run `cargo xtask reference` and read the difference",
        is_quick: false,
        run: |root, _| reference::run(root, true),
    },
];

fn run_tests(root: &Path, options: &Options) -> Result<()> {
    let mut nextest = Program::cargo(root)
        .args(["nextest", "run"])
        .args(EVERYTHING)
        .env("GANTRY_TEST_CLIENTS", packages::folder(root, "clients"))
        .env("GANTRY_TEST_SERVERS", packages::folder(root, "servers"))
        .env("GANTRY_TEST_SPECS", packages::folder(root, "specs"));
    // The browser that was seen to run; without any, the tests say what they miss.
    if let Some(browser) = tools::browser(root) {
        nextest = nextest.env(tools::BROWSER, browser);
    }
    if options.quick {
        nextest = nextest.args(["--filterset"]).long_arg(quick::filter(root)?);
    }
    if options.long {
        nextest = nextest.env("GANTRY_TEST_LONG", "1");
    }
    slowest::forget(root);
    let result = nextest.args(&options.filters).args(&options.nextest).run();
    slowest::print(root);
    result
}
