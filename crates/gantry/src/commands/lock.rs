//! `gantry lock`: pins the definitions of tools, shows what is different now, and takes a person's yes to it.

mod accept;
mod difference;
mod pins;
mod shown;

use crate::cli::{LockAction, ProjectArg};
use crate::client::{ApiClient, CommandContext, Scope, query};
use crate::commands::unavailable_servers::UnavailableServer;
use crate::commands::{in_project, typed};
use crate::exit::{Outcome, UsageError};
use crate::term;
use pins::Pins;
use serde_json::{Value, json};
use shown::definitions;
use std::collections::BTreeSet;

pub(super) async fn run(
    context: CommandContext,
    action: Option<LockAction>,
    project: &ProjectArg,
) -> anyhow::Result<Outcome> {
    let json = context.json;
    let project = match &action {
        None => project.name(),
        Some(LockAction::Diff { project, .. }) => project.name(),
        Some(LockAction::Accept(wanted)) => wanted.project.name(),
    };
    let unknown = || UsageError(format!("there is no project {project:?} in the configuration"));
    let pins = Pins::read(&context.loaded.config.project(project).ok_or_else(unknown)?.lock);
    let client = context.connect(Scope::Project(project)).await?;
    client.wait_until_ready().await;
    let lock = Lock { client: &client, project, pins };
    let done = match &action {
        None => lock.pin(json).await,
        Some(LockAction::Diff { server, .. }) => lock.compare(server.as_deref(), json).await,
        Some(LockAction::Accept(wanted)) => accept::run(&lock, wanted, json).await,
    };
    client.close().await;
    done
}

/// What is pinned in a project, and who knows what is there now.
struct Lock<'a> {
    client: &'a ApiClient,
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
        let mut body = lock.client.get::<Value>(&format!("/api/v1/lock{query}")).await?;
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
        let Lock { client, project, .. } = lock;
        let body = json!({ "project": project, "server": server, "tool": tool, "revision": self.revision });
        items(client.post::<Value>("/api/v1/lock", &body).await?)
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
    async fn pin(&self, json: bool) -> anyhow::Result<Outcome> {
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
            term::print_json(&done);
        } else if done.is_empty() {
            term::eprint("Nothing new to pin.");
        } else {
            shown::table(&done);
            let (pinned, file) = (definitions(done.len()), self.pins.file());
            term::eprint(&format!("Pinned {pinned} in {file}; keep it with the configuration."));
        }
        self.tell_untouched().await?;
        if changed == 0 {
            return Ok(Outcome::Success);
        }
        let (different, of) = (definitions(changed), in_project(self.project));
        term::eprint(&format!(
            "Left alone, because the pinned text is another: {different}. See gantry lock diff{of}, then gantry lock \
             accept{of}."
        ));
        Ok(Outcome::Failure)
    }

    /// Names the servers whose definitions could not be seen when all were to be pinned.
    async fn tell_untouched(&self) -> anyhow::Result<()> {
        for server in UnavailableServer::list(self.client, self.project).await? {
            let id = term::sanitize(&server.id);
            term::eprint(&format!("{id} {}; what is pinned of it stays as it is.", server.is));
        }
        Ok(())
    }

    async fn compare(&self, server: Option<&str>, json: bool) -> anyhow::Result<Outcome> {
        let pins = &self.pins;
        let found = Seen::of(self, server, None).await?.items;
        let mut unseen = UnavailableServer::list(self.client, self.project).await?;
        // What its configuration switches off offers nothing that could differ, unless it is pinned or was asked for.
        unseen.retain(|absent| match server {
            Some(id) => id == absent.id,
            None => pins.has_server(&absent.id) || !absent.is_deliberate,
        });
        if json {
            term::print_json(&found.clone());
        } else if pins.trouble().is_none() {
            shown::by_server(&found, self.project).iter().for_each(|line| term::print(line));
        }
        if let Some(trouble) = pins.trouble() {
            let file = pins.file();
            term::eprint(&format!("{file} cannot be read, so nothing could be compared with it: {trouble}"));
            return Ok(Outcome::Failure);
        }
        for absent in &unseen {
            let (id, typed) = (term::sanitize(&absent.id), typed(&absent.id, self.project));
            term::eprint(&format!(
                "{id} could not be compared: it {}. See gantry doctor {typed}.",
                absent.is
            ));
        }
        if found.is_empty() && !json && unseen.is_empty() {
            term::eprint("The definitions are as they are pinned.");
        }
        let is_missed = |absent: &UnavailableServer| {
            server.is_some() || (pins.has_server(&absent.id) && !absent.is_deliberate)
        };
        Ok(if found.is_empty() && !unseen.iter().any(is_missed) {
            Outcome::Success
        } else {
            Outcome::Failure
        })
    }
}
