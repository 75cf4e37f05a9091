//! `gantry agents`: which agents there are, what one of them has, and which is active.

mod switch;

use crate::cli::{AgentsAction, ProjectFilter};
use crate::client::{ApiClient, CommandContext, Scope, encoded, query};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, RowWithNote};
use serde_json::Value;

pub(super) async fn run(
    context: CommandContext,
    action: Option<AgentsAction>,
    filter: ProjectFilter,
) -> anyhow::Result<Outcome> {
    let json = context.json;
    match action.unwrap_or(AgentsAction::List(filter)) {
        AgentsAction::List(filter) => list(context, filter.name(), json).await,
        AgentsAction::Show { name, project } => show(context, &name, project.name(), json).await,
        AgentsAction::Switch(wanted) => switch::run(context, &wanted).await,
    }
}

async fn list(context: CommandContext, project: Option<&str>, json: bool) -> anyhow::Result<Outcome> {
    let client = context.connect(Scope::of(project)).await?;
    // How many tools an agent has is known once its servers are there.
    client.wait_until_ready().await;
    let listed = listed(&client, project, json).await;
    client.close().await;
    listed
}

async fn listed(client: &ApiClient, project: Option<&str>, json: bool) -> anyhow::Result<Outcome> {
    let body = client.get::<Value>(&format!("/api/v1/agents{}", query(&[("project", project)]))).await?;
    let agents = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if json {
        term::print_json(&agents.to_vec());
    } else if agents.is_empty() {
        term::eprint(
            "There are no agents. Write them under agents in gantry.yaml, or as agents/NAME.md beside it.",
        );
    } else {
        let rows: Vec<RowWithNote> = agents.iter().map(|agent| (row(agent), None)).collect();
        let head = ["NAME", "PROJECT", "ACTIVE", "TOOLS", "MODEL", "DESCRIPTION"];
        term::table_hiding_constant_columns(&head, rows, &[("PROJECT", MAIN_PROJECT)]);
    }
    Ok(Outcome::Success)
}

fn row(agent: &Value) -> Vec<String> {
    let text = |key: &str| text(agent, key).to_owned();
    let active = if is_active(agent) { "●" } else { "" };
    let tools = agent.get("tools").and_then(Value::as_u64).map_or_else(|| "?".to_owned(), |n| n.to_string());
    vec![text("name"), text("project"), active.to_owned(), tools, text("model"), text("description")]
}

async fn show(context: CommandContext, name: &str, project: &str, json: bool) -> anyhow::Result<Outcome> {
    let client = context.connect(Scope::Project(project)).await?;
    client.wait_until_ready().await;
    let shown = shown(&client, name, project, json).await;
    client.close().await;
    shown
}

async fn shown(client: &ApiClient, name: &str, project: &str, json: bool) -> anyhow::Result<Outcome> {
    let path = format!("/api/v1/agents/{}{}", encoded(name), query(&[("project", Some(project))]));
    let agent = client.get::<Value>(&path).await?;
    if json {
        term::print_json(&agent);
    } else {
        lines(&agent).iter().for_each(|line| term::print(&term::sanitize(line)));
        let prompt = text(&agent, "prompt");
        if !prompt.is_empty() {
            term::print("");
            term::print_untrusted(prompt.trim_end());
        }
    }
    Ok(Outcome::Success)
}

/// What there is to know about an agent besides its prompt, in lines.
fn lines(agent: &Value) -> Vec<String> {
    let active = if is_active(agent) { "active" } else { "not active" };
    let mut lines = vec![format!("{} is {active} in {}", text(agent, "name"), text(agent, "project"))];
    let mut say = |what: &str, found: String| {
        if !found.is_empty() {
            lines.push(format!("  {what:12} {found}"));
        }
    };
    say("for", text(agent, "description").to_owned());
    say("model", text(agent, "model").to_owned());
    say("uses", texts(agent, "uses").map_or_else(String::new, |uses| or_none(&uses)));
    say("may call", texts(agent, "allowed").map_or_else(|| "all of them".to_owned(), |all| or_none(&all)));
    say(
        "tools",
        texts(agent, "toolNames").map_or_else(
            || "not known: nothing runs for it now, because another agent is active".to_owned(),
            |names| format!("{}: {}", names.len(), or_none(&names)),
        ),
    );
    let aliases = agent.get("aliases").and_then(Value::as_object).into_iter().flatten();
    let aliases = aliases.map(|(alias, tool)| format!("{alias} → {}", tool.as_str().unwrap_or_default()));
    say("aliases", aliases.collect::<Vec<_>>().join(", "));
    say("not asked", texts(agent, "autoApprove").unwrap_or_default().join(", "));
    lines
}

fn or_none(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn is_active(agent: &Value) -> bool {
    agent.get("active") == Some(&Value::Bool(true))
}

fn text<'a>(agent: &'a Value, key: &str) -> &'a str {
    agent.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'a>(agent: &'a Value, key: &str) -> Option<Vec<&'a str>> {
    Some(agent.get(key)?.as_array()?.iter().filter_map(Value::as_str).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_says_who_is_active_and_what_is_not_known() {
        let agent = json!({ "name": "a", "project": "p", "active": true, "tools": 3, "model": null, "description": "D" });
        assert_eq!(row(&agent), ["a", "p", "●", "3", "", "D"]);
        let idle = json!({ "name": "b", "project": "p", "active": false, "tools": null });
        assert_eq!(row(&idle), ["b", "p", "", "?", "", ""]);
    }

    #[test]
    fn all_about_an_agent_is_said() {
        let agent = json!({
            "name": "a", "project": "p", "active": true, "description": "D", "model": "main", "tools": 1,
            "aliases": { "read": "files__read_file" }, "toolNames": ["files__read_file"], "uses": ["files__*"],
            "allowed": ["read"], "autoApprove": [], "prompt": "Be."
        });
        assert_eq!(
            lines(&agent),
            [
                "a is active in p",
                "  for          D",
                "  model        main",
                "  uses         files__*",
                "  may call     read",
                "  tools        1: files__read_file",
                "  aliases      read → files__read_file",
            ]
        );
        let idle = json!({ "name": "b", "project": "p", "active": false, "uses": [], "toolNames": null, "autoApprove": ["x"] });
        let said = lines(&idle).join("\n");
        assert!(
            said.contains("not active") && said.contains("uses         none") && said.contains("not known")
        );
        assert!(said.contains("may call     all of them") && said.contains("not asked    x"), "{said}");
    }
}
