//! `gantry approvals grants` and `revoke`.

use crate::cli::Grants;
use crate::client::{ApiClient, CommandContext, Scope, encoded, query};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, Column};
use gantry_server::model::{Grant, List, Revoked};

/// How many grants are listed.
const LIMIT: &str = "1000";

const COLUMNS: &[Column<Grant>] = &[
    Column::new("ID", |grant| grant.id.to_string()),
    Column::unless("PROJECT", &[MAIN_PROJECT], |grant| grant.project.to_string()),
    Column::new("TOOL", |grant| grant.tool.to_string()),
    Column::new("SERVER", |grant| grant.provider.to_string()),
    Column::new("WHO", |grant| match grant.agent_path.as_slice() {
        [] => grant.principal.to_string(),
        path => path.join(" > "),
    }),
    Column::new("HOLDS", |grant| match &grant.session {
        None => "always".to_owned(),
        Some(session) => format!("for {session}"),
    }),
    Column::new("BY", |grant| grant.granted_by.to_string()),
    Column::new("SINCE (UTC)", |grant| term::timestamp(grant.created_at)),
    Column::unless("REVOKED (UTC)", &[""], |grant| grant.revoked_at.map(term::timestamp).unwrap_or_default()),
];

pub(super) async fn list(context: CommandContext, wanted: &Grants) -> anyhow::Result<Outcome> {
    let (json, project) = (context.json, wanted.project.name());
    let grants = context
        .with_client(Scope::LedgerOnly, async |client| page(client, wanted.all, project).await)
        .await?;
    term::print_list(
        &grants.items,
        COLUMNS,
        "There are no grants: every call that needs an approval is asked about.",
        json,
    );
    if grants.next.is_some() && !json {
        term::eprint(&format!("There are more than these {LIMIT}; use --project."));
    }
    Ok(Outcome::Success)
}

async fn page(client: &ApiClient, revoked: bool, project: Option<&str>) -> anyhow::Result<List<Grant>> {
    let revoked = revoked.then_some("true");
    let query = query(&[("revoked", revoked), ("project", project), ("limit", Some(LIMIT))]);
    client.get(&format!("/api/v1/grants{query}")).await
}

pub(super) async fn revoke(context: CommandContext, id: &str) -> anyhow::Result<Outcome> {
    let json = context.json;
    let revoked: Revoked = context
        .with_client(Scope::LedgerOnly, async |client| {
            client.delete(&format!("/api/v1/grants/{}", encoded(id))).await
        })
        .await?;
    let id = &revoked.id;
    if json {
        term::print_json(&revoked);
    } else if revoked.held {
        term::print(&format!("revoked {id}: such calls need an approval again"));
    } else {
        term::print(&format!("{id} was revoked before"));
    }
    Ok(Outcome::Success)
}
