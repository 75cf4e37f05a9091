//! Where operations are sent, by document and by choice.

#![expect(clippy::needless_pass_by_value, reason = "documents are written where they are used")]

use crate::openapi::{Bundle, Import, ImportOptions, import};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use url::Url;

fn imported(location: &str, document: &Value, choice: &ImportOptions) -> Import {
    let bundle = Bundle::open(Url::parse(location).unwrap(), document.to_string().as_bytes()).unwrap();
    import(&bundle, choice)
}

/// Where `GET /a` is sent, or why it is not.
#[track_caller]
fn server(location: &str, document: &Value, choice: &ImportOptions) -> String {
    let out = imported(location, document, choice);
    match (out.operations.as_slice(), out.skipped.as_slice()) {
        ([operation], []) => operation.server.to_string(),
        ([], [skipped]) => skipped.reason.clone(),
        other => panic!("{other:?}"),
    }
}

const FILE: &str = "file:///spec/api.json";
const WEB: &str = "https://docs.example.com/specs/api.json";
const NOWHERE: &str = "the specification does not say where the API is; set baseUrl";

fn v3(servers: Value) -> Value {
    json!({"openapi": "3.0.0", "info": {}, "servers": servers, "paths": {"/a": {"get": {}}}})
}

#[test]
fn rst_2_a_server_is_where_the_document_says() {
    for (servers, location, expected) in [
        (
            json!([{"url": "https://a.example/v1/"}, {"url": "https://b.example"}]),
            FILE,
            "https://a.example/v1",
        ),
        (json!([{"url": " https://a.example/v1?x=1#y "}]), FILE, "https://a.example/v1"),
        (json!([{"url": "/v2"}]), WEB, "https://docs.example.com/v2"),
        (json!([{"url": "./v2/"}]), WEB, "https://docs.example.com/specs/v2"),
        (json!([{"url": "//a.example/v1"}]), FILE, "https://a.example/v1"),
        (json!([]), WEB, "https://docs.example.com/"),
        (Value::Null, WEB, "https://docs.example.com/"),
        (json!([{"url": "/v2"}]), FILE, NOWHERE),
        (json!([]), FILE, NOWHERE),
    ] {
        assert_eq!(
            server(location, &v3(servers.clone()), &ImportOptions::default()),
            expected,
            "{servers} {location}"
        );
    }
}

#[test]
fn an_address_that_cannot_be_used_says_why() {
    for (url, part) in [
        (json!("ftp://a.example"), "by ftp, not by http or https"),
        (json!("https://user:secret@a.example"), "has a user or a password"),
        (json!("https://user@a.example"), "has a user or a password"),
        (json!("https://"), "is invalid"),
        (json!("https://a b.example"), "is invalid"),
        (json!("https://{host.example"), "without its }"),
        (json!("https://{region}.example"), "set serverVariables.region or baseUrl"),
        (json!(5), "has no url"),
    ] {
        let reason = server(FILE, &v3(json!([{"url": url}])), &ImportOptions::default());
        assert!(reason.contains(part), "{url}: {reason}");
        assert!(!reason.contains("secret"), "{reason}");
    }
}

#[test]
fn rst_2_variables_come_from_the_choice_or_have_defaults() {
    let document = v3(json!([{
        "url": "https://{region}.example:{port}/{base}",
        "variables": {
            "region": {"default": "eu", "enum": ["eu", "us"]},
            "port": {"default": 8443},
            "base": {"default": "v1"},
        },
    }]));
    let with = |pairs: &[(&str, &str)]| {
        let variables: BTreeMap<String, String> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        server(FILE, &document, &ImportOptions { variables, ..ImportOptions::default() })
    };
    assert_eq!(with(&[]), "https://eu.example:8443/v1");
    assert_eq!(with(&[("region", "us"), ("base", "v2")]), "https://us.example:8443/v2");
    assert_eq!(
        with(&[("region", "mars")]),
        r#"serverVariables.region is "mars"; the specification allows "eu", "us""#
    );
    assert!(with(&[("port", "none")]).contains("is invalid"));
    assert!(with(&[("base", "a/../../b")]).starts_with("https://eu.example:8443/"));
}

#[test]
fn a_variable_that_no_address_has_is_said() {
    let document = v3(json!([{"url": "https://{region}.example"}]));
    let variables = ["region", "regoin"].map(|name| (name.to_owned(), "eu".to_owned()));
    let out =
        imported(FILE, &document, &ImportOptions { variables: variables.into(), ..ImportOptions::default() });
    assert_eq!(out.operations[0].server.as_str(), "https://eu.example/");
    let expected = "serverVariables.regoin is not used: no address of a server has {regoin}";
    assert_eq!(out.warnings, [expected]);
}

#[test]
fn the_base_url_replaces_the_servers_of_the_document() {
    let choice =
        |url: &str| ImportOptions { base_url: Some(Url::parse(url).unwrap()), ..ImportOptions::default() };
    let document = v3(json!([{"url": "https://a.example/v1"}]));
    assert_eq!(server(FILE, &document, &choice("http://127.0.0.1:8080/x/")), "http://127.0.0.1:8080/x");
    assert_eq!(server(FILE, &v3(Value::Null), &choice("https://b.example")), "https://b.example/");
    assert!(server(FILE, &document, &choice("ftp://b.example")).contains("by ftp"));
    assert!(server(FILE, &document, &choice("https://b.example/?v=1")).contains("has a query"));
}

#[test]
fn rst_2_an_operation_and_a_path_can_have_servers_of_their_own() {
    let document = json!({
        "openapi": "3.1.0", "info": {}, "servers": [{"url": "https://a.example"}],
        "paths": {
            "/a": {"get": {}},
            "/b": {"servers": [{"url": "https://a.example/files"}], "get": {}, "put": {"servers": [{"url": "https://a.example/up"}]}},
            "/c": {"get": {"servers": [{"url": "https://elsewhere.example"}]}},
        },
    });
    let out = imported(FILE, &document, &ImportOptions::default());
    let servers: Vec<(&str, &str)> =
        out.operations.iter().map(|o| (o.name.as_str(), o.server.as_str())).collect();
    let near = [
        ("get_a", "https://a.example/"),
        ("get_b", "https://a.example/files"),
        ("put_b", "https://a.example/up"),
    ];
    assert_eq!(servers, near);
    let reason = &out.skipped[0].reason;
    assert!(reason.contains("https://elsewhere.example and not at https://a.example"), "{reason}");

    let out = imported(FILE, &document, &ImportOptions { other_origins: true, ..ImportOptions::default() });
    assert_eq!(out.operations.len(), 4);
    let base_url = Some(Url::parse("https://elsewhere.example/api").unwrap());
    let out = imported(FILE, &document, &ImportOptions { base_url, ..ImportOptions::default() });
    assert_eq!((out.operations.len(), out.skipped.len()), (4, 0));
    let there = |o: &crate::openapi::Operation| o.server.as_str() == "https://elsewhere.example/api";
    assert!(out.operations.iter().all(there), "the base address replaces all servers");
}

#[test]
fn rst_2_a_relative_server_of_a_path_is_relative_to_the_api_if_the_document_is_a_file() {
    let document = |root: Value| {
        json!({
            "openapi": "3.1.0", "info": {}, "servers": root,
            "paths": {
                "/a": {"servers": [{"url": "/v2"}], "get": {}},
                "/b": {"get": {"servers": [{"url": "./beta/"}]}},
                "/c": {"get": {"servers": [{"url": "//elsewhere.example/x"}]}},
            },
        })
    };
    let root = document(json!([{"url": "https://a.example/api/"}]));
    let servers =
        |out: &Import| -> Vec<String> { out.operations.iter().map(|o| o.server.to_string()).collect() };
    let out = imported(FILE, &root, &ImportOptions::default());
    assert_eq!(servers(&out), ["https://a.example/v2", "https://a.example/api/beta"]);
    assert!(out.skipped[0].reason.contains("elsewhere.example"), "{:?}", out.skipped);
    let out = imported("https://a.example/specs/api.json", &root, &ImportOptions::default());
    assert_eq!(servers(&out), ["https://a.example/v2", "https://a.example/specs/beta"]);
    let out = imported(FILE, &document(Value::Null), &ImportOptions::default());
    assert_eq!(out.skipped[0].reason, NOWHERE);
}

#[test]
fn a_variable_may_be_empty_unless_the_host_would_be() {
    let at = |url: &str| {
        let variables = json!({"e": {"default": ""}, "v": {"default": "v1"}});
        server(WEB, &v3(json!([{"url": url, "variables": variables}])), &ImportOptions::default())
    };
    assert_eq!(at("https://a.example/{e}"), "https://a.example/");
    assert_eq!(at("https://{e}a.example{e}/{v}"), "https://a.example/v1");
    assert_eq!(at("{e}/{v}"), "https://docs.example.com/v1");
    for url in [
        "https://{e}/{v}",
        "https://{e}",
        "//{e}/{v}",
        "https://{e}?x",
        "https://{e}\\{v}",
        "https://{e}.example",
    ] {
        let reason = at(url);
        assert!(
            reason.contains("has no host") && reason.contains("set serverVariables or baseUrl"),
            "{reason}"
        );
    }
}

#[test]
fn servers_that_people_write_are_taken_or_named() {
    let choice = ImportOptions::default();
    for url in ["example.com/v1", "localhost:8080/v1", "api.example.com", "localhost", "10.0.0.1:80", "v1"] {
        for location in [FILE, WEB] {
            let expected = format!("the server address {url:?} has no scheme, such as https://; set baseUrl");
            assert_eq!(server(location, &v3(json!([{"url": url}])), &choice), expected);
        }
    }
    for (url, expected) in
        [("./v1.1", "specs/v1.1"), ("../v1", "v1"), ("./api", "specs/api"), ("/a.b/c", "a.b/c")]
    {
        let expected = format!("https://docs.example.com/{expected}");
        assert_eq!(server(WEB, &v3(json!([{"url": url}])), &choice), expected);
    }
}

#[test]
fn a_variable_beside_a_base_url_is_said() {
    let choice = ImportOptions {
        base_url: Some(Url::parse("https://b.example").unwrap()),
        variables: BTreeMap::from([("region".to_owned(), "eu".to_owned())]),
        ..ImportOptions::default()
    };
    let out = imported(FILE, &v3(json!([{"url": "https://{region}.example"}])), &choice);
    let expected = "serverVariables.region is not used: baseUrl replaces the servers of the specification";
    assert_eq!(out.warnings, [expected]);
}

#[test]
fn servers_of_operations_are_enough() {
    let document = json!({
        "openapi": "3.0.0", "info": {},
        "paths": {
            "/a": {"get": {"servers": [{"url": "https://a.example/x"}]}},
            "/b": {"get": {"servers": [{"url": "https://b.example/x"}]}},
        },
    });
    let out = imported(FILE, &document, &ImportOptions::default());
    assert_eq!((out.operations.len(), out.skipped.len()), (1, 1));
}

#[test]
fn rst_2_swagger_has_schemes_and_a_host() {
    let swagger = |members: Value| {
        let mut document = json!({"swagger": "2.0", "info": {}, "paths": {"/a": {"get": {}}}});
        document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        document
    };
    for (members, location, expected) in [
        (
            json!({"host": "a.example", "basePath": "/v1/", "schemes": ["http", "https"]}),
            FILE,
            "https://a.example/v1",
        ),
        (json!({"host": "a.example:8080", "schemes": ["http"]}), FILE, "http://a.example:8080/"),
        (json!({"host": "a.example", "basePath": "v1"}), FILE, "https://a.example/v1"),
        (json!({"host": "a.example"}), "http://b.example/spec", "http://a.example/"),
        (json!({"host": "https://a.example/"}), FILE, "https://a.example/"),
        (json!({"basePath": "/v1"}), WEB, "https://docs.example.com/v1"),
        (json!({"basePath": "/v1"}), FILE, NOWHERE),
        (json!({}), FILE, NOWHERE),
    ] {
        assert_eq!(
            server(location, &swagger(members.clone()), &ImportOptions::default()),
            expected,
            "{members}"
        );
    }
    let reason =
        server(FILE, &swagger(json!({"host": "a.example", "schemes": ["wss"]})), &ImportOptions::default());
    assert!(reason.contains("by wss"), "{reason}");
    let reason = server(FILE, &swagger(json!({"host": "me:secret@a.example"})), &ImportOptions::default());
    assert!(reason.contains("a user or a password") && !reason.contains("secret"), "{reason}");
}
