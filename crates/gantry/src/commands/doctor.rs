//! `gantry doctor`: is everything there that a call needs, and why is a tool there or not?

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
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Good,
    Odd,
    Bad,
}

impl Health {
    fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Odd => "odd",
            Self::Bad => "bad",
        }
    }
}

/// One thing that was looked at.
struct Check {
    health: Health,
    what: &'static str,
    found: String,
}

pub(super) async fn run(cli: &Cli, extra: Extra, asked: &Doctor) -> anyhow::Result<Outcome> {
    if let Some(what) = &asked.what {
        return explain(CommandContext::new(cli, extra)?, what, asked).await;
    }
    let mut checks = Vec::new();
    match CommandContext::new(cli, extra) {
        Ok(context) => examine(context, asked.project.as_deref(), &mut checks).await,
        Err(error) => checks.push(bad("configuration", format!("{error:#}"))),
    }
    let worst = checks.iter().any(|check| check.health == Health::Bad);
    if cli.json {
        let items: Vec<Value> = checks
            .iter()
            .map(|c| json!({ "check": c.what, "health": c.health.as_str(), "found": c.found }))
            .collect();
        term::print_json(&items);
    } else {
        checks.iter().for_each(show);
    }
    Ok(if worst { Outcome::Failure } else { Outcome::Success })
}

async fn examine(context: CommandContext, only: Option<&str>, checks: &mut Vec<Check>) {
    let file = context
        .loaded
        .file
        .as_ref()
        .map_or_else(|| "none, running on defaults".into(), |f| f.display().to_string());
    checks.push(good("configuration", file));
    let config = &context.loaded.config;
    // What switches off a REST service is said where that is told of.
    let reasons: Vec<&str> = config.all().flat_map(|(_, project)| rest::reasons(project)).collect();
    let warnings =
        context.loaded.warnings.iter().filter(|text| !reasons.iter().any(|reason| text.ends_with(reason)));
    checks.extend(warnings.map(|warning| odd("configuration", warning.clone())));
    let meant = config.all().filter(|(name, _)| only.is_none_or(|only| only == *name));
    checks.extend(meant.map(|(name, it)| good("workspace", of(name, &it.workspace.display().to_string()))));
    checks.push(sandbox());
    checks.push(good("data folder", context.data_dir.path().display().to_string()));
    checks.push(match context.data_dir.running_server() {
        Some(note) => good("server", format!("running at http://{} (process {})", note.address, note.pid)),
        None => good("server", format!("not running; gantry serve would listen on {}", config.server.bind)),
    });
    let mut services = Vec::new();
    for (name, project) in config.all().filter(|(name, _)| only.is_none_or(|only| only == *name)) {
        services.extend(rest::examine(name, project).await);
    }
    let client = match only {
        Some(project) => context.connect(Scope::Project(project)).await,
        None => context.connect(Scope::All).await,
    };
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            checks.append(&mut services);
            return checks.push(bad("runtime", format!("{error:#}")));
        }
    };
    client.wait_until_ready().await;
    refused(&client, checks).await;
    ledger(&client, checks).await;
    checks.append(&mut services);
    projects::examine(&client, only, checks).await;
    client.close().await;
}

/// How programs are confined that tools start; without, there are no such tools.
fn sandbox() -> Check {
    match Sandbox::find() {
        Ok(sandbox) => {
            let info = sandbox.info();
            let found = std::iter::once(info.level).chain(info.notes.iter().map(String::as_str));
            let words = found.collect::<Vec<_>>().join("; ");
            if info.notes.is_empty() { good("sandbox", words) } else { odd("sandbox", words) }
        }
        Err(unavailable) => odd("sandbox", format!("none, so no tool runs programs: {unavailable}")),
    }
}

/// Whether a running Gantry goes by the configuration that is on the disk.
async fn refused(client: &ApiClient, checks: &mut Vec<Check>) {
    match ask(client, "/api/v1/config").await {
        Ok(body) => {
            let reason = body.get("refused").and_then(Value::as_str);
            checks.extend(reason.map(|reason| {
                bad(
                    "configuration",
                    format!("what is on the disk is refused, the one before holds: {reason}"),
                )
            }));
        }
        Err(error) => checks.push(bad("configuration", format!("{error:#}"))),
    }
}

async fn ledger(client: &ApiClient, checks: &mut Vec<Check>) {
    checks.push(match ask(client, "/api/v1/audit/verify").await {
        Ok(body) if body.get("ok") == Some(&Value::Bool(true)) => {
            good("ledger", format!("{} entries, whole", body.get("entries").cloned().unwrap_or_default()))
        }
        Ok(body) => bad("ledger", format!("tampered with: {body}")),
        Err(error) => bad("ledger", format!("{error:#}")),
    });
    if let Ok(body) = ask(client, "/api/v1/audit?state=OUTCOME_UNKNOWN&limit=1000").await {
        let open = body.get("items").and_then(Value::as_array).map_or(0, Vec::len);
        if open > 0 {
            let text = format!(
                "{open} calls may or may not have taken effect; see gantry audit --state OUTCOME_UNKNOWN"
            );
            checks.push(odd("ledger", text));
        }
    }
}

async fn ask(client: &ApiClient, path: &str) -> anyhow::Result<Value> {
    client.get(path).await
}

/// Explains a tool; or a server, where no tool of this name can be called.
async fn explain(context: CommandContext, what: &str, asked: &Doctor) -> anyhow::Result<Outcome> {
    let json = context.json;
    let client = context.connect(Scope::Project(asked.project.as_deref().unwrap_or(MAIN_PROJECT))).await?;
    client.wait_until_ready().await;
    let done = explained(&client, what, asked, json).await;
    client.close().await;
    done
}

async fn explained(client: &ApiClient, what: &str, asked: &Doctor, json: bool) -> anyhow::Result<Outcome> {
    let (project, depth) = (asked.project.as_deref().unwrap_or(MAIN_PROJECT), asked.depth.to_string());
    let query = query(&[
        ("project", Some(project)),
        ("tool", Some(what)),
        ("agent", asked.agent.as_deref()),
        ("depth", Some(&depth)),
    ]);
    let body = ask(client, &format!("/api/v1/explain{query}")).await?;
    let visible = body.get("visible") == Some(&Value::Bool(true));
    let servers = servers::list(client, project).await?;
    if let Some(server) = servers::named(&servers, what, asked.agent.as_deref()).filter(|_| !visible) {
        let health = servers::show(server, client, json);
        return Ok(if health == Health::Bad { Outcome::Failure } else { Outcome::Success });
    }
    if json {
        term::print_json(&body);
    } else {
        let name = term::sanitize(body.get("tool").and_then(Value::as_str).unwrap_or(what));
        term::print(&format!("{name} {}", if visible { "can be called" } else { "cannot be called" }));
        for reason in
            body.get("reasons").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        {
            term::print(&format!("  - {}", term::sanitize(reason)));
        }
    }
    Ok(if visible { Outcome::Success } else { Outcome::Failure })
}

/// Something found in a project, which is named unless it is the file itself.
fn of(project: &str, found: &str) -> String {
    if project == MAIN_PROJECT { found.to_owned() } else { format!("{project}: {found}") }
}

fn good(what: &'static str, found: String) -> Check {
    Check { health: Health::Good, what, found }
}

fn odd(what: &'static str, found: String) -> Check {
    Check { health: Health::Odd, what, found }
}

fn bad(what: &'static str, found: String) -> Check {
    Check { health: Health::Bad, what, found }
}

fn show(check: &Check) {
    let (mark, colour) = match check.health {
        Health::Good => ("✓", "32"),
        Health::Odd => ("!", "33"),
        Health::Bad => ("✗", "31"),
    };
    let mark = if term::wants_colour() { format!("\x1b[{colour}m{mark}\x1b[0m") } else { mark.to_owned() };
    let found = term::sanitize_lines(&check.found).replace('\n', "\n                 ");
    term::print(&format!("{mark} {:14} {found}", check.what));
}
