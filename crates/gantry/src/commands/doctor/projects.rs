//! What `gantry doctor` says of projects: their agents, their servers, their tools, and what looks wrong in them.

use super::{Check, ask, bad, good, odd, of, servers};
use crate::client::{ApiClient, query};
use serde_json::Value;

/// The checks of every project, or of one.
pub(super) async fn examine(client: &ApiClient, only: Option<&str>, checks: &mut Vec<Check>) {
    let body = match ask(client, "/api/v1/projects").await {
        Ok(body) => body,
        Err(error) => return checks.push(bad("projects", format!("{error:#}"))),
    };
    let all = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = all.iter().map(name).collect();
    if let Some(only) = only.filter(|only| !names.contains(only)) {
        let known = names.join(", ");
        return checks.push(bad("projects", format!("there is no project {only:?}; there are {known}")));
    }
    if all.len() > 1 && only.is_none() {
        checks.push(good("projects", names.join(", ")));
    }
    for project in all.iter().filter(|project| only.is_none_or(|only| only == name(project))) {
        checks.extend(agents(project));
        let known = servers::examine(client, name(project), checks).await;
        tools(client, name(project), &known, checks).await;
    }
}

fn name(project: &Value) -> &str {
    project.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Which agents a project has, and which is active; nothing where there are none.
fn agents(project: &Value) -> Option<Check> {
    let count = project.get("agents").and_then(Value::as_u64).unwrap_or_default();
    let active = match project.get("active").and_then(Value::as_str) {
        Some(active) => format!("{active} is active"),
        None if count == 0 => return None,
        None => "none is active".to_owned(),
    };
    Some(good("agents", of(name(project), &format!("{count} configured, {active}"))))
}

/// The tools, and what else looks wrong; that a server is down was said with its light.
async fn tools(client: &ApiClient, project: &str, servers: &[String], checks: &mut Vec<Check>) {
    let query = query(&[("project", Some(project))]);
    let body = match ask(client, &format!("/api/v1/tools{query}")).await {
        Ok(body) => body,
        Err(error) => return checks.push(bad("tools", of(project, &format!("{error:#}")))),
    };
    let items = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    // An alias is another name for a tool that is listed as well.
    checks.push(match items.iter().filter(|tool| tool.get("aliasOf").is_none()).count() {
        0 => odd("tools", of(project, "none")),
        count => good("tools", of(project, &format!("{count} available"))),
    });
    if let Ok(body) = ask(client, &format!("/api/v1/explain{query}")).await {
        let warnings = body.get("warnings").and_then(Value::as_array).into_iter().flatten();
        let said = |warning: &&str| servers.iter().any(|id| warning.starts_with(&format!("server {id} ")));
        let new = warnings.filter_map(Value::as_str).filter(|warning| !said(warning));
        checks.extend(new.map(|warning| odd("set-up", of(project, warning))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_active_agent_is_named_and_no_word_is_lost_about_no_agents() {
        let said = |project: Value| agents(&project).map(|check| check.found);
        assert_eq!(said(json!({ "name": "default", "agents": 0, "active": null })), None);
        assert_eq!(
            said(json!({ "name": "default", "agents": 2, "active": "a" })).unwrap(),
            "2 configured, a is active"
        );
        assert_eq!(
            said(json!({ "name": "other", "agents": 1, "active": null })).unwrap(),
            "other: 1 configured, none is active"
        );
    }
}
