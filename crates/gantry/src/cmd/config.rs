//! `gantry config`: check the configuration, show what applies, print the schema for editors.

use super::policy::configuration;
use crate::cli::{Cli, ConfigAction};
use crate::config::{Setting, json_schema, settings};
use crate::exit::Done;
use crate::{output, startup};
use serde_json::json;

pub(super) fn run(cli: &Cli, action: &ConfigAction) -> anyhow::Result<Done> {
    match action {
        ConfigAction::Schema => output::json(&json_schema()),
        ConfigAction::Check { json } => check(cli, *json)?,
        ConfigAction::Show { json } => show(cli, *json)?,
    }
    Ok(Done::Well)
}

/// Every problem is in the error. Warnings are logged as for every command.
fn check(cli: &Cli, json: bool) -> anyhow::Result<()> {
    let loaded = configuration(cli)?;
    startup::validate(&loaded)?;
    let file = loaded.file.as_ref().map(|file| file.display().to_string());
    if json {
        output::json(&json!({ "ok": true, "file": file, "warnings": loaded.warnings }));
        return Ok(());
    }
    let projects: Vec<&str> = loaded.config.all().map(|(name, _)| name).collect();
    let subject = file.unwrap_or_else(|| "No file, so the defaults apply".to_owned());
    let warnings = match loaded.warnings.len() {
        0 => String::new(),
        1 => " There is 1 warning.".to_owned(),
        n => format!(" There are {n} warnings."),
    };
    output::data(&output::clean(&format!(
        "{subject}: no problems. Projects: {}.{warnings}",
        projects.join(", ")
    )));
    Ok(())
}

fn show(cli: &Cli, json: bool) -> anyhow::Result<()> {
    let loaded = configuration(cli)?;
    let settings = settings(&loaded);
    if json {
        output::json_of(&json!({ "items": settings }));
        return Ok(());
    }
    let row = |setting: &Setting| {
        let value = setting.value.as_str().map_or_else(|| setting.value.to_string(), str::to_owned);
        vec![setting.path.clone(), value, setting.from.clone().unwrap_or_else(|| "default".to_owned())]
    };
    output::table(&["KEY", "VALUE", "FROM"], &settings.iter().map(row).collect::<Vec<_>>());
    Ok(())
}
