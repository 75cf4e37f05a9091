//! `gantry approvals grants` and `revoke`.

use super::find::{digits, meant, unknown};
use crate::cli::{Grants, RevokeGrant};
use crate::client::{ApiClient, CommandContext, Scope, encoded, query};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, RowWithNote};
use serde_json::Value;

/// Grants that are listed, and looked through for an id.
const LISTED: &str = "1000";

pub(super) async fn list(context: CommandContext, wanted: &Grants) -> anyhow::Result<Outcome> {
    let json = context.json;
    let client = context.connect(Scope::LedgerOnly).await?;
    let done = listed(&client, json, wanted).await;
    client.close().await;
    done
}

async fn listed(client: &ApiClient, json: bool, wanted: &Grants) -> anyhow::Result<Outcome> {
    let (grants, more) = all(client, wanted.all, wanted.project.name()).await?;
    if json {
        term::print_json(&grants);
        return Ok(Outcome::Success);
    }
    if grants.is_empty() {
        term::eprint("There are no grants: every call that needs an approval is asked about.");
        return Ok(Outcome::Success);
    }
    let rows: Vec<RowWithNote> = grants.iter().map(|grant| (row(grant), None)).collect();
    let head = ["ID", "PROJECT", "TOOL", "SERVER", "WHO", "HOLDS", "BY", "SINCE (UTC)", "REVOKED (UTC)"];
    term::table_hiding_constant_columns(&head, rows, &[("PROJECT", MAIN_PROJECT), ("REVOKED (UTC)", "")]);
    if more {
        term::eprint(&format!("There are more than these {LISTED}; use --project."));
    }
    Ok(Outcome::Success)
}

async fn all(client: &ApiClient, revoked: bool, project: Option<&str>) -> anyhow::Result<(Vec<Value>, bool)> {
    let revoked = revoked.then_some("true");
    let query = query(&[("revoked", revoked), ("project", project), ("limit", Some(LISTED))]);
    let body = client.get::<Value>(&format!("/api/v1/grants{query}")).await?;
    let more = body.get("next").is_some_and(|next| !next.is_null());
    Ok((body.get("items").and_then(Value::as_array).cloned().unwrap_or_default(), more))
}

fn row(grant: &Value) -> Vec<String> {
    let text = |key: &str| grant.get(key).and_then(Value::as_str).unwrap_or_default();
    let path = grant.get("agentPath").and_then(Value::as_array).into_iter().flatten();
    let who = match path.filter_map(Value::as_str).collect::<Vec<_>>().as_slice() {
        [] => text("principal").to_owned(),
        path => path.join(" > "),
    };
    let holds = match text("session") {
        "" => "always".to_owned(),
        session => format!("for {session}"),
    };
    let revoked = match text("revokedAt") {
        "" => String::new(),
        at => term::timestamp(at),
    };
    vec![
        text("id").to_owned(),
        text("project").to_owned(),
        text("tool").to_owned(),
        text("provider").to_owned(),
        who,
        holds,
        text("grantedBy").to_owned(),
        term::timestamp(text("createdAt")),
        revoked,
    ]
}

pub(super) async fn revoke(context: CommandContext, wanted: &RevokeGrant) -> anyhow::Result<Outcome> {
    let json = context.json;
    let client = context.connect(Scope::LedgerOnly).await?;
    let done = revoked(&client, json, wanted).await;
    client.close().await;
    done
}

async fn revoked(client: &ApiClient, json: bool, wanted: &RevokeGrant) -> anyhow::Result<Outcome> {
    let id = named(client, &wanted.id).await?;
    let body = client.delete::<Value>(&format!("/api/v1/grants/{}", encoded(&id))).await?;
    if json {
        term::print_json(&body);
    } else if body.get("held") == Some(&Value::Bool(false)) {
        term::print(&format!("{id} was revoked before"));
    } else {
        term::print(&format!("revoked {id}: calls that it let through are asked about from now on"));
    }
    Ok(Outcome::Success)
}

/// The id of the grant that is meant.
async fn named(client: &ApiClient, typed: &str) -> anyhow::Result<String> {
    if typed.parse::<gantry_core::id::GrantId>().is_ok() {
        return Ok(typed.to_owned());
    }
    let digits = digits(typed, "grant_", "gantry approvals grants")?;
    let (grants, _) = all(client, false, None).await?;
    let ids = grants.iter().filter_map(|grant| grant.get("id")?.as_str().map(str::to_owned));
    let id = meant(digits, &ids.collect::<Vec<_>>())?;
    Ok(id.ok_or_else(|| unknown("grant", typed, "gantry approvals grants"))?)
}
