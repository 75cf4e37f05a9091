//! `gantry servers`: lists the MCP servers; adds, removes and restarts servers of the running Gantry, and prints the
//! YAML that would keep an added one.

use crate::cli::{AddServer, NamedServer, ProjectFilter, ServersAction};
use crate::client::{ApiClient, CommandContext, Scope, encoded, query_string};
use crate::commands::yaml_key;
use crate::config::MAIN_PROJECT;
use crate::exit::{Outcome, UsageError};
use crate::term::{self, Column};
use gantry_core::names::sanitised;
use gantry_server::model::{ChangedServer, HealthStatus, NewServer, Removed, Server, ServerInUse};
use http::Method;
use serde_json::{Map, Value, json};

const COLUMNS: [Column<Server>; 10] = [
    Column::new("LIGHT", |server| format!("● {}", server.health.as_str())),
    Column::new("ID", |server| server.id.to_string()),
    Column::unless("PROJECT", &[MAIN_PROJECT], |server| server.project.to_string()),
    Column::unless("AGENT", &[""], |server| server.agent.as_deref().unwrap_or_default().to_owned()),
    Column::new("TYPE", |server| server.kind.to_string()),
    Column::new("STATUS", |server| server.status.to_string()),
    Column::new("ERA", |server| server.era.as_deref().unwrap_or_default().to_owned()),
    Column::new("TOOLS", tools),
    Column::new("MS", |server| server.latency_ms.map(|ms| format!("{ms:.1}")).unwrap_or_default()),
    Column::new("SINCE (UTC)", |server| term::timestamp(server.since)),
];

const EMPTY: &str =
    "There are no MCP servers. Define them under mcpServers in gantry.yaml, as in an editor's file.";

pub(super) async fn run(
    context: CommandContext,
    action: Option<ServersAction>,
    list: ProjectFilter,
) -> anyhow::Result<Outcome> {
    match action.unwrap_or(ServersAction::List(list)) {
        ServersAction::List(filter) => {
            let work = async |client: &ApiClient| print_servers(client, filter.name()).await;
            context.with_client(Scope::of(filter.name()), work).await
        }
        ServersAction::Add(args) => add(&context, &args).await,
        ServersAction::Remove(server) => remove(&context, &server).await,
        ServersAction::Restart(server) => restart(&context, &server).await,
    }
}

async fn print_servers(client: &ApiClient, project: Option<&str>) -> anyhow::Result<Outcome> {
    client.wait_until_ready().await;
    let servers = client.servers(project).await?;
    if client.json {
        term::print_json(&servers);
    } else if servers.is_empty() {
        term::eprint(EMPTY);
    } else {
        term::print_table(&servers, &COLUMNS, |server| last_error(server).map(str::to_owned));
        if servers.iter().any(|server| !server.flags.is_empty() || last_error(server).is_some()) {
            term::eprint("gantry doctor says more; gantry doctor ID explains one server.");
        }
    }
    Ok(Outcome::Success)
}

/// The number of tools, with what is wrong with them.
fn tools(server: &Server) -> String {
    let mut tools = server.tools.to_string();
    if server.quarantined > 0 {
        tools.push_str(&format!(" ({} quarantined)", server.quarantined));
    }
    if !server.flags.is_empty() {
        tools.push_str(&format!(" ⚠ {}", server.flags.len()));
    }
    tools
}

/// Why a server does not work; a past error of a working server is no news.
fn last_error(server: &Server) -> Option<&str> {
    server.last_error.as_deref().filter(|_| server.health != HealthStatus::Green)
}

fn path(server: &NamedServer, action: &str) -> String {
    let query = query_string(&[("project", Some(server.project.name()))]);
    format!("/api/v1/servers/{}{action}{query}", encoded(&server.id))
}

async fn remove(context: &CommandContext, server: &NamedServer) -> anyhow::Result<Outcome> {
    let instead = "there is nothing to remove. To keep a server from starting with the next gantry serve, set enabled: \
                   false in its entry of the configuration";
    let removed: Removed = context.require_server(instead)?.act(Method::DELETE, &path(server, "")).await?;
    if context.json {
        term::print_json(&removed);
    }
    term::eprint(&format!("Removed {} until Gantry stops.", term::sanitize(&server.id)));
    let project = context.loaded.config.project(server.project.name());
    if project.is_some_and(|project| project.mcp_servers.contains_key(server.id.as_str())) {
        term::eprint(
            "It is in the configuration and comes back at the next start. To prevent that, set enabled: false in its \
             entry.",
        );
    }
    Ok(Outcome::Success)
}

async fn restart(context: &CommandContext, server: &NamedServer) -> anyhow::Result<Outcome> {
    let instead = "there is nothing to restart. gantry serve starts every server, and gantry doctor starts them for its \
                   checks";
    let changed: ChangedServer =
        context.require_server(instead)?.act(Method::POST, &path(server, "/restart")).await?;
    if context.json {
        term::print_json(&changed);
    }
    let status = match &changed.server {
        ServerInUse::Used(server) => &server.status,
        ServerInUse::Unused { .. } => "not used by the active agent",
    };
    term::eprint(&format!("Restarted {}; it is {status}.", term::sanitize(&server.id)));
    Ok(Outcome::Success)
}

async fn add(context: &CommandContext, args: &AddServer) -> anyhow::Result<Outcome> {
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
