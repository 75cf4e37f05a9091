//! `gantry openapi inspect`: the tools that an OpenAPI document would give.

mod report;
mod spec_source;

use crate::cli::{GlobalOptions, OpenapiAction};
use crate::client::{load, source};
use crate::exit::{Outcome, UsageError};
use crate::term;
use report::{ImportReport, import, print_report, print_skipped};
use serde_json::json;
use spec_source::SpecSource;

pub(super) async fn run(options: &GlobalOptions, action: &OpenapiAction) -> anyhow::Result<Outcome> {
    let OpenapiAction::Inspect(args) = action;
    let loaded = load(&source(options)?)?;
    let name = args.project.name();
    let project = loaded.config.project(name);
    let project = project.ok_or_else(|| UsageError(format!("there is no project {name:?}")))?;
    let source = SpecSource::of(args, project)?;
    let imported = match import(&source.options, project).await {
        Ok(imported) => imported,
        Err(reason) => {
            let reason = term::sanitize_lines(&reason);
            term::eprint(&format!("error: the document cannot be used: {reason}"));
            if source.is_entry {
                let key = format!("openapiSpecs.{}.spec", args.spec);
                term::eprint(&format!("{key} names this document: correct the key or the document."));
            }
            return Ok(Outcome::Failure);
        }
    };
    let report = ImportReport::of(&source, &imported);
    match (options.json, args.skipped) {
        (true, true) => {
            term::print_json(&json!({ "counts": report.counts, "skipped": report.skipped }));
        }
        (true, false) => term::print_json(&report),
        (false, true) => print_skipped(&report, usize::MAX),
        (false, false) => print_report(&source, &report),
    }
    Ok(Outcome::Success)
}
