//! What applies: every value of the files with the place where it stands, and the defaults of what they leave out.
//!
//! A value that came from a variable is shown as it is written, `${VAR}`, and a secret is not shown at all. What the schema
//! does not offer is taken for a secret: another spelling of a key, or a key that has no effect.

use super::document::{Node, Value};
use super::documents::section_path;
use super::error::Location;
use super::load::Loaded;
use super::shapes::{is_offered, properties, resolved, shapes};
use gantry_core::redact::names_a_secret;
use serde::Serialize;
use serde_json::Value as Schema;
use std::path::Path;
use std::sync::Arc;

const MASKED: &str = "[secret]";

/// An argument of this length may be a key.
const MAX_PLAIN_WORD: usize = 20;

/// A value that applies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    pub path: String,
    /// Its value, without secrets.
    pub value: Schema,
    /// The file and the line that it came from; none for a default.
    pub from: Option<String>,
}

/// Every value that applies, in the order of the files, those of definition files behind them.
#[must_use]
pub fn settings(loaded: &Loaded) -> Vec<Setting> {
    let root = super::json_schema();
    let main = loaded.documents.main();
    let mut walk = Walk { root: &root, file: main.file.clone(), settings: Vec::new() };
    walk.group(&root, Some(&main.root), "");
    for (project, _) in loaded.config.all() {
        for (section, name, document) in loaded.documents.definitions(project) {
            walk.file = document.file.clone();
            let path = format!("{}.{name}", section_path(project, section));
            let tools = root.pointer("/$defs/Tools/additionalProperties");
            let entry = if section == "agents" { shapes().get("AgentFile") } else { tools };
            walk.value(entry.unwrap_or(&Schema::Null), &document.root, &path);
        }
    }
    walk.settings
}

struct Walk<'a> {
    root: &'a Schema,
    file: Arc<Path>,
    settings: Vec<Setting>,
}

impl<'a> Walk<'a> {
    /// A group of keys, or the defaults of one that no file has.
    fn group(&mut self, schema: &'a Schema, node: Option<&Node>, path: &str) {
        let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let entries = node.map_or(&[][..], |node| node.value.entries());
        let known = properties(schema);
        for entry in entries {
            let of_key =
                known.and_then(|known| known.get(&entry.key)).or_else(|| schema.get("additionalProperties"));
            // Where anything may stand, so it is below.
            let of_key = of_key.or(Some(schema).filter(|schema| **schema == Schema::Bool(true)));
            self.value(of_key.unwrap_or(&Schema::Null), &entry.node, &join(&entry.key));
        }
        let is_said = |key: &String| entries.iter().any(|entry| entry.key == *key);
        for (key, property) in known.into_iter().flatten() {
            if is_said(key) || !is_offered(property) {
                continue;
            }
            let kind = resolved(property, self.root);
            match property.get("default").or_else(|| kind.get("default")) {
                Some(default) if !default.is_object() => self.push(join(key), default.clone(), None),
                _ if properties(kind).is_some() && property.get("$ref").is_some() => {
                    self.group(kind, None, &join(key))
                }
                _ => {}
            }
        }
    }

    fn value(&mut self, schema: &'a Schema, node: &Node, path: &str) {
        let kind = self.choice(resolved(schema, self.root), node);
        let says = |key: &str| [schema, kind].iter().any(|it| it.get(key).is_some());
        let is_known = !says("deprecated") && (kind.is_object() || *kind == Schema::Bool(true));
        let kind = if is_known { kind } else { &Schema::Null };
        let is_secret = !is_known || says("writeOnly");
        match &node.value {
            Value::Map(entries) if !entries.is_empty() => self.group(kind, Some(node), path),
            Value::List(items) if items.iter().any(|item| matches!(item.value, Value::Map(_))) => {
                let item = kind.get("items").unwrap_or(&Schema::Null);
                items
                    .iter()
                    .enumerate()
                    .for_each(|(n, node)| self.value(item, node, &format!("{path}[{n}]")));
            }
            Value::List(items) => {
                let of_items = kind.get("items").map(|items| resolved(items, self.root));
                let has_secrets = of_items.is_some_and(|items| items.get("writeOnly").is_some());
                let is_arguments = path.ends_with(".args");
                let texts = items.iter().map(|item| item.value.as_text().unwrap_or_default());
                let before = std::iter::once("").chain(texts);
                let item = |(item, before): (&Node, &str)| {
                    let is_plain = is_arguments
                        && item.value.as_text().is_some_and(|text| is_plain_argument(text, before));
                    scalar(&item.value, is_secret || has_secrets && !is_plain)
                };
                let items = items.iter().zip(before).map(item).collect();
                self.push(path.to_owned(), items, Some(node.place.line));
            }
            value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Map(_)) => {
                self.push(path.to_owned(), scalar(value, is_secret), Some(node.place.line));
            }
        }
    }

    /// The schema of several that fits a value: by its kind, or by the key that names the variant. None if no one does.
    fn choice(&self, schema: &'a Schema, node: &Node) -> &'a Schema {
        let choices = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key)?.as_array());
        let fits = |choice: &&'a Schema| {
            let choice = resolved(choice, self.root);
            let constants = properties(choice).into_iter().flatten();
            let mut constants = constants.filter_map(|(key, of)| Some((key, of.get("const")?.as_str()?)));
            let is_tagged = |(key, word): (&String, &str)| {
                super::document::find(node, key).is_some_and(|entry| entry.node.value.as_text() == Some(word))
            };
            match &node.value {
                Value::Map(_) => properties(choice).is_some() && constants.all(is_tagged),
                Value::List(_) => choice.get("items").is_some(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {
                    properties(choice).is_none()
                }
            }
        };
        let Some(choices) = choices else { return schema };
        choices.iter().find(fits).map_or(&Schema::Null, |choice| resolved(choice, self.root))
    }

    fn push(&mut self, path: String, value: Schema, line: Option<usize>) {
        let from = line.map(|line| Location { file: self.file.clone(), line }.to_string());
        self.settings.push(Setting { path, value, from });
    }
}

/// A value as it is written; a secret only if it is nothing but a variable.
fn scalar(value: &Value, is_secret: bool) -> Schema {
    match value {
        Value::Text(text) if is_secret && is_variable(text) => without_default(text).into(),
        Value::Text(_) | Value::Number(_) | Value::Bool(_) if is_secret => MASKED.into(),
        Value::Text(text) => text.as_str().into(),
        Value::Number(number) => Schema::Number(number.clone()),
        Value::Bool(flag) => (*flag).into(),
        Value::List(items) => items.iter().map(|item| scalar(&item.value, is_secret)).collect(),
        Value::Map(_) => Schema::Object(serde_json::Map::new()),
        Value::Null => Schema::Null,
    }
}

/// Whether an argument of a program can be shown: it is no key, and does not look as if it held one.
fn is_plain_argument(text: &str, before: &str) -> bool {
    let is_flag_of_secret =
        names_a_secret(before) || before.ends_with("key") || matches!(before, "-H" | "--header");
    let has = |of: fn(&char) -> bool| text.chars().any(|c| of(&c));
    let is_key = text.len() >= MAX_PLAIN_WORD
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
        && !text.starts_with(['@', '/', '.']);
    let holds_value = ["${", "=", "://"].iter().any(|mark| text.contains(mark));
    !is_flag_of_secret && !is_key && !holds_value && !names_a_secret(text)
}

fn is_variable(text: &str) -> bool {
    text.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|name| !name.contains(['{', '}']))
}

/// A variable without its default, which may be the secret.
fn without_default(text: &str) -> String {
    text.split_once(":-").map_or_else(|| text.to_owned(), |(name, _)| format!("{name}}}"))
}
