//! `format_code`: brings code into the form that a project's own formatter gives it.
//!
//! What changed is found out by comparing the files before and after, not by what the formatter says. A check returns
//! the formatter's exit code and output as they are.

mod formatter;
mod snapshot;

use super::act::Format;
use super::site::{Site, after_run, off_thread};
use super::{Develop, fault, words};
use crate::command::runner::{CommandSpec, exit_code};
use formatter::Formatter;
use gantry_core::Fault;
use gantry_sandbox::jail::{Access, End, Ran};
use serde_json::{Value, json};
use snapshot::Snapshot;
use std::sync::Arc;
use std::time::Duration;

/// How long a formatter may take.
const WALL: Duration = Duration::from_mins(2);
/// Paths in a result.
const PATHS: usize = 1000;

pub(super) async fn run(develop: &Develop, format: Format) -> Result<Value, Fault> {
    let site = Arc::new(Site::open(&develop.runner, &format.path).await?);
    let check = format.check;
    let (formatter, before) = {
        let (site, runner) = (Arc::clone(&site), Arc::clone(&develop.runner));
        let look = move || {
            let formatter = Formatter::choose(&site, format.ecosystem, runner.toolchains())?;
            let before = if check { Snapshot::default() } else { snapshot(&site, &formatter) };
            Ok((formatter, before))
        };
        off_thread(look).await??
    };
    let quota = develop.runner.options().builds;
    let task = CommandSpec {
        env: [("NO_COLOR", "1"), ("CARGO_TERM_COLOR", "never")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
        folder: formatter.folder.clone(),
        access: if check { Access::Read } else { Access::Write },
        packages: true,
        ..CommandSpec::new(formatter.program.clone(), quota, WALL).args(formatter.args(check))
    };
    let ran = develop.runner.run(task).await?;
    let name = formatter.name;
    let (result, ran) = after_run(move || (report(&site, &formatter, &before, &ran, check), ran)).await?;
    if let Some(fault) = fault::limit(&ran, "format_code", (WALL, quota), result.clone()) {
        return Err(fault);
    }
    let is_same = result["changed"].as_array().is_none_or(Vec::is_empty);
    let refused = !check && ran.end != End::Exited(0) && is_same;
    if refused { Err(broken(name, result)) } else { Ok(result) }
}

/// The files that the formatter may change.
fn snapshot(site: &Site, formatter: &Formatter) -> Snapshot {
    Snapshot::take(site, &formatter.folder, formatter.extensions, &snapshot::BOUNDS)
}

/// The result: the files that changed, and what the formatter said.
fn report(site: &Site, formatter: &Formatter, before: &Snapshot, ran: &Ran, check: bool) -> Value {
    let (output, cut) = words::output(ran);
    let changed = if check { Vec::new() } else { before.changed(site) };
    let truncated = cut || changed.len() > PATHS || before.is_partial;
    let mut result = json!({
        "formatter": formatter.name,
        "changed": changed.get(..PATHS).unwrap_or(&changed),
        "checked": check,
        "exitCode": exit_code(ran.end),
    });
    if !check && !before.is_partial {
        result["unchanged"] = before.len().saturating_sub(changed.len()).into();
    }
    if !output.is_empty() {
        result["output"] = output.into();
    }
    if truncated {
        result["truncated"] = true.into();
    }
    result
}

/// A formatter that failed and changed nothing, as for a file with mistakes in it.
fn broken(name: &str, details: Value) -> Fault {
    let fault = fault::failed(format!(
        "{name} could not format the code and changed nothing; the details have what it said"
    ));
    Fault { error: fault.error.with_details(details), ..fault }
}

/// The commands by which something would be formatted, and checked.
#[cfg(test)]
pub(super) fn choice(
    site: &Site,
    chosen: Option<super::ecosystem::Ecosystem>,
    toolchains: &crate::command::toolchains::Toolchains,
) -> Result<(String, String), Fault> {
    let formatter = Formatter::choose(site, chosen, toolchains)?;
    let command = |check| format!("{} {}", formatter.program, formatter.args(check).join(" "));
    Ok((command(false), command(true)))
}

#[cfg(test)]
mod tests;
