//! `gantry policy test TOOL`: what would be decided about one call.

use crate::cli::TestPolicy;
use crate::client::{ApiClient, CommandContext, Scope};
use crate::commands::{absent, arguments};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term;
use gantry_core::approval::Approvers;
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) async fn run(context: CommandContext, tool: &str, test: &TestPolicy) -> anyhow::Result<Outcome> {
    let json = context.json;
    let body = body(tool, test)?;
    let client = context.connect(Scope::Project(test.project.as_deref().unwrap_or(MAIN_PROJECT))).await?;
    let done = judged(&client, (tool, json), test, body).await;
    client.close().await;
    done
}

async fn judged(
    client: &ApiClient,
    (tool, json): (&str, bool),
    test: &TestPolicy,
    body: String,
) -> anyhow::Result<Outcome> {
    let found = client.send(http::Method::POST, "/api/v1/policy/test", body).await?.into_result::<Value>()?;
    if json {
        term::print_json(&found);
    } else {
        show(tool, &found).iter().for_each(|line| term::print(&term::sanitize(line)));
    }
    if found.pointer("/error/code").and_then(Value::as_str) == Some("TOOL_NOT_FOUND") {
        absent::tell_all(client, project(test)).await?;
    }
    Ok(if text(&found, "/outcome") == "allowed" { Outcome::Success } else { Outcome::Failure })
}

fn body(tool: &str, test: &TestPolicy) -> anyhow::Result<String> {
    #[derive(serde::Serialize)]
    struct Body<'a> {
        tool: &'a str,
        arguments: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<&'a str>,
        project: &'a str,
        principal: &'a str,
        role: &'static str,
    }
    let arguments = arguments::read(&test.arguments)?;
    Ok(serde_json::to_string(&Body {
        tool,
        arguments: &arguments,
        agent: test.agent.as_deref(),
        project: project(test),
        principal: &test.principal,
        role: test.role.as_str(),
    })?)
}

fn project(test: &TestPolicy) -> &str {
    test.project.as_deref().unwrap_or(MAIN_PROJECT)
}

fn text<'a>(found: &'a Value, pointer: &str) -> &'a str {
    found.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// What would be decided, in lines.
fn show(asked: &str, found: &Value) -> Vec<String> {
    let tool = found.get("tool").and_then(Value::as_str).unwrap_or(asked);
    let error = format!("{} [{}]", text(found, "/error/message"), text(found, "/error/code"));
    let mut lines = match text(found, "/outcome") {
        "allowed" => vec![format!("{tool} would run")],
        "held" => {
            let by = |name: &str| list(found.get(name)).join(", ");
            vec![
                format!("{tool} would be held for a person"),
                format!("  - by {}", by("rules")),
                format!("  - because {}", text(found, "/reason")),
                format!("  - {}", deciders(found.get("approvers"))),
            ]
        }
        "denied" => vec![format!("{tool} would be denied"), format!("  - {error}")],
        _ => vec![format!("{tool} would be refused"), format!("  - {error}")],
    };
    let number = |name: &str| found.get(name).and_then(Value::as_u64).filter(|number| *number > 0);
    lines.extend(number("delayMs").map(|delay| format!("  - it would wait {delay} ms before it runs")));
    lines.extend(number("estimatedCost").map(|cost| format!("  - it is estimated to cost {cost}")));
    lines
}

/// CallerArgs may decide, in a sentence.
fn deciders(lists: Option<&Value>) -> String {
    let lists = lists.and_then(Value::as_array).into_iter().flatten();
    match Approvers::by(lists.map(|names| list(Some(names)))) {
        who @ (Approvers::Any | Approvers::OneOf(_)) => format!("{who} may decide"),
        nobody @ Approvers::None(_) => format!("{nobody}; change the rules"),
    }
}

fn list(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_held_call_says_who_asks_why_and_who_may_decide() {
        let found = json!({ "outcome": "held", "tool": "db__drop", "rules": ["policy a", "toolRules"],
            "reason": "it is Friday; it always asks", "approvers": [["ann", "ben"], ["ann", "ben"]], "delayMs": 500,
            "estimatedCost": 0 });
        assert_eq!(
            show("drop", &found),
            [
                "db__drop would be held for a person",
                "  - by policy a, toolRules",
                "  - because it is Friday; it always asks",
                "  - ann or ben may decide",
                "  - it would wait 500 ms before it runs",
            ]
        );
        for (lists, words) in [
            (json!([]), "any approver may decide"),
            (json!([["ann"], ["ben", "ann"]]), "ann may decide"),
            (
                json!([["ann"], ["ben"]]),
                "nobody is in every list (ann; ben), so it cannot be approved; change the rules",
            ),
        ] {
            assert_eq!(deciders(Some(&lists)), words);
        }
    }
}
