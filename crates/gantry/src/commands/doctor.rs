//! `gantry doctor`: checks whether everything is there that calls need, and explains a single tool or server.

mod servers;

use crate::cli::Doctor;
use crate::client::{ApiClient, CommandContext, Scope};
use crate::config::{self, Loaded, MAIN_PROJECT};
use crate::exit::Outcome;
use crate::term;
use gantry_sandbox::jail::Sandbox;
use gantry_server::model::{
    AuditVerification, BadEntry, CallRecord, Configuration, Explained, Explanation, Project,
};
use gantry_upstream::options::DisabledReason;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Ok,
    Warning,
    Error,
}

#[derive(Serialize)]
struct Check {
    #[serde(rename = "check")]
    subject: &'static str,
    severity: Severity,
    found: String,
}

impl Check {
    /// Names the project, unless that is the main one.
    fn of(self, project: &str) -> Self {
        if project == MAIN_PROJECT {
            self
        } else {
            Self { found: format!("{project}: {}", self.found), ..self }
        }
    }
}

fn ok(subject: &'static str, found: impl Into<String>) -> Check {
    Check { subject, severity: Severity::Ok, found: found.into() }
}

fn warning(subject: &'static str, found: impl Into<String>) -> Check {
    Check { subject, severity: Severity::Warning, found: found.into() }
}

fn error(subject: &'static str, found: impl Into<String>) -> Check {
    Check { subject, severity: Severity::Error, found: found.into() }
}

/// The checks, or the reason why they could not be made.
fn or_error(subject: &'static str, found: anyhow::Result<Vec<Check>>) -> Vec<Check> {
    found.unwrap_or_else(|reason| vec![error(subject, format!("{reason:#}"))])
}

pub(super) async fn run(
    context: anyhow::Result<CommandContext>,
    args: &Doctor,
    json: bool,
) -> anyhow::Result<Outcome> {
    if let Some(what) = &args.what {
        return explain(context?, what, args).await;
    }
    let checks = match context {
        Ok(context) => check_all(context, args.project.as_deref()).await,
        Err(reason) => or_error("configuration", Err(reason)),
    };
    if json {
        term::print_json(&checks);
    } else {
        checks.iter().for_each(print_check);
    }
    Ok(Outcome::of(checks.iter().all(|check| check.severity != Severity::Error)))
}

fn print_check(check: &Check) {
    let (mark, colour) = match check.severity {
        Severity::Ok => ("✓", "32"),
        Severity::Warning => ("!", "33"),
        Severity::Error => ("✗", "31"),
    };
    let mark = term::coloured(&std::io::stdout(), colour, mark);
    let found = term::sanitize_lines(&check.found).replace('\n', "\n                 ");
    term::print(&format!("{mark} {:14} {found}", check.subject));
}

async fn check_all(context: CommandContext, only: Option<&str>) -> Vec<Check> {
    let (file, config) = (context.loaded.file.as_ref(), &context.loaded.config);
    let file = file.map_or_else(|| "none, running on defaults".into(), |file| file.display().to_string());
    let mut checks = vec![ok("configuration", file)];
    let selected = || config.all().filter(|(name, _)| only.is_none_or(|only| only == *name));
    checks.extend(other_warnings(&context.loaded).map(|text| warning("configuration", text)));
    checks.extend(selected().map(|(name, it)| ok("workspace", it.workspace.display().to_string()).of(name)));
    checks.push(sandbox());
    checks.push(ok("data folder", context.data_dir.path().display().to_string()));
    checks.push(match context.data_dir.running_server() {
        Some(info) => ok("server", format!("running at http://{} (process {})", info.address, info.pid)),
        None => ok("server", format!("not running; gantry serve would listen on {}", config.server.bind)),
    });
    checks.extend(selected().flat_map(|(name, project)| services(name, project)));
    let launches = servers::launches(config);
    let work = async |client: &ApiClient| {
        client.wait_until_ready().await;
        let mut found = or_error("configuration", configuration(client).await);
        found.extend(or_error("ledger", ledger(client).await));
        found.extend(or_error("projects", projects(client, only, &launches).await));
        Ok(found)
    };
    checks.extend(or_error("runtime", context.with_client(Scope::of(only), work).await));
    checks
}

/// How programs that tools start are confined; without a sandbox, no tool starts programs.
fn sandbox() -> Check {
    match Sandbox::find() {
        Ok(sandbox) => {
            let info = sandbox.info();
            let parts: Vec<&str> =
                std::iter::once(info.level).chain(info.notes.iter().map(String::as_str)).collect();
            let check = if info.notes.is_empty() { ok } else { warning };
            check("sandbox", parts.join("; "))
        }
        Err(reason) => warning("sandbox", format!("none, so no tool runs programs: {reason}")),
    }
}

/// Reports that the running server refused or holds the configuration on the disk; nothing if it uses that
/// configuration.
async fn configuration(client: &ApiClient) -> anyhow::Result<Vec<Check>> {
    let configuration: Configuration = client.get("/api/v1/config", &[]).await?;
    let text = |reason| format!("the file is refused, and the previous one stays in use: {reason}");
    let refused = configuration.refused.map(|reason| error("configuration", text(reason)));
    let held = configuration.held.map(|held| warning("configuration", format!("a change is held: {held}")));
    Ok(refused.into_iter().chain(held).collect())
}

async fn ledger(client: &ApiClient) -> anyhow::Result<Vec<Check>> {
    let verified: AuditVerification = client.get("/api/v1/audit/verify", &[]).await?;
    let mut checks = vec![match verified.first_bad {
        Some(BadEntry { node, entry, what }) => {
            error("ledger", format!("tampered with at entry {entry} of the chain {node}: {what}"))
        }
        None => ok("ledger", format!("{} entries, intact", verified.entries)),
    }];
    let unknown = [("state", Some("OUTCOME_UNKNOWN")), ("limit", Some("1000"))];
    let unknown = client.list::<CallRecord>("/api/v1/audit", &unknown).await?.len();
    if unknown > 0 {
        let found = format!(
            "{unknown} calls may or may not have taken effect; see gantry audit --state OUTCOME_UNKNOWN"
        );
        checks.push(warning("ledger", found));
    }
    Ok(checks)
}

/// Explains a tool, or a server if no visible tool has this name.
async fn explain(context: CommandContext, what: &str, args: &Doctor) -> anyhow::Result<Outcome> {
    let project = args.project.as_deref().unwrap_or(MAIN_PROJECT);
    let launches = servers::launches(&context.loaded.config);
    let (agent, depth) = (args.agent.as_deref(), args.depth.to_string());
    let query =
        [("project", Some(project)), ("tool", Some(what)), ("agent", agent), ("depth", Some(&*depth))];
    let work = async |client: &ApiClient| {
        client.wait_until_ready().await;
        let explanation: Explanation = client.get("/api/v1/explain", &query).await?;
        let servers = client.servers(Some(project)).await?;
        let server = servers::find(&servers, what, agent);
        if let Some(server) = server.filter(|_| !explanation.visible) {
            return Ok(Outcome::of(servers::explain(client, server, &launches) != Severity::Error));
        }
        term::print_value(&explanation, client.json, |Explanation { tool, visible, reasons, .. }| {
            let can = if *visible { "can be called" } else { "cannot be called" };
            let reasons = reasons.iter().map(|reason| format!("  - {reason}"));
            std::iter::once(format!("{tool} {can}")).chain(reasons).collect()
        });
        Ok(Outcome::of(explanation.visible))
    };
    context.with_client(Scope::Project(project), work).await
}

async fn projects(
    client: &ApiClient,
    only: Option<&str>,
    launches: &servers::Launches,
) -> anyhow::Result<Vec<Check>> {
    let projects: Vec<Project> = client.list("/api/v1/projects", &[]).await?;
    let names: Vec<&str> = projects.iter().map(|project| &*project.name).collect();
    if let Some(only) = only.filter(|only| !names.contains(only)) {
        anyhow::bail!("there is no project {only:?}; there are {}", names.join(", "));
    }
    let mut checks = Vec::new();
    if projects.len() > 1 && only.is_none() {
        checks.push(ok("projects", names.join(", ")));
    }
    for project in projects.iter().filter(|project| only.is_none_or(|only| *project.name == *only)) {
        checks.extend(agents(project));
        let mut ids = Vec::new();
        match client.servers(Some(&project.name)).await {
            Ok(servers) => {
                checks.extend(
                    servers.iter().map(|server| servers::check(server, launches, client.is_remote())),
                );
                ids.extend(servers.iter().map(|server| server.id.to_string()));
            }
            Err(reason) => checks.push(error("mcp server", format!("{reason:#}"))),
        }
        match tools(client, &project.name, &ids).await {
            Ok(found) => checks.extend(found),
            Err(reason) => checks.push(error("tools", format!("{reason:#}")).of(&project.name)),
        }
    }
    Ok(checks)
}

/// The number of agents and the active one; nothing for a project without agents.
fn agents(project: &Project) -> Option<Check> {
    let active = match &project.active {
        Some(active) => format!("{active} is active"),
        None if project.agents == 0 => return None,
        None => "none is active".to_owned(),
    };
    Some(ok("agents", format!("{} configured, {active}", project.agents)).of(&project.name))
}

/// What is read of a tool: there may be tens of thousands.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolName {
    alias_of: Option<String>,
}

/// The number of tools, and the warnings that the checks of servers have not reported.
async fn tools(client: &ApiClient, project: &str, servers: &[String]) -> anyhow::Result<Vec<Check>> {
    let query = [("project", Some(project))];
    let tools: Vec<ToolName> = client.list("/api/v1/tools", &query).await?;
    // An alias is another name of a tool that is listed as well.
    let mut checks = vec![match tools.iter().filter(|tool| tool.alias_of.is_none()).count() {
        0 => warning("tools", "none").of(project),
        count => ok("tools", format!("{count} available")).of(project),
    }];
    if let Ok(Explained::Warnings { warnings }) = client.get("/api/v1/explain", &query).await {
        let is_reported = |text: &String| servers.iter().any(|id| text.starts_with(&format!("server {id} ")));
        let new = warnings.iter().filter(|text| !is_reported(text));
        checks.extend(new.map(|text| warning("setup", text).of(project)));
    }
    Ok(checks)
}

/// The warnings of the configuration, without those about services that [`services`] reports.
fn other_warnings(loaded: &Loaded) -> impl Iterator<Item = &String> {
    let disabled = loaded.config.all().flat_map(|(_, project)| disabled(project));
    let reasons: Vec<String> = disabled
        .filter_map(|(_, _, off)| match off {
            DisabledReason::Unusable(reason) => Some(reason),
            DisabledReason::Disabled => None,
        })
        .collect();
    loaded.warnings.iter().filter(move |text| !reasons.iter().any(|reason| text.ends_with(reason)))
}

/// The REST services of a project that the configuration decides about: which are switched off, and why. The API
/// reports the others.
fn services(name: &str, project: &config::Project) -> Vec<Check> {
    let enabled = project.rest_tools.values().filter(|tool| tool.off().is_none()).count();
    let enabled = (enabled > 0).then(|| ok("rest tool", format!("{enabled} configured")));
    let disabled = disabled(project).map(|(subject, id, off)| match off {
        DisabledReason::Disabled => {
            ok(subject, format!("{id} is switched off by its configuration (enabled: false)"))
        }
        DisabledReason::Unusable(reason) => error(subject, format!("{id} is switched off: {reason}")),
    });
    enabled.into_iter().chain(disabled).map(|check| check.of(name)).collect()
}

fn disabled(project: &config::Project) -> impl Iterator<Item = (&'static str, &str, DisabledReason)> {
    let tools = project.rest_tools.iter().map(|(id, tool)| ("rest tool", &**id, tool.off()));
    let apis = project.apis.iter().map(|(id, api)| ("openapi", &**id, api.off()));
    tools.chain(apis).filter_map(|(subject, id, off)| Some((subject, id, off?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_active_agent_is_named_and_a_project_without_agents_has_no_line() {
        let found = |name: &str, agents: usize, active: Option<&str>| {
            let active = active.map(Into::into);
            let project = Project { name: name.into(), active, agents, servers: 0, tools: None };
            super::agents(&project).map(|check| check.found)
        };
        assert_eq!(found("default", 0, None), None);
        assert_eq!(found("default", 2, Some("a")).unwrap(), "2 configured, a is active");
        assert_eq!(found("other", 1, None).unwrap(), "other: 1 configured, none is active");
    }
}
