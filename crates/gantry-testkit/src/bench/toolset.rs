//! Finding out which of ten thousand tools an agent sees.

use super::report::{Figures, Table};
use super::{ROUNDS, Section, progress};
use anyhow::{Context as _, Result, ensure};
use gantry_core::Toolset;
use gantry_core::names::Style;
use gantry_core::pattern::Pattern;
use gantry_core::tool::{Annotations, Origin, OwnRule, Settings, ToolKind, ToolSpec};
use gantry_core::toolset::{Candidate, Pool, Selection};
use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PROVIDERS: usize = 100;
const TOOLS_EACH: usize = 100;

/// Exact names in the longest selection.
const NAMES: usize = 50;

pub(super) fn measure(time: Duration) -> Result<Table> {
    let title = format!("Resolving a toolset out of {} tools", PROVIDERS * TOOLS_EACH);
    let mut table = Table::new(&title, &["selection", "tools seen"]);
    let pool = Arc::new(Pool::build(candidates()));
    ensure!(pool.tools().len() == PROVIDERS * TOOLS_EACH, "the pool lost tools");
    let every = PROVIDERS * TOOLS_EACH / NAMES;
    let names: Vec<String> = pool.tools().iter().step_by(every).map(|tool| tool.name.to_string()).collect();
    let selections = [
        ("`*`".to_owned(), selection(&["*".to_owned()])?, PROVIDERS * TOOLS_EACH),
        ("one glob, `server042__*`".to_owned(), selection(&["server042__*".to_owned()])?, TOOLS_EACH),
        (format!("{NAMES} exact names"), selection(&names)?, NAMES),
    ];
    for round in 0..ROUNDS {
        for (what, selection, expected) in &selections {
            progress(Section::Toolset, round, what);
            let seen = Toolset::resolve(&pool, selection).0.len();
            ensure!(seen == *expected, "{what} sees {seen} tools instead of {expected}");
            table.add(&[what, &seen.to_string()], resolving(&pool, selection, time));
        }
    }
    Ok(table)
}

fn resolving(pool: &Arc<Pool>, selection: &Selection, time: Duration) -> Figures {
    let end = Instant::now() + time;
    let mut times: Vec<f64> = Vec::new();
    let mut now = Instant::now();
    while now < end {
        drop(black_box(Toolset::resolve(black_box(pool), black_box(selection))));
        let then = std::mem::replace(&mut now, Instant::now());
        times.push((now - then).as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times.get((times.len() - 1) * part / 100).copied().unwrap_or(f64::NAN);
    vec![("p50 µs", at(50)), ("p99 µs", at(99))]
}

fn selection(texts: &[String]) -> Result<Selection> {
    let patterns: Result<Vec<Pattern>, _> = texts.iter().map(|text| Pattern::parse(text)).collect();
    Ok(Selection { patterns: patterns.context("a pattern of the bench is wrong")? })
}

fn candidates() -> Vec<Candidate> {
    (0..PROVIDERS).flat_map(|provider| (0..TOOLS_EACH).map(move |tool| candidate(provider, tool))).collect()
}

fn candidate(provider: usize, tool: usize) -> Candidate {
    let id: Arc<str> = format!("server{provider:03}").into();
    Candidate {
        origin: Origin { provider: Arc::clone(&id), namespace: id, kind: ToolKind::Mcp },
        style: Style::Prefixed,
        spec: ToolSpec {
            name: format!("tool_{tool:03}"),
            title: None,
            description: "Does one thing of the many that a server does".into(),
            input_schema: json!({ "type": "object", "properties": { "text": { "type": "string" } } }),
            output_schema: None,
            annotations: Annotations { read_only_hint: Some(true), ..Annotations::default() },
            own_rule: OwnRule::Never,
            raw: None,
        },
        settings: Settings::default(),
    }
}
