//! `gantry lock`: pins tool definitions, shows how they differ from the pinned ones, accepts differences.

mod format;

use crate::cli::{LockAction, ProjectArg};
use crate::client::{ApiClient, CommandContext, Scope};
use crate::commands::unavailable_servers::UnavailableServer;
use crate::commands::{in_project, typed};
use crate::exit::{Outcome, UsageError};
use crate::term::{self, plural};
use gantry_rest::provider_id;
use gantry_server::model::{List, LockDiff, LockDiffs, LockRequest, Pins};
use std::collections::BTreeSet;

/// How similar a name has to be to the typed one to be suggested.
const MIN_SIMILARITY: f64 = 0.7;

pub(super) async fn run(
    context: CommandContext,
    action: Option<LockAction>,
    project: &ProjectArg,
) -> anyhow::Result<Outcome> {
    let project = match &action {
        None => project.name(),
        Some(LockAction::Diff { project, .. } | LockAction::Accept { project, .. }) => project.name(),
    };
    let work = async |client: &ApiClient| {
        client.wait_until_ready().await;
        let lock = Lock { client, project };
        match &action {
            None => lock.pin().await,
            Some(LockAction::Diff { server, .. }) => lock.print_diff(server.as_deref()).await,
            Some(LockAction::Accept { what, yes, .. }) => lock.accept_seen(what.as_deref(), *yes).await,
        }
    };
    context.with_client(Scope::Project(project), work).await
}

struct Lock<'a> {
    client: &'a ApiClient,
    project: &'a str,
}

impl Lock<'_> {
    async fn diff(&self, server: Option<&str>, tool: Option<&str>) -> anyhow::Result<LockDiffs> {
        let query = [("project", Some(self.project)), ("server", server), ("tool", tool)];
        self.client.get("/api/v1/lock", &query).await
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
        servers.retain(|server| !server.id().starts_with(&provider_id("")));
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
        term::print_list(&pinned, &format::COLUMNS, "Nothing new to pin.", self.client.json);
        if !self.client.json && !pinned.is_empty() {
            let count = plural(pinned.len(), "definition");
            term::eprint(&format!(
                "Pinned {count} in {}; keep it with the configuration.",
                diffs.pinned.file
            ));
        }
        for server in self.unavailable().await? {
            let id = server.id();
            let pins = if known.contains_key(id) { "its pins stay as they are" } else { "it is not pinned" };
            term::eprint(&format!("{} {}; {pins}.", term::sanitize(id), server.is));
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
        let LockDiffs { list: List { items: diffs, .. }, pinned, .. } = self.diff(server, None).await?;
        // A server that its configuration switches off has no tools, so it counts only if it is pinned or was named.
        let mut missing = self.unavailable().await?;
        let is_pinned =
            |it: &UnavailableServer| pinned.error.is_some() || pinned.servers.contains_key(it.id());
        missing.retain(|missing| match server {
            Some(id) => id == missing.id(),
            None => is_pinned(missing) || !missing.is_deliberate(),
        });
        if self.client.json {
            term::print_json(&diffs);
        }
        if let Some(error) = &pinned.error {
            term::eprint(&format!("nothing could be compared: {}", term::sanitize_lines(error)));
            return Ok(Outcome::Failure);
        }
        if !self.client.json {
            format::by_server(&diffs, self.project).iter().for_each(|line| term::print(line));
        }
        for missing in &missing {
            let (id, is) = (term::sanitize(missing.id()), missing.is);
            let typed = typed(missing.id(), self.project);
            term::eprint(&format!("{id} could not be compared: it {is}. See gantry doctor {typed}."));
        }
        if diffs.is_empty() && missing.is_empty() && !self.client.json {
            term::eprint("The definitions are as they are pinned.");
        }
        let is_expected = |it: &UnavailableServer| server.is_some() || (is_pinned(it) && !it.is_deliberate());
        Ok(Outcome::of(diffs.is_empty() && !missing.iter().any(is_expected)))
    }

    async fn accept_seen(&self, what: Option<&str>, yes: bool) -> anyhow::Result<Outcome> {
        let target = match what {
            Some(what) => {
                let servers = self.client.servers(Some(self.project)).await?;
                let mcp = servers.into_iter().filter(|server| server.kind != "openapi");
                AcceptTarget::parse(what, &mcp.map(|server| server.id.to_string()).collect())?
            }
            None => AcceptTarget::default(),
        };
        let (server, tool) = (target.server.as_deref(), target.tool.as_deref());
        let diffs = self.diff(server, tool).await?;
        let count = diffs.list.items.len();
        if count == 0 {
            return self.nothing_to_accept(&target, &diffs.pinned).await;
        }
        // With --json, standard output has nothing but the JSON.
        let print = if self.client.json { term::eprint } else { term::print };
        format::each(&diffs.list.items).iter().for_each(|line| print(line));
        let instead = "read the differences above and repeat it with --yes to accept them";
        if !yes && !term::confirm(&format!("\nAccept {}?", plural(count, "definition")), instead)? {
            term::eprint("Nothing was accepted.");
            return Ok(Outcome::Failure);
        }
        let accepted = self.accept(&diffs, server, tool).await?;
        let count = plural(accepted.len(), "definition");
        term::eprint(&format!("Accepted {count} into {}.", diffs.pinned.file));
        if self.client.json {
            term::print_json(&accepted);
        }
        Ok(Outcome::Success)
    }

    /// There is no difference: the definitions are as pinned, or the server cannot be used, or there is no such tool.
    async fn nothing_to_accept(&self, target: &AcceptTarget, pinned: &Pins) -> anyhow::Result<Outcome> {
        if let Some(server) = &target.server {
            if let Some(missing) = self.unavailable().await?.iter().find(|it| it.id() == server) {
                let (id, typed) = (term::sanitize(server), typed(server, self.project));
                term::eprint(&format!(
                    "Nothing was accepted: {id} {}, so its present tools are not known. See gantry doctor {typed}.",
                    missing.is
                ));
                return Ok(Outcome::Failure);
            }
            let known = pinned.servers.get(server).map(Vec::as_slice).unwrap_or_default();
            if let Some(tool) = target.tool.as_ref().filter(|tool| !known.contains(tool)) {
                let diffs = self.diff(Some(server), None).await?.list.items;
                return Err(no_such_tool(server, tool, &diffs, known).into());
            }
        }
        if self.client.json {
            term::print_json(&serde_json::json!([]));
        }
        term::eprint("There is nothing to accept: the definitions are as they are pinned.");
        Ok(Outcome::Success)
    }
}

/// What to accept: the differences of all servers, of one, or of one tool.
#[derive(Debug, Default, PartialEq)]
struct AcceptTarget {
    server: Option<String>,
    tool: Option<String>,
}

impl AcceptTarget {
    /// `SERVER` or `SERVER/TOOL`. Both may have a slash in their names, so the known servers decide.
    fn parse(what: &str, servers: &BTreeSet<String>) -> Result<Self, UsageError> {
        if servers.contains(what) {
            return Ok(Self { server: Some(what.to_owned()), tool: None });
        }
        let of = |server: &String| {
            let tool = what.strip_prefix(server.as_str())?.strip_prefix('/')?;
            Some(Self { server: Some(server.clone()), tool: Some(tool.to_owned()) })
        };
        servers.iter().rev().find_map(of).ok_or_else(|| {
            let servers = servers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            UsageError(format!(
                "there is no server {what:?}; write SERVER or SERVER/TOOL (servers: {servers})"
            ))
        })
    }
}

/// The error for a tool that the server neither has nor had; it suggests a similar name.
fn no_such_tool(server: &str, tool: &str, diffs: &[LockDiff], pinned: &[String]) -> UsageError {
    let names = diffs.iter().filter_map(|diff| diff.tool.as_ref()).chain(pinned);
    let similar =
        names.map(|name| (strsim::jaro_winkler(name, tool), name)).max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = match similar {
        Some((similarity, name)) if similarity >= MIN_SIMILARITY => format!("; did you mean {name:?}?"),
        _ => "; use the server's own name of the tool, without a prefix".to_owned(),
    };
    UsageError(format!("server {server} has no tool {tool:?}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_servers_decide_where_the_name_of_the_tool_begins() {
        let known = BTreeSet::from(["a".to_owned(), "a/b".to_owned()]);
        let parse = |what| AcceptTarget::parse(what, &known).ok();
        let target = |server: &str, tool: Option<&str>| {
            Some(AcceptTarget { server: Some(server.to_owned()), tool: tool.map(str::to_owned) })
        };
        assert_eq!(parse("a"), target("a", None));
        assert_eq!(parse("a/b"), target("a/b", None));
        assert_eq!(parse("a/x"), target("a", Some("x")));
        assert_eq!(parse("a/b/x/y"), target("a/b", Some("x/y")));
        assert_eq!(parse("ab"), None);
    }
}
