//! `gantry lock`: pins tool definitions, shows how they differ from the pinned ones, accepts differences.

mod accept;
mod format;

use crate::cli::{LockAction, ProjectArg};
use crate::client::{ApiClient, CommandContext, Scope, query};
use crate::commands::unavailable_servers::UnavailableServer;
use crate::commands::{in_project, typed};
use crate::exit::Outcome;
use crate::term::{self, plural};
use gantry_rest::provider_id;
use gantry_server::model::{LockDiff, LockDiffs, LockRequest};
use std::collections::BTreeSet;

pub(super) async fn run(
    context: CommandContext,
    action: Option<LockAction>,
    project: &ProjectArg,
) -> anyhow::Result<Outcome> {
    let project = match &action {
        None => project.name(),
        Some(LockAction::Diff { project, .. }) => project.name(),
        Some(LockAction::Accept(args)) => args.project.name(),
    };
    let json = context.json;
    let work = async |client: &ApiClient| {
        client.wait_until_ready().await;
        let lock = Lock { client, project, json };
        match &action {
            None => lock.pin().await,
            Some(LockAction::Diff { server, .. }) => lock.print_diff(server.as_deref()).await,
            Some(LockAction::Accept(args)) => accept::run(&lock, args).await,
        }
    };
    context.with_client(Scope::Project(project), work).await
}

/// The pins of a project.
struct Lock<'a> {
    client: &'a ApiClient,
    project: &'a str,
    json: bool,
}

impl Lock<'_> {
    async fn diff(&self, server: Option<&str>, tool: Option<&str>) -> anyhow::Result<LockDiffs> {
        let query = query(&[("project", Some(self.project)), ("server", server), ("tool", tool)]);
        self.client.get(&format!("/api/v1/lock{query}")).await
    }

    /// Accepts these differences; if there are others now, nothing is accepted.
    async fn accept(
        &self,
        diffs: &LockDiffs,
        server: Option<&str>,
        tool: Option<&str>,
    ) -> anyhow::Result<Vec<LockDiff>> {
        let request = LockRequest {
            project: Some(self.project.to_owned()),
            server: server.map(str::to_owned),
            tool: tool.map(str::to_owned),
            revision: Some(diffs.revision.clone()),
        };
        Ok(self.client.post::<LockDiffs>("/api/v1/lock", &request).await?.list.items)
    }

    /// The MCP servers whose definitions are not known. APIs have no pins.
    async fn unavailable(&self) -> anyhow::Result<Vec<UnavailableServer>> {
        let mut servers = UnavailableServer::list(self.client, self.project).await?;
        servers.retain(|server| !server.id.starts_with(&provider_id("")));
        Ok(servers)
    }

    /// Pins what is not pinned yet. A definition that differs from the pinned one needs `gantry lock accept`.
    async fn pin(&self) -> anyhow::Result<Outcome> {
        let is_new = |diff: &&LockDiff| diff.change == "unpinned";
        let count_changed = |diffs: &LockDiffs| diffs.list.items.iter().filter(|diff| !is_new(diff)).count();
        let diffs = self.diff(None, None).await?;
        let known = diffs.pinned.servers.clone();
        let mut changed = count_changed(&diffs);
        let mut pinned = Vec::new();
        if changed == 0 {
            pinned = self.accept(&diffs, None, None).await?;
        } else {
            let new = diffs.list.items.iter().filter(is_new);
            let servers: BTreeSet<_> = new.map(|diff| diff.server.clone()).collect();
            for server in servers {
                let diffs = self.diff(Some(&server), None).await?;
                // Another process may have pinned the server meanwhile, and then its differences are changes.
                match count_changed(&diffs) {
                    0 => pinned.extend(self.accept(&diffs, Some(&server), None).await?),
                    others => changed += others,
                }
            }
        }
        term::print_list(&pinned, &format::COLUMNS, "Nothing new to pin.", self.json);
        if !self.json && !pinned.is_empty() {
            let count = plural(pinned.len(), "definition");
            term::eprint(&format!(
                "Pinned {count} in {}; keep it with the configuration.",
                diffs.pinned.file
            ));
        }
        for server in self.unavailable().await? {
            let (id, is) = (term::sanitize(&server.id), server.is);
            let pins =
                if known.contains_key(&server.id) { "its pins stay as they are" } else { "it is not pinned" };
            term::eprint(&format!("{id} {is}; {pins}."));
        }
        if changed == 0 {
            return Ok(Outcome::Success);
        }
        let (count, project) = (plural(changed, "definition"), in_project(self.project));
        term::eprint(&format!(
            "Not pinned, because another definition is pinned: {count}. See gantry lock diff{project}, then gantry \
             lock accept{project}."
        ));
        Ok(Outcome::Failure)
    }

    async fn print_diff(&self, server: Option<&str>) -> anyhow::Result<Outcome> {
        let LockDiffs { list, pinned, .. } = self.diff(server, None).await?;
        let diffs = list.items;
        let is_pinned = |id: &String| pinned.error.is_some() || pinned.servers.contains_key(id);
        let mut missing = self.unavailable().await?;
        // A server that its configuration switches off has no tools, so it counts only if it is pinned or was named.
        missing.retain(|missing| match server {
            Some(id) => id == missing.id,
            None => is_pinned(&missing.id) || !missing.is_deliberate,
        });
        if self.json {
            term::print_json(&diffs);
        }
        if let Some(error) = &pinned.error {
            term::eprint(&format!("nothing could be compared: {}", term::sanitize_lines(error)));
            return Ok(Outcome::Failure);
        }
        if !self.json {
            format::by_server(&diffs, self.project).iter().for_each(|line| term::print(line));
        }
        for missing in &missing {
            let (id, typed) = (term::sanitize(&missing.id), typed(&missing.id, self.project));
            let is = missing.is;
            term::eprint(&format!("{id} could not be compared: it {is}. See gantry doctor {typed}."));
        }
        if diffs.is_empty() && missing.is_empty() && !self.json {
            term::eprint("The definitions are as they are pinned.");
        }
        let is_expected = |missing: &UnavailableServer| {
            server.is_some() || (is_pinned(&missing.id) && !missing.is_deliberate)
        };
        let is_complete = !missing.iter().any(is_expected);
        Ok(if diffs.is_empty() && is_complete { Outcome::Success } else { Outcome::Failure })
    }
}
