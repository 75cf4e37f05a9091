//! The OpenAPI document of the API, made from the table of routes and the schemas of [`crate::model`].

use crate::api::routes::{Operation, operations};
use crate::model::{Conflict, Failure};
use axum::Json;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

pub(crate) async fn serve() -> Json<Value> {
    Json(document())
}

#[must_use]
pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for operation in &operations() {
        let item = paths.entry(operation.path).or_insert_with(|| json!({}));
        item[operation.method] = schemas.describe(operation);
    }
    let mut definitions = schemas.requests.take_definitions(true);
    definitions.extend(schemas.answers.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Gantry", "version": env!("CARGO_PKG_VERSION"), "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "The governed gateway between AI agents and their tools. MCP clients use /mcp.",
        },
        "security": [{}, { "key": [] }],
        "paths": paths,
        "components": { "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } }, "schemas": definitions },
    })
}

/// The schemas of what is read and of what is written: a field that may be left out in a request can be in every answer.
struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        let settings = settings.with_transform(RecursiveTransform(drop_default));
        Self {
            requests: settings.clone().for_deserialize().into_generator(),
            answers: settings.for_serialize().with_transform(RecursiveTransform(compose)).into_generator(),
        }
    }

    fn describe(&mut self, operation: &Operation) -> Value {
        let json_content = |schema: Value| json!({ "application/json": { "schema": schema } });
        let mut responses = Map::new();
        let mut respond = |status: &str, text: &str, content: &Value| {
            responses.insert(status.into(), json!({ "description": text, "content": content }));
        };
        let answer = (operation.answer)(&mut self.answers).to_value();
        let failure = self.answers.subschema_for::<Failure>().to_value();
        for status in operation.statuses {
            respond(status, "Done", &json!({ operation.content_type: { "schema": answer } }));
        }
        if operation.has_conflict {
            let conflict = json_content(self.answers.subschema_for::<Conflict>().to_value());
            respond("409", "It was decided before, or has ended", &conflict);
            respond("410", "It has expired", &conflict);
        }
        respond("default", "Not done; the error says why", &json_content(failure));
        let admin = if operation.is_for_admins { "; takes the key of an administrator" } else { "" };
        let summary = format!("{}{admin}", operation.summary);
        let mut described = json!({
            "operationId": operation.id, "summary": summary, "parameters": self.parameters(operation), "responses": responses,
        });
        if let Some((body, required)) = operation.body {
            let content = json_content(body(&mut self.requests).to_value());
            described["requestBody"] = json!({ "required": required, "content": content });
        }
        described
    }

    fn parameters(&mut self, operation: &Operation) -> Vec<Value> {
        let query = operation.query.map(|query| query(&mut self.requests).to_value());
        let fields = query.as_ref().and_then(|query| query.get("properties")?.as_object());
        let query = fields.into_iter().flatten().map(|(name, schema)| {
            let mut schema = without_null(schema.clone());
            let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            json!({ "name": name, "in": "query", "description": description, "schema": schema })
        });
        let path = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let path = path.map(
            |name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }),
        );
        query.chain(path).collect()
    }
}

/// Generators of types take a field with a default as one that is always there, in requests too.
fn drop_default(schema: &mut Schema) {
    schema.remove("default");
}

/// Generators of types read a reference or a choice, and not the fields beside it; of what stands below `allOf`, they
/// read everything.
fn compose(schema: &mut Schema) {
    for key in ["$ref", "anyOf"] {
        if schema.get("properties").is_some()
            && let Some(other) = schema.remove(key)
        {
            schema.insert("allOf".into(), json!([{ key: other }]));
        }
    }
}

/// The schema of an optional parameter: it is left out, and never null.
fn without_null(mut schema: Value) -> Value {
    let Some(members) = schema.as_object_mut() else { return schema };
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(mut choices)) = members.remove("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = choices.as_slice() {
            members.extend(only.clone());
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_that_is_referred_to_is_there_and_can_be_used() {
        let document = document();
        let text = document.to_string();
        for reference in text.split("\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(document.pointer(reference).is_some(), "{reference} is not there");
        }
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for name in schemas.keys() {
            let schema = json!({
                "$ref": format!("#/components/schemas/{name}"), "components": document["components"].clone()
            });
            assert!(jsonschema::validator_for(&schema).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_type_has_one_schema_whether_it_is_read_or_written() {
        let mut schemas = Schemas::new();
        operations().iter().for_each(|operation| drop(schemas.describe(operation)));
        let (requests, answers) = (schemas.requests.definitions(), schemas.answers.definitions());
        for (name, schema) in requests {
            assert!(answers.get(name).is_none_or(|other| other == schema), "{name}");
        }
    }

    #[test]
    fn every_answer_has_a_schema_that_says_something() {
        let document = document();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                for (status, response) in operation["responses"].as_object().unwrap() {
                    let content = response["content"].as_object().unwrap().values().next().unwrap();
                    let schema = content["schema"].as_object().unwrap();
                    assert!(
                        schema.contains_key("$ref") || schema.contains_key("type"),
                        "{method} {path} {status}: {schema:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let mut names: Vec<&str> = operations().iter().map(|operation| operation.id).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        let document = document();
        let described = |path: &Map<String, Value>| {
            path.values().filter(|operation| operation["operationId"].is_string()).count()
        };
        let paths = document["paths"].as_object().unwrap().values();
        assert_eq!(paths.map(|path| described(path.as_object().unwrap())).sum::<usize>(), all);
    }

    #[test]
    fn no_schema_has_fields_beside_a_reference_or_a_choice() {
        fn check(schema: &Value) {
            if let Some(members) = schema.as_object() {
                let has = |key: &str| members.contains_key(key);
                assert!(!has("properties") || !(has("$ref") || has("anyOf")), "{schema}");
                members.values().for_each(check);
            }
            schema.as_array().into_iter().flatten().for_each(check);
        }
        check(&document()["components"]["schemas"]);
    }

    #[test]
    fn what_the_path_and_the_query_name_is_a_parameter() {
        let document = document();
        let named = |path: &str, method: &str| document["paths"][path][method]["parameters"].to_string();
        assert!(named("/api/v1/agents/{name}/activate", "post").contains(r#""name":"name","in":"path""#));
        assert!(named("/api/v1/servers/{id}/restart", "post").contains(r#""name":"id","in":"path""#));
        let calls = named("/api/v1/calls", "get");
        assert!(calls.contains(r##""schema":{"$ref":"#/components/schemas/State"}"##), "{calls}");
        assert!(!calls.contains("null"), "{calls}");
    }
}
