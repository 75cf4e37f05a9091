//! Finding out which of ten thousand tools an agent sees.

use super::report::{Figures, Table};
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
use std::time::{Duration, Instant};

pub(super) const PROVIDERS: usize = 200;
pub(super) const TOOLS_EACH: usize = 50;

/// Exact names in the longest selection.
const NAMES: usize = 50;

/// Agents that are each resolved once.
pub(super) const AGENTS: usize = 1000;

pub(super) fn measure(time: Duration) -> Result<Table> {
    let title =
        format!("Resolving a toolset out of {} tools of {PROVIDERS} providers", PROVIDERS * TOOLS_EACH);
    let mut table = Table::new(&title, &["selection", "tools seen"]);
    let pool = Arc::new(Pool::build(candidates()));
    ensure!(pool.tools().len() == PROVIDERS * TOOLS_EACH, "the pool lost tools");
    let every = PROVIDERS * TOOLS_EACH / NAMES;
    let names: Vec<String> = pool.tools().iter().step_by(every).map(|tool| tool.name.to_string()).collect();
    let listed = |texts: &[String]| -> Result<Selection> { Ok(Selection::of(patterns(texts)?)) };
    let selections = [
        ("`*`".to_owned(), listed(&["*".into()])?, PROVIDERS * TOOLS_EACH),
        ("one glob, `server042__*`".to_owned(), listed(&["server042__*".into()])?, TOOLS_EACH),
        ("one glob, `*_007`".to_owned(), listed(&["*_007".into()])?, PROVIDERS),
        (format!("{NAMES} exact names"), listed(&names)?, NAMES),
    ];
    let agents = (0..AGENTS).map(agent).collect::<Result<Vec<_>>>()?;
    for round in 0..ROUNDS {
        for (what, selection, expected) in &selections {
            progress(Section::Toolset, round, what);
            let seen = Toolset::resolve(&pool, selection, &SpawnContext::top(2)).0.len();
            ensure!(seen == *expected, "{what} sees {seen} tools instead of {expected}");
            table.add(&[what, &seen.to_string()], resolving(&pool, selection, time));
        }
        let what = format!("{AGENTS} agents, each once");
        progress(Section::Toolset, round, &what);
        let (seen, figures) = resolving_each(&pool, &agents)?;
        table.add(&[&what, &seen], figures);
    }
    Ok(table)
}

fn resolving(pool: &Arc<Pool>, selection: &Selection, time: Duration) -> Figures {
    let end = Instant::now() + time;
    let mut times: Vec<f64> = Vec::new();
    let mut now = Instant::now();
    while now < end {
        drop(black_box(Toolset::resolve(black_box(pool), black_box(selection), &SpawnContext::top(2))));
        let then = std::mem::replace(&mut now, Instant::now());
        times.push(micros(now - then));
    }
    figures(times)
}

/// Resolves every agent, one after the other, so that none finds the processor's caches full of its own tools; says how
/// many tools they see, too.
fn resolving_each(pool: &Arc<Pool>, agents: &[Selection]) -> Result<(String, Figures)> {
    let mut times = Vec::with_capacity(agents.len());
    let (mut least, mut most) = (usize::MAX, 0);
    for selection in agents {
        let start = Instant::now();
        let (set, warnings) = black_box(Toolset::resolve(black_box(pool), selection, &SpawnContext::top(2)));
        times.push(micros(start.elapsed()));
        ensure!(warnings.is_empty(), "an agent of the bench is odd: {warnings:?}");
        (least, most) = (least.min(set.len()), most.max(set.len()));
    }
    let longest = times.iter().copied().fold(0.0, f64::max);
    let mut figures = figures(times);
    figures.push(("max µs", longest));
    Ok((format!("{least}–{most}"), figures))
}

pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub(super) fn figures(mut times: Vec<f64>) -> Figures {
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times.get((times.len() - 1) * part / 100).copied().unwrap_or(f64::NAN);
    vec![("p50 µs", at(50)), ("p99 µs", at(99))]
}

/// An agent as people write them: names, globs, or whole servers with an allow-list; all but the first kind have aliases.
pub(super) fn agent(n: usize) -> Result<Selection> {
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
        2 => Selection::of(patterns(&["*".to_owned(), "*_007".to_owned()])?),
        _ => Selection {
            include: (0..10).map(|more| ToolSelector::Provider(server(more).into())).collect(),
            ..Selection::default()
        },
    };
    selection.aliases = (0..5).map(aliases).collect();
    selection.allowed =
        Some(patterns(&["alias_*".to_owned(), globs[5].clone(), names[6].clone(), names[7].clone()])?);
    selection.auto_approve = patterns(&["alias_0".to_owned(), names[6].clone()])?;
    Ok(selection)
}

fn patterns(texts: &[String]) -> Result<Vec<Pattern>> {
    let patterns: Result<_, _> = texts.iter().map(|text| Pattern::parse(text)).collect();
    patterns.context("a pattern of the bench is wrong")
}

fn candidates() -> Vec<Candidate> {
    (0..PROVIDERS).flat_map(|provider| (0..TOOLS_EACH).map(move |tool| candidate(provider, tool))).collect()
}

pub(super) fn candidate(provider: usize, tool: usize) -> Candidate {
    let id: Arc<str> = format!("server{provider:03}").into();
    Candidate {
        origin: Origin { provider: Arc::clone(&id), namespace: id, kind: ToolKind::Mcp },
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
