//! The reference page of Gantry's own tools, from what they say of themselves.

use super::{kinds, one_line, properties, quoted, texts};
use gantry_core::tool::{ApprovalRule, ToolSpec};
use serde_json::Value;
use std::fmt::Write as _;

/// # Errors
/// The tools cannot be set up in a temporary folder.
pub fn page() -> anyhow::Result<String> {
    let folder = tempfile::tempdir()?;
    let search = "web: { search: { api: searxng, url: 'https://searx.example.com' } }\n";
    std::fs::write(folder.path().join("gantry.yaml"), search)?;
    let mut page = String::from(include_str!("tools.md"));
    for tool in gantry::own_tool_specs(folder.path())? {
        write_tool(&mut page, &tool)?;
    }
    Ok(page)
}

fn write_tool(page: &mut String, tool: &ToolSpec) -> std::fmt::Result {
    let asks = match tool.approval_rule {
        ApprovalRule::Never => "never asks a person by itself",
        ApprovalRule::Always => "always asks a person",
        ApprovalRule::Depends => "asks a person where the description says so",
    };
    let effect = tool.annotations.effect().as_str();
    writeln!(page, "\n## `{}`\n\n{}\n\nEffect: {effect}; {asks}.", tool.name, tool.description)?;
    writeln!(page, "\n| argument | type | |\n|---|---|---|")?;
    write_rows(page, &tool.input_schema.value(), "")?;
    if let Some(schema) = &tool.output_schema {
        writeln!(page, "\n| result | type | |\n|---|---|---|")?;
        write_rows(page, &schema.value(), "")?;
    }
    Ok(())
}

/// A row for each property, those of objects and of lists of objects below it.
fn write_rows(page: &mut String, schema: &Value, prefix: &str) -> std::fmt::Result {
    let required = texts(schema, "required");
    for (name, property) in properties(schema).into_iter().flatten() {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        let meaning = one_line(property.get("description"));
        let default = property.get("default").filter(|default| **default != Value::Bool(false));
        let default = default.map(|default| format!(" Default: `{default}`.")).unwrap_or_default();
        writeln!(page, "| `{prefix}{name}`{mark} | {} | {meaning}{default} |", kind(property))?;
        let (inner, suffix) = match property.get("items") {
            Some(items) => (items, "[]."),
            None => (property, "."),
        };
        write_rows(page, inner, &format!("{prefix}{name}{suffix}"))?;
    }
    Ok(())
}

/// The type of a value, in the words of JSON Schema.
fn kind(schema: &Value) -> String {
    let words = texts(schema, "enum");
    if !words.is_empty() {
        return quoted(&words);
    }
    let kinds = kinds(schema);
    let kind = if kinds.is_empty() { "any".to_owned() } else { kinds.join(" or ") };
    match schema.get("items") {
        Some(items) => format!("{kind} of {}", self::kind(items)),
        None => kind,
    }
}
