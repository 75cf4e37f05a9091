//! Schemes and needs, by document.

#![expect(clippy::needless_pass_by_value, reason = "documents are written where they are used")]

use super::*;
use crate::openapi::{Bundle, Import, ImportOptions, import};
use serde_json::{Value, json};

fn imported(document: &Value) -> Import {
    let location = Url::parse("https://docs.example.com/specs/api.json").unwrap();
    import(&Bundle::open(location, document.to_string().as_bytes()).unwrap(), &ImportOptions::default())
}

fn v3(schemes: Value, root: Value, operation: Value) -> Value {
    let mut document = json!({
        "openapi": "3.0.0", "info": {}, "servers": [{"url": "https://a.example/v1"}],
        "components": {"securitySchemes": schemes},
        "paths": {"/a": {"get": {}}},
    });
    for (at, security) in [("", root), ("/paths/~1a/get", operation)] {
        if !security.is_null() {
            let object = document.pointer_mut(at).unwrap().as_object_mut().unwrap();
            object.insert("security".to_owned(), security);
        }
    }
    document
}

#[test]
fn rst_2_schemes_are_what_gantry_can_show() {
    #[track_caller]
    fn check(scheme: Value, expected: Scheme) {
        let out = imported(&v3(json!({"it": scheme}), Value::Null, Value::Null));
        assert_eq!(out.schemes["it"], expected);
    }
    let key = |place, name: &str| Scheme::ApiKey { place, name: name.to_owned() };
    check(json!({"type": "apiKey", "in": "header", "name": "X-Key"}), key(KeyPlace::Header, "X-Key"));
    check(json!({"type": "apiKey", "in": "query", "name": "key"}), key(KeyPlace::Query, "key"));
    check(json!({"type": "apiKey", "in": "cookie", "name": "sid"}), key(KeyPlace::Cookie, "sid"));
    check(json!({"type": "http", "scheme": "basic"}), Scheme::Basic);
    check(
        json!({"type": "apiKey", "in": "header", "name": "Authorization", "x-amazon-apigateway-authtype": "awsSigv4"}),
        Scheme::Unsupported { reason: "requests have to be signed (AWS Signature Version 4)".to_owned() },
    );
    check(json!({"type": "http", "scheme": "Bearer"}), Scheme::Bearer);
    check(json!({"type": "openIdConnect", "openIdConnectUrl": "https://x.example"}), Scheme::Bearer);
    check(json!({"type": "oauth2", "flows": {"implicit": {}}}), Scheme::Bearer);
    let flow = |url: &str| {
        let flow = json!({"tokenUrl": url, "scopes": {"read": "", "write": ""}});
        json!({"type": "oauth2", "flows": {"implicit": {}, "clientCredentials": flow}})
    };
    let credentials = |url: &str| Scheme::ClientCredentials {
        token_url: Url::parse(url).unwrap(),
        scopes: vec!["read".to_owned(), "write".to_owned()],
    };
    check(flow("https://id.example/token"), credentials("https://id.example/token"));
    check(flow("/token"), credentials("https://a.example/token"));
    check(flow("token"), credentials("https://a.example/v1/token"));
    check(flow("ftp://id.example/token"), Scheme::Bearer);
    check(flow("https://me:secret@id.example/token"), Scheme::Bearer);
    check(flow(""), Scheme::Bearer);
}

#[test]
fn other_schemes_say_why_not() {
    for scheme in [
        json!({"type": "http", "scheme": "digest"}),
        json!({"type": "mutualTLS"}),
        json!({"type": "apiKey", "in": "body", "name": "x"}),
        json!({"type": "apiKey", "in": "header", "name": "a b"}),
        json!({"type": "apiKey", "in": "header"}),
        json!({"type": "magic"}),
        json!({"$ref": "#/components/securitySchemes/none"}),
        json!(7),
    ] {
        let out = imported(&v3(json!({"it": scheme}), json!([{"it": []}]), Value::Null));
        assert!(
            matches!(&out.schemes["it"], Scheme::Unsupported { reason } if !reason.is_empty()),
            "{scheme}"
        );
        assert_eq!(out.operations.len(), 1);
    }
}

#[test]
fn rst_2_an_operation_needs_what_it_says_or_what_the_document_says() {
    let schemes =
        json!({"a": {"type": "http", "scheme": "bearer"}, "b": {"type": "http", "scheme": "basic"}});
    let needs = |root: Value, operation: Value| {
        imported(&v3(schemes.clone(), root, operation)).operations[0].security.clone()
    };
    let need = |names: &[&str]| {
        SecurityRequirement(names.iter().map(|name| ((*name).to_owned(), Vec::new())).collect())
    };
    assert_eq!(needs(Value::Null, Value::Null), []);
    assert_eq!(needs(json!([{"a": []}]), Value::Null), [need(&["a"])]);
    assert_eq!(needs(json!([{"a": []}]), json!([])), []);
    assert_eq!(needs(json!([{"a": []}]), json!([{"b": []}, {}])), [need(&["b"]), need(&[])]);
    assert_eq!(needs(Value::Null, json!([{"a": [], "b": []}])), [need(&["a", "b"])]);
    let scoped = needs(Value::Null, json!([{"a": ["read", 5]}]));
    assert_eq!(scoped, [SecurityRequirement(vec![("a".to_owned(), vec!["read".to_owned()])])]);
}

#[test]
fn a_scheme_that_is_not_there_is_said_once() {
    let mut document = v3(json!({}), json!([{"BearerAuth": []}, {"secret": []}]), Value::Null);
    document["paths"]["/b"] = json!({"get": {}});
    let out = imported(&document);
    assert_eq!(out.warnings.len(), 2, "{:?}", out.warnings);
    assert_eq!(out.schemes, BTreeMap::from([("BearerAuth".to_owned(), Scheme::Bearer)]));
    for operation in &out.operations {
        assert_eq!(operation.security, [SecurityRequirement(vec![("BearerAuth".to_owned(), Vec::new())])]);
    }
}

#[test]
fn rst_2_swagger_has_schemes_of_its_own_kind() {
    let document = json!({
        "swagger": "2.0", "info": {}, "host": "a.example", "paths": {},
        "securityDefinitions": {
            "basic": {"type": "basic"},
            "key": {"type": "apiKey", "in": "query", "name": "k"},
            "app": {"type": "oauth2", "flow": "application", "tokenUrl": "https://id.example/t", "scopes": {"s": "", "x-n": 1}},
            "web": {"type": "oauth2", "flow": "accessCode", "tokenUrl": "https://id.example/t"},
        },
    });
    let schemes = imported(&document).schemes;
    assert_eq!(schemes["basic"], Scheme::Basic);
    assert_eq!(schemes["key"], Scheme::ApiKey { place: KeyPlace::Query, name: "k".to_owned() });
    let token_url = Url::parse("https://id.example/t").unwrap();
    assert_eq!(schemes["app"], Scheme::ClientCredentials { token_url, scopes: vec!["s".to_owned()] });
    assert_eq!(schemes["web"], Scheme::Bearer);
}

#[test]
fn security_that_is_null_is_not_said() {
    let mut document =
        v3(json!({"k": {"type": "http", "scheme": "Bearer"}}), json!([{"k": []}]), Value::Null);
    document["paths"]["/a"]["get"]["security"] = Value::Null;
    let need = SecurityRequirement(vec![("k".to_owned(), Vec::new())]);
    assert_eq!(imported(&document).operations[0].security, [need]);
    document["paths"]["/a"]["get"]["security"] = json!([]);
    assert!(imported(&document).operations[0].security.is_empty());
}
