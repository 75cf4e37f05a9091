//! The JSON Schema of the configuration: what editors check a file with, and where the reader looks up what a struct needs
//! and how a key is described.

use super::definition_files::{AgentFile, FrontMatter};
use super::schema::ConfigFile;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The definitions of all structs that are read, by name.
#[derive(Debug)]
pub(super) struct Shapes {
    root: Value,
}

/// The schema of the configuration, with everything that is read from other files.
pub(super) fn shapes() -> &'static Shapes {
    static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        generator.subschema_for::<AgentFile>();
        generator.subschema_for::<FrontMatter>();
        generator.subschema_for::<gantry_tools::options::FilePolicy>();
        generator.subschema_for::<gantry_tools::options::ShellPolicy>();
        Shapes { root: generator.into_root_schema_for::<ConfigFile>().to_value() }
    });
    &SHAPES
}

impl Shapes {
    fn property(&self, of: &str, key: &str) -> Option<&Value> {
        self.root.get("$defs")?.get(of)?.get("properties")?.get(key)
    }

    /// What a key means.
    pub(super) fn description(&self, of: &str, key: &str) -> Option<String> {
        let text = self.property(of, key)?.get("description")?.as_str()?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Whether a key is to be used, and not only understood.
    pub(super) fn is_offered(&self, of: &str, key: &str) -> bool {
        !key.starts_with('$') && self.property(of, key).is_some_and(is_offered)
    }

    /// The keys with a schema of some sort.
    pub(super) fn keys(&self, is_listed: &dyn Fn(&Value) -> bool) -> impl Iterator<Item = &str> {
        let definitions = self.root.get("$defs").and_then(Value::as_object).into_iter().flatten();
        let properties = definitions.filter_map(|(_, definition)| properties(definition)).flatten();
        properties.filter(|(_, property)| is_listed(property)).map(|(key, _)| key.as_str())
    }

    /// The keys that a struct needs.
    pub(super) fn required(&self, name: &str) -> Vec<String> {
        let required = self.root.get("$defs").and_then(|of| of.get(name)?.get("required")?.as_array());
        required.into_iter().flatten().filter_map(|key| Some(key.as_str()?.to_owned())).collect()
    }
}

/// Whether a key with this schema is to be used, and not only understood.
pub(super) fn is_offered(property: &Value) -> bool {
    property.get("not").is_none() && property.get("deprecated").is_none()
}

/// The JSON Schema of the configuration, as editors use it.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = shapes().root.clone();
    clean(&mut schema);
    let mut used = BTreeSet::new();
    references(&schema, &schema, &mut used);
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        definitions.retain(|name, _| used.contains(name));
    }
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), "The configuration of Gantry".into());
        root.remove("description");
    }
    schema
}

/// Takes out the keys that are refused, and writes defaults as a file has them.
fn clean(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                properties.retain(|_, property| property.get("not").is_none());
            }
            if let Some(default) = members.get("default").and_then(as_written) {
                members.insert("default".to_owned(), default);
            } else if members.get("default").is_some_and(is_nothing) {
                members.remove("default");
            }
            members.values_mut().for_each(clean);
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A time, which serde writes as a group of seconds and nanoseconds, in milliseconds.
fn as_written(default: &Value) -> Option<Value> {
    let seconds = default.get("secs")?.as_u64()?;
    let millis = seconds * 1000 + default.get("nanos")?.as_u64()? / 1_000_000;
    (millis > 0).then(|| millis.into())
}

fn is_nothing(default: &Value) -> bool {
    match default {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty() || members.contains_key("secs"),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The definitions that are referred to from the top.
fn references(schema: &Value, root: &Value, used: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(name) = members.get("$ref").and_then(|of| of.as_str()?.strip_prefix("#/$defs/"))
                && used.insert(name.to_owned())
                && let Some(definition) = root.get("$defs").and_then(|of| of.get(name))
            {
                references(definition, root, used);
            }
            members
                .iter()
                .filter(|(key, _)| *key != "$defs")
                .for_each(|(_, member)| references(member, root, used));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, root, used)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The definition that a schema refers to, or the schema itself.
pub(super) fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let name = schema.get("$ref").and_then(|of| of.as_str()?.strip_prefix("#/$defs/"));
    name.and_then(|name| root.get("$defs")?.get(name)).unwrap_or(schema)
}

/// The properties of a schema.
pub(super) fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}
