//! The reference page of Gantry's own tools, from what they say of themselves.

use super::{one_line, properties, texts};
use gantry_core::tool::{ApprovalRule, ToolSpec};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

const INTRODUCTION: &str = "# Gantry's own tools

Generated from the program itself by `cargo xtask reference`. All of them are tools of the provider `workspace`; an agent has those that its
list names, and `tools.workspace` in the configuration switches them off one by one. Arguments without a mark are needed; `?` marks the others.
How programs are confined is told in [the sandbox](../sandbox.md).
";

/// The page. The folder is an empty one, in which nothing is left.
///
/// # Errors
/// The tools cannot be set up there.
pub fn page(folder: &Path) -> anyhow::Result<String> {
    let file = folder.join("gantry.yaml");
    std::fs::write(&file, "web: { search: { api: searxng, url: 'https://searx.example.com' } }\n")?;
    let tools = gantry::own_tool_specs(folder)?;
    std::fs::remove_file(file)?;
    let mut page = String::from(INTRODUCTION);
    for tool in tools {
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
    let required: Vec<&str> = texts(schema.get("required"));
    for (name, property) in properties(schema).into_iter().flatten() {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        let meaning = one_line(property.get("description").and_then(Value::as_str).unwrap_or_default());
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
    let words = texts(schema.get("enum"));
    if !words.is_empty() {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(kinds @ Value::Array(_)) => texts(Some(kinds)).join(" or "),
        _ => "any".to_owned(),
    };
    match schema.get("items") {
        Some(items) => format!("{kind} of {}", self::kind(items)),
        None => kind,
    }
}
