//! From small documents of each version to operations.

#![expect(clippy::needless_pass_by_value, reason = "documents are written where they are used")]

use super::*;
use gantry_core::schema::Schema;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// What becomes of a document in a file.
#[track_caller]
fn imported(document: &Value, choice: &ImportOptions) -> Import {
    let location = Url::parse("file:///spec/api.json").unwrap();
    let bundle = Bundle::open(location, document.to_string().as_bytes()).unwrap();
    let out = import(&bundle, choice);
    for operation in &out.operations {
        assert_eq!(operation.input_schema.value()["type"], "object");
        assert_eq!(operation.input_schema.value()["additionalProperties"], false);
        Schema::compile(&operation.input_schema.value()).unwrap();
    }
    out
}

/// A document of 3.0 with these paths.
fn v3(paths: Value) -> Value {
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Things", "version": "1.2"},
        "servers": [{"url": "https://api.example.com/v1/"}],
        "paths": paths,
    })
}

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

fn names(import: &Import) -> Vec<&str> {
    import.operations.iter().map(|operation| operation.name.as_str()).collect()
}

fn three() -> Value {
    v3(json!({
        "x-note": {"get": {}},
        "/things": {
            "summary": "not an operation",
            "get": {"operationId": "list-things", "tags": ["things"]},
            "post": {"operationId": "makeThing", "tags": ["things", "writing"]},
        },
        "/others/{id}": {"delete": {"tags": ["others"]}},
    }))
}

#[test]
fn rst_2_a_simple_document_becomes_operations() {
    let out = imported(&three(), &ImportOptions::default());
    assert_eq!(
        (out.title.as_str(), out.api_version.as_str(), out.openapi.as_str()),
        ("Things", "1.2", "3.0.3")
    );
    assert_eq!(names(&out), ["delete_others_id", "list_things", "makeThing"]);
    assert_eq!((out.total, out.filtered, out.skipped.len(), out.warnings.len()), (3, 0, 0, 0), "{out:?}");
    let [delete, list, make] = out.operations.as_slice() else { panic!() };
    assert_eq!((delete.effect, list.effect, make.effect), (Effect::Destructive, Effect::Read, Effect::Write));
    assert_eq!(delete.server.as_str(), "https://api.example.com/v1");
    assert_eq!(delete.input_schema.value()["required"], json!(["id"]));
    assert_eq!(delete.description, "DELETE /others/{id}");
    assert_eq!(make.tags, ["things", "writing"]);
    assert_eq!(list.id.as_deref(), Some("list-things"));
}

#[test]
fn rst_3_filters_take_what_they_say() {
    #[track_caller]
    fn check(choice: ImportOptions, expected: &[&str]) {
        let out = imported(&three(), &choice);
        assert_eq!(names(&out), expected);
        assert_eq!(out.filtered, 3 - expected.len());
        assert!(out.skipped.is_empty() && out.warnings.is_empty(), "{out:?}");
    }
    let include = |texts: &[&str]| Some(texts.iter().map(|text| pattern(text)).collect());
    check(ImportOptions { methods: vec![Method::Get], ..ImportOptions::default() }, &["list_things"]);
    check(
        ImportOptions { tags: vec!["things".into()], ..ImportOptions::default() },
        &["list_things", "makeThing"],
    );
    check(ImportOptions { include: include(&["list_*"]), ..ImportOptions::default() }, &["list_things"]);
    check(ImportOptions { include: include(&["list-things"]), ..ImportOptions::default() }, &["list_things"]);
    check(
        ImportOptions { include: include(&["* /others/*"]), ..ImportOptions::default() },
        &["delete_others_id"],
    );
    check(ImportOptions { include: include(&[]), ..ImportOptions::default() }, &[]);
    let exclude = vec![pattern("DELETE *"), pattern("makeThing")];
    check(ImportOptions { exclude, ..ImportOptions::default() }, &["list_things"]);
}

#[test]
fn rst_3_a_filter_that_finds_nothing_says_what_there_is() {
    let choice = ImportOptions {
        tags: vec!["thing".into()],
        include: Some(vec![pattern("listThings")]),
        exclude: vec![pattern("nothing")],
        ..ImportOptions::default()
    };
    let out = imported(&three(), &choice);
    assert_eq!(
        out.warnings,
        [
            r#"no operation has the tag "thing"; there are "things", "writing", "others""#,
            r#"include: "listThings" matches no operation; there are "list_things", "makeThing", "delete_others_id""#,
            r#"exclude: "nothing" matches no operation; there are "makeThing", "list_things", "delete_others_id""#,
        ]
    );
}

#[test]
fn a_document_can_keep_operations_from_being_tools_and_name_them() {
    let out = imported(
        &v3(json!({
            "/a": {"get": {"x-mcp": false}},
            "/b": {"get": {"x-mcp": {"disabled": true}}},
            "/c": {"get": {"x-speakeasy-mcp": {"disabled": true}}},
            "/d": {"get": {"x-mcp": {"name": "look up"}}, "put": {"x-speakeasy-mcp": {"name": "put-down"}}},
            "/e": {"post": {"x-mcp": true}},
        })),
        &ImportOptions::default(),
    );
    assert_eq!(names(&out), ["look_up", "post_e", "put_down"]);
    assert_eq!((out.total, out.filtered), (6, 3));
}

#[test]
fn a_document_can_make_an_effect_worse_but_not_better() {
    let out = imported(
        &v3(json!({"/a": {
            "get": {"x-mcp": {"effect": "write"}},
            "post": {"x-mcp": {"effect": "destructive"}},
            "delete": {"x-mcp": {"effect": "read"}},
            "put": {"x-mcp": {"effect": "harmless"}},
        }})),
        &ImportOptions::default(),
    );
    let effects: Vec<(&str, Effect)> = out.operations.iter().map(|o| (o.name.as_str(), o.effect)).collect();
    let expected = [
        ("delete_a", Effect::Destructive),
        ("get_a", Effect::Write),
        ("post_a", Effect::Destructive),
        ("put_a", Effect::Write),
    ];
    assert_eq!(effects, expected);
    assert_eq!(out.warnings.len(), 1, "{:?}", out.warnings);
}

#[test]
fn rst_2_one_bad_operation_costs_no_other() {
    let out = imported(
        &v3(json!({
            "/good": {"get": {}},
            "/word": {"get": "nothing"},
            "/open{brace": {"get": {}},
            "relative": {"get": {}},
            "/nowhere": {"$ref": "#/components/pathItems/none"},
            "/parameter": {"get": {"parameters": [{"$ref": "#/components/parameters/none"}]}},
            "/nameless": {"get": {"parameters": [{"in": "query", "required": true}]}},
            "/odd": {"get": {"parameters": [{"in": "mind", "name": "x", "required": true}]}},
            "/body": {"post": {"requestBody": {"$ref": "#/components/requestBodies/none"}}},
            "/schema": {"get": {"parameters": [
                {"in": "query", "name": "q", "schema": {"$ref": "#/components/schemas/none"}},
            ]}},
            "/list": [],
        })),
        &ImportOptions::default(),
    );
    assert_eq!(names(&out), ["get_good"]);
    assert_eq!(out.total, 11);
    let paths: Vec<&str> = out.skipped.iter().map(|skipped| skipped.path.as_str()).collect();
    let expected = [
        "/nowhere",
        "/list",
        "/word",
        "/open{brace",
        "relative",
        "/parameter",
        "/nameless",
        "/odd",
        "/body",
        "/schema",
    ];
    assert_eq!(paths, expected, "{:?}", out.skipped);
    assert!(out.skipped.iter().all(|skipped| !skipped.reason.is_empty()));
}

#[test]
fn a_document_without_paths_has_no_operations() {
    let none = "there are no paths in the document, and so no operations";
    let wrong = "the paths of the document are no object, and so there are no operations";
    for (document, warning) in [
        (json!({"openapi": "3.1.0", "webhooks": {"ping": {"post": {}}}}), none),
        (json!({"openapi": "3.0.0", "paths": null}), wrong),
        (json!({"openapi": "3.0.0", "paths": [1, 2]}), wrong),
        (
            json!({"openapi": "3.0.0", "paths": {"$ref": "#/none"}}),
            "the paths of the document cannot be read: the reference \"#/none\" in api.json leads nowhere",
        ),
    ] {
        let out = imported(&document, &ImportOptions::default());
        assert_eq!((out.total, out.operations.len(), out.skipped.len()), (0, 0, 0), "{document}");
        assert_eq!(out.warnings, [warning]);
    }
    let out =
        imported(&json!({"swagger": "2.0", "info": 3, "paths": {"/a": null}}), &ImportOptions::default());
    assert_eq!((out.skipped.len(), out.warnings.len()), (1, 0));
    assert_eq!(out.skipped[0].reason, "the path cannot be read: it is no object");
}

/// Methods, paths and reasons of what was skipped.
fn skipped(import: &Import) -> Vec<(&str, &str, &str)> {
    import.skipped.iter().map(|one| (one.method.as_str(), one.path.as_str(), one.reason.as_str())).collect()
}

#[test]
fn rst_2_no_operation_is_lost_without_a_word() {
    let mut document = v3(json!({
        "/a": {"GET": {"operationId": "caps"}, "Post": {}, "get": {}},
        "/b": {"query": {}, "additionalOperations": {"COPY": {}, "LI\nNK": {}}, "trace": {}, "put": {}},
    }));
    document["openapi"] = json!("3.2.0");
    let out = imported(&document, &ImportOptions::default());
    assert_eq!(names(&out), ["caps", "post_a", "put_b"]);
    let twice = "the path has this method twice; only one of them is read";
    let new = "the method is one of OpenAPI 3.2, which is not supported";
    let trace = "TRACE gives back the request, with the credentials in it, and is not supported";
    let expected = [
        ("GET", "/a", twice),
        ("QUERY", "/b", new),
        ("COPY", "/b", new),
        ("LINK", "/b", new),
        ("TRACE", "/b", trace),
    ];
    assert_eq!(skipped(&out), expected);
    assert_eq!(out.total, 8);
    assert_eq!(out.warnings, ["the document is of OpenAPI 3.2, and is read as if it were 3.1"]);
}

#[test]
fn rst_2_what_stands_beside_the_reference_of_a_path_is_ignored() {
    let mut document = v3(json!({
        "/a/{id}": {
            "$ref": "#/components/pathItems/middle",
            "parameters": [{"in": "header", "name": "X-Tenant", "required": true}],
            "servers": [{"url": "https://api.example.com/other"}],
            "post": {},
            "get": {"operationId": "hidden"},
        },
    }));
    document["components"] = json!({"pathItems": {
        "middle": {"$ref": "#/components/pathItems/last", "put": {}},
        "last": {
            "get": {"operationId": "get"},
            "parameters": [{"in": "path", "name": "id", "required": true, "schema": {"type": "integer"}}],
            "servers": [{"url": "/yes"}],
        },
    }});
    let out = imported(&document, &ImportOptions::default());
    assert_eq!((names(&out), out.total, out.warnings.len()), (vec!["get"], 1, 0));
    let operation = &out.operations[0];
    assert_eq!(operation.server.as_str(), "https://api.example.com/yes");
    let schema = operation.input_schema.value();
    assert_eq!(
        (&schema["properties"]["id"]["type"], &schema["required"]),
        (&json!("integer"), &json!(["id"]))
    );
}

#[test]
fn a_path_that_refers_in_circles_is_skipped() {
    let document = v3(json!({"/a": {"$ref": "#/paths/~1a", "get": {}}}));
    let out = imported(&document, &ImportOptions::default());
    assert!(out.skipped[0].reason.contains("without end"), "{:?}", out.skipped);
}

#[test]
fn paths_that_refer_to_the_same_large_item_are_bounded() {
    let item: Map<String, Value> = (0..20_000).map(|n| (format!("x-{n}"), json!(1))).collect();
    let paths: Map<String, Value> =
        (0..2000).map(|n| (format!("/{n}"), json!({"$ref": "#/components/pathItems/a"}))).collect();
    let mut document = v3(Value::Object(paths));
    document["components"] = json!({"pathItems": {"a": item}});
    let out = imported(&document, &ImportOptions::default());
    assert_eq!(out.warnings, ["the paths of the document take too many steps to read; some are left out"]);
}

#[test]
fn names_of_any_length_are_paid_for() {
    // Each operation follows the same long references again.
    let long = "n".repeat(1 << 20);
    let one = json!({ "$ref": format!("#/components/schemas/{long}") });
    let properties: Map<String, Value> = (0..40).map(|n| (format!("p{n}"), one.clone())).collect();
    let body = json!({ "content": { "application/json": { "schema": { "properties": properties } } } });
    let mut document = v3(json!({
        "/a": { "post": { "requestBody": body } },
        "/b": { "post": { "responses": {} } },
    }));
    document["components"] = json!({ "schemas": { long: { "type": "string" } } });
    let out = imported(&document, &ImportOptions::default());
    let reason = "its parameters and schemas take more than 500000 steps to read";
    assert_eq!(skipped(&out), [("POST", "/a", reason)]);
    assert_eq!(names(&out).len(), 1);
}

#[test]
fn a_long_path_is_not_copied_for_each_method() {
    let methods: Map<String, Value> = (0..100).map(|n| (format!("M{n}"), json!({}))).collect();
    let path = format!("/{}", "p".repeat(10_000));
    let out = imported(&v3(json!({ path: { "additionalOperations": methods } })), &ImportOptions::default());
    assert_eq!(out.skipped.len(), 100);
    assert!(out.skipped.iter().all(|skipped| skipped.path.len() < 1000));
}

#[test]
fn rst_2_words_that_mean_yes_are_read_as_such() {
    let flags = |required: Value| {
        let parameter =
            json!({"in": "query", "name": "q", "required": required, "schema": {"type": "string"}});
        let out =
            imported(&v3(json!({"/a": {"get": {"parameters": [parameter]}}})), &ImportOptions::default());
        out.operations[0].input_schema.value().get("required").is_some()
    };
    for yes in [json!(true), json!("true"), json!("yes"), json!("True"), json!("on")] {
        assert!(flags(yes.clone()), "{yes}");
    }
    for no in [json!(false), json!("false"), json!("no"), json!(1), json!(null), json!("")] {
        assert!(!flags(no.clone()), "{no}");
    }
}

#[test]
fn rst_2_an_api_key_cannot_be_an_argument_in_disguise() {
    let mut document = v3(json!({"/a": {"get": {
        "parameters": [{"in": "query", "name": "free", "schema": {"type": "object"}}],
    }}}));
    document["security"] = json!([{"key": []}, {}]);
    document["components"] =
        json!({"securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "kk"}}});
    let out = imported(&document, &ImportOptions::default());
    let prepare = |value: Value| out.operations[0].prepare(json!({"free": value}).as_object().unwrap());
    assert_eq!(prepare(json!({"a": 1})).unwrap().query, "a=1");
    assert!(prepare(json!({"kk": 1})).unwrap_err().contains("which is the API key of the operation"));
}

#[test]
fn rst_2_swagger_lists_in_paths_and_headers_have_commas() {
    let parameter = |place: &str, name: &str, format: &str| {
        json!({"in": place, "name": name, "required": true, "type": "array", "items": {"type": "integer"},
            "collectionFormat": format})
    };
    let parameters = [
        parameter("path", "ids", "csv"),
        parameter("header", "X-Ids", "csv"),
        parameter("header", "X-M", "multi"),
    ];
    let document = json!({
        "swagger": "2.0", "info": {}, "host": "a.example",
        "paths": {"/a/{ids}": {"get": {"parameters": parameters}}},
    });
    let out = imported(&document, &ImportOptions::default());
    let arguments = json!({"ids": [1, 2], "X-Ids": [3, 4], "X-M": [5, 6]});
    let prepared = out.operations[0].prepare(arguments.as_object().unwrap()).unwrap();
    assert_eq!(prepared.path, "/a/1,2");
    let headers = [("X-Ids", "3,4"), ("X-M", "5,6")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(prepared.headers, headers);
}

#[test]
fn rst_2_path_items_can_be_referred_to() {
    let mut document = v3(json!({"/a/{id}": {"$ref": "#/components/pathItems/a"}}));
    document["components"] = json!({"pathItems": {"a": {
        "parameters": [{"in": "path", "name": "id", "required": true, "schema": {"type": "integer"}}],
        "get": {"operationId": "a"},
    }}});
    let out = imported(&document, &ImportOptions::default());
    assert_eq!(out.operations[0].input_schema.value()["properties"]["id"]["type"], "integer");
}

#[test]
fn descriptions_are_for_reading() {
    let said = |operation: Value| {
        let out = imported(&v3(json!({"/a": {"get": operation}})), &ImportOptions::default());
        out.operations[0].description.clone()
    };
    assert_eq!(
        said(json!({"summary": " List  them ", "description": "All.\r\n\r\n\r\n* one\n  * two  "})),
        "List them\n\nAll.\n\n* one\n  * two"
    );
    assert_eq!(
        said(json!({"description": "a <!-- secret\n --> b\u{202e}\u{200b}c <!-- never closed"})),
        "a bc"
    );
    assert_eq!(said(json!({"summary": "Same.", "description": "Same."})), "Same.");
    assert_eq!(said(json!({"summary": "Old.", "deprecated": true})), "Deprecated. Old.");
    assert_eq!(said(json!({"deprecated": true})), "Deprecated. GET /a");
    let long = said(json!({"description": "word ".repeat(5000)}));
    assert!(long.chars().count() <= 1024 && long.ends_with("word…"), "{long}");
    let long = said(json!({"description": "é".repeat(5000)}));
    assert_eq!(long.chars().count(), 1024);
}

#[test]
fn more_operations_than_the_limit_are_counted() {
    let mut document = v3(json!({}));
    let paths: Map<String, Value> = (0..OPERATIONS + 7)
        .map(|number| (format!("/{number}"), json!({"get": {"tags": [number.to_string()]}})))
        .collect();
    document["paths"] = Value::Object(paths);
    let out = imported(&document, &ImportOptions { base_url: None, ..ImportOptions::default() });
    assert_eq!((out.total, out.filtered, out.operations.len()), (OPERATIONS + 7, 0, OPERATIONS));
    assert_eq!(out.warnings.len(), 1);
    assert!(out.warnings[0].starts_with("7 operations beyond 25000 were left out"), "{:?}", out.warnings);
    // What is beyond it can be chosen.
    let tags = vec![(OPERATIONS + 6).to_string()];
    let out = imported(&document, &ImportOptions { tags, ..ImportOptions::default() });
    assert_eq!((out.operations.len(), out.warnings.len()), (1, 0));
}

#[test]
fn credentials_are_no_arguments() {
    let mut document = v3(json!({"/a": {"get": {
        "security": [{"key": []}],
        "parameters": [
            {"in": "header", "name": "x-api-key", "required": true, "schema": {"type": "string"}},
            {"in": "query", "name": "X-Api-Key", "schema": {"type": "string"}},
            {"in": "header", "name": "Authorization", "required": true},
            {"in": "header", "name": "Host"},
        ],
    }}}));
    document["components"] =
        json!({"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"}}});
    let out = imported(&document, &ImportOptions::default());
    let schema = &out.operations[0].input_schema.value();
    assert_eq!(schema["properties"].as_object().unwrap().len(), 1, "{schema}");
    assert!(schema["properties"]["X-Api-Key"].is_object() && schema.get("required").is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn rst_3_names_do_not_depend_on_order_or_filters(
        paths in proptest::collection::btree_set("/[a-c]{1,2}", 2..12),
        ids in proptest::collection::vec("[ab]{1,2}", 12),
        order in proptest::collection::vec(any::<u32>(), 12),
    ) {
        let mut items: Vec<(String, Value)> = paths
            .into_iter()
            .zip(&ids)
            .map(|(path, id)| (path, json!({"get": {"operationId": id, "tags": [id]}})))
            .collect();
        let document = v3(Value::Object(items.iter().cloned().collect()));
        let by_path = |import: &Import| -> BTreeMap<String, String> {
            import.operations.iter().map(|o| (o.path.clone(), o.name.clone())).collect()
        };
        let expected = by_path(&imported(&document, &ImportOptions::default()));

        let keys: BTreeMap<String, u32> = items.iter().map(|(path, _)| path.clone()).zip(order).collect();
        items.sort_by_key(|(path, _)| keys[path]);
        let shuffled = v3(Value::Object(items.into_iter().collect()));
        prop_assert_eq!(&by_path(&imported(&shuffled, &ImportOptions::default())), &expected);
        let choice = ImportOptions { tags: vec![ids[0].clone()], ..ImportOptions::default() };
        for (path, name) in by_path(&imported(&document, &choice)) {
            prop_assert_eq!(&expected[&path], &name);
        }
    }
}
