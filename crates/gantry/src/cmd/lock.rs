//! `gantry lock`: pins the definitions of tools, shows what is different now, and takes a person's yes to it.

mod accept;
mod difference;
mod pins;
mod shown;

use crate::cli::LookAtLock;
use crate::cmd::absent::Absent;
use crate::desk::{Desk, Setup, query};
use crate::exit::Done;
use crate::output;
use pins::Pins;
use serde_json::{Value, json};
use shown::definitions;
use std::collections::BTreeSet;

pub(super) async fn run(setup: Setup, look: Option<LookAtLock>, json: bool) -> anyhow::Result<Done> {
    let pins = Pins::read(&setup.loaded.lock);
    let desk = setup.desk().await?;
    desk.settled().await;
    let done = match look {
        None => pinned(&desk, json).await,
        Some(LookAtLock::Diff { server, json }) => compared(&desk, server.as_deref(), &pins, json).await,
        Some(LookAtLock::Accept(wanted)) => accept::run(&desk, &wanted, &pins).await,
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
        shown::table(&done);
        let pinned = definitions(done.len());
        output::talk(&format!("Pinned {pinned} in gantry.lock; keep it with the configuration."));
    }
    untouched(desk).await?;
    if changed == 0 {
        return Ok(Done::Well);
    }
    output::talk(&format!(
        "Left alone, because the pinned text is another: {}. See gantry lock diff, then gantry lock accept.",
        definitions(changed)
    ));
    Ok(Done::Badly)
}

/// Names the servers whose definitions could not be seen when all were to be pinned.
async fn untouched(desk: &Desk) -> anyhow::Result<()> {
    for server in Absent::all(desk).await? {
        let id = output::clean(&server.id);
        output::talk(&format!("{id} {}; what is pinned of it stays as it is.", server.is));
    }
    Ok(())
}

async fn compared(desk: &Desk, server: Option<&str>, pins: &Pins, json: bool) -> anyhow::Result<Done> {
    let found = Seen::of(desk, server, None).await?.items;
    let mut unseen = Absent::all(desk).await?;
    // What its configuration switches off offers nothing that could differ, unless it is pinned or was asked for.
    unseen.retain(|absent| match server {
        Some(id) => id == absent.id,
        None => pins.has_server(&absent.id) || !absent.is_deliberate,
    });
    if json {
        output::json(&found.clone().into());
    } else if pins.trouble().is_none() {
        shown::by_server(&found).iter().for_each(|line| output::data(line));
    }
    if let Some(trouble) = pins.trouble() {
        output::talk(&format!("gantry.lock cannot be read, so nothing could be compared with it: {trouble}"));
        return Ok(Done::Badly);
    }
    for absent in &unseen {
        let (id, typed) = (output::clean(&absent.id), output::shell_word(&absent.id));
        output::talk(&format!("{id} could not be compared: it {}. See gantry doctor {typed}.", absent.is));
    }
    if found.is_empty() && !json && unseen.is_empty() {
        output::talk("The definitions are as they are pinned.");
    }
    let is_missed =
        |absent: &Absent| server.is_some() || (pins.has_server(&absent.id) && !absent.is_deliberate);
    Ok(if found.is_empty() && !unseen.iter().any(is_missed) { Done::Well } else { Done::Badly })
}
