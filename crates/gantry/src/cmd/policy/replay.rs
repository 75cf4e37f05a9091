//! `gantry policy replay`: which recorded calls would come to something else now.

mod history;
mod judge;

use super::{counted, read};
use crate::Extra;
use crate::cli::{Cli, Replay};
use crate::config::{Config, MAIN_PROJECT, ProcessEnv, Source};
use crate::desk::Setup;
use crate::exit::{Done, Usage};
use crate::output::{self, Noted};
use crate::startup;
use gantry_core::pattern::Pattern;
use gantry_core::policy::{ReplayOutcome, Unknown};
use history::{Entry, Was};
use judge::Judge;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) async fn run(cli: &Cli, extra: Extra, replay: &Replay) -> anyhow::Result<Done> {
    let wanted = replay.tool.as_deref().map(Pattern::parse).transpose();
    let wanted = wanted.map_err(|error| Usage(format!("--tool: {error}")))?;
    let setup = Setup::new(cli, extra.clone())?;
    let (source, loaded) = match &replay.under {
        Some(file) => {
            let source = Source { config: Some(file.clone()), ..setup.source.clone() };
            let loaded = read(&source)?;
            (source, loaded)
        }
        // What is odd about it was said when it was read first.
        None => (setup.source.clone(), Config::load(&setup.source, &ProcessEnv)?),
    };
    let mut judge = Judge::new(startup::plans_without_start(source, loaded, extra)?);
    let data = setup.folder.path().display().to_string();
    let desk = setup.records().await?;
    let mut seen = Seen::default();
    let walked = history::walk(&desk, replay, |entry| {
        let tool = judge.tool(&entry);
        let is_wanted = |pattern: &Pattern| tool.matches(pattern);
        if wanted.as_ref().is_none_or(is_wanted) {
            seen.add(entry, |entry| judge.replay(entry), replay.limit);
        }
    })
    .await;
    desk.close().await;
    walked?;
    if replay.json {
        output::json(&seen.to_json());
    } else {
        seen.show(&data);
    }
    Ok(Done::Well)
}

/// What a call comes to now that it did not come to then.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Now {
    /// By these rules.
    Held(Vec<Arc<str>>),
    /// By this one.
    Denied(Arc<str>),
    LetThrough,
}

impl Now {
    fn word(&self) -> &'static str {
        match self {
            Self::Held(_) => "held",
            Self::Denied(_) => "denied",
            Self::LetThrough => "let through",
        }
    }

    fn rules(&self) -> &[Arc<str>] {
        match self {
            Self::Held(rules) => rules,
            Self::Denied(rule) => std::slice::from_ref(rule),
            Self::LetThrough => &[],
        }
    }
}

/// What was seen of the calls on record.
#[derive(Default)]
struct Seen {
    calls: usize,
    held: usize,
    denied: usize,
    let_through: usize,
    /// How many cannot be told, by reason.
    untold: BTreeMap<String, usize>,
    /// Those that differ, the newest first, up to a limit.
    listed: Vec<(Entry, Now)>,
}

impl Seen {
    fn add(
        &mut self,
        entry: Entry,
        replay: impl FnOnce(&Entry) -> Result<ReplayOutcome, String>,
        limit: usize,
    ) {
        self.calls += 1;
        let now = match replay(&entry).map(|outcome| compared(entry.was, outcome)) {
            Ok(Compared::Same) => return,
            Ok(Compared::Other(now)) => now,
            Ok(Compared::Unknown(why)) => return self.cannot_tell(why.to_string()),
            Err(why) => return self.cannot_tell(why),
        };
        match &now {
            Now::Held(_) => self.held += 1,
            Now::Denied(_) => self.denied += 1,
            Now::LetThrough => self.let_through += 1,
        }
        if self.listed.len() < limit {
            self.listed.push((entry, now));
        }
    }

    fn cannot_tell(&mut self, why: String) {
        *self.untold.entry(why).or_default() += 1;
    }

    fn to_json(&self) -> Value {
        let item = |(entry, now): &(Entry, Now)| {
            json!({
                "id": entry.id, "startedAt": entry.started, "project": entry.project, "tool": entry.name,
                "principal": entry.principal, "agent": entry.agent, "was": entry.was.as_str(),
                "now": now.word(), "rules": now.rules().iter().map(|rule| &**rule).collect::<Vec<&str>>(),
            })
        };
        let items: Vec<Value> = self.listed.iter().map(item).collect();
        json!({
            "calls": self.calls, "held": self.held, "denied": self.denied, "letThrough": self.let_through,
            "untold": self.untold, "items": items,
        })
    }

    fn show(&self, data: &str) {
        if self.calls == 0 {
            return output::talk(&format!("No calls on record in {data} match."));
        }
        let row = |(entry, now): &(Entry, Now)| -> Noted {
            let who = match &entry.agent {
                Some(agent) => format!("{}/{agent}", entry.principal),
                None => entry.principal.clone(),
            };
            let now = match now.rules() {
                [] => now.word().to_owned(),
                rules => format!("{} by {}", now.word(), rules.join(", ")),
            };
            let started = output::moment(&entry.started);
            let cells = [&entry.id, &started, &entry.project, &entry.name, &who, entry.was.as_str(), &now]
                .map(|cell: &str| cell.to_owned());
            (cells.into(), None)
        };
        if !self.listed.is_empty() {
            let head = ["ID", "STARTED (UTC)", "PROJECT", "TOOL", "WHO", "WAS", "NOW"];
            output::sparse_table(&head, self.listed.iter().map(row).collect(), &[("PROJECT", MAIN_PROJECT)]);
        }
        let hidden = (self.held + self.denied + self.let_through).saturating_sub(self.listed.len());
        if hidden > 0 {
            output::talk(&format!("{} more differ; use --limit.", counted(hidden)));
        }
        output::data(&self.summary());
    }

    fn summary(&self) -> String {
        let [calls, held, denied, let_through] =
            [self.calls, self.held, self.denied, self.let_through].map(counted);
        let plural = if self.calls == 1 { "call" } else { "calls" };
        let mut summary = format!(
            "{held} of {calls} {plural} would now be held, {denied} denied, {let_through} let through"
        );
        for (why, number) in &self.untold {
            summary.push_str(&format!("; {} cannot be told ({why})", counted(*number)));
        }
        summary
    }
}

enum Compared {
    Same,
    Other(Now),
    Unknown(Unknown),
}

/// Whether a call comes to something else now.
fn compared(was: Was, now: ReplayOutcome) -> Compared {
    match (was, now) {
        (Was::Ran, ReplayOutcome::Runs)
        | (Was::Held | Was::Approved, ReplayOutcome::Held(_))
        | (Was::Denied, ReplayOutcome::Denied(_)) => Compared::Same,
        // What the tool's own rule let pass then, it is taken to let pass now.
        (Was::Ran, ReplayOutcome::Unknown(Unknown::Files)) => Compared::Same,
        (_, ReplayOutcome::Unknown(why)) => Compared::Unknown(why),
        (_, ReplayOutcome::Held(rules)) => Compared::Other(Now::Held(rules)),
        (_, ReplayOutcome::Denied(rule)) => Compared::Other(Now::Denied(rule.into())),
        (_, ReplayOutcome::Runs) => Compared::Other(Now::LetThrough),
    }
}

#[cfg(test)]
mod tests;
