//! The `conformance` step: the official MCP suite against a fixture that passes it, directly and through Gantry.
//!
//! The fixture speaks both eras or only one; the suite has a set of requirements for each. Every check that passes
//! directly has to pass through Gantry in every combination, so also where Gantry translates between the eras. The
//! suite's mock servers judge Gantry's other side, its client, in the same way. What cannot pass is named with its
//! reason in `exceptions.toml`.

mod cells;
mod checks;
mod exceptions;
mod report;
mod suite;

use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};

use self::cells::{Bench, Cell, Era};
use self::exceptions::Exceptions;
use self::report::Report;
use self::suite::Suite;
use super::Outcome;
use crate::build;
use crate::shell::target_dir;

const FOLDER: &str = "crates/gantry-testkit/conformance";

pub(super) fn run(root: &Path) -> Result<Outcome> {
    let exceptions = Exceptions::read(&root.join(FOLDER).join("exceptions.toml"))?;
    let home = target_dir(root).join("conformance");
    let suite = Suite::install(&root.join(FOLDER), &home, root)?;
    build::programs(root)?;

    let bench = Bench::new(&suite, &home, &target_dir(root).join("debug"))?;
    let report = Report::new(&measure(&bench)?, &exceptions);
    eprint!("\n{}", report.table());
    report.verdict().map(|()| Outcome::Done)
}

/// Mostly the suite waits for things to happen, so the eras are measured side by side; the clients come after them,
/// because there the suite looks at the clock.
fn measure(bench: &Bench<'_>) -> Result<Vec<Cell>> {
    let eras = thread::scope(|scope| {
        let started = Era::ALL.map(|era| scope.spawn(move || bench.servers(era)));
        started.map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("the measurement broke"))))
    });
    let mut cells = Vec::new();
    for era in eras {
        cells.extend(era.context("the suite could not be run against the fixture")?);
    }
    cells.extend(bench.clients().context("the suite could not be run against the driving client")?);
    Ok(cells)
}
