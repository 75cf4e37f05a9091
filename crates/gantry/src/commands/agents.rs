//! `gantry agents`: lists the agents, shows one, switches the active one.

use crate::cli::{AgentsAction, ProjectFilter, Switch};
use crate::client::{ApiClient, CommandContext, Scope, encoded, query_string};
use crate::config::MAIN_PROJECT;
use crate::exit::{Outcome, UsageError};
use crate::term::{self, Column, plural};
use gantry_server::model::{Agent, AgentDetails, Project, Switched};
use http::Method;
use serde_json::{Value, json};

const COLUMNS: [Column<Agent>; 6] = [
    Column::new("NAME", |agent| agent.name.to_string()),
    Column::unless("PROJECT", &[MAIN_PROJECT], |agent| agent.project.to_string()),
    Column::new("ACTIVE", |agent| if agent.active { "●" } else { "" }.to_owned()),
    Column::new("TOOLS", |agent| agent.tools.map_or_else(|| "?".to_owned(), |tools| tools.to_string())),
    Column::new("MODEL", |agent| agent.model.clone().unwrap_or_default()),
    Column::new("DESCRIPTION", |agent| agent.description.clone().unwrap_or_default()),
];

const EMPTY: &str =
    "There are no agents. Define them under agents in gantry.yaml, or as agents/NAME.md beside it.";

pub(super) async fn run(
    context: CommandContext,
    action: Option<AgentsAction>,
    list: ProjectFilter,
) -> anyhow::Result<Outcome> {
    let action = action.unwrap_or(AgentsAction::List(list));
    let scope = match &action {
        AgentsAction::List(filter) => Scope::of(filter.name()),
        AgentsAction::Show { project, .. } => Scope::Project(project.name()),
        // A switch reads the whole configuration again.
        AgentsAction::Switch(_) => Scope::All,
    };
    let work = async |client: &ApiClient| match &action {
        AgentsAction::List(filter) => print_agents(client, filter.name()).await,
        AgentsAction::Show { name, project } => show(client, name, project.name()).await,
        AgentsAction::Switch(args) => switch(client, args).await,
    };
    context.with_client(scope, work).await
}

async fn print_agents(client: &ApiClient, project: Option<&str>) -> anyhow::Result<Outcome> {
    // How many tools an agent has is known when its servers are ready.
    client.wait_until_ready().await;
    let agents = client.list("/api/v1/agents", &[("project", project)]).await?;
    term::print_list(&agents, &COLUMNS, EMPTY, client.json);
    Ok(Outcome::Success)
}

async fn show(client: &ApiClient, name: &str, project: &str) -> anyhow::Result<Outcome> {
    client.wait_until_ready().await;
    let path = format!("/api/v1/agents/{}", encoded(name));
    let agent: AgentDetails = client.get(&path, &[("project", Some(project))]).await?;
    term::print_value(&agent, client.json, describe);
    let prompt = agent.configured.and_then(|configured| configured.prompt);
    if let Some(prompt) = prompt.filter(|_| !client.json) {
        term::print("");
        term::print_untrusted(prompt.trim_end());
    }
    Ok(Outcome::Success)
}

/// An agent without its prompt, in lines.
fn describe(AgentDetails { agent, tool_names, configured }: &AgentDetails) -> Vec<String> {
    let or_none = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let active = if agent.active { "active" } else { "not active" };
    let tools = tool_names.as_ref().map_or_else(
        || "not known: it is not running, because another agent is active".to_owned(),
        |names| format!("{}: {}", names.len(), or_none(names)),
    );
    let aliases = agent.aliases.iter().flatten().map(|(alias, tool)| format!("{alias} → {tool}"));
    let (selects, may_call, auto_approve) = match configured {
        None => Default::default(),
        Some(it) => (
            or_none(&it.uses),
            it.allowed.as_deref().map_or_else(|| "all of them".to_owned(), or_none),
            it.auto_approve.join(", "),
        ),
    };
    let fields = [
        ("description", agent.description.clone().unwrap_or_default()),
        ("model", agent.model.clone().unwrap_or_default()),
        ("selects", selects),
        ("may call", may_call),
        ("tools", tools),
        ("aliases", aliases.collect::<Vec<_>>().join(", ")),
        ("auto-approve", auto_approve),
    ];
    let title = format!("{} is {active} in {}", agent.name, agent.project);
    std::iter::once(title).chain(term::fields(12, fields)).collect()
}

async fn switch(client: &ApiClient, args: &Switch) -> anyhow::Result<Outcome> {
    let project = args.project.name();
    let (name, verb) = match &args.name {
        Some(name) => (name.clone(), "activate"),
        None => match active(client, project).await? {
            Some(name) => (name, "deactivate"),
            None => {
                let unchanged = json!({ "project": project, "from": null, "to": null, "changed": false });
                term::print_value(&unchanged, client.json, |_| {
                    vec![format!("no agent is active in {project}")]
                });
                return Ok(Outcome::Success);
            }
        },
    };
    term::eprint("Switching; running calls may take up to 5 s to end.");
    let query = query_string(&[("project", Some(project))]);
    let path = format!("/api/v1/agents/{}/{verb}{query}", encoded(&name));
    let answer = client.send(Method::POST, &path, String::new()).await?;
    if answer.status.is_server_error() {
        // The agent is active, but its runtime cannot start.
        if client.json {
            term::print_json(&answer.parse::<Value>()?);
        }
        term::eprint(&format!("error: {}", term::sanitize_lines(&answer.error_message()?)));
        return Ok(Outcome::Failure);
    }
    let switched: Switched = answer.into_result()?;
    term::print_value(&switched, client.json, |switched| vec![result(switched)]);
    if let Some(reason) = &switched.refused {
        let reason = term::sanitize_lines(reason);
        term::eprint(&format!(
            "warning: the configuration on the disk cannot be used, and the previous one stays in use: {reason}"
        ));
    }
    if !client.is_remote() {
        term::eprint("No Gantry runs on this data folder; the next start uses this agent.");
    }
    Ok(Outcome::Success)
}

async fn active(client: &ApiClient, project: &str) -> anyhow::Result<Option<String>> {
    let projects: Vec<Project> = client.list("/api/v1/projects", &[]).await?;
    let known = projects.into_iter().find(|known| *known.name == *project);
    let known = known.ok_or_else(|| UsageError(format!("there is no project {project:?}")))?;
    Ok(known.active.map(|active| active.to_string()))
}

fn result(switched: &Switched) -> String {
    let (project, tools) = (&switched.project, plural(switched.tools, "tool"));
    let result = match (&switched.to, switched.changed) {
        (Some(agent), true) => format!("{agent} is active in {project} with {tools}"),
        (Some(agent), false) => format!("{agent} is active in {project} already, with {tools}"),
        (None, true) => {
            format!("no agent is active in {project} any more; callers without an agent have {tools}")
        }
        (None, false) => format!("no agent is active in {project}"),
    };
    match switched.cut_off {
        0 => result,
        1 => format!("{result} (1 call was cut off after 5 s)"),
        calls => format!("{result} ({calls} calls were cut off after 5 s)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::from_value;

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

    #[track_caller]
    fn check(to: Option<&str>, changed: bool, tools: usize, cut_off: usize, expected: &str) {
        let switched = Switched {
            project: "default".into(),
            from: None,
            to: to.map(Into::into),
            changed,
            cut_off,
            tools,
            refused: None,
            took_ms: 3,
        };
        assert_eq!(result(&switched), expected);
    }

    #[test]
    fn a_switch_is_described_in_plain_words() {
        let agent = Some("writer");
        check(
            agent,
            true,
            12,
            2,
            "writer is active in default with 12 tools (2 calls were cut off after 5 s)",
        );
        check(agent, true, 1, 1, "writer is active in default with 1 tool (1 call was cut off after 5 s)");
        check(agent, false, 12, 0, "writer is active in default already, with 12 tools");
        let none = "no agent is active in default any more; callers without an agent have 30 tools";
        check(None, true, 30, 0, none);
        check(None, false, 0, 0, "no agent is active in default");
    }
}
