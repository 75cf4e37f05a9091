//! What `gantry doctor` says of MCP servers: their lights, why one or its tools are missing, and what to do.

use super::{Check, Health, ask, bad};
use crate::desk::Desk;
use serde_json::Value;

/// One check for each server. Returns their ids.
pub(super) async fn examine(desk: &Desk, checks: &mut Vec<Check>) -> Vec<String> {
    match list(desk).await {
        Ok(servers) => {
            checks.extend(servers.iter().map(check));
            servers.iter().map(|server| text(server, "id").to_owned()).collect()
        }
        Err(error) => {
            checks.push(bad("mcp server", format!("{error:#}")));
            Vec::new()
        }
    }
}

async fn list(desk: &Desk) -> anyhow::Result<Vec<Value>> {
    let body = ask(desk, "/api/v1/servers").await?;
    Ok(body.get("items").and_then(Value::as_array).cloned().unwrap_or_default())
}

fn check(server: &Value) -> Check {
    let suspicious = number(server, "quarantined") > 0 || !flags(server).is_empty();
    let health = match text(server, "light") {
        "red" => Health::Bad,
        // Switched off by its configuration is fine; switched off for want of something is not.
        "off" if !text(server, "lastError").is_empty() => Health::Bad,
        "yellow" => Health::Odd,
        _ if suspicious => Health::Odd,
        _ => Health::Good,
    };
    Check { health, what: "mcp server", found: told(server) }
}

/// A server in words, with what to do about it.
fn told(server: &Value) -> String {
    let quoted = shell_word(text(server, "id"));
    let (id, light, status) = (text(server, "id"), text(server, "light"), text(server, "status"));
    let mut told = format!("{id} ● {light}: {status}, {}", text(server, "type"));
    let error = text(server, "lastError");
    match light {
        "off" if error.is_empty() => {
            told.push_str("; its configuration switches it off (enabled: true starts it)")
        }
        "off" => told.push_str(&format!("; {error}")),
        "red" | "yellow" => {
            told.push_str(&tools(server));
            if !error.is_empty() {
                told.push_str(&format!("; {error}"));
            }
            match text(server, "retryAt") {
                "" => {}
                at => told
                    .push_str(&format!("; tried again at {at}, or now by gantry servers restart {quoted}")),
            }
        }
        _ => told.push_str(&tools(server)),
    }
    let quarantined = number(server, "quarantined");
    if quarantined > 0 {
        told.push_str(&format!(
            "\n{quarantined} tools are quarantined: see gantry lock diff {quoted}, then gantry lock accept {quoted}"
        ));
    }
    flags(server).iter().for_each(|flag| told.push_str(&format!("\nsuspicious: {flag}")));
    told
}

/// An id as it is typed on a command line.
fn shell_word(id: &str) -> String {
    if id.contains(char::is_whitespace) { format!("'{id}'") } else { id.to_owned() }
}

fn tools(server: &Value) -> String {
    match (number(server, "tools"), text(server, "era")) {
        (tools, "") => format!(", {tools} tools"),
        (tools, era) => format!(", {tools} tools, protocol {era}"),
    }
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
