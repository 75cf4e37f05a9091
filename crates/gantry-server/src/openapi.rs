//! The OpenAPI document of the API. A test holds it against the table of routes, so that neither can be forgotten.

mod operations;
mod schemas;

use axum::Json;
use operations::{OPERATIONS, Operation};
use serde_json::{Map, Value, json};

/// `GET /api/openapi.json`.
pub(crate) async fn serve() -> Json<Value> {
    Json(document())
}

/// The document.
#[must_use]
pub fn document() -> Value {
    let mut paths = Map::new();
    for operation in &OPERATIONS {
        let item = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(item) = item.as_object_mut() {
            item.insert(operation.method.into(), described(operation));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Gantry", "version": env!("CARGO_PKG_VERSION"), "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "The one door between AI agents and everything they can do. MCP clients use /mcp.",
        },
        "security": [{}, { "key": [] }],
        "paths": paths,
        "components": { "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } }, "schemas": schemas::all() },
    })
}

fn described(operation: &Operation) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let query = operation.query.iter().map(
        |(name, text)| json!({ "name": name, "in": "query", "description": text, "schema": { "type": "string" } }),
    );
    let path = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let path = path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let answer = operation.answer.map_or_else(|| json!({}), reference);
    let mut described = json!({
        "summary": operation.summary,
        "parameters": query.chain(path).collect::<Vec<_>>(),
        "responses": {
            "200": { "description": "Done", "content": { "application/json": { "schema": answer } } },
            "default": { "description": "Not done; the error says why", "content": { "application/json": { "schema": reference("Failure") } } },
        },
    });
    if let (Some(body), Some(described)) = (operation.body, described.as_object_mut()) {
        let required = schemas::is_needed(body);
        let content =
            json!({ "required": required, "content": { "application/json": { "schema": reference(body) } } });
        described.insert("requestBody".into(), content);
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_described_and_every_description_has_a_route() {
        let mut described: Vec<&str> = OPERATIONS.iter().map(|operation| operation.path).collect();
        described.dedup();
        let routed: Vec<&str> = crate::api::routes().into_iter().map(|(path, _)| path).collect();
        assert_eq!(described, routed);
    }

    #[test]
    fn every_schema_that_is_referred_to_is_there() {
        let document = document();
        let text = document.to_string();
        for reference in text.split("\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(document.pointer(reference).is_some(), "{reference} is not there");
        }
    }

    #[test]
    fn what_the_path_names_is_a_parameter() {
        let document = document();
        let named = |path: &str| document["paths"][path]["post"]["parameters"].to_string();
        assert!(named("/api/v1/agents/{name}/activate").contains(r#""name":"name","in":"path""#));
        assert!(named("/api/v1/servers/{id}/restart").contains(r#""name":"id","in":"path""#));
    }
}
