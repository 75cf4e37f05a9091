//! The reference page of the configuration, written from its JSON Schema.

use super::EXAMPLE;
use super::shapes::{is_offered, properties, resolved, shapes};
use serde_json::Value;
use std::fmt::{self, Write as _};

/// The reference page in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(include_str!("reference/introduction.md"));
    // Writing to a `String` cannot fail.
    write_page(&mut page).map_or_else(|fmt::Error| String::new(), |()| page)
}

fn write_page(page: &mut String) -> fmt::Result {
    let schema = super::json_schema();
    let mut sections = Vec::new();
    writeln!(page, "\n## Top level\n")?;
    write_rows(page, &schema, "", &schema, &mut sections)?;
    // Sections in the order of the file, those inside a section right behind it.
    while !sections.is_empty() {
        let (path, section) = sections.remove(0);
        writeln!(page, "\n## `{path}`\n")?;
        if let Some(text) = section.get("description").and_then(Value::as_str) {
            writeln!(page, "{}\n", one_line(text))?;
        }
        // What a project has in common with the file is described there.
        if path == "projects.<name>" {
            writeln!(
                page,
                "The keys are those at the top of the file, without `server`, `queues`, `store` and `projects`."
            )?;
            continue;
        }
        let mut inner = Vec::new();
        write_rows(page, section, &path, &schema, &mut inner)?;
        inner.append(&mut sections);
        sections = inner;
    }
    page.push_str(include_str!("reference/files.md"));
    writeln!(
        page,
        "\n## Keys without effect\n\nGantry accepts these keys, because other programs write them, but does not use them. It names them in a warning.\n"
    )?;
    let (ignored, refused) = (
        named(&|property| property.get("deprecated").is_some()),
        named(&|property| property.get("not").is_some()),
    );
    ignored.iter().try_for_each(|name| writeln!(page, "- {name}"))?;
    writeln!(
        page,
        "\n## Keys that are refused\n\nA file that has one of these keys at such a place is refused.\n"
    )?;
    refused.iter().try_for_each(|name| writeln!(page, "- {name}"))?;
    writeln!(page, "\n## A complete example\n\n```yaml\n{EXAMPLE}```")
}

/// A row for each key; the sections that keys lead to are added.
fn write_rows<'a>(
    page: &mut String,
    section: &'a Value,
    path: &str,
    root: &'a Value,
    sections: &mut Vec<(String, &'a Value)>,
) -> fmt::Result {
    if let Some(variants) = section.get("oneOf").and_then(Value::as_array) {
        for variant in variants {
            let tags = properties(variant).into_iter().flatten();
            let tag = tags
                .filter_map(|(key, value)| Some(format!("{key}: {}", value.get("const")?.as_str()?)))
                .next();
            let path = format!("{path} ({})", tag.unwrap_or_default());
            sections.push((path, variant));
        }
        return Ok(());
    }
    let required: Vec<&str> = texts(section.get("required"));
    let target = resolved(section, root);
    let all =
        properties(section).into_iter().chain(properties(target).filter(|_| !std::ptr::eq(section, target)));
    writeln!(page, "| key | type | default | meaning |\n|---|---|---|---|")?;
    for (key, property) in all.flatten().filter(|(_, property)| is_offered(property)) {
        let needs = required.contains(&key.as_str()) || texts(target.get("required")).contains(&key.as_str());
        let kind = resolved(property, root);
        let default = match property.get("default").or_else(|| kind.get("default")).and_then(shown) {
            _ if needs => "required".to_owned(),
            Some(default) => format!("`{default}`"),
            None => String::new(),
        };
        let text = property.get("description").or_else(|| kind.get("description")).and_then(Value::as_str);
        let meaning = one_line(text.unwrap_or_default());
        let row = format!("| `{key}` | {} | {default} | {meaning} |", type_words(property, root));
        writeln!(page, "{}", row.replace('\n', " "))?;
        add_sections(&join(path, key), property, root, sections);
    }
    Ok(())
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
    if properties(kind).is_some() || kind.get("oneOf").is_some_and(|_| !is_words(kind)) {
        sections.push((path.to_owned(), kind));
    }
    for choice in kind.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
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

/// The keys of some sort, with the structs that have them.
fn named(is_listed: &dyn Fn(&Value) -> bool) -> Vec<String> {
    let mut keys: Vec<String> = shapes().keys(is_listed).map(|key| format!("`{key}`")).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// The type of a value in words.
pub(crate) fn type_words(schema: &Value, root: &Value) -> String {
    let kind = resolved(schema, root);
    if let Some(title) = schema.get("title").or_else(|| kind.get("title")).and_then(Value::as_str) {
        return title.to_owned();
    }
    let mut words = texts(kind.get("enum"));
    let constants = kind.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    words.extend(constants.filter_map(|choice| choice.get("const")?.as_str()));
    if !words.is_empty() {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(choices) = kind.get("anyOf").and_then(Value::as_array) {
        let choices = choices.iter().filter(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        let mut choices: Vec<String> = choices.map(|choice| type_words(choice, root)).collect();
        choices.dedup();
        return choices.join(", or ");
    }
    let kinds = match kind.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        kinds => texts(kinds),
    };
    let max = kind.get("maximum").and_then(Value::as_u64).map(|max| format!(", at most {max}"));
    match kinds.iter().find(|kind| **kind != "null") {
        Some(&"integer") => format!("a whole number{}", max.unwrap_or_default()),
        Some(&"boolean") => "true or false".to_owned(),
        Some(&"string") => "text".to_owned(),
        Some(&"array") => match kind.get("items") {
            Some(items) => format!("a list, each {}", type_words(items, root)),
            None => "a list".to_owned(),
        },
        Some(&"object") => match kind.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) if properties(resolved(values, root)).is_none() => {
                format!("a group, each {}", type_words(values, root))
            }
            _ => "a group of keys".to_owned(),
        },
        _ if kind.get("oneOf").is_some() => "a group of keys".to_owned(),
        _ => "any value".to_owned(),
    }
}

fn is_words(kind: &Value) -> bool {
    let choices = kind.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    choices.into_iter().all(|choice| choice.get("const").is_some() || choice.get("enum").is_some())
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

fn texts(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
