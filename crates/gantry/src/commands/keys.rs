//! `gantry keys`: who else may come in, and as what.

use crate::cli::{CreateKey, KeysAction, ListKeys};
use crate::client::{ApiClient, CommandContext, Scope, encoded};
use crate::exit::{Outcome, UsageError};
use crate::term::{self, RowWithNote};
use gantry_core::Role;
use http::{Method, StatusCode};
use serde_json::{Map, Value};

pub(super) async fn run(
    context: CommandContext,
    action: Option<KeysAction>,
    list: ListKeys,
) -> anyhow::Result<Outcome> {
    let json = context.json;
    let client = context.connect(Scope::LedgerOnly).await?;
    let done = match action.unwrap_or(KeysAction::List(list)) {
        KeysAction::List(wanted) => listed(&client, &wanted, json).await,
        KeysAction::Create(wanted) => created(&client, &wanted, json).await,
        KeysAction::Revoke { key } => revoked(&client, &key, json).await,
    };
    client.close().await;
    done
}

async fn created(client: &ApiClient, wanted: &CreateKey, json: bool) -> anyhow::Result<Outcome> {
    let mut body = Map::new();
    body.insert("role".into(), wanted.role.as_str().into());
    let name = wanted.name.clone().unwrap_or_else(|| unnamed(wanted.role));
    body.insert("name".into(), name.into());
    for (name, text) in [("agent", &wanted.agent), ("expiresIn", &wanted.expires)] {
        if let Some(text) = text {
            body.insert(name.into(), text.as_str().into());
        }
    }
    for (name, list) in [("projects", &wanted.project), ("tools", &wanted.tools)] {
        if !list.is_empty() {
            body.insert(name.into(), list.clone().into());
        }
    }
    let made = client.post::<Value>("/api/v1/keys", &Value::from(body)).await?;
    if json {
        term::print_json(&made);
        return Ok(Outcome::Success);
    }
    let text = |key: &str| made.get(key).and_then(Value::as_str).unwrap_or_default();
    let (key, name) = (text("key"), term::sanitize(text("name")));
    term::print(key);
    term::eprint(&format!(
        "This is the key of {name} ({}, {}). It is shown only now; keep it safe.",
        text("role"),
        text("id")
    ));
    term::eprint("Send it with every request in the header Authorization: Bearer gk_…");
    term::eprint(&format!("Take it back with gantry keys revoke {}", term::shell_word(&name)));
    Ok(Outcome::Success)
}

/// The name of a key whose holder was not given one.
fn unnamed(role: Role) -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{}-{}", role.as_str(), random.chars().take(8).collect::<String>())
}

async fn listed(client: &ApiClient, wanted: &ListKeys, json: bool) -> anyhow::Result<Outcome> {
    let body = client.get::<Value>("/api/v1/keys").await?;
    let mut keys = body.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    keys.retain(|key| wanted.all || key.get("state").and_then(Value::as_str) == Some("active"));
    if json {
        term::print_json(&keys);
        return Ok(Outcome::Success);
    }
    if keys.is_empty() {
        term::eprint("No key holds besides that of the data folder. gantry keys create makes one.");
        return Ok(Outcome::Success);
    }
    // Where no key is kept to some tools, the column says nothing.
    let limited = keys.iter().any(|key| key.get("tools").is_some_and(Value::is_array));
    let rows: Vec<RowWithNote> = keys.iter().map(|key| (row(key, limited), None)).collect();
    let head = ["ID", "NAME", "ROLE", "STATE", "PROJECTS", "AGENT", "TOOLS", "MADE (UTC)", "EXPIRES (UTC)"];
    let idle =
        [("STATE", "active"), ("PROJECTS", "all"), ("AGENT", ""), ("TOOLS", "all"), ("EXPIRES (UTC)", "")];
    term::table_hiding_constant_columns(&head, rows, &idle);
    Ok(Outcome::Success)
}

fn row(key: &Value, limited: bool) -> Vec<String> {
    let text = |name: &str| key.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = |name: &str| {
        let texts = key.get(name).and_then(Value::as_array);
        let shown =
            |texts: &Vec<Value>| texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
        texts.map_or_else(|| "all".to_owned(), shown)
    };
    let moment = |name: &str| term::timestamp(&text(name));
    vec![
        text("id"),
        text("name"),
        text("role"),
        text("state"),
        list("projects"),
        text("agent"),
        // An agent's key decides about none.
        if limited && text("role") == "agent" { "-".to_owned() } else { list("tools") },
        moment("createdAt"),
        moment("expiresAt"),
    ]
}

async fn revoked(client: &ApiClient, named: &str, json: bool) -> anyhow::Result<Outcome> {
    let answer =
        client.send(Method::DELETE, &format!("/api/v1/keys/{}", encoded(named)), String::new()).await?;
    if answer.status == StatusCode::NOT_FOUND {
        return Err(UsageError(format!("there is no key {named:?}; gantry keys lists them")).into());
    }
    let body: Value = answer.into_result()?;
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
    let key = term::sanitize(&format!("{} ({})", text("id"), text("name")));
    if json {
        term::print_json(&body);
    } else if body.get("held") == Some(&Value::Bool(false)) {
        term::print(&format!("{key} was revoked before"));
    } else {
        term::print(&format!("revoked {key}: it opens nothing any more"));
    }
    Ok(Outcome::Success)
}
