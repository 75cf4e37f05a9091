//! Differences as a person reads them.

use super::difference::{self, visible};
use super::text;
use crate::commands::in_project;
use crate::term;
use serde_json::Value;
use std::collections::BTreeMap;

/// Every difference with the texts, line by line.
pub(super) fn each(found: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for item in found {
        let change = text(item, "change");
        lines.push(visible(&format!("{} {}: {change}", text(item, "server"), named(item))));
        lines.extend(flags(item).iter().map(|flag| format!("  ! {}", visible(flag))));
        // What is pinned for the first time is shown by name; there is nothing to compare it with.
        if change != "unpinned" {
            let of = |key: &str| item.get(key).filter(|value| !value.is_null());
            lines.extend(difference::lines(of("pinned"), of("current")));
        }
    }
    lines
}

/// The same, with one line for each server that is not pinned at all, and what is suspicious about it.
pub(super) fn by_server(found: &[Value], project: &str) -> Vec<String> {
    let (unpinned, others): (Vec<&Value>, Vec<&Value>) =
        found.iter().partition(|item| text(item, "change") == "unpinned");
    let mut lines = each(&others.into_iter().cloned().collect::<Vec<_>>());
    let mut servers: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for item in unpinned {
        servers.entry(text(item, "server")).or_default().push(item);
    }
    for (server, items) in servers {
        lines.push(visible(&format!(
            "{server}: not pinned; gantry lock{} pins its {}",
            in_project(project),
            definitions(items.len())
        )));
        let flagged = items.iter().flat_map(|item| flags(item).into_iter().map(|flag| (named(item), flag)));
        lines.extend(flagged.map(|(tool, flag)| visible(&format!("  ! {tool}: {flag}"))));
    }
    lines
}

/// What has been pinned, as a table.
pub(super) fn table(done: &[Value]) {
    let row = |item: &Value| vec![text(item, "server").into(), visible(&named(item)), flags(item).join("; ")];
    term::table(&["SERVER", "TOOL", "FLAGS"], &done.iter().map(row).collect::<Vec<_>>());
}

pub(super) fn definitions(count: usize) -> String {
    format!("{count} {}", if count == 1 { "definition" } else { "definitions" })
}

fn named(item: &Value) -> String {
    item.get("tool").and_then(Value::as_str).map_or_else(|| "(instructions)".to_owned(), str::to_owned)
}

fn flags(item: &Value) -> Vec<String> {
    let flags = item.get("flags").and_then(Value::as_array).into_iter().flatten();
    flags.filter_map(Value::as_str).map(str::to_owned).collect()
}
