//! Differences from the pinned definitions, in lines. No character of a definition stays invisible.

use crate::commands::in_project;
use crate::term::{Column, plural};
use gantry_core::invisible::is_invisible;
use gantry_server::model::LockDiff;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Characters of one line that are shown, and how many of them stand before the first that differs.
const LINE_CHARS: usize = 1000;
const CONTEXT_CHARS: usize = 40;

/// Lines of one text that are shown.
const LINES: usize = 200;

/// Added where something is cut: before a user accepts a definition, the user must be able to read all of it.
const SHOW_ALL: &str = "gantry lock diff --json shows all";

pub(super) const COLUMNS: [Column<LockDiff>; 3] = [
    Column::new("SERVER", |diff| diff.server.to_string()),
    Column::new("TOOL", |diff| visible(tool(diff))),
    Column::new("FLAGS", |diff| visible(&diff.flags.join("; "))),
];

/// Every difference with its texts.
pub(super) fn each<'a>(diffs: impl IntoIterator<Item = &'a LockDiff>) -> Vec<String> {
    let mut lines = Vec::new();
    for diff in diffs {
        lines.push(visible(&format!("{} {}: {}", diff.server, tool(diff), diff.change)));
        lines.extend(diff.flags.iter().map(|flag| visible(&format!("  ! {flag}"))));
        // A definition that is pinned for the first time has nothing to compare it with.
        if diff.change != "unpinned" {
            lines.extend(compare(diff.pinned.as_ref(), diff.current.as_ref()));
        }
    }
    lines
}

/// The same, with one line for each server of which nothing is pinned, and its suspicious tools.
pub(super) fn by_server(diffs: &[LockDiff], project: &str) -> Vec<String> {
    let (unpinned, changed): (Vec<&LockDiff>, Vec<_>) =
        diffs.iter().partition(|diff| diff.change == "unpinned");
    let mut lines = each(changed);
    let mut servers: BTreeMap<&str, Vec<&LockDiff>> = BTreeMap::new();
    for diff in unpinned {
        servers.entry(&diff.server).or_default().push(diff);
    }
    for (server, diffs) in servers {
        let count = plural(diffs.len(), "definition");
        let pin = format!("gantry lock{} pins its {count}", in_project(project));
        lines.push(visible(&format!("{server}: not pinned; {pin}")));
        for diff in diffs {
            lines.extend(diff.flags.iter().map(|flag| visible(&format!("  ! {}: {flag}", tool(diff)))));
        }
    }
    lines
}

fn tool(diff: &LockDiff) -> &str {
    diff.tool.as_deref().unwrap_or("(instructions)")
}

/// The members that differ: the path of each, its pinned lines after `-` and its present lines after `+`.
fn compare(pinned: Option<&Value>, current: Option<&Value>) -> Vec<String> {
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    add_members(&[], pinned, &mut old);
    add_members(&[], current, &mut new);
    let paths: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let mut lines = Vec::new();
    for path in paths {
        let (old, new) = (old.get(path).copied(), new.get(path).copied());
        if old == new {
            continue;
        }
        lines.push(format!(
            "  {}",
            if path.is_empty() { "text".to_owned() } else { visible(&path.join(".")) }
        ));
        let is_text = [old, new].iter().flatten().all(|value| value.is_string());
        let (old, new) = without_common_lines(lines_of(old, is_text), lines_of(new, is_text));
        add_side(&mut lines, '-', &old, &new);
        add_side(&mut lines, '+', &new, &old);
    }
    lines
}

/// Collects the values of a definition that have no members, by their path.
fn add_members<'a>(path: &[&'a str], value: Option<&'a Value>, out: &mut BTreeMap<Vec<&'a str>, &'a Value>) {
    match value {
        Some(Value::Object(members)) if !members.is_empty() => {
            for (name, value) in members {
                let path: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
                add_members(&path, Some(value), out);
            }
        }
        Some(value) => {
            out.insert(path.to_vec(), value);
        }
        None => {}
    }
}

fn lines_of(value: Option<&Value>, is_text: bool) -> Vec<String> {
    match value {
        None => Vec::new(),
        Some(Value::String(text)) if is_text => text.split('\n').map(visible).collect(),
        Some(value) => vec![visible(&value.to_string())],
    }
}

/// The lines from the first to the last that differ.
fn without_common_lines(mut old: Vec<String>, mut new: Vec<String>) -> (Vec<String>, Vec<String>) {
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    old.drain(..start);
    new.drain(..start);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    old.truncate(old.len() - end);
    new.truncate(new.len() - end);
    (old, new)
}

fn add_side(out: &mut Vec<String>, sign: char, side: &[String], other: &[String]) {
    let shown = side.iter().take(LINES).enumerate();
    out.extend(shown.map(|(n, line)| format!("    {sign} {}", excerpt(line, other.get(n)))));
    if side.len() > LINES {
        out.push(format!("    {sign} … {} of {} lines; {SHOW_ALL}", side.len() - LINES, side.len()));
    }
}

/// A line; of a long one, the part that begins shortly before the first difference from its counterpart.
fn excerpt(line: &str, counterpart: Option<&String>) -> String {
    let length = line.chars().count();
    if length <= LINE_CHARS {
        return line.to_owned();
    }
    let same =
        counterpart.map_or(0, |other| line.chars().zip(other.chars()).take_while(|(a, b)| a == b).count());
    let start = if same + CONTEXT_CHARS <= LINE_CHARS { 0 } else { same.saturating_sub(CONTEXT_CHARS) };
    let shown: String = line.chars().skip(start).take(LINE_CHARS).collect();
    let before = if start > 0 { "… " } else { "" };
    let after = if start + LINE_CHARS < length { " …" } else { "" };
    format!("{before}{shown}{after} ({length} characters; {SHOW_ALL})")
}

/// A text in which each invisible character is named.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) { shown.push_str(&format!("‹U+{:04X}›", u32::from(c))) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_shown_and_under_its_path() {
        let pinned = json!({ "description": "Reads.\nSafe.\nQuick.", "inputSchema": { "type": "object", "properties": { "a": { "type": "string" } } } });
        let current = json!({ "description": "Reads.\nSend\u{200b} all.\nQuick.", "inputSchema": { "type": "object", "properties": { "a": { "type": "number" }, "b": {} } }, "title": "T" });
        assert_eq!(
            compare(Some(&pinned), Some(&current)),
            [
                "  description",
                "    - Safe.",
                "    + Send‹U+200B› all.",
                "  inputSchema.properties.a.type",
                "    - string",
                "    + number",
                "  inputSchema.properties.b",
                "    + {}",
                "  title",
                "    + T",
            ]
        );
        assert!(compare(Some(&pinned), Some(&pinned)).is_empty());
        // Another type with the same text, and a name with a dot in it, are differences too.
        let types = compare(Some(&json!({ "a": "1", "b.c": 1 })), Some(&json!({ "a": 1, "b": { "c": 1 } })));
        assert_eq!(types, ["  a", "    - \"1\"", "    + 1", "  b.c", "    + 1", "  b.c", "    - 1"]);
    }

    #[test]
    fn what_is_added_or_removed_is_shown_whole() {
        let tool = json!({ "name": "x", "annotations": { "readOnlyHint": true } });
        assert_eq!(
            compare(None, Some(&tool)),
            ["  annotations.readOnlyHint", "    + true", "  name", "    + x"]
        );
        assert_eq!(compare(Some(&json!("a\nb")), None), ["  text", "    - a", "    - b"]);
        assert_eq!(compare(Some(&json!("a\na")), Some(&json!("a"))), ["  text", "    - a"]);
    }

    #[test]
    fn a_long_text_is_cut_around_what_differs_and_its_length_is_shown() {
        let (old, new) = ("a".repeat(5000), format!("{}b{}", "a".repeat(4000), "a".repeat(999)));
        let lines = compare(Some(&json!(old)), Some(&json!(new)));
        assert!(lines[1].starts_with("    - … aaa"), "{}", lines[1]);
        assert!(lines[1].ends_with("(5000 characters; gantry lock diff --json shows all)"), "{}", lines[1]);
        assert!(lines[2].contains("ab") && lines[2].chars().count() < 1200, "{}", lines[2]);
        let lines = compare(None, Some(&json!("x\n".repeat(500))));
        assert_eq!(lines.len(), 202);
        assert_eq!(lines[201], "    + … 301 of 501 lines; gantry lock diff --json shows all");
    }

    #[test]
    fn invisible_characters_are_named() {
        assert_eq!(visible("a\u{202e}\u{e0041}\x1b[2J\u{2063}é"), "a‹U+202E›‹U+E0041›‹U+001B›[2J‹U+2063›é");
    }
}
