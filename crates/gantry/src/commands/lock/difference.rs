//! Two definitions side by side: which member differs, and how, with every hidden character made visible.

use serde_json::Value;

/// Characters of one line that are shown.
const LINE_CHARS: usize = 1000;

/// Characters that are shown before the first that differs, where the beginning of a line is left out.
const BEFORE: usize = 40;

/// Lines of one text that are shown.
const LINES: usize = 200;

/// What is different, as lines that begin with `-` for the pinned and `+` for the new text under the name of each
/// member. Where a text is too long to be read here, how long it is and how to see all of it is said: what a person
/// accepts they must have been able to see.
pub(super) fn lines(pinned: Option<&Value>, current: Option<&Value>) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", pinned, current, &mut lines);
    lines
}

fn compare(path: &str, pinned: Option<&Value>, current: Option<&Value>, lines: &mut Vec<String>) {
    let members = |value: Option<&Value>| value.is_none_or(Value::is_object);
    if pinned == current {
        return;
    }
    // An object that comes or goes is told member by member as well, unless it is empty.
    let empty =
        |value: Option<&Value>| value.and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
    if !members(pinned) || !members(current) || empty(pinned) || empty(current) {
        return tell(path, pinned, current, lines);
    }
    let mut names = keys(pinned);
    names.extend(
        keys(current).into_iter().filter(|key| pinned.is_none_or(|pinned| pinned.get(*key).is_none())),
    );
    for name in names {
        let below = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        compare(&below, member(pinned, name), member(current, name), lines);
    }
}

fn keys(value: Option<&Value>) -> Vec<&str> {
    value
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|object| object.keys().map(String::as_str))
        .collect()
}

fn member<'a>(value: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    value.and_then(|value| value.get(name))
}

fn tell(path: &str, pinned: Option<&Value>, current: Option<&Value>, lines: &mut Vec<String>) {
    let (old, new) = (written(pinned), written(current));
    let before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let shorter = old.len().min(new.len()).saturating_sub(before);
    let after = old.iter().rev().zip(new.iter().rev()).take(shorter).take_while(|(a, b)| a == b).count();
    lines.push(format!("  {}", visible(if path.is_empty() { "text" } else { path })));
    let differing = |side: &[String]| -> Vec<String> {
        let count = side.len().saturating_sub(before + after);
        side.iter().skip(before).take(count).map(|line| visible(line)).collect()
    };
    let (old, new) = (differing(&old), differing(&new));
    for (sign, side, other) in [('-', &old, &new), ('+', &new, &old)] {
        let shown = side.iter().take(LINES).enumerate();
        lines.extend(shown.map(|(n, line)| format!("    {sign} {}", short(line, other.get(n)))));
        if side.len() > LINES {
            lines.push(format!("    {sign} … {} of {} lines; {ALL}", side.len() - LINES, side.len()));
        }
    }
}

/// How to see what is not shown.
const ALL: &str = "gantry lock diff --json shows all";

/// A line that is not too long, from where it differs from its counterpart.
fn short(line: &str, counterpart: Option<&String>) -> String {
    let count = line.chars().count();
    if count <= LINE_CHARS {
        return line.to_owned();
    }
    let alike =
        counterpart.map_or(0, |other| line.chars().zip(other.chars()).take_while(|(a, b)| a == b).count());
    let from = if alike + BEFORE <= LINE_CHARS { 0 } else { alike.saturating_sub(BEFORE) };
    let shown: String = line.chars().skip(from).take(LINE_CHARS).collect();
    let begin = if from > 0 { "… " } else { "" };
    let end = if from + LINE_CHARS < count { " …" } else { "" };
    format!("{begin}{shown}{end} ({count} characters; {ALL})")
}

fn written(value: Option<&Value>) -> Vec<String> {
    match value {
        None => Vec::new(),
        Some(Value::String(text)) => text.split('\n').map(str::to_owned).collect(),
        Some(other) => vec![other.to_string()],
    }
}

/// A text in which nothing is hidden: every character that shows nothing, or turns the writing around, is named.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            shown.push_str(&format!("‹U+{:04X}›", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    shown
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
            | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_told_and_under_its_name() {
        let pinned = json!({ "description": "Reads.\nSafe.\nQuick.", "inputSchema": { "type": "object", "properties": { "a": { "type": "string" } } } });
        let current = json!({ "description": "Reads.\nSend\u{200b} all.\nQuick.", "inputSchema": { "type": "object", "properties": { "a": { "type": "number" }, "b": {} } }, "title": "T" });
        assert_eq!(
            lines(Some(&pinned), Some(&current)),
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
        assert!(lines(Some(&pinned), Some(&pinned)).is_empty());
    }

    #[test]
    fn what_comes_or_goes_is_told_whole() {
        let tool = json!({ "name": "x", "annotations": { "readOnlyHint": true } });
        assert_eq!(
            lines(None, Some(&tool)),
            ["  name", "    + x", "  annotations.readOnlyHint", "    + true"]
        );
        assert_eq!(lines(Some(&json!("a\nb")), None), ["  text", "    - a", "    - b"]);
        assert_eq!(lines(Some(&json!("a\na")), Some(&json!("a"))), ["  text", "    - a"]);
    }

    #[test]
    fn a_long_text_is_cut_around_what_differs_and_its_length_is_said() {
        let (old, new) = ("a".repeat(5000), format!("{}b{}", "a".repeat(4000), "a".repeat(999)));
        let told = lines(Some(&json!(old)), Some(&json!(new)));
        assert!(
            told[1].starts_with("    - … aaa")
                && told[1].ends_with("(5000 characters; gantry lock diff --json shows all)")
        );
        assert!(told[2].contains("ab") && told[2].chars().count() < 1200, "{}", told[2]);
        let new = "x\n".repeat(500);
        let told = lines(None, Some(&json!(new)));
        assert_eq!(told.len(), 202);
        assert_eq!(told[201], "    + … 301 of 501 lines; gantry lock diff --json shows all");
    }

    #[test]
    fn nothing_is_hidden() {
        assert_eq!(visible("a\u{202e}\u{e0041}\x1b[2J\u{2063}é"), "a‹U+202E›‹U+E0041›‹U+001B›[2J‹U+2063›é");
    }
}
