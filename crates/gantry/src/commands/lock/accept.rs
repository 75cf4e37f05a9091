//! `gantry lock accept`: a person's yes to definitions that they have seen.

use super::shown::{self, definitions};
use super::{Lock, Seen, items, text};
use crate::cli::Accept;
use crate::client::query;
use crate::commands::typed;
use crate::commands::unavailable_servers::UnavailableServer;
use crate::exit::{Outcome, UsageError};
use crate::term;
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};

/// How alike a name has to be to what was typed to be suggested.
const ALIKE: f64 = 0.7;

pub(super) async fn run(lock: &Lock<'_>, wanted: &Accept, json: bool) -> anyhow::Result<Outcome> {
    let meant = match &wanted.what {
        Some(what) => Meant::parse(what, &known(lock).await?)?,
        None => Meant::default(),
    };
    let (server, tool) = (meant.server.as_deref(), meant.tool.as_deref());
    let seen = Seen::of(lock, server, tool).await?;
    if seen.items.is_empty() {
        return nothing(lock, &meant, json).await;
    }
    // Where JSON is asked for, that is all there is on standard output.
    let say = if json { term::eprint } else { term::print };
    shown::each(&seen.items).iter().for_each(|line| say(line));
    if !wanted.yes && !asked(seen.items.len())? {
        term::eprint("Nothing was accepted.");
        return Ok(Outcome::Failure);
    }
    let done = seen.accept(lock, server, tool).await?;
    term::eprint(&format!("Accepted {} into {}.", definitions(done.len()), lock.pins.file()));
    if json {
        term::print_json(&done);
    }
    Ok(Outcome::Success)
}

/// What is to be accepted: of all servers, of one, or of one tool.
#[derive(Debug, Default, PartialEq)]
struct Meant {
    server: Option<String>,
    tool: Option<String>,
}

impl Meant {
    /// `SERVER` or `SERVER/TOOL`. Both may have a slash in their names, so the servers that are known decide.
    fn parse(what: &str, known: &BTreeSet<String>) -> Result<Self, UsageError> {
        if known.contains(what) {
            return Ok(Self { server: Some(what.to_owned()), tool: None });
        }
        let of = |server: &String| {
            let tool = what.strip_prefix(server.as_str())?.strip_prefix('/')?;
            Some(Self { server: Some(server.clone()), tool: Some(tool.to_owned()) })
        };
        known.iter().rev().find_map(of).ok_or_else(|| {
            let servers = known.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            UsageError(format!(
                "there is no server {what:?}; write SERVER or SERVER/TOOL (servers: {servers})"
            ))
        })
    }
}

/// Every server of the project.
async fn known(lock: &Lock<'_>) -> anyhow::Result<BTreeSet<String>> {
    let path = format!("/api/v1/servers{}", query(&[("project", Some(lock.project))]));
    let servers = items(lock.client.get::<serde_json::Value>(&path).await?)?;
    Ok(servers.iter().map(|server| text(server, "id").to_owned()).collect())
}

/// Nothing is different: because all is as it is pinned, or because what was named cannot be seen or is not there.
async fn nothing(lock: &Lock<'_>, meant: &Meant, json: bool) -> anyhow::Result<Outcome> {
    if let Some(server) = &meant.server {
        let absent = UnavailableServer::list(lock.client, lock.project).await?;
        if let Some(absent) = absent.into_iter().find(|absent| absent.id == *server) {
            let (id, typed) = (term::sanitize(server), typed(server, lock.project));
            term::eprint(&format!(
                "Nothing was accepted: {id} {}, so what it offers now is not known. See gantry doctor {typed}.",
                absent.is
            ));
            return Ok(Outcome::Failure);
        }
        if let Some(tool) = &meant.tool
            && !lock.pins.tools(server).any(|pinned| pinned == tool)
        {
            return Err(no_such_tool(lock, server, tool).await?.into());
        }
    }
    if json {
        term::print_json(&serde_json::json!([]));
    }
    term::eprint("There is nothing to accept: the definitions are as they are pinned.");
    Ok(Outcome::Success)
}

/// That a server has no such tool, neither now nor pinned, and which one may be meant.
async fn no_such_tool(lock: &Lock<'_>, server: &str, tool: &str) -> anyhow::Result<UsageError> {
    let different = Seen::of(lock, Some(server), None).await?.items;
    let names = different.iter().map(|item| text(item, "tool")).chain(lock.pins.tools(server));
    let alike = names.map(|name| (strsim::jaro_winkler(name, tool), name)).max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = match alike {
        Some((likeness, name)) if likeness >= ALIKE => format!("; did you mean {name:?}?"),
        _ => "; use the server's own name of the tool, without a prefix".to_owned(),
    };
    Ok(UsageError(format!("server {server} has no tool {tool:?}{hint}")))
}

/// Asks the person at the terminal.
fn asked(count: usize) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message =
            "nobody is there to ask; read the difference above and repeat it with --yes to accept it";
        return Err(UsageError(message.into()).into());
    }
    term::eprint(&format!("\nAccept {}? Type y to accept.", definitions(count)));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_and_its_tool_are_told_apart_by_the_servers_there_are() {
        let known = BTreeSet::from(["a".to_owned(), "a/b".to_owned()]);
        let parse = |what| Meant::parse(what, &known).ok();
        let meant = |server: &str, tool: Option<&str>| {
            Some(Meant { server: Some(server.to_owned()), tool: tool.map(str::to_owned) })
        };
        assert_eq!(parse("a"), meant("a", None));
        assert_eq!(parse("a/b"), meant("a/b", None));
        assert_eq!(parse("a/x"), meant("a", Some("x")));
        assert_eq!(parse("a/b/x/y"), meant("a/b", Some("x/y")));
        assert_eq!(parse("ab"), None);
    }
}
