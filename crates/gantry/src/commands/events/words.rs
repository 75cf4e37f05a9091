//! Events as a person reads them, one line each.

use crate::config::MAIN_PROJECT;
use serde_json::Value;

/// Names on one line.
const NAMES: usize = 6;

/// The line of an event.
pub(super) fn line(event: &Value) -> String {
    let time = text(event, "at").chars().skip(11).take(12).collect::<String>();
    let (kind, about) = match event.get("missed").and_then(Value::as_u64) {
        Some(missed) => ("missed".to_owned(), format!("{missed} events, which were not read in time")),
        None => (text(event, "type"), told(event)),
    };
    let project = match text(event, "project").as_str() {
        "" | MAIN_PROJECT => String::new(),
        other => format!("[{other}] "),
    };
    format!("{time:12} {kind:21} {project}{about}")
}

/// An event in words. One that this program does not know is told as it came.
fn told(event: &Value) -> String {
    let text = |key: &str| text(event, key);
    let words = match text("type").as_str() {
        "session_opened" => {
            let agent = present("as", &text("agent"));
            vec![text("session"), format!("for {}", text("principal")), agent, format!("by {}", text("door"))]
        }
        "session_closed" | "session_canceled" => vec![text("session")],
        "tool_started" => vec![text("tool"), text("parameters")],
        "tool_finished" => {
            let cached = if is(event, "cached") { "cached" } else { "" };
            let latency = format!("{} ms", text("latencyMs"));
            vec![text("tool"), text("status"), text("code"), latency, cached.to_owned()]
        }
        "output_stored" => vec![text("handle"), format!("{} bytes of", text("bytes")), text("call")],
        "calls_recovered" => {
            let calls = event.get("calls").and_then(Value::as_array).map_or(0, Vec::len);
            vec![format!("{calls} open calls; see gantry audit --state OUTCOME_UNKNOWN")]
        }
        "server_up" => vec![text("server"), format!("{} tools, protocol {}", text("tools"), text("era"))],
        "server_down" => vec![format!("{}:", text("server")), text("reason")],
        "tools_changed" => {
            let changes = ["added", "changed", "removed"].map(|key| present(key, &names(event, key)));
            [vec![text("server")], changes.to_vec()].concat()
        }
        "request_answered" => vec![text("method"), text("subject"), text("status"), text("error")],
        "mcp_frame" => {
            let direction = if is(event, "sent") { "→" } else { "←" };
            vec![text("server"), direction.to_owned(), text("text")]
        }
        "configuration_applied" => vec![match names(event, "projects") {
            none if none.is_empty() => "no project is other than before".to_owned(),
            projects => format!("for {projects}"),
        }],
        "configuration_refused" => vec!["the one before holds:".to_owned(), text("reason")],
        _ => return switch(event).unwrap_or_else(|| event.to_string()),
    };
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A step of turning a project to another agent, in words.
fn switch(event: &Value) -> Option<String> {
    let text = |key: &str| text(event, key);
    let agent = |key: &str| Some(text(key)).filter(|name| !name.is_empty()).unwrap_or("no agent".into());
    Some(match text("type").as_str() {
        "agent_switch_started" => {
            let (from, to) = (agent("from"), agent("to"));
            format!("{from} → {to}; running calls may take {} ms to end", text("graceMs"))
        }
        "teardown" if is(event, "forced") => {
            format!("{}; {} did not end in time, cut off", agent("agent"), count(event, "calls", "call"))
        }
        "teardown" => agent("agent"),
        "teardown_finished" => {
            let (sessions, servers) =
                (count(event, "sessions", "session"), count(event, "servers", "server"));
            format!("{}; {sessions} and {servers} closed", agent("agent"))
        }
        "build" => match names(event, "servers") {
            none if none.is_empty() => format!("{} without servers", agent("agent")),
            servers => format!("{} with {servers}", agent("agent")),
        },
        "agent_switch_finished" => {
            let (tools, took) = (count(event, "tools", "tool"), text("tookMs"));
            format!("{} → {} with {tools}, after {took} ms", agent("from"), agent("to"))
        }
        "agent_switch_failed" => format!("{}: {}", agent("to"), text("reason")),
        _ => return None,
    })
}

fn text(event: &Value, key: &str) -> String {
    match event.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn is(event: &Value, key: &str) -> bool {
    event.get(key) == Some(&Value::Bool(true))
}

/// A number of things, in words.
fn count(event: &Value, key: &str, thing: &str) -> String {
    let count = event.get(key).and_then(Value::as_u64).unwrap_or_default();
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// A text behind its word, or nothing where there is no text.
fn present(word: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{word} {text}") }
}

/// The first few names of a list, and how many more there are.
fn names(event: &Value, key: &str) -> String {
    let all = event.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<String> =
        all.iter().take(NAMES).filter_map(Value::as_str).map(str::to_owned).collect();
    if all.len() > NAMES {
        names.push(format!("and {} more", all.len() - NAMES));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_runtime::event::{Event, EventKind};

    fn check(kind: EventKind, words: &str) {
        let event = Event { seq: 0, at_us: 0, project: Some("default".into()), principal: None, kind };
        assert_eq!(told(&serde_json::to_value(event).unwrap()), words);
    }

    #[test]
    fn every_step_of_a_switch_is_told_in_words() {
        let (from, to) = (Some("reader".into()), Some("writer".into()));
        check(
            EventKind::AgentSwitchStarted { from: from.clone(), to: None, grace_ms: 5000 },
            "reader → no agent; running calls may take 5000 ms to end",
        );
        let agent = from.clone();
        check(
            EventKind::Teardown { agent: agent.clone(), forced: true, calls: 2 },
            "reader; 2 calls did not end in time, cut off",
        );
        check(EventKind::Teardown { agent: agent.clone(), forced: false, calls: 0 }, "reader");
        check(
            EventKind::TeardownFinished { agent, sessions: 1, servers: 0 },
            "reader; 1 session and 0 servers closed",
        );
        let servers = ["a", "b"].map(Into::into).to_vec();
        check(EventKind::Build { agent: to.clone(), servers }, "writer with a, b");
        check(EventKind::Build { agent: None, servers: vec![] }, "no agent without servers");
        check(
            EventKind::AgentSwitchFinished { from, to: to.clone(), tools: 12, took_ms: 34 },
            "reader → writer with 12 tools, after 34 ms",
        );
        check(EventKind::AgentSwitchFailed { to, reason: "no".into() }, "writer: no");
        check(EventKind::ConfigurationApplied { projects: vec!["default".into()] }, "for default");
        check(EventKind::ConfigurationRefused { reason: "no".into() }, "the one before holds: no");
    }

    #[test]
    fn a_project_is_named_unless_it_is_the_only_one_there_need_be() {
        let event = |project: &str| serde_json::json!({ "type": "session_closed", "session": "s", "project": project });
        assert!(line(&event("other")).ends_with("session_closed        [other] s"));
        assert!(line(&event("default")).ends_with("session_closed        s"));
    }
}
