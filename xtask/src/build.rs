//! What cargo builds for the checks: one choice of packages, targets and features for all steps.
//!
//! Cargo unifies the features of dependencies over what it is asked for, and those that only tests want are left out
//! when no tests are asked for. So another choice compiles most of the workspace a second time.

use std::path::Path;

use anyhow::Result;

use crate::shell::Program;

/// All that is built, for clippy, the build and the test runner.
pub(crate) const EVERYTHING: [&str; 2] = ["--workspace", "--all-targets"];

/// The programs alone. There are no examples; to ask for them brings the features that the tests have.
const PROGRAMS: [&str; 3] = ["--workspace", "--bins", "--examples"];

/// Builds the programs, unless another step has built them already.
pub(crate) fn programs(root: &Path) -> Result<()> {
    Program::cargo(root).args(["build"]).args(PROGRAMS).run()
}
