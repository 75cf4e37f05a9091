//! Finding out which of ten thousand tools an agent sees.

pub(super) mod projects;

use super::report::{Table, percentiles, timed, timed_for};
use super::{ROUNDS, Section, progress};
use anyhow::{Context as _, Result, ensure};
use gantry_core::Toolset;
use gantry_core::names::Style;
use gantry_core::pattern::Pattern;
use gantry_core::tool::{Annotations, ApprovalRule, Origin, Settings, ToolKind, ToolSpec};
use gantry_core::toolset::{Candidate, Pool, Selection, SpawnContext, ToolSelector};
use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

const PROVIDERS: usize = 200;
const TOOLS_EACH: usize = 50;
const TOOLS: usize = PROVIDERS * TOOLS_EACH;

/// Exact names in the longest selection.
const NAMES: usize = 50;

/// Agents that are each resolved once.
const AGENTS: usize = 1000;

pub(super) async fn resolving(time: Duration) -> Result<Table> {
    let title = format!("Resolving a toolset out of {TOOLS} tools of {PROVIDERS} providers");
    let mut table = Table::new(title, &["selection", "tools seen"]);
    let candidates = (0..TOOLS).map(|n| candidate(n / TOOLS_EACH, n % TOOLS_EACH)).collect();
    let pool = Arc::new(Pool::build(candidates));
    ensure!(pool.tools().len() == TOOLS, "the pool lost tools");
    let names: Vec<String> =
        pool.tools().iter().step_by(TOOLS / NAMES).map(|tool| tool.name.to_string()).collect();
    let selections = [
        ("`*`".to_owned(), patterns(&["*"])?, TOOLS),
        ("one glob, `server042__*`".to_owned(), patterns(&["server042__*"])?, TOOLS_EACH),
        ("one glob, `*_007`".to_owned(), patterns(&["*_007"])?, PROVIDERS),
        (format!("{NAMES} exact names"), patterns(&names)?, NAMES),
    ]
    .map(|(what, patterns, expected)| (what, Selection::of(patterns), expected));
    let agents = (0..AGENTS).map(agent).collect::<Result<Vec<_>>>()?;
    let resolve = |selection: &Selection| {
        black_box(Toolset::resolve(black_box(&pool), black_box(selection), &SpawnContext::top(2)))
    };
    for round in 0..ROUNDS {
        for (what, selection, expected) in &selections {
            progress(Section::Toolset, round, what);
            let seen = resolve(selection).0.len();
            ensure!(seen == *expected, "{what} sees {seen} tools instead of {expected}");
            let work = async || {
                drop(resolve(selection));
                Ok(())
            };
            let figures = percentiles(timed_for(time, work).await?, [("p50 µs", 50), ("p99 µs", 99)]);
            table.add(&[what, &seen.to_string()], figures);
        }
        // One after the other, so that none finds the processor's caches full of its own tools.
        let what = format!("{AGENTS} agents, each once");
        progress(Section::Toolset, round, &what);
        let (mut least, mut most) = (usize::MAX, 0);
        let times = timed(AGENTS, async |n| {
            let (set, warnings) = resolve(&agents[n]);
            ensure!(warnings.is_empty(), "an agent of the bench has warnings: {warnings:?}");
            (least, most) = (least.min(set.len()), most.max(set.len()));
            Ok(())
        });
        let figures = percentiles(times.await?, [("p50 µs", 50), ("p99 µs", 99), ("max µs", 100)]);
        table.add(&[&what, &format!("{least}–{most}")], figures);
    }
    Ok(table)
}

/// An agent as people write them: names, globs, or whole servers with an allow-list; all but the first kind have aliases.
fn agent(n: usize) -> Result<Selection> {
    let server = |more: usize| format!("server{:03}", (n * 7 + more) % PROVIDERS);
    let tool = |more: usize| format!("{}__tool_{:03}", server(more), (n + more) % TOOLS_EACH);
    let aliases = |more: usize| {
        (format!("alias_{more}").into(), format!("@{}", tool(more).replacen("__", "/", 1)).into())
    };
    let names: Vec<String> = (0..10).map(tool).collect();
    let globs: Vec<String> = (0..10).map(|more| format!("{}__*", server(more))).collect();
    let mut selection = match n % 4 {
        0 => return Ok(Selection::of(patterns(&names)?)),
        1 => Selection::of(patterns(&globs)?),
        2 => Selection::of(patterns(&["*", "*_007"])?),
        _ => Selection {
            include: (0..10).map(|more| ToolSelector::Provider(server(more).into())).collect(),
            ..Selection::default()
        },
    };
    selection.aliases = (0..5).map(aliases).collect();
    selection.allowed = Some(patterns(&["alias_*", &globs[5], &names[6], &names[7]])?);
    selection.auto_approve = patterns(&["alias_0", &names[6]])?;
    Ok(selection)
}

fn patterns(texts: &[impl AsRef<str>]) -> Result<Vec<Pattern>> {
    let patterns: Result<_, _> = texts.iter().map(|text| Pattern::parse(text.as_ref())).collect();
    patterns.context("a pattern of the bench is wrong")
}

fn candidate(provider: usize, tool: usize) -> Candidate {
    Candidate {
        origin: origin(provider),
        style: Style::Prefixed,
        spec: ToolSpec {
            name: format!("tool_{tool:03}"),
            title: None,
            description: "Does one thing of the many that a server does".into(),
            input_schema: json!({ "type": "object", "properties": { "text": { "type": "string" } } }).into(),
            output_schema: None,
            annotations: Annotations { read_only_hint: Some(true), ..Annotations::default() },
            approval_rule: ApprovalRule::Never,
            raw: None,
            target: None,
        },
        settings: Settings::default(),
    }
}

fn origin(provider: usize) -> Origin {
    let id: Arc<str> = format!("server{provider:03}").into();
    Origin { provider: Arc::clone(&id), namespace: id, kind: ToolKind::Mcp }
}
