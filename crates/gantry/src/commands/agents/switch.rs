//! `gantry agents switch`: makes an agent the active one of its project, or none.

use crate::cli::Switch;
use crate::client::{ApiClient, ApiResponse, CommandContext, Scope, encoded, query};
use crate::exit::{Outcome, UsageError};
use crate::term;
use http::Method;
use serde_json::Value;

pub(super) async fn run(context: CommandContext, wanted: &Switch) -> anyhow::Result<Outcome> {
    // The whole client, because the switch reads the configuration as it is on the disk.
    let json = context.json;
    let client = context.connect(Scope::All).await?;
    let done = switched(&client, wanted, json).await;
    client.close().await;
    done
}

async fn switched(client: &ApiClient, wanted: &Switch, json: bool) -> anyhow::Result<Outcome> {
    let project = wanted.project.name();
    let (name, verb) = match &wanted.name {
        Some(name) => (Some(name.clone()), "activate"),
        None => (active(client, project).await?, "deactivate"),
    };
    let answer = match name {
        Some(name) => {
            term::eprint("Switching; calls that run may take up to 5 s to end.");
            let path =
                format!("/api/v1/agents/{}/{verb}{}", encoded(&name), query(&[("project", Some(project))]));
            let answer = client.send(Method::POST, &path, String::new()).await?;
            if answer.status.is_server_error() {
                return failed(&answer, json);
            }
            answer.into_result()?
        }
        None => serde_json::json!({ "project": project, "from": null, "to": null, "changed": false }),
    };
    if json {
        term::print_json(&answer);
    } else {
        term::print(&term::sanitize(&in_words(&answer)));
    }
    if let Some(reason) = answer.get("refused").and_then(Value::as_str) {
        term::eprint(&format!(
            "warning: the configuration on the disk cannot be used, the one before holds: {}",
            term::sanitize_lines(reason)
        ));
    }
    if !client.is_remote() {
        term::eprint("No Gantry runs on this data folder; the next start begins so.");
    }
    Ok(Outcome::Success)
}

/// The active agent of a project.
async fn active(client: &ApiClient, project: &str) -> anyhow::Result<Option<String>> {
    let body = client.get::<Value>("/api/v1/projects").await?;
    let mut projects = body.get("items").and_then(Value::as_array).into_iter().flatten();
    let known = projects.find(|known| known.get("name").and_then(Value::as_str) == Some(project));
    let known = known.ok_or_else(|| UsageError(format!("there is no project {project:?}")))?;
    Ok(known.get("active").and_then(Value::as_str).map(str::to_owned))
}

/// The agent is the active one, but cannot be had; nobody gets in as it.
fn failed(answer: &ApiResponse, as_json: bool) -> anyhow::Result<Outcome> {
    if as_json {
        term::print(&term::pretty_json(&answer.text));
    }
    term::eprint(&format!("error: {}", term::sanitize_lines(&answer.error_message()?)));
    Ok(Outcome::Failure)
}

fn in_words(switched: &Value) -> String {
    let text = |key: &str| switched.get(key).and_then(Value::as_str);
    let number = |key: &str| switched.get(key).and_then(Value::as_u64).unwrap_or_default();
    let counted = |count: u64, thing: &str| format!("{count} {thing}{}", if count == 1 { "" } else { "s" });
    let project = text("project").unwrap_or_default();
    let changed = switched.get("changed") == Some(&Value::Bool(true));
    let tools = counted(number("tools"), "tool");
    let said = match (text("to"), changed) {
        (Some(agent), true) => format!("{agent} is active in {project} with {tools}"),
        (Some(agent), false) => format!("{agent} is active in {project} already, with {tools}"),
        (None, true) => {
            format!("no agent is active in {project} any more; callers who name none have {tools}")
        }
        (None, false) => format!("no agent is active in {project}"),
    };
    match number("cutOff") {
        0 => said,
        1 => format!("{said} (1 call was cut off after 5 s)"),
        calls => format!("{said} ({calls} calls were cut off after 5 s)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(to: Option<&str>, changed: bool, tools: u64, cut_off: u64, words: &str) {
        let switched = serde_json::json!({ "project": "default", "from": null, "to": to, "changed": changed, "cutOff": cut_off,
            "tools": tools, "tookMs": 3 });
        assert_eq!(in_words(&switched), words);
    }

    #[test]
    fn what_happened_is_said_in_plain_words() {
        let agent = Some("researcher");
        check(
            agent,
            true,
            12,
            2,
            "researcher is active in default with 12 tools (2 calls were cut off after 5 s)",
        );
        check(
            agent,
            true,
            1,
            1,
            "researcher is active in default with 1 tool (1 call was cut off after 5 s)",
        );
        check(agent, false, 12, 0, "researcher is active in default already, with 12 tools");
        check(
            None,
            true,
            30,
            0,
            "no agent is active in default any more; callers who name none have 30 tools",
        );
        check(None, false, 0, 0, "no agent is active in default");
    }
}
