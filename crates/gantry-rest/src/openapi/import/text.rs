//! Titles and descriptions for models.

use crate::openapi::document::NodeRef;
use crate::openapi::import::operations::OperationRef;
use crate::openapi::limits::DESCRIPTION_CHARS;
use crate::openapi::schema::{collapse, without_comments};
use gantry_core::invisible::is_invisible;
use serde_json::Value;

const TITLE_CHARS: usize = 200;

/// A text, which YAML may have read as a number (`version: 1.0`).
pub(crate) fn scalar(node: NodeRef<'_>) -> String {
    match node.value {
        Value::String(text) => line(text),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

pub(crate) fn line(text: &str) -> String {
    collapse(text, TITLE_CHARS)
}

pub(crate) fn description(found: &OperationRef<'_>) -> String {
    let said = |key: &str| found.node.text(key).map(cleaned).filter(|text| !text.is_empty());
    let text = match (said("summary"), said("description")) {
        (Some(summary), Some(more)) if summary == more => more,
        (Some(summary), Some(more)) => format!("{summary}\n\n{more}"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => format!("{} {}", found.method, cleaned(found.path)),
    };
    let text = if found.node.flag("deprecated") { format!("Deprecated. {text}") } else { text };
    cut(&text, DESCRIPTION_CHARS)
}

/// A text without comments of HTML and without invisible characters, its white space collapsed within lines.
fn cleaned(text: &str) -> String {
    // Limit: a description may have megabytes, and the rest would not be shown.
    let text: String = text.chars().take(DESCRIPTION_CHARS * 16).collect();
    let text = without_comments(&text);
    let mut out = String::with_capacity(text.len());
    let mut blank = false;
    for line in text.lines() {
        let line: String = line
            .chars()
            .map(|c| if c.is_whitespace() { ' ' } else { c })
            .filter(|c| !is_invisible(*c))
            .collect();
        let words = line.trim();
        if words.is_empty() {
            blank = !out.is_empty();
            continue;
        }
        if !out.is_empty() {
            out.push_str(if blank { "\n\n" } else { "\n" });
            // An indented line is part of a list or code.
            let indent = line.len() - line.trim_start().len();
            out.extend(std::iter::repeat_n(' ', indent.min(8)));
        }
        blank = false;
        out.push_str(&words.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    out
}

/// The beginning of a text, to the end of a word, with an ellipsis.
fn cut(text: &str, chars: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(chars) else { return text.to_owned() };
    let start: String = text.chars().take(chars.saturating_sub(1)).collect();
    let word = start.rfind(char::is_whitespace).filter(|at| *at > end / 2);
    let start = word.and_then(|at| start.get(..at)).unwrap_or(&start);
    format!("{}…", start.trim_end())
}
