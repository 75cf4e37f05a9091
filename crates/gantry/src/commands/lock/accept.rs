//! `gantry lock accept`: pins the present definitions after the user has seen the differences.

use super::{Lock, format};
use crate::cli::Accept;
use crate::client::query;
use crate::commands::typed;
use crate::exit::{Outcome, UsageError};
use crate::term::{self, plural};
use anyhow::Context as _;
use gantry_server::model::{Pins, Server};
use std::collections::BTreeSet;
use std::io;

/// How similar a name has to be to the typed one to be suggested.
const MIN_SIMILARITY: f64 = 0.7;

pub(super) async fn run(lock: &Lock<'_>, args: &Accept) -> anyhow::Result<Outcome> {
    let target = match &args.what {
        Some(what) => AcceptTarget::parse(what, &servers(lock).await?)?,
        None => AcceptTarget::default(),
    };
    let (server, tool) = (target.server.as_deref(), target.tool.as_deref());
    let diffs = lock.diff(server, tool).await?;
    let count = diffs.list.items.len();
    if count == 0 {
        return nothing_to_accept(lock, &target, &diffs.pinned).await;
    }
    // With --json, standard output has nothing but the JSON.
    let print = if lock.json { term::eprint } else { term::print };
    format::each(&diffs.list.items).iter().for_each(|line| print(line));
    if !args.yes && !is_confirmed(count)? {
        term::eprint("Nothing was accepted.");
        return Ok(Outcome::Failure);
    }
    let accepted = lock.accept(&diffs, server, tool).await?;
    term::eprint(&format!("Accepted {} into {}.", plural(accepted.len(), "definition"), diffs.pinned.file));
    if lock.json {
        term::print_json(&accepted);
    }
    Ok(Outcome::Success)
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

/// The ids of the project's servers.
async fn servers(lock: &Lock<'_>) -> anyhow::Result<BTreeSet<String>> {
    let path = format!("/api/v1/servers{}", query(&[("project", Some(lock.project))]));
    let servers: Vec<Server> = lock.client.list(&path).await?;
    let mcp = servers.into_iter().filter(|server| server.kind != "openapi");
    Ok(mcp.map(|server| server.id.to_string()).collect())
}

/// There is no difference: the definitions are as pinned, or the server cannot be used, or there is no such tool.
async fn nothing_to_accept(lock: &Lock<'_>, target: &AcceptTarget, pinned: &Pins) -> anyhow::Result<Outcome> {
    if let Some(server) = &target.server {
        if let Some(missing) = lock.unavailable().await?.into_iter().find(|missing| missing.id == *server) {
            let (id, typed) = (term::sanitize(server), typed(server, lock.project));
            term::eprint(&format!(
                "Nothing was accepted: {id} {}, so its present tools are not known. See gantry doctor {typed}.",
                missing.is
            ));
            return Ok(Outcome::Failure);
        }
        if let Some(tool) = &target.tool
            && let known = pinned.servers.get(server).map(Vec::as_slice).unwrap_or_default()
            && !known.contains(tool)
        {
            return Err(no_such_tool(lock, server, tool, known).await?.into());
        }
    }
    if lock.json {
        term::print_json(&serde_json::json!([]));
    }
    term::eprint("There is nothing to accept: the definitions are as they are pinned.");
    Ok(Outcome::Success)
}

/// The error for a tool that the server neither has nor had; it suggests a similar name.
async fn no_such_tool(
    lock: &Lock<'_>,
    server: &str,
    tool: &str,
    pinned: &[String],
) -> anyhow::Result<UsageError> {
    let diffs = lock.diff(Some(server), None).await?.list.items;
    let names = diffs.iter().filter_map(|diff| diff.tool.as_deref()).chain(pinned.iter().map(String::as_str));
    let similar =
        names.map(|name| (strsim::jaro_winkler(name, tool), name)).max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = match similar {
        Some((similarity, name)) if similarity >= MIN_SIMILARITY => format!("; did you mean {name:?}?"),
        _ => "; use the server's own name of the tool, without a prefix".to_owned(),
    };
    Ok(UsageError(format!("server {server} has no tool {tool:?}{hint}")))
}

/// Asks the user at the terminal.
fn is_confirmed(count: usize) -> anyhow::Result<bool> {
    if !term::is_interactive() {
        let message = "there is no terminal to ask on; read the differences above and repeat it with --yes to accept them";
        return Err(UsageError(message.into()).into());
    }
    term::eprint(&format!("\nAccept {}? Type y to accept.", plural(count, "definition")));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
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
