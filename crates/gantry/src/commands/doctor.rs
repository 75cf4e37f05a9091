//! `gantry doctor`: checks whether everything is there that calls need, and explains a single tool or server.

mod projects;
mod rest;
mod servers;

use crate::Extra;
use crate::cli::{Cli, Doctor};
use crate::client::{ApiClient, CommandContext, Scope, query};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term;
use gantry_sandbox::jail::Sandbox;
use gantry_server::model::{AuditVerification, CallRecord, Configuration, Explanation};
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Ok,
    Warning,
    Error,
}

/// The result of one check.
#[derive(Serialize)]
struct Check {
    #[serde(rename = "check")]
    subject: &'static str,
    severity: Severity,
    found: String,
}

fn ok(subject: &'static str, found: String) -> Check {
    Check { subject, severity: Severity::Ok, found }
}

fn warning(subject: &'static str, found: String) -> Check {
    Check { subject, severity: Severity::Warning, found }
}

fn error(subject: &'static str, found: String) -> Check {
    Check { subject, severity: Severity::Error, found }
}

pub(super) async fn run(cli: &Cli, extra: Extra, args: &Doctor) -> anyhow::Result<Outcome> {
    if let Some(what) = &args.what {
        return explain(CommandContext::new(cli, extra)?, what, args).await;
    }
    let mut checks = Vec::new();
    match CommandContext::new(cli, extra) {
        Ok(context) => check_all(context, args.project.as_deref(), &mut checks).await,
        Err(reason) => checks.push(error("configuration", format!("{reason:#}"))),
    }
    if cli.json {
        term::print_json(&checks);
    } else {
        checks.iter().for_each(print_check);
    }
    let failed = checks.iter().any(|check| check.severity == Severity::Error);
    Ok(if failed { Outcome::Failure } else { Outcome::Success })
}

fn print_check(check: &Check) {
    let (mark, colour) = match check.severity {
        Severity::Ok => ("✓", "32"),
        Severity::Warning => ("!", "33"),
        Severity::Error => ("✗", "31"),
    };
    let mark = if term::wants_colour() { format!("\x1b[{colour}m{mark}\x1b[0m") } else { mark.to_owned() };
    let found = term::sanitize_lines(&check.found).replace('\n', "\n                 ");
    term::print(&format!("{mark} {:14} {found}", check.subject));
}

/// Checks everything of all projects, or of one.
async fn check_all(context: CommandContext, only: Option<&str>, checks: &mut Vec<Check>) {
    let file = context.loaded.file.as_ref();
    checks.push(ok(
        "configuration",
        file.map_or_else(|| "none, running on defaults".into(), |file| file.display().to_string()),
    ));
    let config = &context.loaded.config;
    let selected = || config.all().filter(|(name, _)| only.is_none_or(|only| only == *name));
    checks.extend(rest::other_warnings(&context.loaded).map(|text| warning("configuration", text.clone())));
    checks.extend(
        selected().map(|(name, it)| ok("workspace", with_project(name, &it.workspace.display().to_string()))),
    );
    checks.push(sandbox());
    checks.push(ok("data folder", context.data_dir.path().display().to_string()));
    checks.push(match context.data_dir.running_server() {
        Some(info) => ok("server", format!("running at http://{} (process {})", info.address, info.pid)),
        None => ok("server", format!("not running; gantry serve would listen on {}", config.server.bind)),
    });
    let services: Vec<Check> = selected().flat_map(|(name, project)| rest::check(name, project)).collect();
    match context.connect(Scope::of(only)).await {
        Ok(client) => {
            client.wait_until_ready().await;
            configuration(&client, checks).await;
            ledger(&client, checks).await;
            checks.extend(services);
            projects::check(&client, only, checks).await;
            client.close().await;
        }
        Err(reason) => {
            checks.extend(services);
            checks.push(error("runtime", format!("{reason:#}")));
        }
    }
}

/// How programs that tools start are confined; without a sandbox, no tool starts programs.
fn sandbox() -> Check {
    match Sandbox::find() {
        Ok(sandbox) => {
            let info = sandbox.info();
            let parts: Vec<&str> =
                std::iter::once(info.level).chain(info.notes.iter().map(String::as_str)).collect();
            let severity = if info.notes.is_empty() { Severity::Ok } else { Severity::Warning };
            Check { subject: "sandbox", severity, found: parts.join("; ") }
        }
        Err(reason) => warning("sandbox", format!("none, so no tool runs programs: {reason}")),
    }
}

/// Reports that the running server refused the configuration on the disk; nothing if it uses that configuration.
async fn configuration(client: &ApiClient, checks: &mut Vec<Check>) {
    match client.get::<Configuration>("/api/v1/config").await {
        Ok(configuration) => checks.extend(configuration.refused.map(|reason| {
            error(
                "configuration",
                format!("the file is refused, and the previous one stays in use: {reason}"),
            )
        })),
        Err(reason) => checks.push(error("configuration", format!("{reason:#}"))),
    }
}

async fn ledger(client: &ApiClient, checks: &mut Vec<Check>) {
    checks.push(match client.get::<AuditVerification>("/api/v1/audit/verify").await {
        Ok(AuditVerification { first_bad: Some(bad), .. }) => {
            let place = format!("entry {} of the chain {}", bad.entry, bad.node);
            error("ledger", format!("tampered with at {place}: {}", bad.what))
        }
        Ok(verified) => ok("ledger", format!("{} entries, intact", verified.entries)),
        Err(reason) => error("ledger", format!("{reason:#}")),
    });
    let unknown = client.list::<CallRecord>("/api/v1/audit?state=OUTCOME_UNKNOWN&limit=1000").await;
    let unknown = unknown.map_or(0, |calls| calls.len());
    if unknown > 0 {
        let found = format!(
            "{unknown} calls may or may not have taken effect; see gantry audit --state OUTCOME_UNKNOWN"
        );
        checks.push(warning("ledger", found));
    }
}

/// Explains a tool, or a server if no visible tool has this name.
async fn explain(context: CommandContext, what: &str, args: &Doctor) -> anyhow::Result<Outcome> {
    let (project, json) = (args.project.as_deref().unwrap_or(MAIN_PROJECT), context.json);
    let depth = args.depth.to_string();
    let query = query(&[
        ("project", Some(project)),
        ("tool", Some(what)),
        ("agent", args.agent.as_deref()),
        ("depth", Some(&depth)),
    ]);
    let work = async |client: &ApiClient| {
        client.wait_until_ready().await;
        let explanation: Explanation = client.get(&format!("/api/v1/explain{query}")).await?;
        let servers = servers::list(client, project).await?;
        let server = servers::find(&servers, what, args.agent.as_deref());
        if let Some(server) = server.filter(|_| !explanation.visible) {
            let severity = servers::explain(client, server, json);
            return Ok(if severity == Severity::Error { Outcome::Failure } else { Outcome::Success });
        }
        if json {
            term::print_json(&explanation);
        } else {
            let can = if explanation.visible { "can be called" } else { "cannot be called" };
            term::print(&term::sanitize(&format!("{} {can}", explanation.tool)));
            let reasons = explanation.reasons.iter();
            reasons.for_each(|reason| term::print(&format!("  - {}", term::sanitize(reason))));
        }
        Ok(if explanation.visible { Outcome::Success } else { Outcome::Failure })
    };
    context.with_client(Scope::Project(project), work).await
}

/// Prefixes what was found with its project, unless that is the main one.
fn with_project(project: &str, found: &str) -> String {
    if project == MAIN_PROJECT { found.to_owned() } else { format!("{project}: {found}") }
}
