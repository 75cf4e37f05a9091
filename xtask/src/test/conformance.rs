//! The `conformance` step: the official MCP suite against a fixture that passes it, directly and through Gantry.
//!
//! The fixture speaks both eras or only one; the suite has a set of requirements for each. Every check that passes
//! directly has to pass through Gantry in every combination, so also where Gantry translates between the eras. The
//! suite's mock servers judge Gantry's other side, its client, in the same way. A check that cannot pass is in
//! `exceptions.toml` with its reason.

mod checks;
mod exceptions;
mod matrix;
mod report;
mod suite;

use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};

use self::exceptions::Exceptions;
use self::matrix::{ConformanceRun, ERAS, MatrixCell};
use self::report::Report;
use self::suite::Suite;
use super::packages;
use crate::shell::{build_programs, target_dir};

const EXCEPTIONS: &str = "crates/gantry-testkit/conformance/exceptions.toml";

pub(super) fn run(root: &Path) -> Result<()> {
    let exceptions = packages::read(&root.join(EXCEPTIONS))?;
    let exceptions =
        Exceptions::parse(&exceptions).with_context(|| format!("cannot understand {EXCEPTIONS}"))?;
    let suite = Suite::install(root)?;
    build_programs(root)?;

    let target = target_dir(root);
    let run = ConformanceRun::new(&suite, &target.join("conformance"), &target.join("debug"))?;
    let report = Report::new(&measure(&run)?, &exceptions);
    eprint!("\n{}", report.table());
    report.verdict()
}

/// The eras are measured side by side, because the suite mostly waits; the clients come after them, because their
/// scenarios measure time.
fn measure(run: &ConformanceRun<'_>) -> Result<Vec<MatrixCell>> {
    let eras = thread::scope(|scope| {
        let started = ERAS.map(|(era, own_sets)| scope.spawn(move || run.servers(era, own_sets)));
        started.map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("the measurement panicked"))))
    });
    let mut cells = Vec::new();
    for era in eras {
        cells.extend(era.context("the suite could not be run against the fixture")?);
    }
    cells.extend(run.clients().context("the suite could not be run against the driving client")?);
    Ok(cells)
}
