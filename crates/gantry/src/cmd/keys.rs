//! `gantry keys`: who else may come in, and as what.

use crate::cli::{CreateKey, KeysAction, ListKeys, Role};
use crate::desk::{Desk, Setup, encoded};
use crate::exit::{Done, Usage};
use crate::output::{self, Noted};
use http::StatusCode;
use serde_json::{Map, Value};

pub(super) async fn run(
    setup: Setup,
    action: Option<KeysAction>,
    current: &ListKeys,
) -> anyhow::Result<Done> {
    let desk = setup.records().await?;
    let done = match action {
        None => listed(&desk, current).await,
        Some(KeysAction::List(wanted)) => listed(&desk, &wanted).await,
        Some(KeysAction::Create(wanted)) => created(&desk, &wanted).await,
        Some(KeysAction::Revoke { key, json }) => revoked(&desk, &key, json).await,
    };
    desk.close().await;
    done
}

async fn created(desk: &Desk, wanted: &CreateKey) -> anyhow::Result<Done> {
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
    let made = desk.post("/api/v1/keys", Value::from(body).to_string()).await?.expect_ok()?;
    if wanted.json {
        output::json(&made);
        return Ok(Done::Well);
    }
    let text = |key: &str| made.get(key).and_then(Value::as_str).unwrap_or_default();
    let (key, name) = (text("key"), output::clean(text("name")));
    output::data(key);
    output::talk(&format!(
        "This is the key of {name} ({}, {}). It is shown only now; keep it safe.",
        text("role"),
        text("id")
    ));
    output::talk("Send it with every request in the header Authorization: Bearer gk_…");
    output::talk(&format!("Take it back with gantry keys revoke {}", output::shell_word(&name)));
    Ok(Done::Well)
}

/// The name of a key whose holder was not given one.
fn unnamed(role: Role) -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{}-{}", role.as_str(), random.chars().take(8).collect::<String>())
}

async fn listed(desk: &Desk, wanted: &ListKeys) -> anyhow::Result<Done> {
    let body = desk.get("/api/v1/keys").await?.expect_ok()?;
    let mut keys = body.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    keys.retain(|key| wanted.all || key.get("state").and_then(Value::as_str) == Some("active"));
    if wanted.json {
        output::json(&keys.into());
        return Ok(Done::Well);
    }
    if keys.is_empty() {
        output::talk("No key holds besides that of the data folder. gantry keys create makes one.");
        return Ok(Done::Well);
    }
    // Where no key is kept to some tools, the column says nothing.
    let limited = keys.iter().any(|key| key.get("tools").is_some_and(Value::is_array));
    let rows: Vec<Noted> = keys.iter().map(|key| (row(key, limited), None)).collect();
    let head = ["ID", "NAME", "ROLE", "STATE", "PROJECTS", "AGENT", "TOOLS", "MADE (UTC)", "EXPIRES (UTC)"];
    let idle =
        [("STATE", "active"), ("PROJECTS", "all"), ("AGENT", ""), ("TOOLS", "all"), ("EXPIRES (UTC)", "")];
    output::sparse_table(&head, rows, &idle);
    Ok(Done::Well)
}

fn row(key: &Value, limited: bool) -> Vec<String> {
    let text = |name: &str| key.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = |name: &str| {
        let texts = key.get(name).and_then(Value::as_array);
        let shown =
            |texts: &Vec<Value>| texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
        texts.map_or_else(|| "all".to_owned(), shown)
    };
    let moment = |name: &str| output::moment(&text(name));
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

async fn revoked(desk: &Desk, named: &str, json: bool) -> anyhow::Result<Done> {
    let answer = desk.delete(&format!("/api/v1/keys/{}", encoded(named))).await?;
    if answer.status == StatusCode::NOT_FOUND {
        return Err(Usage(format!("there is no key {named:?}; gantry keys lists them")).into());
    }
    let body = answer.expect_ok()?;
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
    let key = output::clean(&format!("{} ({})", text("id"), text("name")));
    if json {
        output::json(&body);
    } else if body.get("held") == Some(&Value::Bool(false)) {
        output::data(&format!("{key} was revoked before"));
    } else {
        output::data(&format!("revoked {key}: it opens nothing any more"));
    }
    Ok(Done::Well)
}
