//! `gantry servers add`: adds a server to the running Gantry, and prints the YAML that would keep it.

use crate::cli::AddServer;
use crate::client::{CommandContext, query_string};
use crate::commands::yaml_key;
use crate::config::MAIN_PROJECT;
use crate::exit::{Outcome, UsageError};
use crate::term;
use gantry_core::names::sanitised;
use gantry_server::model::{ChangedServer, NewServer};
use serde_json::{Map, Value, json};

pub(super) async fn run(context: &CommandContext, args: &AddServer) -> anyhow::Result<Outcome> {
    let entry = entry(args)?;
    let instead = "start one with gantry serve, or write the server into the configuration";
    let client = context.require_server(instead)?;
    let project = args.project.name();
    let path = format!("/api/v1/servers{}", query_string(&[("project", Some(project))]));
    let new = NewServer { id: args.id.clone(), entry };
    let added: ChangedServer = client.post(&path, &new).await?;
    for warning in &added.warnings {
        term::eprint(&format!("warning: {}", term::sanitize(warning)));
    }
    let id = term::sanitize(&args.id);
    term::eprint(&format!("Added {id} until Gantry stops; gantry servers shows its status."));
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
    let (yaml, variables) = config_snippet(&args.id, &new.entry);
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

/// The YAML of an entry below `mcpServers`, with variables instead of secrets, and the names of the variables.
fn config_snippet(id: &str, entry: &Map<String, Value>) -> (String, Vec<String>) {
    let mut variables = Vec::new();
    let mut yaml = format!("  {}:", yaml_key(id));
    for (key, value) in entry {
        yaml.push_str(&format!("\n    {key}: "));
        let Value::Object(secrets) = value else {
            // JSON is YAML.
            yaml.push_str(&value.to_string());
            continue;
        };
        let pair = |(name, value): (&String, &Value)| {
            if value.as_str().is_some_and(|text| text.contains("${")) {
                return format!("{}: {value}", yaml_key(name));
            }
            let variable = if key == "env" { name.clone() } else { format!("{id}_{name}").to_uppercase() };
            let variable = sanitised(&variable);
            variables.push(variable.clone());
            format!("{}: \"${{{variable}}}\"", yaml_key(name))
        };
        let pairs: Vec<String> = secrets.iter().map(pair).collect();
        yaml.push_str(&format!("{{ {} }}", pairs.join(", ")));
    }
    (yaml, variables)
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
    fn a_snippet_has_variables_instead_of_secrets() {
        let server = AddServer {
            id: "my server".into(),
            kind: Some("http".into()),
            header: vec!["Authorization: Bearer hunter2".into(), "X-Team: ${TEAM}".into()],
            url: Some("https://mcp.example.com/mcp".into()),
            ..empty()
        };
        let (yaml, variables) = config_snippet(&server.id, &entry(&server).unwrap());
        assert_eq!(
            yaml,
            "  \"my server\":\n    type: \"http\"\n    url: \"https://mcp.example.com/mcp\"\n    \
             headers: { Authorization: \"${MY_SERVER_AUTHORIZATION}\", X-Team: \"${TEAM}\" }"
        );
        assert_eq!(variables, ["MY_SERVER_AUTHORIZATION"]);
    }

    #[test]
    fn a_pair_without_its_separator_is_refused_and_not_quoted() {
        let server = AddServer {
            id: "a".into(),
            env: vec!["hunter2".into()],
            command: vec!["x".into(), "-y".into()],
            ..empty()
        };
        assert_eq!(entry(&server).unwrap_err().to_string(), "expected --env NAME=VALUE");
        let good = AddServer { env: vec!["TOKEN=a=b".into()], ..server };
        let (yaml, variables) = config_snippet("a", &entry(&good).unwrap());
        assert_eq!(yaml, "  a:\n    command: \"x\"\n    args: [\"-y\"]\n    env: { TOKEN: \"${TOKEN}\" }");
        assert_eq!(variables, ["TOKEN"]);
    }
}
