//! The JSON Schema of the configuration: what editors check a file with, and where the reader looks up what a struct needs
//! and how a key is described.

use super::definition_files::{AgentFile, FrontMatter};
use super::schema::{Builtin, CatalogueServer, ConfigFile};
use gantry_tools::options::{FilePolicy, ShellPolicy};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The definitions of all structs that are read, by name.
#[derive(Debug)]
pub(super) struct Shapes(Map<String, Value>);

pub(super) fn shapes() -> &'static Shapes {
    static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        generator.subschema_for::<ConfigFile>();
        generator.subschema_for::<AgentFile>();
        generator.subschema_for::<FrontMatter>();
        // These are variants, whose schemas are written in place.
        generator.subschema_for::<CatalogueServer>();
        generator.subschema_for::<Builtin>();
        generator.subschema_for::<FilePolicy>();
        generator.subschema_for::<ShellPolicy>();
        Shapes(generator.take_definitions(true))
    });
    &SHAPES
}

impl Shapes {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    fn property(&self, of: &str, key: &str) -> Option<&Value> {
        self.0.get(of)?.get("properties")?.get(key)
    }

    pub(super) fn description(&self, of: &str, key: &str) -> Option<String> {
        let text = self.property(of, key)?.get("description")?.as_str()?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The keys that are to be used, and not only understood.
    pub(super) fn offered(&self, of: &str) -> impl Iterator<Item = &str> {
        let keys = self.0.get(of).and_then(properties).into_iter().flatten();
        keys.filter(|(key, property)| !key.starts_with('$') && is_offered(property))
            .map(|(key, _)| key.as_str())
    }

    pub(super) fn is_ignored(&self, of: &str, key: &str) -> bool {
        self.property(of, key).is_some_and(|property| property.get("deprecated").is_some())
    }

    pub(super) fn required(&self, name: &str) -> impl Iterator<Item = &str> {
        let required = self.0.get(name).and_then(|of| of.get("required")?.as_array());
        required.into_iter().flatten().filter_map(Value::as_str)
    }
}

/// Whether a key with this schema is to be used, and not only understood.
pub(super) fn is_offered(property: &Value) -> bool {
    property.get("not").is_none() && property.get("deprecated").is_none()
}

/// Keys, each behind the struct that it is of.
type KeysOfStructs = BTreeSet<(&'static str, &'static str)>;

/// The keys of all files that have no effect, and those that are refused.
#[must_use]
pub fn unused_keys() -> (KeysOfStructs, KeysOfStructs) {
    let marked = |mark: &str| {
        let keys = |(name, of): (&'static String, &'static Value)| {
            let marked = properties(of).into_iter().flatten().filter(|(_, of)| of.get(mark).is_some());
            marked.map(|(key, _)| (name.as_str(), key.as_str())).collect::<Vec<_>>()
        };
        shapes().0.iter().flat_map(keys).collect()
    };
    (marked("deprecated"), marked("not"))
}

/// The JSON Schema of the configuration, as editors use it.
#[must_use]
pub fn json_schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<ConfigFile>().to_value();
    clean(&mut schema);
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

/// The definition that a schema refers to, or the schema itself.
pub(super) fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let name = schema.get("$ref").and_then(|of| of.as_str()?.strip_prefix("#/$defs/"));
    name.and_then(|name| root.get("$defs")?.get(name)).unwrap_or(schema)
}

pub(super) fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}
