//! `gantry config`: check the configuration, show what applies, apply what is held, print the schema for editors.

use crate::cli::{ConfigAction, GlobalOptions};
use crate::client::{ApiClient, load, log_warnings, running_server, source};
use crate::config::{Accepted, Config, Env, Setting, Source, json_schema, settings};
use crate::data_dir::DataDir;
use crate::exit::Outcome;
use crate::startup;
use crate::term::{self, Column, plural};
use gantry_server::model::{ApplyRequest, Reloaded};
use http::{Method, StatusCode};
use serde_json::json;

pub(super) async fn run(options: &GlobalOptions, action: &ConfigAction) -> anyhow::Result<Outcome> {
    match action {
        ConfigAction::Schema => term::print_json(&json_schema()),
        ConfigAction::Check => check(options)?,
        ConfigAction::Show => show(options)?,
        ConfigAction::Apply { yes } => return apply(options, *yes).await,
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

async fn apply(options: &GlobalOptions, yes: bool) -> anyhow::Result<Outcome> {
    let source = source(options)?;
    let data = Config::data(&source, &Env::Process).filter(|data| data.is_dir());
    if let Some(data) = data
        && let Some(server) = running_server(&DataDir::open(&data)?, options.json)?
    {
        return apply_held(options, &server, yes).await;
    }
    accept_files(options, &source, yes)
}

/// Applies what the running server holds, once it was seen: exactly that, or nothing.
async fn apply_held(options: &GlobalOptions, server: &ApiClient, yes: bool) -> anyhow::Result<Outcome> {
    loop {
        let read: Reloaded = server.act(Method::POST, "/api/v1/config/reload").await?;
        let Some(held) = read.held else {
            term::eprint("No change is held: the configuration on the disk is in use.");
            return Ok(print_result(options, &[], Outcome::Success));
        };
        if !is_confirmed("This change is held:", &held.reasons, "Apply it?", yes)? {
            return Ok(print_result(options, &held.reasons, Outcome::Failure));
        }
        let request = serde_json::to_string(&ApplyRequest { revision: held.revision })?;
        let answer = server.send(Method::POST, "/api/v1/config/apply", request).await?;
        if answer.status == StatusCode::CONFLICT && !yes {
            term::eprint("The files have changed since, so nothing was applied. Look again:");
            continue;
        }
        answer.into_result::<Reloaded>()?;
        term::eprint("Applied.");
        return Ok(print_result(options, &held.reasons, Outcome::Success));
    }
}

/// Accepts the files that may be a tool's, once they were seen.
fn accept_files(options: &GlobalOptions, source: &Source, yes: bool) -> anyhow::Result<Outcome> {
    let loaded = startup::check(source, &Env::Process)?;
    log_warnings(&loaded);
    let accepted = Accepted::read(&loaded.data).map_err(crate::config::Error::from)?.unwrap_or_default();
    let files = loaded.suspects(&accepted);
    if files.is_empty() {
        term::eprint("There is nothing to accept: every configuration file counts.");
        return Ok(print_result(options, &files, Outcome::Success));
    }
    let heading = "These configuration files were not there when Gantry last ran here:";
    if !is_confirmed(heading, &files, "Did you read them, and should Gantry use them?", yes)? {
        return Ok(print_result(options, &files, Outcome::Failure));
    }
    if startup::check(source, &Env::Process)? != loaded {
        anyhow::bail!("the files have changed since, so nothing was accepted; look again");
    }
    Accepted::add(&loaded)?;
    term::eprint("Accepted. Gantry uses them from the next start on.");
    Ok(print_result(options, &files, Outcome::Success))
}

fn is_confirmed(heading: &str, lines: &[String], question: &str, yes: bool) -> anyhow::Result<bool> {
    term::eprint(heading);
    lines.iter().for_each(|line| term::eprint(&format!("  {}", term::sanitize(line))));
    Ok(yes || term::confirm(question, "read the lines above and repeat it with --yes")?)
}

/// Prints what was applied or accepted, or was not.
fn print_result(options: &GlobalOptions, held: &[String], outcome: Outcome) -> Outcome {
    if outcome != Outcome::Success {
        term::eprint("Nothing was applied.");
    }
    if options.json {
        term::print_json(&json!({ "applied": outcome == Outcome::Success, "held": held }));
    }
    outcome
}
