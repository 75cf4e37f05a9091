//! The definition of a tool as clients see it, from its types.
//!
//! The schemas say what serde does with the types, and a little less: what is optional is left out and never null,
//! and no object takes properties that it does not name.

use crate::tool::Tool;
use gantry_core::schema::SchemaText;
use gantry_core::tool::ToolSpec;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

pub(super) fn tool_spec<T: Tool>(tool: &T) -> ToolSpec {
    let mut input = schema_of::<T::Args>(SchemaSettings::draft2020_12());
    let mut output = schema_of::<T::Output>(SchemaSettings::draft2020_12().for_serialize());
    let described = take_description(&mut input);
    take_description(&mut output);
    ToolSpec {
        name: T::NAME.to_owned(),
        title: Some(T::TITLE.to_owned()),
        description: [described, tool.note()].into_iter().flatten().collect::<Vec<_>>().join(" "),
        input_schema: SchemaText::from(input.to_value()),
        output_schema: Some(SchemaText::from(output.to_value())),
        annotations: T::HINTS,
        approval_rule: T::APPROVAL,
        raw: None,
        target: None,
    }
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    let settings = settings
        .with(|settings| settings.inline_subschemas = true)
        .with_transform(RecursiveTransform(simplify));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type says nothing to a client.
    schema.remove("title");
    // A tool without arguments or without a result still takes and returns an object.
    let members = schema.ensure_object();
    members.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    members.insert("additionalProperties".to_owned(), false.into());
    schema
}

fn take_description(schema: &mut Schema) -> Option<String> {
    schema.remove("description")?.as_str().map(str::to_owned)
}

/// Leaves of a schema what the definitions of Gantry's tools say.
fn simplify(schema: &mut Schema) {
    forbid_null(schema);
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
    // What Rust calls a number.
    if schema.get("type").is_some_and(|kind| kind == "integer" || kind == "number") {
        schema.remove("format");
    }
    // `60.0` is the same number as `60`, but not the same text to every reader.
    for word in ["default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        let number = schema.get(word).filter(|value| value.is_f64()).and_then(Value::as_f64);
        if let Some(number) = number.filter(|number| number.fract() == 0.0 && number.abs() < 1e15) {
            schema.insert(word.to_owned(), (number as i64).into());
        }
    }
    // Where the lines of a comment end matters in the source alone.
    let lines = schema.get("description").and_then(Value::as_str);
    if let Some(text) = lines.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")) {
        schema.insert("description".to_owned(), text.into());
    }
}

/// Makes the schema of an `Option` that of its content.
fn forbid_null(schema: &mut Schema) {
    for word in ["type", "enum"] {
        let Some(Value::Array(all)) = schema.get_mut(word) else { continue };
        all.retain(|one| !one.is_null() && one != "null");
        if let (true, [one]) = (word == "type", all.as_slice()) {
            let one = one.clone();
            schema.insert(word.to_owned(), one);
        }
    }
    let Some(Value::Array(all)) = schema.get_mut("anyOf") else { return };
    all.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
    if let [Value::Object(_)] = all.as_slice()
        && let Some(Value::Object(one)) = all.pop()
    {
        schema.remove("anyOf");
        // What the field says wins over what its type says.
        for (word, value) in one {
            schema.ensure_object().entry(word).or_insert(value);
        }
    }
}
