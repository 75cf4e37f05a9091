//! Definitions that every interface takes, with nothing lost.

use super::*;
use crate::names::Style;
use crate::tool::{Annotations, ApprovalRule, Origin, Settings, ToolKind};
use crate::toolset::{Candidate, Pool, Selection, SpawnContext, Toolset};
use serde_json::{Value, json};
use std::sync::Arc;

fn candidate(tool: &str, style: Style, schema: Value) -> Candidate {
    Candidate {
        origin: Origin { provider: "p".into(), namespace: "p".into(), kind: ToolKind::Mcp },
        style,
        spec: ToolSpec {
            name: tool.into(),
            title: None,
            description: "Does it.".into(),
            input_schema: schema.into(),
            output_schema: None,
            annotations: Annotations::default(),
            approval_rule: ApprovalRule::Never,
            raw: None,
            target: None,
        },
        settings: Settings::default(),
    }
}

fn toolset(candidates: Vec<Candidate>, aliases: &[(&str, &str)]) -> Toolset {
    let aliases = aliases.iter().map(|(alias, target)| ((*alias).into(), (*target).into())).collect();
    let selection = Selection { aliases, ..Selection::everything() };
    Toolset::resolve(&Arc::new(Pool::build(candidates)), &selection, &SpawnContext::top(2)).0
}

/// The callable entries of a toolset as one JSON array.
fn definitions(format: Format, set: &Toolset) -> String {
    array(set.entries().filter_map(|entry| format.definition(&entry)))
}

fn shown(format: Format, set: &Toolset) -> Vec<Value> {
    serde_json::from_str(&definitions(format, set)).unwrap()
}

/// The parameters that models are shown for a schema.
fn check(schema: Value, expected: &Value) {
    let set = toolset(vec![candidate("t", Style::Prefixed, schema)], &[]);
    let anthropic = shown(Format::Anthropic, &set).remove(0);
    assert_eq!(anthropic["input_schema"].to_string(), expected.to_string());
    assert_eq!(shown(Format::OpenAi, &set)[0]["function"]["parameters"], anthropic["input_schema"]);
}

#[test]
fn srv_4_each_interface_has_its_shape() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let broken = candidate("broken", Style::Prefixed, json!({ "type": "strin" }));
    let set = toolset(
        vec![candidate("t", Style::Prefixed, schema.clone()), broken],
        &[("short", "@p/t"), ("not legal", "@p/t")],
    );
    let same = "The same tool as p__t. Does it.";
    let function = |name: &str, description: &str| json!({ "type": "function", "function": { "name": name, "description": description, "parameters": schema } });
    assert_eq!(shown(Format::OpenAi, &set), [function("p__t", "Does it."), function("short", same)]);
    let tool = |name: &str, description: &str| json!({ "name": name, "description": description, "input_schema": schema });
    assert_eq!(shown(Format::Anthropic, &set), [tool("p__t", "Does it."), tool("short", same)]);
    assert_eq!(definitions(Format::Mcp, &set), **set.definitions());
    assert_eq!(shown(Format::Mcp, &set).len(), 3, "MCP takes any name");
}

#[test]
fn srv_4_names_are_legal_and_can_be_called() {
    let object = || json!({ "type": "object" });
    let set = toolset(
        ["files.read", "files/read", "my-tool", "é"].map(|it| candidate(it, Style::Bare, object())).into(),
        &[],
    );
    let tools = shown(Format::Anthropic, &set);
    assert_eq!(tools.len(), 4);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert!(is_legal(name) && set.find(name).is_ok(), "{name}");
    }
}

#[test]
fn srv_4_schemas_become_objects_with_properties() {
    check(json!({}), &json!({ "type": "object", "properties": {} }));
    check(json!(true), &json!({ "type": "object", "properties": {} }));
    check(
        json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": ["object", "null"], "$defs": { "x": {} },
                "additionalProperties": false }),
        &json!({ "type": "object", "$defs": { "x": {} }, "additionalProperties": false, "properties": {} }),
    );
}

#[test]
fn srv_4_choices_at_the_top_of_a_schema_are_described_in_words() {
    let circle = json!({ "properties": { "kind": { "const": "circle" }, "r": { "type": "number" }, "id": { "maxLength": 3 } } });
    let square = json!({ "properties": { "kind": { "const": "square" }, "r": { "type": "number" } }, "required": ["kind"] });
    let choice = json!({ "oneOf": [circle, square, { "$ref": "#/$defs/x" }] });
    let words = format!("The arguments must also fit this JSON Schema: {choice}");
    let mut schema = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "$defs": { "x": {} }, "description": "A shape." });
    schema.as_object_mut().unwrap().extend(choice.as_object().unwrap().clone());
    check(
        schema,
        &json!({
            "type": "object",
            "properties": {
                "id": { "type": "string" },
                "kind": { "anyOf": [{ "const": "circle" }, { "const": "square" }] },
                "r": { "type": "number" },
            },
            "$defs": { "x": {} },
            "description": format!("A shape.\n{words}"),
        }),
    );
    let not = r#"The arguments must also fit this JSON Schema: {"not":{"required":["a"]}}"#;
    check(
        json!({ "not": { "required": ["a"] } }),
        &json!({ "type": "object", "properties": {}, "description": not }),
    );
}

#[test]
fn srv_4_the_providers_numbers_stay_as_they_are_written() {
    let mut exact = candidate("t", Style::Prefixed, json!({ "type": "object" }));
    exact.spec.raw =
        Some(r#"{"name":"t","inputSchema":{"type":"object","properties":{"n":{"default":1.10}}}}"#.into());
    let text = definitions(Format::OpenAi, &toolset(vec![exact], &[]));
    assert!(text.contains(r#""parameters":{"type":"object","properties":{"n":{"default":1.10}}}"#), "{text}");
}

#[test]
fn srv_4_a_long_description_goes_on_where_there_is_room() {
    let mut wordy = candidate("t", Style::Prefixed, json!({ "type": "object" }));
    wordy.spec.description = "é".repeat(1000);
    let set = toolset(vec![wordy], &[]);
    let function = &shown(Format::OpenAi, &set)[0]["function"];
    let start = function["description"].as_str().unwrap();
    assert!(start.len() <= FUNCTION_DESCRIPTION_BYTES, "{}", start.len());
    let rest = function["parameters"]["description"].as_str().unwrap();
    let rest = rest.strip_prefix("The description goes on: ").unwrap();
    assert_eq!(format!("{}{rest}", start.strip_suffix('…').unwrap()), "é".repeat(1000));
    assert_eq!(shown(Format::Anthropic, &set)[0]["description"], "é".repeat(1000));
}

#[test]
fn every_format_has_a_word() {
    for format in Format::ALL.iter().copied() {
        assert_eq!(Format::parse(format.as_str()), Some(format));
    }
    assert_eq!(Format::parse("OpenAI"), None);
}
