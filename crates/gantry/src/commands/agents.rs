//! `gantry agents`: lists the agents, shows one, switches the active one.

mod switch;

use crate::cli::{AgentsAction, ProjectFilter};
use crate::client::{ApiClient, CommandContext, Scope, encoded, query};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, Column};
use gantry_server::model::{Agent, AgentDetails};

const COLUMNS: [Column<Agent>; 6] = [
    Column::new("NAME", |agent| agent.name.to_string()),
    Column::unless("PROJECT", &[MAIN_PROJECT], |agent| agent.project.to_string()),
    Column::new("ACTIVE", |agent| if agent.active { "●" } else { "" }.to_owned()),
    Column::new("TOOLS", |agent| agent.tools.map_or_else(|| "?".to_owned(), |tools| tools.to_string())),
    Column::new("MODEL", |agent| agent.model.clone().unwrap_or_default()),
    Column::new("DESCRIPTION", |agent| agent.description.clone().unwrap_or_default()),
];

pub(super) async fn run(
    context: CommandContext,
    action: Option<AgentsAction>,
    list: ProjectFilter,
) -> anyhow::Result<Outcome> {
    match action.unwrap_or(AgentsAction::List(list)) {
        AgentsAction::List(filter) => print_agents(context, filter.name()).await,
        AgentsAction::Show { name, project } => show(context, &name, project.name()).await,
        AgentsAction::Switch(args) => switch::run(context, &args).await,
    }
}

async fn print_agents(context: CommandContext, project: Option<&str>) -> anyhow::Result<Outcome> {
    let json = context.json;
    let work = async |client: &ApiClient| {
        // How many tools an agent has is known when its servers are ready.
        client.wait_until_ready().await;
        let query = query(&[("project", project)]);
        let agents = client.list(&format!("/api/v1/agents{query}")).await?;
        let empty =
            "There are no agents. Define them under agents in gantry.yaml, or as agents/NAME.md beside it.";
        term::print_list(&agents, &COLUMNS, empty, json);
        Ok(Outcome::Success)
    };
    context.with_client(Scope::of(project), work).await
}

async fn show(context: CommandContext, name: &str, project: &str) -> anyhow::Result<Outcome> {
    let json = context.json;
    let work = async |client: &ApiClient| {
        client.wait_until_ready().await;
        let path = format!("/api/v1/agents/{}{}", encoded(name), query(&[("project", Some(project))]));
        let agent: AgentDetails = client.get(&path).await?;
        if json {
            term::print_json(&agent);
            return Ok(Outcome::Success);
        }
        describe(&agent).iter().for_each(|line| term::print(&term::sanitize(line)));
        if let Some(prompt) = agent.configured.as_ref().and_then(|it| it.prompt.as_deref()) {
            term::print("");
            term::print_untrusted(prompt.trim_end());
        }
        Ok(Outcome::Success)
    };
    context.with_client(Scope::Project(project), work).await
}

/// An agent without its prompt, in lines.
fn describe(details: &AgentDetails) -> Vec<String> {
    let AgentDetails { agent, tool_names, configured } = details;
    let active = if agent.active { "active" } else { "not active" };
    let mut lines = vec![format!("{} is {active} in {}", agent.name, agent.project)];
    let mut add = |name: &str, value: Option<String>| {
        let value = value.filter(|value| !value.is_empty());
        lines.extend(value.map(|value| format!("  {name:12} {value}")));
    };
    add("description", agent.description.clone());
    add("model", agent.model.clone());
    if let Some(configured) = configured {
        add("selects", Some(or_none(&configured.uses)));
        add(
            "may call",
            Some(configured.allowed.as_deref().map_or_else(|| "all of them".to_owned(), or_none)),
        );
    }
    add(
        "tools",
        Some(tool_names.as_ref().map_or_else(
            || "not known: it is not running, because another agent is active".to_owned(),
            |names| format!("{}: {}", names.len(), or_none(names)),
        )),
    );
    let aliases = agent.aliases.iter().flatten().map(|(alias, tool)| format!("{alias} → {tool}"));
    add("aliases", Some(aliases.collect::<Vec<_>>().join(", ")));
    add("auto-approve", configured.as_ref().map(|it| it.auto_approve.join(", ")));
    lines
}

fn or_none(names: impl AsRef<[String]>) -> String {
    if names.as_ref().is_empty() { "none".to_owned() } else { names.as_ref().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};

    #[test]
    fn an_agent_is_described_without_its_prompt() {
        let lines = |agent: Value| describe(&from_value(agent).unwrap());
        let agent = json!({
            "name": "a", "project": "p", "active": true, "description": "D", "model": "main", "tools": 1,
            "aliases": { "read": "files__read_file" }, "toolNames": ["files__read_file"], "uses": ["files__*"],
            "allowed": ["read"], "autoApprove": [], "prompt": "Be."
        });
        assert_eq!(
            lines(agent),
            [
                "a is active in p",
                "  description  D",
                "  model        main",
                "  selects      files__*",
                "  may call     read",
                "  tools        1: files__read_file",
                "  aliases      read → files__read_file",
            ]
        );
        let idle = json!({ "name": "b", "project": "p", "active": false, "uses": [], "toolNames": null, "autoApprove": ["x"] });
        let idle = lines(idle).join("\n");
        assert!(idle.contains("not active") && idle.contains("selects      none"), "{idle}");
        assert!(idle.contains("may call     all of them") && idle.contains("auto-approve x"), "{idle}");
        assert!(idle.contains("not known"), "{idle}");
    }
}
