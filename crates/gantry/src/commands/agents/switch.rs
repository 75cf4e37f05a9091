//! `gantry agents switch`: makes an agent the active one of its project, or none.

use crate::cli::Switch;
use crate::client::{ApiClient, CommandContext, Scope, encoded, query};
use crate::exit::{Outcome, UsageError};
use crate::term::{self, plural};
use gantry_server::model::{Project, Switched};
use http::Method;
use serde_json::{Value, json};

pub(super) async fn run(context: CommandContext, args: &Switch) -> anyhow::Result<Outcome> {
    let json = context.json;
    // All projects, because the switch reads the whole configuration again.
    context.with_client(Scope::All, async |client| switch(client, args, json).await).await
}

async fn switch(client: &ApiClient, args: &Switch, json: bool) -> anyhow::Result<Outcome> {
    let project = args.project.name();
    let (name, verb) = match &args.name {
        Some(name) => (name.clone(), "activate"),
        None => match active(client, project).await? {
            Some(name) => (name, "deactivate"),
            None if json => {
                term::print_json(&json!({ "project": project, "from": null, "to": null, "changed": false }));
                return Ok(Outcome::Success);
            }
            None => {
                term::print(&term::sanitize(&format!("no agent is active in {project}")));
                return Ok(Outcome::Success);
            }
        },
    };
    term::eprint("Switching; running calls may take up to 5 s to end.");
    let path = format!("/api/v1/agents/{}/{verb}{}", encoded(&name), query(&[("project", Some(project))]));
    let answer = client.send(Method::POST, &path, String::new()).await?;
    if answer.status.is_server_error() {
        // The agent is active, but its runtime cannot start.
        if json {
            term::print_json(&answer.parse::<Value>()?);
        }
        term::eprint(&format!("error: {}", term::sanitize_lines(&answer.error_message()?)));
        return Ok(Outcome::Failure);
    }
    let switched: Switched = answer.into_result()?;
    if json {
        term::print_json(&switched);
    } else {
        term::print(&term::sanitize(&describe(&switched)));
    }
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

/// The active agent of a project.
async fn active(client: &ApiClient, project: &str) -> anyhow::Result<Option<String>> {
    let projects: Vec<Project> = client.list("/api/v1/projects").await?;
    let known = projects.into_iter().find(|known| *known.name == *project);
    let known = known.ok_or_else(|| UsageError(format!("there is no project {project:?}")))?;
    Ok(known.active.map(|active| active.to_string()))
}

fn describe(switched: &Switched) -> String {
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
        assert_eq!(describe(&switched), expected);
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
