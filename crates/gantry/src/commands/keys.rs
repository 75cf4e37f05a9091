//! `gantry keys`: lists, creates and revokes API keys.

use crate::cli::{CreateKey, KeysAction, ListKeys};
use crate::client::{ApiClient, encoded};
use crate::exit::{Outcome, UsageError};
use crate::term::{self, Column};
use gantry_core::Role;
use gantry_server::model::{Key, KeyState, MadeKey, NewKey, Revoked};
use http::{Method, StatusCode};
use std::sync::Arc;

const COLUMNS: [Column<Key>; 9] = [
    Column::new("ID", |key| key.id.to_string()),
    Column::new("NAME", |key| key.name.to_string()),
    Column::new("ROLE", |key| key.role.to_string()),
    Column::unless("STATE", &["active"], |key| state(key).to_owned()),
    Column::unless("PROJECTS", &["all"], |key| all_or(&key.projects)),
    Column::unless("AGENT", &[""], |key| key.agent.as_deref().unwrap_or_default().to_owned()),
    Column::unless("TOOLS", &["all", "-"], tools),
    Column::new("CREATED (UTC)", |key| term::timestamp(key.created_at)),
    Column::unless("EXPIRES (UTC)", &[""], |key| key.expires_at.map(term::timestamp).unwrap_or_default()),
];

pub(super) async fn run(
    client: &ApiClient,
    action: Option<KeysAction>,
    list: ListKeys,
) -> anyhow::Result<Outcome> {
    match action.unwrap_or(KeysAction::List(list)) {
        KeysAction::List(args) => print_keys(client, &args).await,
        KeysAction::Create(args) => create(client, args).await,
        KeysAction::Revoke { key } => revoke(client, &key).await,
    }
}

async fn create(client: &ApiClient, args: CreateKey) -> anyhow::Result<Outcome> {
    let texts = |list: Vec<String>| {
        (!list.is_empty()).then(|| list.into_iter().map(Arc::from).collect::<Vec<Arc<str>>>())
    };
    let new = NewKey {
        name: args.name.unwrap_or_else(|| default_name(args.role)),
        role: args.role,
        projects: texts(args.project),
        agent: args.agent.map(Arc::from),
        tools: texts(args.tools),
        expires_at: None,
        expires_in: args.expires,
    };
    let made: MadeKey = client.post("/api/v1/keys", &new).await?;
    if client.json {
        term::print_json(&made);
        return Ok(Outcome::Success);
    }
    let Key { id, name, role, .. } = &made.key;
    term::print(&made.secret);
    term::eprint(&format!("This is the key of {name} ({role}, {id}). It is shown only now; keep it safe."));
    term::eprint("Send it with every request in the header Authorization: Bearer gk_…");
    term::eprint(&format!("Revoke it with gantry keys revoke {}", term::shell_word(name)));
    Ok(Outcome::Success)
}

fn default_name(role: Role) -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{role}-{}", random.chars().take(8).collect::<String>())
}

async fn print_keys(client: &ApiClient, args: &ListKeys) -> anyhow::Result<Outcome> {
    let mut keys: Vec<Key> = client.list("/api/v1/keys", &[]).await?;
    keys.retain(|key| args.all || key.state == KeyState::Active);
    let empty = "There is only the key of the data folder. gantry keys create makes another one.";
    term::print_list(&keys, &COLUMNS, empty, client.json);
    Ok(Outcome::Success)
}

fn state(key: &Key) -> &'static str {
    match key.state {
        KeyState::Active => "active",
        KeyState::Expired => "expired",
        KeyState::Revoked => "revoked",
    }
}

fn all_or(list: &Option<Vec<Arc<str>>>) -> String {
    list.as_ref().map_or_else(|| "all".to_owned(), |list| list.join(", "))
}

/// The tools whose approvals a key may decide; an agent's key decides none.
fn tools(key: &Key) -> String {
    if key.role == Role::Agent { "-".to_owned() } else { all_or(&key.tools) }
}

async fn revoke(client: &ApiClient, named: &str) -> anyhow::Result<Outcome> {
    let path = format!("/api/v1/keys/{}", encoded(named));
    let answer = client.send(Method::DELETE, &path, String::new()).await?;
    if answer.status == StatusCode::NOT_FOUND {
        return Err(UsageError(format!("there is no key {named:?}; gantry keys lists them")).into());
    }
    let revoked: Revoked = answer.into_result()?;
    let (id, name) = (&revoked.id, revoked.name.as_deref().unwrap_or_default());
    let text = match revoked.held {
        true => format!("revoked {id} ({name}): it is not accepted any more"),
        false => format!("{id} ({name}) was revoked before"),
    };
    term::print_value(&revoked, client.json, |_| vec![text]);
    Ok(Outcome::Success)
}
