//! `gantry servers add`, and the YAML that would keep what was added.

use crate::cli::AddServer;
use crate::client::{CommandContext, query};
use crate::config::MAIN_PROJECT;
use crate::exit::{Outcome, UsageError};
use crate::term;
use gantry_core::names::sanitised;
use serde_json::{Map, Value, json};

pub(super) async fn run(context: &CommandContext, server: &AddServer) -> anyhow::Result<Outcome> {
    let entry = entry(server)?;
    let mut body = entry.clone();
    body.insert("id".into(), json!(server.id));
    let client =
        context.require_server("start one with gantry serve, or write the server into the configuration")?;
    let project = server.project.name();
    let path = format!("/api/v1/servers{}", query(&[("project", Some(project))]));
    let added = client.post::<Value>(&path, &Value::Object(body)).await?;
    for warning in added.get("warnings").and_then(Value::as_array).into_iter().flatten() {
        term::eprint(&format!("warning: {}", term::sanitize(warning.as_str().unwrap_or_default())));
    }
    let id = term::sanitize(&server.id);
    term::eprint(&format!("Added {id} until Gantry stops; gantry servers shows how it is doing."));
    if context.json {
        term::print_json(&added);
        return Ok(Outcome::Success);
    }
    let configured = context.loaded.config.project(project);
    let is_first =
        project == MAIN_PROJECT && configured.is_some_and(|project| project.mcp_servers.is_empty());
    let place = match project {
        _ if is_first => "into gantry.yaml".to_owned(),
        MAIN_PROJECT => "under mcpServers in the configuration".to_owned(),
        other => format!("under projects.{other}.mcpServers in the configuration"),
    };
    term::eprint(&format!("To keep it, put this {place}:\n"));
    let (yaml, variables) = to_keep(&server.id, &entry);
    term::print_untrusted(&if is_first { format!("mcpServers:\n{yaml}") } else { yaml });
    if !variables.is_empty() {
        term::eprint(&format!("\nand set {} in the .env beside it.", variables.join(", ")));
    }
    Ok(Outcome::Success)
}

/// The entry as the configuration would have it.
fn entry(server: &AddServer) -> Result<Map<String, Value>, UsageError> {
    let mut entry = Map::new();
    if let Some(kind) = &server.kind {
        entry.insert("type".into(), json!(kind));
    }
    if let Some((command, args)) = server.command.split_first() {
        entry.insert("command".into(), json!(command));
        entry.insert("args".into(), json!(args));
    }
    if let Some(url) = &server.url {
        entry.insert("url".into(), json!(url));
    }
    // What is wrong is named without its value, which is a secret.
    let pairs = |texts: &[String], between: char, expected: &str| {
        let pair = |text: &String| {
            let (name, value) = text.split_once(between)?;
            Some((name.trim().to_owned(), json!(value.trim_start())))
        };
        let pairs: Option<Map<String, Value>> = texts.iter().map(pair).collect();
        pairs.ok_or_else(|| UsageError(format!("expected {expected}")))
    };
    let env = pairs(&server.env, '=', "--env NAME=VALUE")?;
    let headers = pairs(&server.header, ':', "--header \"NAME: VALUE\"")?;
    for (key, values) in [("env", env), ("headers", headers)].into_iter().filter(|(_, v)| !v.is_empty()) {
        entry.insert(key.into(), Value::Object(values));
    }
    Ok(entry)
}

/// The YAML of an entry as it stands under `mcpServers`, with variables in the place of secrets, and the names of those variables.
fn to_keep(id: &str, entry: &Map<String, Value>) -> (String, Vec<String>) {
    let mut variables = Vec::new();
    let mut yaml = format!("  {}:", yaml_key(id));
    for (key, value) in entry {
        let written = match (key.as_str(), value) {
            ("env" | "headers", Value::Object(secrets)) => {
                let named = secrets.iter().map(|(name, value)| {
                    let variable =
                        if key == "env" { name.clone() } else { format!("{id}_{name}").to_uppercase() };
                    match value.as_str() {
                        Some(text) if text.contains("${") => (name, value.clone()),
                        _ => {
                            let variable = sanitised(&variable);
                            variables.push(variable.clone());
                            (name, json!(format!("${{{variable}}}")))
                        }
                    }
                });
                let pairs: Vec<String> =
                    named.map(|(name, value)| format!("{}: {value}", yaml_key(name))).collect();
                format!("{{ {} }}", pairs.join(", "))
            }
            // JSON is YAML.
            _ => value.to_string(),
        };
        yaml.push_str(&format!("\n    {key}: {written}"));
    }
    (yaml, variables)
}

/// A key as YAML reads it: bare where that is safe, else in quotes.
fn yaml_key(key: &str) -> String {
    let bare = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let word = ["true", "false", "null", "yes", "no", "on", "off"].contains(&key.to_lowercase().as_str());
    if bare && !word { key.to_owned() } else { json!(key).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::ProjectArg;

    fn empty() -> AddServer {
        AddServer {
            id: String::new(),
            project: ProjectArg::default(),
            kind: None,
            env: vec![],
            header: vec![],
            url: None,
            command: vec![],
        }
    }

    #[test]
    fn what_is_to_be_kept_holds_variables_instead_of_secrets() {
        let server = AddServer {
            id: "my server".into(),
            kind: Some("http".into()),
            header: vec!["Authorization: Bearer hunter2".into(), "X-Team: ${TEAM}".into()],
            url: Some("https://mcp.example.com/mcp".into()),
            ..empty()
        };
        let (yaml, variables) = to_keep(&server.id, &entry(&server).unwrap());
        assert_eq!(
            yaml,
            "  \"my server\":\n    type: \"http\"\n    url: \"https://mcp.example.com/mcp\"\n    \
             headers: { Authorization: \"${MY_SERVER_AUTHORIZATION}\", X-Team: \"${TEAM}\" }"
        );
        assert_eq!(variables, ["MY_SERVER_AUTHORIZATION"]);
    }

    #[test]
    fn a_pair_without_its_sign_is_refused_and_not_repeated() {
        let server = AddServer {
            id: "a".into(),
            env: vec!["hunter2".into()],
            command: vec!["x".into(), "-y".into()],
            ..empty()
        };
        assert_eq!(entry(&server).unwrap_err().to_string(), "expected --env NAME=VALUE");
        let good = AddServer { env: vec!["TOKEN=a=b".into()], ..server };
        let (yaml, variables) = to_keep("a", &entry(&good).unwrap());
        assert_eq!(yaml, "  a:\n    command: \"x\"\n    args: [\"-y\"]\n    env: { TOKEN: \"${TOKEN}\" }");
        assert_eq!(variables, ["TOKEN"]);
    }
}
