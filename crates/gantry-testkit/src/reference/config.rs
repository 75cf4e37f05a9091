//! The reference page of the configuration, from its JSON Schema.

use super::{list, one_line, properties, resolved, texts, type_words};
use gantry::config::{EXAMPLE, json_schema, unused_keys};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

/// # Errors
/// None; writing to a text does not fail.
pub fn page() -> Result<String, fmt::Error> {
    let mut page = String::from(include_str!("introduction.md"));
    let schema = json_schema();
    writeln!(page, "\n## Top level\n")?;
    write_keys(&mut page, "", &schema, &schema)?;
    page.push_str(include_str!("files.md"));
    writeln!(
        page,
        "\n## Keys without effect\n\nGantry accepts these keys, because other programs write them, but does not use them. It names them in a warning.\n"
    )?;
    let (ignored, refused) = unused_keys();
    write_places(&mut page, &ignored)?;
    writeln!(
        page,
        "\n## Keys that are refused\n\nA file that has one of these keys at this place is refused.\n"
    )?;
    write_places(&mut page, &refused)?;
    writeln!(page, "\n## A complete example\n\n```yaml\n{EXAMPLE}```")?;
    Ok(page)
}

/// Where the structs with such keys stand in the files.
const PLACES: [(&str, &str); 11] = [
    ("ConfigFile", "the top level"),
    ("OtherProject", "`projects.<name>`"),
    ("WorkspaceTools", "`tools.workspace`"),
    ("CatalogueServer", "`tools.<id> (kind: mcp)`"),
    ("Builtin", "`tools.<id> (kind: builtin)`"),
    ("Permissions", "`tools.<id> (kind: builtin).permissions`"),
    ("McpServer", "`mcpServers.<id>`"),
    ("HealthCheck", "`healthCheck` of a server"),
    ("RestTool", "`restTools.<name>`"),
    ("Agent", "`agents.<name>`"),
    ("AgentFile", "a file `agents/<name>/agent.json`"),
];

/// Keys at each place.
fn write_places(page: &mut String, keys: &BTreeSet<(&str, &str)>) -> fmt::Result {
    let structs: BTreeSet<&str> = keys.iter().map(|(of, _)| *of).collect();
    for of in structs {
        let place = PLACES.iter().find(|(name, _)| *name == of).map_or(of, |(_, place)| *place);
        let names: Vec<String> =
            keys.iter().filter(|(name, _)| *name == of).map(|(_, key)| format!("`{key}`")).collect();
        writeln!(page, "- {place}: {}", names.join(", "))?;
    }
    Ok(())
}

fn write_section(page: &mut String, path: &str, section: &Value, root: &Value) -> fmt::Result {
    writeln!(page, "\n## `{path}`\n")?;
    if let Some(text) = section.get("description") {
        writeln!(page, "{}\n", one_line(Some(text)))?;
    }
    // What a project has in common with the file is described there.
    if path == "projects.<name>" {
        return writeln!(
            page,
            "The keys are those at the top of the file, without `server`, `queues`, `store` and `projects`."
        );
    }
    write_keys(page, path, section, root)
}

/// A row for each key, and then the sections that the keys lead to, in the order of the file.
fn write_keys(page: &mut String, path: &str, section: &Value, root: &Value) -> fmt::Result {
    if section.get("oneOf").is_some() {
        return list(section, "oneOf").try_for_each(|variant| {
            let tags = properties(variant).into_iter().flatten();
            let tag = tags
                .filter_map(|(key, value)| Some(format!("{key}: {}", value.get("const")?.as_str()?)))
                .next();
            write_section(page, &format!("{path} ({})", tag.unwrap_or_default()), variant, root)
        });
    }
    let target = resolved(section, root);
    let required = [texts(section, "required"), texts(target, "required")].concat();
    let all =
        properties(section).into_iter().chain(properties(target).filter(|_| !std::ptr::eq(section, target)));
    let mut sections = Vec::new();
    writeln!(page, "| key | type | default | meaning |\n|---|---|---|---|")?;
    for (key, property) in all.flatten().filter(|(_, property)| property.get("deprecated").is_none()) {
        let kind = resolved(property, root);
        let default = match property.get("default").or_else(|| kind.get("default")).and_then(shown) {
            _ if required.contains(&key.as_str()) => "required".to_owned(),
            Some(default) => format!("`{default}`"),
            None => String::new(),
        };
        let meaning = one_line(property.get("description").or_else(|| kind.get("description")));
        writeln!(page, "| `{key}` | {} | {default} | {meaning} |", type_words(property, root))?;
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        add_sections(&path, property, root, &mut sections);
    }
    sections.into_iter().try_for_each(|(path, section)| write_section(page, &path, section, root))
}

/// The groups of keys that a value is or contains.
fn add_sections<'a>(
    path: &str,
    property: &'a Value,
    root: &'a Value,
    sections: &mut Vec<(String, &'a Value)>,
) {
    let kind = resolved(property, root);
    if sections.iter().any(|(known, _)| known == path) {
        return;
    }
    let is_group = |choice: &Value| choice.get("const").or_else(|| choice.get("enum")).is_none();
    if properties(kind).is_some() || list(kind, "oneOf").any(is_group) {
        sections.push((path.to_owned(), kind));
    }
    for choice in list(kind, "anyOf") {
        add_sections(path, choice, root, sections);
    }
    if let Some(items) = kind.get("items") {
        add_sections(&format!("{path}[]"), items, root, sections);
    }
    if let Some(entry) = kind.get("additionalProperties").filter(|entry| entry.is_object()) {
        let name = if ["mcpServers", "openapiSpecs", "tools"].contains(&path) { "<id>" } else { "<name>" };
        add_sections(&format!("{path}.{name}"), entry, root, sections);
    }
}

/// A default that says something.
fn shown(default: &Value) -> Option<String> {
    match default {
        Value::Null | Value::Object(_) => None,
        Value::Array(items) if items.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => Some(default.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_key_and_shows_the_example() {
        let (page, schema) = (page().unwrap(), json_schema());
        let definitions = schema["$defs"].as_object().unwrap().values();
        for (key, property) in definitions.chain([&schema]).filter_map(properties).flatten() {
            let is_offered = property.get("deprecated").is_none();
            assert!(!is_offered || page.contains(&format!("| `{key}` |")), "{key}");
        }
        assert!(
            page.contains("| `toolTimeout` | a whole number of milliseconds, at most 86400000 | `60000` |"),
            "{page}"
        );
        assert!(
            page.contains("- the top level: `auth`, `models`\n") && page.contains("## `approvals.webhook`")
        );
        assert!(page.contains("## `queues.<name>`") && page.contains("## `projects.<name>`"));
        assert!(page.contains("- `agents.<name>`: `guardrails`, "), "{page}");
        assert!(page.contains("a whole number, at least 1, at most"), "{page}");
        let (ignored, refused) = unused_keys();
        for (of, key) in ignored.union(&refused) {
            assert!(PLACES.iter().any(|(name, _)| name == of), "where {of} with {key} stands");
        }
        assert!(page.contains(EXAMPLE));
    }
}
