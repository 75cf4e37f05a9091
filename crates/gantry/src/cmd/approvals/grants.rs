//! `gantry approvals grants` and `revoke`.

use super::find::{digits, meant, unknown};
use crate::cli::{Grants, RevokeGrant};
use crate::config::MAIN_PROJECT;
use crate::desk::{Desk, Setup, encoded, query};
use crate::exit::Done;
use crate::output::{self, Noted};
use serde_json::Value;

/// Grants that are listed, and looked through for an id.
const LISTED: &str = "1000";

pub(super) async fn list(setup: Setup, wanted: &Grants) -> anyhow::Result<Done> {
    let desk = setup.records().await?;
    let done = listed(&desk, wanted).await;
    desk.close().await;
    done
}

async fn listed(desk: &Desk, wanted: &Grants) -> anyhow::Result<Done> {
    let (grants, more) = all(desk, wanted.all, wanted.of.project.as_deref()).await?;
    if wanted.json {
        output::json(&grants.into());
        return Ok(Done::Well);
    }
    if grants.is_empty() {
        output::talk("There are no grants: every call that needs an approval is asked about.");
        return Ok(Done::Well);
    }
    let rows: Vec<Noted> = grants.iter().map(|grant| (row(grant), None)).collect();
    let head = ["ID", "PROJECT", "TOOL", "SERVER", "WHO", "HOLDS", "BY", "SINCE (UTC)", "REVOKED (UTC)"];
    output::sparse_table(&head, rows, &[("PROJECT", MAIN_PROJECT), ("REVOKED (UTC)", "")]);
    if more {
        output::talk(&format!("There are more than these {LISTED}; use --project."));
    }
    Ok(Done::Well)
}

async fn all(desk: &Desk, revoked: bool, project: Option<&str>) -> anyhow::Result<(Vec<Value>, bool)> {
    let revoked = revoked.then_some("true");
    let query = query(&[("revoked", revoked), ("project", project), ("limit", Some(LISTED))]);
    let body = desk.get(&format!("/api/v1/grants{query}")).await?.expect_ok()?;
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
        at => output::moment(at),
    };
    vec![
        text("id").to_owned(),
        text("project").to_owned(),
        text("tool").to_owned(),
        text("provider").to_owned(),
        who,
        holds,
        text("grantedBy").to_owned(),
        output::moment(text("createdAt")),
        revoked,
    ]
}

pub(super) async fn revoke(setup: Setup, wanted: &RevokeGrant) -> anyhow::Result<Done> {
    let desk = setup.records().await?;
    let done = revoked(&desk, wanted).await;
    desk.close().await;
    done
}

async fn revoked(desk: &Desk, wanted: &RevokeGrant) -> anyhow::Result<Done> {
    let id = named(desk, &wanted.id).await?;
    let body = desk.delete(&format!("/api/v1/grants/{}", encoded(&id))).await?.expect_ok()?;
    if wanted.json {
        output::json(&body);
    } else if body.get("held") == Some(&Value::Bool(false)) {
        output::data(&format!("{id} was revoked before"));
    } else {
        output::data(&format!("revoked {id}: calls that it let through are asked about from now on"));
    }
    Ok(Done::Well)
}

/// The id of the grant that is meant.
async fn named(desk: &Desk, typed: &str) -> anyhow::Result<String> {
    if typed.parse::<gantry_core::id::GrantId>().is_ok() {
        return Ok(typed.to_owned());
    }
    let digits = digits(typed, "grant_", "gantry approvals grants")?;
    let (grants, _) = all(desk, false, None).await?;
    let ids = grants.iter().filter_map(|grant| grant.get("id")?.as_str().map(str::to_owned));
    let id = meant(digits, &ids.collect::<Vec<_>>())?;
    Ok(id.ok_or_else(|| unknown("grant", typed, "gantry approvals grants"))?)
}
