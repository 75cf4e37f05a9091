//! `gantry lock`: pins the definitions of tools, shows what is different now, and takes a person's yes to it.

mod accept;
mod difference;
mod pins;
mod shown;

use crate::cli::{InProject, LookAtLock};
use crate::cmd::absent::Absent;
use crate::cmd::{in_project, typed};
use crate::desk::{Desk, Setup, query};
use crate::exit::{Done, Usage};
use crate::output;
use pins::Pins;
use serde_json::{Value, json};
use shown::definitions;
use std::collections::BTreeSet;

pub(super) async fn run(
    setup: Setup,
    look: Option<LookAtLock>,
    place: &InProject,
    json: bool,
) -> anyhow::Result<Done> {
    let project = match &look {
        None => place.name(),
        Some(LookAtLock::Diff { place, .. }) => place.name(),
        Some(LookAtLock::Accept(wanted)) => wanted.place.name(),
    };
    let unknown = || Usage(format!("there is no project {project:?} in the configuration"));
    let pins = Pins::read(&setup.loaded.config.project(project).ok_or_else(unknown)?.places.lock);
    let desk = setup.desk_in(Some(project)).await?;
    desk.settled().await;
    let lock = Lock { desk: &desk, project, pins };
    let done = match &look {
        None => lock.pin(json).await,
        Some(LookAtLock::Diff { server, json, .. }) => lock.compare(server.as_deref(), *json).await,
        Some(LookAtLock::Accept(wanted)) => accept::run(&lock, wanted).await,
    };
    desk.close().await;
    done
}

/// What is pinned in a project, and who knows what is there now.
struct Lock<'a> {
    desk: &'a Desk,
    project: &'a str,
    pins: Pins,
}

/// Differences, and the word that stands for exactly these.
struct Seen {
    items: Vec<Value>,
    revision: Value,
}

impl Seen {
    async fn of(lock: &Lock<'_>, server: Option<&str>, tool: Option<&str>) -> anyhow::Result<Self> {
        let query = query(&[("project", Some(lock.project)), ("server", server), ("tool", tool)]);
        let mut body = lock.desk.get(&format!("/api/v1/lock{query}")).await?.expect_ok()?;
        let revision = body.get_mut("revision").map(Value::take).unwrap_or_default();
        Ok(Self { items: items(body)?, revision })
    }

    /// Pins them; whatever changed since they were seen is not accepted.
    async fn accept(
        self,
        lock: &Lock<'_>,
        server: Option<&str>,
        tool: Option<&str>,
    ) -> anyhow::Result<Vec<Value>> {
        let Lock { desk, project, .. } = lock;
        let body = json!({ "project": project, "server": server, "tool": tool, "revision": self.revision });
        items(desk.post("/api/v1/lock", body.to_string()).await?.expect_ok()?)
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

impl Lock<'_> {
    /// Pins what is not pinned yet. What was pinned and is different now takes a person who has seen the difference.
    async fn pin(&self, json: bool) -> anyhow::Result<Done> {
        let seen = Seen::of(self, None, None).await?;
        let is_new = |item: &&Value| text(item, "change") == "unpinned";
        let fresh: BTreeSet<String> =
            seen.items.iter().filter(is_new).map(|item| text(item, "server").to_owned()).collect();
        let mut changed = seen.items.iter().filter(|item| !is_new(item)).count();
        let mut done = Vec::new();
        if changed == 0 {
            done = seen.accept(self, None, None).await?;
        } else {
            for server in fresh {
                let seen = Seen::of(self, Some(&server), None).await?;
                // Somebody else may have pinned it in the meantime, and then a difference is nothing new.
                match seen.items.iter().filter(|item| !is_new(item)).count() {
                    0 => done.extend(seen.accept(self, Some(&server), None).await?),
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
            let (pinned, file) = (definitions(done.len()), self.pins.file());
            output::talk(&format!("Pinned {pinned} in {file}; keep it with the configuration."));
        }
        self.tell_untouched().await?;
        if changed == 0 {
            return Ok(Done::Well);
        }
        let (different, of) = (definitions(changed), in_project(self.project));
        output::talk(&format!(
            "Left alone, because the pinned text is another: {different}. See gantry lock diff{of}, then gantry lock \
             accept{of}."
        ));
        Ok(Done::Badly)
    }

    /// Names the servers whose definitions could not be seen when all were to be pinned.
    async fn tell_untouched(&self) -> anyhow::Result<()> {
        for server in Absent::all(self.desk, self.project).await? {
            let id = output::clean(&server.id);
            output::talk(&format!("{id} {}; what is pinned of it stays as it is.", server.is));
        }
        Ok(())
    }

    async fn compare(&self, server: Option<&str>, json: bool) -> anyhow::Result<Done> {
        let pins = &self.pins;
        let found = Seen::of(self, server, None).await?.items;
        let mut unseen = Absent::all(self.desk, self.project).await?;
        // What its configuration switches off offers nothing that could differ, unless it is pinned or was asked for.
        unseen.retain(|absent| match server {
            Some(id) => id == absent.id,
            None => pins.has_server(&absent.id) || !absent.is_deliberate,
        });
        if json {
            output::json(&found.clone().into());
        } else if pins.trouble().is_none() {
            shown::by_server(&found, self.project).iter().for_each(|line| output::data(line));
        }
        if let Some(trouble) = pins.trouble() {
            let file = pins.file();
            output::talk(&format!("{file} cannot be read, so nothing could be compared with it: {trouble}"));
            return Ok(Done::Badly);
        }
        for absent in &unseen {
            let (id, typed) = (output::clean(&absent.id), typed(&absent.id, self.project));
            output::talk(&format!(
                "{id} could not be compared: it {}. See gantry doctor {typed}.",
                absent.is
            ));
        }
        if found.is_empty() && !json && unseen.is_empty() {
            output::talk("The definitions are as they are pinned.");
        }
        let is_missed =
            |absent: &Absent| server.is_some() || (pins.has_server(&absent.id) && !absent.is_deliberate);
        Ok(if found.is_empty() && !unseen.iter().any(is_missed) { Done::Well } else { Done::Badly })
    }
}
