//! The checks of `gantry doctor` on projects: agents, servers, tools, and what looks wrong in them.

use super::{Check, error, ok, servers, warning, with_project};
use crate::client::{ApiClient, query};
use gantry_server::model::Project;
use serde::Deserialize;

/// Checks every project, or one.
pub(super) async fn check(client: &ApiClient, only: Option<&str>, checks: &mut Vec<Check>) {
    let projects: Vec<Project> = match client.list("/api/v1/projects").await {
        Ok(projects) => projects,
        Err(reason) => return checks.push(error("projects", format!("{reason:#}"))),
    };
    let names: Vec<&str> = projects.iter().map(|project| &*project.name).collect();
    if let Some(only) = only.filter(|only| !names.contains(only)) {
        let names = names.join(", ");
        return checks.push(error("projects", format!("there is no project {only:?}; there are {names}")));
    }
    if projects.len() > 1 && only.is_none() {
        checks.push(ok("projects", names.join(", ")));
    }
    for project in projects.iter().filter(|project| only.is_none_or(|only| *project.name == *only)) {
        checks.extend(agents(project));
        let servers = servers::check(client, &project.name, checks).await;
        tools(client, &project.name, &servers, checks).await;
    }
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

/// What looks wrong in a project.
#[derive(Deserialize)]
struct Warnings {
    warnings: Vec<String>,
}

/// The number of tools, and the warnings that the checks of servers have not reported.
async fn tools(client: &ApiClient, project: &str, servers: &[String], checks: &mut Vec<Check>) {
    let query = query(&[("project", Some(project))]);
    let tools: Vec<ToolName> = match client.list(&format!("/api/v1/tools{query}")).await {
        Ok(tools) => tools,
        Err(reason) => return checks.push(error("tools", with_project(project, &format!("{reason:#}")))),
    };
    // An alias is another name of a tool that is listed as well.
    checks.push(match tools.iter().filter(|tool| tool.alias_of.is_none()).count() {
        0 => warning("tools", with_project(project, "none")),
        count => ok("tools", with_project(project, &format!("{count} available"))),
    });
    if let Ok(found) = client.get::<Warnings>(&format!("/api/v1/explain{query}")).await {
        let is_reported =
            |warning: &String| servers.iter().any(|id| warning.starts_with(&format!("server {id} ")));
        let new = found.warnings.iter().filter(|warning| !is_reported(warning));
        checks.extend(new.map(|text| warning("setup", with_project(project, text))));
    }
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
