//! `gantry config`: check the configuration, show what applies, print the schema for editors.

use crate::cli::{ConfigAction, GlobalOptions};
use crate::client::{load, log_warnings, source};
use crate::config::{Env, Setting, json_schema, settings};
use crate::exit::Outcome;
use crate::startup;
use crate::term::{self, Column, plural};
use serde_json::json;

pub(super) fn run(options: &GlobalOptions, action: &ConfigAction) -> anyhow::Result<Outcome> {
    match action {
        ConfigAction::Schema => term::print_json(&json_schema()),
        ConfigAction::Check => check(options)?,
        ConfigAction::Show => show(options)?,
    }
    Ok(Outcome::Success)
}

/// Every problem is in the error. Warnings are logged as for every command.
fn check(options: &GlobalOptions) -> anyhow::Result<()> {
    let loaded = startup::check(&source(options)?, &Env::Process)?;
    log_warnings(&loaded);
    let file = loaded.file.as_ref().map(|file| file.display().to_string());
    if options.json {
        term::print_json(&json!({ "ok": true, "file": file, "warnings": loaded.warnings }));
        return Ok(());
    }
    let projects: Vec<&str> = loaded.config.all().map(|(name, _)| name).collect();
    let subject = file.unwrap_or_else(|| "No file, so the defaults apply".to_owned());
    let warnings = match loaded.warnings.len() {
        0 => String::new(),
        n => format!(" {} above.", plural(n, "warning")),
    };
    let text = format!("{subject}: no problems. Projects: {}.{warnings}", projects.join(", "));
    term::print(&term::sanitize(&text));
    Ok(())
}

const COLUMNS: [Column<Setting>; 3] = [
    Column::new("KEY", |it| it.path.clone()),
    Column::new("VALUE", |it| it.value.as_str().map_or_else(|| it.value.to_string(), str::to_owned)),
    Column::new("FROM", |it| it.from.clone().unwrap_or_else(|| "default".to_owned())),
];

fn show(options: &GlobalOptions) -> anyhow::Result<()> {
    let settings = settings(&load(&source(options)?)?);
    if options.json {
        term::print_json(&json!({ "items": settings }));
    } else {
        term::print_table(&settings, &COLUMNS, |_| None);
    }
    Ok(())
}
