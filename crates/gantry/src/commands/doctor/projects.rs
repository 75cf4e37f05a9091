//! The checks of `gantry doctor` on projects: agents, servers, REST services, tools, and what looks wrong in them.

use super::{Check, error, ok, servers, warning, with_project};
use crate::client::ApiClient;
use crate::config::{self, Loaded};
use gantry_server::model::{Explained, Project};
use gantry_upstream::options::DisabledReason;
use serde::Deserialize;

/// Checks every project, or one.
pub(super) async fn check(client: &ApiClient, only: Option<&str>) -> anyhow::Result<Vec<Check>> {
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
        match servers::list(client, &project.name).await {
            Ok(servers) => {
                checks.extend(servers.iter().map(|server| servers::check(server, client.is_remote())));
                ids.extend(servers.iter().map(|server| server.id.to_string()));
            }
            Err(reason) => checks.push(error("mcp server", format!("{reason:#}"))),
        }
        match tools(client, &project.name, &ids).await {
            Ok(found) => checks.extend(found),
            Err(reason) => {
                checks.push(error("tools", with_project(&project.name, &format!("{reason:#}"))));
            }
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
    Some(ok("agents", with_project(&project.name, &format!("{} configured, {active}", project.agents))))
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
        0 => warning("tools", with_project(project, "none")),
        count => ok("tools", with_project(project, &format!("{count} available"))),
    }];
    if let Ok(Explained::Warnings { warnings }) = client.get("/api/v1/explain", &query).await {
        let is_reported = |text: &String| servers.iter().any(|id| text.starts_with(&format!("server {id} ")));
        let new = warnings.iter().filter(|text| !is_reported(text));
        checks.extend(new.map(|text| warning("setup", with_project(project, text))));
    }
    Ok(checks)
}

/// The warnings of the configuration, without those about services that [`services`] reports.
pub(super) fn other_warnings(loaded: &Loaded) -> impl Iterator<Item = &String> {
    let disabled = loaded.config.all().flat_map(|(_, project)| disabled(project));
    let reasons: Vec<&str> = disabled
        .filter_map(|(_, _, off)| match off {
            DisabledReason::Unusable(reason) => Some(reason.as_str()),
            DisabledReason::Disabled => None,
        })
        .collect();
    loaded.warnings.iter().filter(move |text| !reasons.iter().any(|reason| text.ends_with(reason)))
}

/// The REST services of a project that the configuration decides about: which are switched off, and why. The API
/// reports the others.
pub(super) fn services(name: &str, project: &config::Project) -> Vec<Check> {
    let enabled = project.rest_tools.values().filter(|tool| tool.off.is_none()).count();
    let enabled =
        (enabled > 0).then(|| ok("rest tool", with_project(name, &format!("{enabled} configured"))));
    let disabled = disabled(project).map(|(subject, id, off)| match off {
        DisabledReason::Disabled => {
            let found = format!("{id} is switched off by its configuration (enabled: false)");
            ok(subject, with_project(name, &found))
        }
        DisabledReason::Unusable(reason) => {
            error(subject, with_project(name, &format!("{id} is switched off: {reason}")))
        }
    });
    enabled.into_iter().chain(disabled).collect()
}

/// The inline tools and APIs that are switched off.
fn disabled(project: &config::Project) -> impl Iterator<Item = (&'static str, &str, &DisabledReason)> {
    let tools = project.rest_tools.iter().map(|(id, tool)| ("rest tool", id, &tool.off));
    let apis = project.apis.iter().map(|(id, api)| ("openapi", id, &api.off));
    tools.chain(apis).filter_map(|(subject, id, off)| Some((subject, id.as_str(), off.as_ref()?)))
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
