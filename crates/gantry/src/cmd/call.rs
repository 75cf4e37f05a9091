//! `gantry call`.

use crate::cli::{Call, Priority};
use crate::cmd::absent;
use crate::desk::{Answer, Desk, Setup};
use crate::exit::{Done, Usage};
use crate::output;
use anyhow::Context as _;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::Read as _;

pub(super) async fn run(setup: Setup, call: Call) -> anyhow::Result<Done> {
    let body = body(&call)?;
    let project = call.who.place.name();
    let servers = setup.loaded.config.project(project).into_iter().flat_map(|project| &project.mcp_servers);
    let unprefixed: Vec<String> =
        servers.filter(|(_, server)| !server.prefix).map(|(id, _)| id.clone()).collect();
    let desk = setup.desk_in(Some(project)).await?;
    let done = called(&desk, &call, body, &unprefixed).await;
    desk.close().await;
    done
}

async fn called(desk: &Desk, call: &Call, body: String, unprefixed: &[String]) -> anyhow::Result<Done> {
    let answer = desk.post("/api/v1/calls", body).await?;
    let done = show(&answer, call.json);
    if answer.body.pointer("/error/code").and_then(Value::as_str) == Some("TOOL_NOT_FOUND") {
        absent::tell_of(desk, call.who.place.name(), &call.tool, unprefixed).await?;
    }
    Ok(done)
}

/// The request, with the arguments exactly as they were typed.
fn body(call: &Call) -> anyhow::Result<String> {
    let text = match call.arguments.as_str() {
        "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("cannot read the arguments from standard input")?;
            text
        }
        other => match other.strip_prefix('@') {
            Some(file) => std::fs::read_to_string(file)
                .map_err(|error| Usage(format!("cannot read {file}: {error}")))?,
            None => other.to_owned(),
        },
    };
    let arguments: Box<RawValue> = RawValue::from_string(text.trim().to_owned()).map_err(|error| {
        Usage(format!("the arguments are not JSON: {error}. Write them like '{{\"path\": \"a.txt\"}}'"))
    })?;
    gantry_core::json::check(arguments.get())
        .map_err(|error| Usage(format!("the arguments are unusable: {error}")))?;
    #[derive(serde::Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        tool: &'a str,
        arguments: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<&'a str>,
        project: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        idempotency_key: Option<&'a str>,
        priority: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        approve: bool,
    }
    let priority = match call.priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
    };
    Ok(serde_json::to_string(&Body {
        tool: &call.tool,
        arguments: &arguments,
        agent: call.who.agent.as_deref(),
        project: call.who.place.name(),
        idempotency_key: call.idempotency_key.as_deref(),
        priority,
        timeout_ms: call.timeout,
        approve: call.yes,
    })?)
}

fn show(answer: &Answer, as_json: bool) -> Done {
    let ok = answer.body.get("ok") == Some(&Value::Bool(true));
    if as_json {
        output::data(answer.text.trim_end());
    } else if ok {
        match answer.body.get("result") {
            Some(Value::String(text)) => output::text(text),
            Some(value) => output::json(value),
            None => {}
        }
    } else {
        complain(answer.body.get("error").unwrap_or(&json!({})));
    }
    if ok { Done::Well } else { Done::Badly }
}

fn complain(error: &Value) {
    let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    output::talk(&format!("error: {} [{}]", output::clean(text("message")), text("code")));
    if text("code") == "APPROVAL_REQUIRED" {
        output::talk("hint: repeat it with --yes to approve it yourself");
    }
}
