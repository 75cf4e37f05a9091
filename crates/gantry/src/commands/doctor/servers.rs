//! What `gantry doctor` says of MCP servers: their lights, why one or its tools are missing, and what to do.

use super::{Check, Health, ask, bad};
use crate::client::{ApiClient, query};
use crate::commands::typed;
use crate::config::MAIN_PROJECT;
use crate::term;
use gantry_runtime::clock;
use serde_json::{Value, json};

/// One check for each server of a project. Returns their ids.
pub(super) async fn examine(client: &ApiClient, project: &str, checks: &mut Vec<Check>) -> Vec<String> {
    match list(client, project).await {
        Ok(servers) => {
            checks.extend(servers.iter().map(|server| check(server, client.is_remote())));
            servers.iter().map(|server| text(server, "id").to_owned()).collect()
        }
        Err(error) => {
            checks.push(bad("mcp server", format!("{error:#}")));
            Vec::new()
        }
    }
}

/// Every server of a project, as the API has it.
pub(super) async fn list(client: &ApiClient, project: &str) -> anyhow::Result<Vec<Value>> {
    let body = ask(client, &format!("/api/v1/servers{}", query(&[("project", Some(project))]))).await?;
    Ok(body.get("items").and_then(Value::as_array).cloned().unwrap_or_default())
}

/// The server of this id that a caller meets: while an agent is active, it can run for that one and for the others.
pub(super) fn named<'a>(servers: &'a [Value], id: &str, agent: Option<&str>) -> Option<&'a Value> {
    let mut meant: Vec<&Value> = servers.iter().filter(|server| text(server, "id") == id).collect();
    let active = |server: &Value| server.get("agent").and_then(Value::as_str).map(str::to_owned);
    let is_for =
        |server: &Value| active(server).is_some_and(|active| agent.is_none_or(|agent| agent == active));
    meant.sort_by_key(|server| (!is_for(server), active(server)));
    meant.first().copied()
}

fn check(server: &Value, is_running: bool) -> Check {
    let mut found = match text(server, "light") {
        "off" => format!("{}: {}", glance(server), text(server, "type")),
        _ => format!("{}, {}, {}", glance(server), text(server, "type"), has(server)),
    };
    let about = [text(server, "lastError"), &retry(server, is_running)].map(str::to_owned);
    let is_well = text(server, "light") == "green";
    about.iter().filter(|words| !words.is_empty() && !is_well).for_each(|words| {
        found.push_str("; ");
        found.push_str(words);
    });
    for more in suspicions(server) {
        found.push('\n');
        found.push_str(&more);
    }
    Check { health: health(server), what: "mcp server", found }
}

/// Shows everything about one server.
pub(super) fn show(server: &Value, client: &ApiClient, as_json: bool) -> Health {
    let health = health(server);
    let mut advice = suspicions(server);
    advice.extend(Some(retry(server, client.is_remote())).filter(|words| !words.is_empty()));
    if as_json {
        let mut report = server.as_object().cloned().unwrap_or_default();
        report.insert("health".into(), json!(health.as_str()));
        report.insert("advice".into(), json!(advice));
        term::print_json(&report);
        return health;
    }
    let since = term::timestamp(text(server, "since"));
    let mut lines = vec![format!("it is reached by {}", text(server, "type"))];
    match text(server, "era") {
        "" => lines.push("what tools it has is not known: it never started".into()),
        _ => lines.push(format!("it has {}", has(server))),
    }
    lines.extend(
        Some(text(server, "lastError")).filter(|e| !e.is_empty()).map(|e| format!("last error: {e}")),
    );
    lines.extend(replicas(server));
    lines.extend(advice);
    term::print(&term::sanitize(&format!("{} since {since} UTC", glance(server))));
    lines.iter().for_each(|line| term::print(&format!("  - {}", term::sanitize(line))));
    health
}

fn health(server: &Value) -> Health {
    let suspicious = number(server, "quarantined") > 0 || !flags(server).is_empty();
    match text(server, "light") {
        "red" => Health::Bad,
        // Switched off by its configuration is fine; switched off for want of something is not.
        "off" if !text(server, "lastError").is_empty() => Health::Bad,
        "yellow" => Health::Odd,
        _ if suspicious => Health::Odd,
        _ => Health::Good,
    }
}

/// Its id, where it is not in the only project or for all, its light, and in a word how it is doing.
fn glance(server: &Value) -> String {
    let mut glance = text(server, "id").to_owned();
    match text(server, "project") {
        "" | MAIN_PROJECT => {}
        project => glance.push_str(&format!(" in {project}")),
    }
    match text(server, "agent") {
        "" => {}
        agent => glance.push_str(&format!(" for {agent}")),
    }
    match (text(server, "light"), text(server, "status")) {
        (light, status) if light == status => format!("{glance} ● {light}"),
        (light, status) => format!("{glance} ● {light}: {status}"),
    }
}

/// What it offers.
fn has(server: &Value) -> String {
    let mut has = format!("{} tools", number(server, "tools"));
    for (key, what) in [("resources", "resources"), ("prompts", "prompts")] {
        match number(server, key) {
            0 => {}
            n => has.push_str(&format!(", {n} {what}")),
        }
    }
    match text(server, "era") {
        "" => has,
        era => format!("{has}, protocol {era}"),
    }
}

/// What happens next to one that is not there, and what somebody can do to hasten it.
fn retry(server: &Value, is_running: bool) -> String {
    let typed = typed(text(server, "id"), text(server, "project"));
    match (text(server, "light"), text(server, "lastError")) {
        ("off", "") => return "its configuration switches it off (enabled: true starts it)".into(),
        ("red" | "yellow", _) => {}
        _ => return String::new(),
    }
    // A check without a running Gantry started the server itself, and stops it with its own end.
    let again = format!("put that right, then look again with gantry doctor {typed}");
    match clock::parse(text(server, "retryAt")) {
        None => String::new(),
        Some(_) if !is_running => again,
        Some(at) if at <= clock::now_us() => "it is being tried now".into(),
        Some(_) => {
            let at = term::timestamp(text(server, "retryAt"));
            format!("it is tried again at {at} UTC, or now by gantry servers restart {typed}")
        }
    }
}

fn replicas(server: &Value) -> Vec<String> {
    let replicas = server.get("replicas").and_then(Value::as_array).into_iter().flatten();
    let told = |replica: &Value| {
        let (name, light, error) =
            (text(replica, "name"), text(replica, "light"), text(replica, "lastError"));
        let error = if error.is_empty() { String::new() } else { format!(": {error}") };
        format!("replica {name} ● {light}{error}")
    };
    replicas.map(told).collect()
}

/// What is quarantined or looks suspicious, and what to do about it.
fn suspicions(server: &Value) -> Vec<String> {
    let typed = typed(text(server, "id"), text(server, "project"));
    let mut told = Vec::new();
    let quarantined = number(server, "quarantined");
    if quarantined > 0 {
        told.push(format!(
            "{quarantined} tools are quarantined: see gantry lock diff {typed}, then gantry lock accept {typed}"
        ));
    }
    told.extend(flags(server).iter().map(|flag| format!("suspicious: {flag}")));
    told
}

fn flags(server: &Value) -> Vec<&str> {
    server.get("flags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn text<'a>(server: &'a Value, key: &str) -> &'a str {
    server.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn number(server: &Value, key: &str) -> u64 {
    server.get(key).and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_done_is_advised() {
        let down =
            |at: &str| json!({ "id": "my server", "light": "red", "lastError": "gone", "retryAt": at });
        let (past, future) = (down("2020-01-01T00:00:00Z"), down("2999-01-01T00:00:00Z"));
        assert_eq!(retry(&past, true), "it is being tried now");
        assert_eq!(
            retry(&future, true),
            "it is tried again at 2999-01-01 00:00:00 UTC, or now by gantry servers restart 'my server'"
        );
        for server in [&past, &future] {
            assert_eq!(
                retry(server, false),
                "put that right, then look again with gantry doctor 'my server'"
            );
        }
        assert_eq!(retry(&json!({ "light": "green" }), true), "");
    }

    #[test]
    fn the_server_that_a_caller_meets_is_shown() {
        let servers = [json!({ "id": "a" }), json!({ "id": "a", "agent": "x" }), json!({ "id": "b" })];
        let agent = |asked| named(&servers, "a", asked).and_then(|server| server.get("agent"));
        assert_eq!(agent(None), Some(&json!("x")), "who names no agent is a caller of the active one");
        assert_eq!(agent(Some("x")), Some(&json!("x")));
        assert_eq!(agent(Some("y")), None);
        assert_eq!(named(&servers, "c", None), None);
    }

    #[test]
    fn a_server_elsewhere_is_placed_and_advice_says_where() {
        let server = json!({ "id": "a", "project": "other", "agent": "x", "light": "red", "status": "down",
            "lastError": "gone", "retryAt": "2999-01-01T00:00:00Z" });
        assert_eq!(glance(&server), "a in other for x ● red: down");
        assert!(retry(&server, true).ends_with("gantry servers restart a --project other"));
    }
}
