//! The checks of `gantry doctor` on MCP servers and APIs: why one or its tools are missing, and what to do.

use super::{Check, Severity};
use crate::client::ApiClient;
use crate::commands::typed;
use crate::config::{Config, MAIN_PROJECT, McpServer};
use crate::term::{self, plural, thousands};
use gantry_rest::provider_id;
use gantry_runtime::clock;
use gantry_server::model::{HealthStatus, Import, Replica, Server};
use serde::Serialize;
use std::collections::BTreeMap;

/// The server of this id that a caller uses. While an agent is active, a server can run for that agent and for the
/// other callers.
pub(super) fn find<'a>(servers: &'a [Server], id: &str, agent: Option<&str>) -> Option<&'a Server> {
    let is_for = |server: &Server| {
        server.agent.as_deref().is_some_and(|active| agent.is_none_or(|agent| agent == active))
    };
    let named = servers.iter().filter(|server| *server.id == *id || *server.id == *provider_id(id));
    named.min_by_key(|server| (!is_for(server), &server.agent))
}

/// Where the servers of each project start, and what is read-only because of it.
pub(super) type Launches = BTreeMap<(String, String), Vec<String>>;

pub(super) fn launches(config: &Config) -> Launches {
    let servers = config.all().flat_map(|(project, it)| {
        it.mcp_servers.iter().map(move |(id, server)| ((project.to_owned(), id.to_string()), server))
    });
    servers.filter(|(_, server)| server.off().is_none()).map(|(key, server)| (key, launch(server))).collect()
}

fn launch(server: &McpServer) -> Vec<String> {
    let folder = server.options.cwd.as_ref().map(|folder| format!("it starts in {}", folder.display()));
    let sealed: Vec<_> = server.launch.read_only().map(|path| path.display().to_string()).collect();
    let sealed = (!sealed.is_empty()).then(|| format!("tools and jobs cannot change {}", sealed.join(", ")));
    folder.into_iter().chain(sealed).collect()
}

fn launch_of<'a>(launches: &'a Launches, server: &Server) -> &'a [String] {
    let key = (server.project.to_string(), server.id.to_string());
    launches.get(&key).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn check(server: &Server, launches: &Launches, is_remote: bool) -> Check {
    let line = summary_line(server);
    let mut found = match server.health {
        HealthStatus::Off => format!("{line}: {}", server.kind),
        HealthStatus::Green | HealthStatus::Yellow | HealthStatus::Red => {
            format!("{line}, {}, {}", server.kind, capabilities(server))
        }
    };
    if server.health != HealthStatus::Green {
        for text in server.last_error.iter().cloned().chain(next_step(server, is_remote)) {
            found.push_str(&format!("; {text}"));
        }
    }
    let more = warnings(server).into_iter().chain(launch_of(launches, server).iter().cloned());
    more.for_each(|line| found.push_str(&format!("\n{line}")));
    let subject = if server.kind == "openapi" { "openapi" } else { "mcp server" };
    Check { subject, severity: severity(server), found }
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    server: &'a Server,
    severity: Severity,
    advice: Vec<String>,
}

pub(super) fn explain(client: &ApiClient, server: &Server, launches: &Launches) -> Severity {
    let severity = severity(server);
    let advice = warnings(server).into_iter().chain(next_step(server, client.is_remote())).collect();
    term::print_value(&Report { server, severity, advice }, client.json, |report| {
        let mut lines = vec![format!("its type is {}", server.kind)];
        lines.push(match (&server.era, &server.import) {
            (None, None) => "its tools are not known: it never started".to_owned(),
            _ => format!("it has {}", capabilities(server)),
        });
        lines.extend(server.last_error.as_ref().map(|error| format!("last error: {error}")));
        lines.extend(server.replicas.iter().map(replica));
        lines.extend(launch_of(launches, server).iter().cloned());
        let title = format!("{} since {} UTC", summary_line(server), term::timestamp(server.since));
        let details = lines.iter().chain(&report.advice).map(|line| format!("  - {line}"));
        std::iter::once(title).chain(details).collect()
    });
    severity
}

fn severity(server: &Server) -> Severity {
    match server.health {
        HealthStatus::Red => Severity::Error,
        // Switched off by its configuration is fine; switched off because something is missing is not.
        HealthStatus::Off if server.last_error.is_some() => Severity::Error,
        HealthStatus::Yellow => Severity::Warning,
        HealthStatus::Off | HealthStatus::Green if !warnings(server).is_empty() => Severity::Warning,
        HealthStatus::Off | HealthStatus::Green => Severity::Ok,
    }
}

/// The id, the project and the agent where they are not the usual ones, and the status.
fn summary_line(server: &Server) -> String {
    let mut line = server.id.to_string();
    if !["", MAIN_PROJECT].contains(&&*server.project) {
        line.push_str(&format!(" in {}", server.project));
    }
    if let Some(agent) = &server.agent {
        line.push_str(&format!(" for {agent}"));
    }
    let light = server.health.as_str();
    if light == server.status {
        format!("{line} ● {light}")
    } else {
        format!("{line} ● {light}: {}", server.status)
    }
}

fn capabilities(server: &Server) -> String {
    let mut has = plural(server.tools, "tool");
    for (count, what) in [(server.resources, "resource"), (server.prompts, "prompt")] {
        if count > 0 {
            has.push_str(&format!(", {}", plural(count, what)));
        }
    }
    if let Some(Import { operations, left_out, .. }) = &server.import {
        has.push_str(&format!(" of {}", plural(operations, "operation")));
        if *left_out > 0 {
            has.push_str(&format!(", {} left out by the options", thousands(left_out)));
        }
    }
    if let Some(era) = &server.era {
        has.push_str(&format!(", protocol {era}"));
    }
    has
}

/// When a server that is down is tried again, or what the user can do.
fn next_step(server: &Server, is_remote: bool) -> Option<String> {
    let name = typed(&server.id, &server.project);
    match (server.health, &server.last_error) {
        (HealthStatus::Off, None) => {
            return Some("its configuration switches it off (enabled: true starts it)".to_owned());
        }
        (HealthStatus::Red | HealthStatus::Yellow, _) => {}
        (HealthStatus::Off | HealthStatus::Green, _) => return None,
    }
    let at = server.retry_at?;
    Some(if !is_remote {
        // This process started the server for the check, and stops it now.
        format!("put that right, then look again with gantry doctor {name}")
    } else if at.0 <= clock::now_us() {
        "it is being tried now".to_owned()
    } else {
        let at = term::timestamp(at);
        format!("it is tried again at {at} UTC, or now by gantry servers restart {name}")
    })
}

fn replica(replica: &Replica) -> String {
    let error = replica.last_error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    format!("replica {} ● {}{error}", replica.name, replica.health.as_str())
}

/// What is quarantined, skipped or looks suspicious.
fn warnings(server: &Server) -> Vec<String> {
    let name = typed(&server.id, &server.project);
    let mut warnings = Vec::new();
    if server.quarantined > 0 {
        let quarantined = plural(server.quarantined, "tool");
        warnings.push(format!(
            "{quarantined} quarantined: see gantry lock diff {name}, then gantry lock accept {name}"
        ));
    }
    if let Some(Import { skipped, missing_credentials, .. }) = &server.import {
        if *skipped > 0 {
            let id = server.id.trim_start_matches(&provider_id(""));
            let name = typed(id, &server.project);
            let skipped = plural(skipped, "operation");
            warnings.push(format!("{skipped} skipped: see gantry openapi inspect {name} --skipped"));
        }
        if !missing_credentials.is_empty() {
            warnings.push(format!("there are no credentials for {}", missing_credentials.join(", ")));
        }
        if server.tools == 0 {
            warnings.push("no operation becomes a tool".to_owned());
        }
    }
    warnings.extend(server.flags.iter().map(|flag| format!("suspicious: {flag}")));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn server(mut fields: Value) -> Server {
        let usual = json!({
            "id": "a", "project": "default", "type": "stdio", "light": "green", "status": "ready",
            "since": "2026-01-01T00:00:00Z", "era": null, "latencyMs": null, "tools": 0, "quarantined": 0,
            "resources": 0, "prompts": 0, "lastError": null, "retryAt": null, "flags": [],
        });
        for (key, value) in usual.as_object().unwrap() {
            if fields.get(key).is_none() {
                fields[key] = value.clone();
            }
        }
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn only_what_can_be_done_is_advised() {
        let down = |at: &str| {
            server(json!({ "id": "my server", "light": "red", "lastError": "gone", "retryAt": at }))
        };
        let (past, future) = (down("2020-01-01T00:00:00Z"), down("2999-01-01T00:00:00Z"));
        assert_eq!(next_step(&past, true).unwrap(), "it is being tried now");
        assert_eq!(
            next_step(&future, true).unwrap(),
            "it is tried again at 2999-01-01 00:00:00 UTC, or now by gantry servers restart 'my server'"
        );
        let again = "put that right, then look again with gantry doctor 'my server'";
        assert_eq!(next_step(&past, false).unwrap(), again);
        assert_eq!(next_step(&server(json!({})), true), None);
    }

    #[test]
    fn a_caller_finds_the_server_that_runs_for_it() {
        let servers = [json!({}), json!({ "agent": "x" }), json!({ "id": "b" })].map(server);
        let agent = |asked| find(&servers, "a", asked).map(|server| server.agent.as_deref());
        assert_eq!(agent(None), Some(Some("x")), "a caller without an agent acts as the active one");
        assert_eq!(agent(Some("x")), Some(Some("x")));
        assert_eq!(agent(Some("y")), Some(None));
        assert!(find(&servers, "c", None).is_none());
    }

    #[test]
    fn a_server_of_another_project_is_named_with_it() {
        let server = server(json!({ "project": "other", "agent": "x", "light": "red", "status": "down",
            "lastError": "gone", "retryAt": "2999-01-01T00:00:00Z" }));
        assert_eq!(summary_line(&server), "a in other for x ● red: down");
        assert!(next_step(&server, true).unwrap().ends_with("gantry servers restart a --project other"));
    }
}
