//! `gantry doctor`: is everything there that a call needs, and why is a tool there or not?

mod projects;
mod rest;
mod servers;

use crate::Extra;
use crate::cli::{Cli, Doctor};
use crate::config::MAIN_PROJECT;
use crate::desk::{Desk, Setup, query};
use crate::exit::Done;
use crate::output;
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

pub(super) async fn run(cli: &Cli, extra: Extra, asked: &Doctor) -> anyhow::Result<Done> {
    if let Some(what) = &asked.what {
        return explain(Setup::new(cli, extra)?, what, asked).await;
    }
    let mut checks = Vec::new();
    match Setup::new(cli, extra) {
        Ok(setup) => examine(setup, asked.project.as_deref(), &mut checks).await,
        Err(error) => checks.push(bad("configuration", format!("{error:#}"))),
    }
    let worst = checks.iter().any(|check| check.health == Health::Bad);
    if asked.json {
        let items: Vec<Value> = checks
            .iter()
            .map(|c| json!({ "check": c.what, "health": c.health.as_str(), "found": c.found }))
            .collect();
        output::json(&items.into());
    } else {
        checks.iter().for_each(show);
    }
    Ok(if worst { Done::Badly } else { Done::Well })
}

async fn examine(setup: Setup, only: Option<&str>, checks: &mut Vec<Check>) {
    let file = setup
        .loaded
        .file
        .as_ref()
        .map_or_else(|| "none, running on defaults".into(), |f| f.display().to_string());
    checks.push(good("configuration", file));
    let config = &setup.loaded.config;
    // What switches off a REST service is said where that is told of.
    let reasons: Vec<&str> = config.all().flat_map(|(_, project)| rest::reasons(project)).collect();
    let warnings =
        setup.loaded.warnings.iter().filter(|text| !reasons.iter().any(|reason| text.ends_with(reason)));
    checks.extend(warnings.map(|warning| odd("configuration", warning.clone())));
    let meant = config.all().filter(|(name, _)| only.is_none_or(|only| only == *name));
    checks.extend(
        meant.map(|(name, it)| good("workspace", of(name, &it.places.workspace.display().to_string()))),
    );
    checks.push(sandbox());
    checks.push(good("data folder", setup.folder.path().display().to_string()));
    checks.push(match setup.folder.server() {
        Some(note) => good("server", format!("running at http://{} (process {})", note.address, note.pid)),
        None => good("server", format!("not running; gantry serve would listen on {}", config.server.bind)),
    });
    let mut services = Vec::new();
    for (name, project) in config.all().filter(|(name, _)| only.is_none_or(|only| only == *name)) {
        services.extend(rest::examine(name, project).await);
    }
    let desk = match only {
        Some(_) => setup.desk_in(only).await,
        None => setup.desk().await,
    };
    let desk = match desk {
        Ok(desk) => desk,
        Err(error) => {
            checks.append(&mut services);
            return checks.push(bad("runtime", format!("{error:#}")));
        }
    };
    desk.settled().await;
    refused(&desk, checks).await;
    ledger(&desk, checks).await;
    checks.append(&mut services);
    projects::examine(&desk, only, checks).await;
    desk.close().await;
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
async fn refused(desk: &Desk, checks: &mut Vec<Check>) {
    match ask(desk, "/api/v1/config").await {
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

async fn ledger(desk: &Desk, checks: &mut Vec<Check>) {
    checks.push(match ask(desk, "/api/v1/audit/verify").await {
        Ok(body) if body.get("ok") == Some(&Value::Bool(true)) => {
            good("ledger", format!("{} entries, whole", body.get("entries").cloned().unwrap_or_default()))
        }
        Ok(body) => bad("ledger", format!("tampered with: {body}")),
        Err(error) => bad("ledger", format!("{error:#}")),
    });
    if let Ok(body) = ask(desk, "/api/v1/audit?state=OUTCOME_UNKNOWN&limit=1000").await {
        let open = body.get("items").and_then(Value::as_array).map_or(0, Vec::len);
        if open > 0 {
            let text = format!(
                "{open} calls may or may not have taken effect; see gantry audit --state OUTCOME_UNKNOWN"
            );
            checks.push(odd("ledger", text));
        }
    }
}

async fn ask(desk: &Desk, path: &str) -> anyhow::Result<Value> {
    desk.get(path).await?.expect_ok()
}

/// Explains a tool; or a server, where no tool of this name can be called.
async fn explain(setup: Setup, what: &str, asked: &Doctor) -> anyhow::Result<Done> {
    let desk = setup.desk_in(asked.project.as_deref()).await?;
    desk.settled().await;
    let done = explained(&desk, what, asked).await;
    desk.close().await;
    done
}

async fn explained(desk: &Desk, what: &str, asked: &Doctor) -> anyhow::Result<Done> {
    let (project, depth) = (asked.project.as_deref().unwrap_or(MAIN_PROJECT), asked.depth.to_string());
    let query = query(&[
        ("project", Some(project)),
        ("tool", Some(what)),
        ("agent", asked.agent.as_deref()),
        ("depth", Some(&depth)),
    ]);
    let body = ask(desk, &format!("/api/v1/explain{query}")).await?;
    let visible = body.get("visible") == Some(&Value::Bool(true));
    let servers = servers::list(desk, project).await?;
    if let Some(server) = servers::named(&servers, what, asked.agent.as_deref()).filter(|_| !visible) {
        let health = servers::show(server, desk, asked.json);
        return Ok(if health == Health::Bad { Done::Badly } else { Done::Well });
    }
    if asked.json {
        output::json(&body);
    } else {
        let name = output::clean(body.get("tool").and_then(Value::as_str).unwrap_or(what));
        output::data(&format!("{name} {}", if visible { "can be called" } else { "cannot be called" }));
        for reason in
            body.get("reasons").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        {
            output::data(&format!("  - {}", output::clean(reason)));
        }
    }
    Ok(if visible { Done::Well } else { Done::Badly })
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
    let mark = if output::colour() { format!("\x1b[{colour}m{mark}\x1b[0m") } else { mark.to_owned() };
    let found = output::clean_lines(&check.found).replace('\n', "\n                 ");
    output::data(&format!("{mark} {:14} {found}", check.what));
}
