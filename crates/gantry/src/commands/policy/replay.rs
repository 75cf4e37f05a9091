//! `gantry policy replay`: which recorded calls would have another outcome now.

mod evaluator;
mod records;

use super::read;
use crate::Extra;
use crate::cli::{Cli, Replay};
use crate::client::{ApiClient, CommandContext, Scope};
use crate::commands::audit::caller;
use crate::config::{Config, MAIN_PROJECT, ProcessEnv, Source};
use crate::exit::{Outcome, UsageError};
use crate::startup;
use crate::term::{self, Column, plural, thousands};
use evaluator::PolicyEvaluator;
use gantry_core::pattern::Pattern;
use gantry_core::policy::{ReplayOutcome, Unknown};
use gantry_server::model::CallRecord;
use records::{RecordedOutcome, fetch_records};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

const COLUMNS: [Column<Difference>; 7] = [
    Column::new("ID", |it| it.id.clone()),
    Column::new("STARTED (UTC)", |it| term::timestamp(&it.started_at)),
    Column::unless("PROJECT", &[MAIN_PROJECT], |it| it.project.to_string()),
    Column::new("TOOL", |it| it.tool.to_string()),
    Column::new("CALLER", |it| it.caller.clone()),
    Column::new("WAS", |it| it.was.to_owned()),
    Column::new("NOW", |it| match it.rules.as_slice() {
        [] => it.now.to_owned(),
        rules => format!("{} by {}", it.now, rules.join(", ")),
    }),
];

pub(super) async fn run(cli: &Cli, extra: Extra, args: &Replay) -> anyhow::Result<Outcome> {
    let wanted = args.tool.as_deref().map(Pattern::parse).transpose();
    let wanted = wanted.map_err(|error| UsageError(format!("--tool: {error}")))?;
    let context = CommandContext::new(cli, extra.clone())?;
    let (source, loaded) = match &args.under {
        Some(file) => {
            let source = Source { config: Some(file.clone()), ..context.source.clone() };
            let loaded = read(&source)?;
            (source, loaded)
        }
        // Its warnings were logged when the context was made.
        None => (context.source.clone(), Config::load(&context.source, &ProcessEnv)?),
    };
    let mut evaluator = PolicyEvaluator::new(startup::plans_without_start(source, loaded, extra)?);
    let data = context.data_dir.path().display().to_string();
    let mut result = Replayed::default();
    let work = async |client: &ApiClient| {
        fetch_records(client, args, |call| {
            let Some(was) = RecordedOutcome::of(&call) else { return };
            let Some(tool) = evaluator.tool(&call).filter(|_| call.arguments_digest.is_some()) else {
                return;
            };
            if wanted.as_ref().is_none_or(|pattern| tool.matches(pattern)) {
                result.add(&call, was, evaluator.replay(&call, &tool), args.limit);
            }
        })
        .await
    };
    context.with_client(Scope::LedgerOnly, work).await?;
    if cli.json {
        term::print_json(&result);
    } else if result.calls == 0 {
        term::eprint(&format!("No recorded call in {data} matches."));
    } else {
        result.print();
    }
    Ok(Outcome::Success)
}

/// The recorded calls, counted by the outcome that they would have now.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Replayed {
    calls: usize,
    held: usize,
    denied: usize,
    let_through: usize,
    /// Calls whose outcome cannot be predicted, by reason.
    undecidable: BTreeMap<String, usize>,
    /// The calls with another outcome, newest first, up to a limit.
    items: Vec<Difference>,
}

/// A call that would have another outcome now.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Difference {
    id: String,
    started_at: String,
    project: Arc<str>,
    tool: Arc<str>,
    principal: Arc<str>,
    agent: Option<Arc<str>>,
    #[serde(skip)]
    caller: String,
    was: &'static str,
    now: &'static str,
    /// The rules that hold or deny it.
    rules: Vec<Arc<str>>,
}

impl Replayed {
    fn add(
        &mut self,
        call: &CallRecord,
        was: RecordedOutcome,
        outcome: Result<ReplayOutcome, String>,
        limit: usize,
    ) {
        self.calls += 1;
        let (count, now, rules) = match outcome {
            Ok(outcome) if is_same(was, &outcome) => return,
            Ok(ReplayOutcome::Held(rules)) => (&mut self.held, "held", rules),
            Ok(ReplayOutcome::Denied(rule)) => (&mut self.denied, "denied", vec![rule.into()]),
            Ok(ReplayOutcome::Runs) => (&mut self.let_through, "let through", Vec::new()),
            Ok(ReplayOutcome::Unknown(reason)) => {
                return *self.undecidable.entry(reason.to_string()).or_default() += 1;
            }
            Err(reason) => return *self.undecidable.entry(reason).or_default() += 1,
        };
        *count += 1;
        if self.items.len() < limit {
            self.items.push(Difference {
                id: call.id.to_string(),
                started_at: call.started_at.to_string(),
                project: Arc::clone(&call.project),
                tool: Arc::clone(&call.tool),
                principal: Arc::clone(&call.principal),
                agent: call.agent.clone(),
                caller: caller(call),
                was: was.as_str(),
                now,
                rules,
            });
        }
    }

    fn print(&self) {
        if !self.items.is_empty() {
            term::print_table(&self.items, &COLUMNS, |_| None);
        }
        let hidden = (self.held + self.denied + self.let_through).saturating_sub(self.items.len());
        if hidden > 0 {
            term::eprint(&format!("{} more differ; use --limit.", thousands(hidden)));
        }
        term::print(&self.summary());
    }

    fn summary(&self) -> String {
        let [held, denied, let_through] = [self.held, self.denied, self.let_through].map(thousands);
        let calls = plural(self.calls, "call");
        let mut summary =
            format!("{held} of {calls} would now be held, {denied} denied, {let_through} let through");
        for (reason, count) in &self.undecidable {
            summary.push_str(&format!("; {} cannot be predicted ({reason})", thousands(count)));
        }
        summary
    }
}

/// Whether a call would have the outcome that it had.
fn is_same(was: RecordedOutcome, now: &ReplayOutcome) -> bool {
    matches!(
        (was, now),
        (RecordedOutcome::Ran, ReplayOutcome::Runs)
            | (RecordedOutcome::Held | RecordedOutcome::Approved, ReplayOutcome::Held(_))
            | (RecordedOutcome::Denied, ReplayOutcome::Denied(_))
            // A tool's own rule that looks at files is taken to decide as it did.
            | (RecordedOutcome::Ran, ReplayOutcome::Unknown(Unknown::Files))
    )
}

#[cfg(test)]
mod tests;
