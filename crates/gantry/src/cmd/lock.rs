//! `gantry lock`: pins the definitions of tools, shows what is different now, and takes a person's yes to it.

mod difference;

use crate::cli::LookAtLock;
use crate::desk::{Desk, Setup, query};
use crate::exit::{Done, Usage};
use crate::output;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};

pub(super) async fn run(setup: Setup, look: Option<LookAtLock>, json: bool) -> anyhow::Result<Done> {
    let desk = setup.desk().await?;
    desk.settled().await;
    let done = match look {
        None => pinned(&desk, json).await,
        Some(LookAtLock::Diff { server, json }) => compared(&desk, server.as_deref(), json).await,
        Some(LookAtLock::Accept { what, yes }) => accepted(&desk, what.as_deref(), yes).await,
    };
    desk.close().await;
    done
}

/// Differences, and the word that stands for exactly these.
struct Seen {
    items: Vec<Value>,
    revision: Value,
}

impl Seen {
    async fn of(desk: &Desk, server: Option<&str>, tool: Option<&str>) -> anyhow::Result<Self> {
        let path = format!("/api/v1/lock{}", query(&[("server", server), ("tool", tool)]));
        let mut body = desk.get(&path).await?.expect_ok()?;
        let revision = body.get_mut("revision").map(Value::take).unwrap_or_default();
        Ok(Self { items: items(body)?, revision })
    }

    /// Pins them; whatever changed since they were seen is not accepted.
    async fn accept(
        self,
        desk: &Desk,
        server: Option<&str>,
        tool: Option<&str>,
    ) -> anyhow::Result<Vec<Value>> {
        let body = json!({ "server": server, "tool": tool, "revision": self.revision }).to_string();
        items(desk.post("/api/v1/lock", body).await?.expect_ok()?)
    }
}

fn items(mut body: Value) -> anyhow::Result<Vec<Value>> {
    match body.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        _ => anyhow::bail!("the answer has no list"),
    }
}

fn text<'a>(item: &'a Value, key: &str) -> &'a str {
    item.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Pins what is not pinned yet. What was pinned and is different now takes a person who has seen the difference.
async fn pinned(desk: &Desk, json: bool) -> anyhow::Result<Done> {
    let seen = Seen::of(desk, None, None).await?;
    let is_new = |item: &&Value| text(item, "change") == "unpinned";
    let fresh: BTreeSet<String> =
        seen.items.iter().filter(is_new).map(|item| text(item, "server").to_owned()).collect();
    let mut changed = seen.items.iter().filter(|item| !is_new(item)).count();
    let mut done = Vec::new();
    if changed == 0 {
        done = seen.accept(desk, None, None).await?;
    } else {
        for server in fresh {
            let seen = Seen::of(desk, Some(&server), None).await?;
            // Somebody else may have pinned it in the meantime, and then a difference is nothing new.
            match seen.items.iter().filter(|item| !is_new(item)).count() {
                0 => done.extend(seen.accept(desk, Some(&server), None).await?),
                others => changed += others,
            }
        }
    }
    if json {
        output::json(&done.into());
    } else if done.is_empty() {
        output::talk("Nothing new to pin.");
    } else {
        let row = |item: &Value| {
            vec![text(item, "server").into(), difference::visible(&named(item)), flags(item).join("; ")]
        };
        output::table(&["SERVER", "TOOL", "FLAGS"], &done.iter().map(row).collect::<Vec<_>>());
        let pinned = definitions(done.len());
        output::talk(&format!("Pinned {pinned} in gantry.lock; keep it with the configuration."));
    }
    absent(desk).await?;
    if changed == 0 {
        return Ok(Done::Well);
    }
    output::talk(&format!(
        "Left alone, because the pinned text is another: {}. See gantry lock diff, then gantry lock accept.",
        definitions(changed)
    ));
    Ok(Done::Badly)
}

/// Names the servers whose definitions could not be seen.
async fn absent(desk: &Desk) -> anyhow::Result<()> {
    for server in items(desk.get("/api/v1/servers").await?.expect_ok()?)? {
        if matches!(text(&server, "light"), "red" | "off") || text(&server, "status") == "starting" {
            let (id, status) = (output::clean(text(&server, "id")), text(&server, "status"));
            output::talk(&format!("{id} is {status}; what is pinned of it stays as it is."));
        }
    }
    Ok(())
}

async fn compared(desk: &Desk, server: Option<&str>, json: bool) -> anyhow::Result<Done> {
    let found = Seen::of(desk, server, None).await?.items;
    if json {
        output::json(&found.clone().into());
    } else if found.is_empty() {
        output::talk("The definitions are as they are pinned.");
    } else {
        show(&found);
    }
    Ok(if found.is_empty() { Done::Well } else { Done::Badly })
}

async fn accepted(desk: &Desk, what: Option<&str>, yes: bool) -> anyhow::Result<Done> {
    let (server, tool) = match what {
        Some(what) => split(what, &known(desk).await?)?,
        None => (None, None),
    };
    let seen = Seen::of(desk, server.as_deref(), tool.as_deref()).await?;
    if seen.items.is_empty() {
        output::talk("There is nothing to accept.");
        return Ok(Done::Well);
    }
    show(&seen.items);
    if !yes && !asked(seen.items.len())? {
        output::talk("Nothing was accepted.");
        return Ok(Done::Badly);
    }
    let done = seen.accept(desk, server.as_deref(), tool.as_deref()).await?;
    output::talk(&format!("Accepted {} into gantry.lock.", definitions(done.len())));
    Ok(Done::Well)
}

/// Every server.
async fn known(desk: &Desk) -> anyhow::Result<BTreeSet<String>> {
    let servers = items(desk.get("/api/v1/servers").await?.expect_ok()?)?;
    Ok(servers.iter().map(|server| text(server, "id").to_owned()).collect())
}

/// `SERVER` or `SERVER/TOOL`. Both may have a slash in their names, so those that are known decide.
fn split(what: &str, known: &BTreeSet<String>) -> Result<(Option<String>, Option<String>), Usage> {
    if known.contains(what) {
        return Ok((Some(what.to_owned()), None));
    }
    let of = |server: &String| {
        let tool = what.strip_prefix(server.as_str())?.strip_prefix('/')?;
        Some((Some(server.clone()), Some(tool.to_owned())))
    };
    known.iter().rev().find_map(of).ok_or_else(|| {
        let servers = known.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        Usage(format!("there is no server {what:?}; write SERVER or SERVER/TOOL (servers: {servers})"))
    })
}

/// Asks the person at the terminal.
fn asked(count: usize) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message =
            "nobody is there to ask; read the difference above and repeat it with --yes to accept it";
        return Err(Usage(message.into()).into());
    }
    output::talk(&format!("\nAccept {}? Type y to accept.", definitions(count)));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn show(found: &[Value]) {
    for item in found {
        let change = text(item, "change");
        output::data(&difference::visible(&format!("{} {}: {change}", text(item, "server"), named(item))));
        for flag in flags(item) {
            output::data(&format!("  ! {}", difference::visible(&flag)));
        }
        // What is pinned for the first time is shown by name; there is nothing to compare it with.
        if change != "unpinned" {
            let of = |key: &str| item.get(key).filter(|value| !value.is_null());
            difference::lines(of("pinned"), of("current")).iter().for_each(|line| output::data(line));
        }
    }
}

fn definitions(count: usize) -> String {
    format!("{count} {}", if count == 1 { "definition" } else { "definitions" })
}

fn named(item: &Value) -> String {
    item.get("tool").and_then(Value::as_str).map_or_else(|| "(instructions)".to_owned(), str::to_owned)
}

fn flags(item: &Value) -> Vec<String> {
    let flags = item.get("flags").and_then(Value::as_array).into_iter().flatten();
    flags.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_and_its_tool_are_told_apart_by_the_servers_there_are() {
        let known = BTreeSet::from(["a".to_owned(), "a/b".to_owned()]);
        let split = |what| split(what, &known).ok();
        let pair =
            |server: &str, tool: Option<&str>| Some((Some(server.to_owned()), tool.map(str::to_owned)));
        assert_eq!(split("a"), pair("a", None));
        assert_eq!(split("a/b"), pair("a/b", None));
        assert_eq!(split("a/x"), pair("a", Some("x")));
        assert_eq!(split("a/b/x/y"), pair("a/b", Some("x/y")));
        assert_eq!(split("ab"), None);
    }
}
