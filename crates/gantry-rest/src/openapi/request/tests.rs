//! Whole requests, and that no argument can leave its place.

use super::*;
use crate::openapi::request::body::{BodyFormat, Source};
use crate::openapi::request::parameters::{Serialization, Style};
use proptest::prelude::*;
use serde_json::json;
use url::Url;

fn parameter(place: Place, name: &str, style: Style) -> Parameter {
    let serialization = Serialization::new(style);
    Parameter { argument: name.to_owned(), name: name.to_owned(), place, serialization }
}

fn in_path(name: &str) -> Parameter {
    parameter(Place::Path, name, Style::Joined)
}

fn in_query(name: &str) -> Parameter {
    parameter(Place::Query, name, Style::Exploded)
}

fn prepare(path: &str, parameters: Vec<Parameter>, arguments: &Value) -> Result<Prepared, String> {
    let template = Template { parameters, ..Template::default() };
    template.prepare(path, arguments.as_object().unwrap())
}

/// The path and the query.
#[track_caller]
fn address(path: &str, parameters: Vec<Parameter>, arguments: &Value) -> String {
    let prepared = prepare(path, parameters, arguments).unwrap();
    format!("{}?{}", prepared.path, prepared.query)
}

#[track_caller]
fn refused(path: &str, parameters: Vec<Parameter>, arguments: &Value, words: &str) {
    assert_eq!(prepare(path, parameters, arguments).unwrap_err(), words);
}

#[test]
fn rst_2_each_part_of_a_request_has_its_parameters_in_their_order() {
    let template = Template {
        parameters: vec![
            in_query("b"),
            parameter(Place::Header, "X-Trace", Style::Joined),
            in_query("a"),
            in_path("id"),
            in_query("absent"),
        ],
        body: Some(Body {
            media: "application/json".to_owned(),
            required: true,
            format: BodyFormat::Json,
            source: Source::Whole,
            encodings: Vec::new(),
        }),
        query_keys: Vec::new(),
    };
    let arguments = json!({
        "a": 1, "b": ["x", "y"], "id": "é 1", "X-Trace": ["t", 2],
        "absent": null, "body": {"k": [1.5, null]},
    });
    let prepared = template.prepare("/users/{id}/x", arguments.as_object().unwrap()).unwrap();
    let expected = Prepared {
        path: "/users/%C3%A9%201/x".to_owned(),
        query: "b=x&b=y&a=1".to_owned(),
        headers: vec![("X-Trace".to_owned(), "t,2".to_owned())],
        body: Some(("application/json".to_owned(), br#"{"k":[1.5,null]}"#.to_vec())),
    };
    assert_eq!(prepared, expected);
}

#[test]
fn rst_2_templates_stand_anywhere_in_a_path() {
    let two = || vec![in_path("id"), in_path("ext")];
    assert_eq!(address("/a/{id}/b.{ext}", two(), &json!({"id": 7, "ext": "json"})), "/a/7/b.json?");
    assert_eq!(address("/{id}-{id}", vec![in_path("id")], &json!({"id": "x"})), "/x-x?");
    assert_eq!(address("a/{id}", vec![in_path("id")], &json!({"id": true})), "/a/true?");
    assert_eq!(address("", vec![], &json!({})), "/?");
}

#[test]
fn the_fixed_parts_of_a_path_are_encoded_once() {
    assert_eq!(address("/a b/\"é\"/%20/%2f/%zz/[x]\\|^`<>", vec![], &json!({})), {
        "/a%20b/%22%C3%A9%22/%20/%2f/%25zz/%5Bx%5D%5C%7C%5E%60%3C%3E?"
    });
    assert_eq!(address("/a:b@c!$&'()*+,;=~/{open", vec![], &json!({})), "/a:b@c!$&'()*+,;=~/%7Bopen?");
}

#[test]
fn a_query_in_a_path_goes_to_the_query_and_a_fragment_nowhere() {
    assert_eq!(address("/a?x=1&y=a b#z", vec![], &json!({})), "/a?x=1&y=a%20b");
    assert_eq!(address("/a?x=1", vec![in_query("q")], &json!({"q": "?"})), "/a?x=1&q=%3F");
    assert_eq!(address("/#Action={id}", vec![in_query("Action")], &json!({"Action": "Run"})), "/?Action=Run");
    assert_eq!(address("/a#b?x=1", vec![], &json!({})), "/a?");
    assert_eq!(address("/a?", vec![], &json!({})), "/a?");
    assert_eq!(address("/a?flag&&y=1", vec![], &json!({})), "/a?flag&y=1");
    // The parameter says it better.
    assert_eq!(address("/a?x=1&y=2", vec![in_query("x")], &json!({"x": 3})), "/a?y=2&x=3");
    assert_eq!(address("/a?x=1&y=2", vec![in_query("x")], &json!({})), "/a?x=1&y=2");
    assert_eq!(address("/a?x={x}&y=2", vec![in_query("x")], &json!({"x": 3})), "/a?y=2&x=3");
    assert_eq!(address("/a?x={x}&y=2", vec![in_path("x")], &json!({"x": "1&z=2#"})), "/a?x=1%26z%3D2%23&y=2");
    assert_eq!(address("/a{?x,y}", vec![in_query("x")], &json!({"x": 3})), "/a?x=3");
    assert_eq!(address("/a?k=1{&x}", vec![in_query("x")], &json!({"x": 3})), "/a?k=1&x=3");
    assert_eq!(address("/a{&x}{#part}", vec![in_query("x")], &json!({"x": 3})), "/a?x=3");
}

#[test]
fn a_path_without_a_value_is_refused() {
    let empty = "the argument \"id\" is empty; a path needs a value";
    let missing = "the argument \"id\" is missing; a path needs a value";
    for value in [json!(""), json!([]), json!({}), json!([null]), json!([""])] {
        refused("/a/{id}", vec![in_path("id")], &json!({"id": value}), empty);
        let exploded = parameter(Place::Path, "id", Style::Exploded);
        refused("/a/{id}", vec![exploded], &json!({"id": value}), empty);
    }
    refused("/a/{id}", vec![in_path("id")], &json!({"id": null}), missing);
    refused("/a/{id}", vec![in_path("id")], &json!({}), missing);
    let unknown = "the path has {id}, and the document has no path parameter of that name";
    refused("/a/{id}", vec![in_query("id")], &json!({"id": 1}), unknown);
    refused("/a?x={id}", vec![], &json!({"id": 1}), unknown);
}

#[test]
fn a_path_never_walks() {
    let words = "the argument \"id\" makes a step `.` or `..` in the path, which leads elsewhere";
    for value in [".", "..", "../x", "x/..", "a/../b", "..\\x"] {
        refused("/a/{id}/b", vec![in_path("id")], &json!({"id": value}), words);
    }
    for path in ["/a/%2e{id}", "/a/{id}%2E", "/a/{id};x", "/a/%2e{id};x=1/b"] {
        refused(path, vec![in_path("id")], &json!({"id": "."}), words);
    }
    refused("/a/.{id}", vec![in_path("id")], &json!({"id": "."}), words);
    for path in ["/a/../b", "/a/%2e%2E/b", "/./a", "/a/.."] {
        refused(
            path,
            vec![],
            &json!({}),
            "the path of the document has a step `.` or `..`, which leads elsewhere",
        );
    }
    // What only looks like it.
    for value in ["...", "a..b", ".git", "v1.2", "%2e%2e", "a/b.c"] {
        assert!(prepare("/a/{id}", vec![in_path("id")], &json!({"id": value})).is_ok(), "{value}");
    }
}

#[test]
fn a_spread_object_cannot_pass_for_another_parameter() {
    let filter = || in_query("filter");
    let words = "the argument \"filter\" has the property \"limit\", which is a parameter of its own; give it as the \
                 argument \"limit\"";
    let arguments = json!({"filter": {"limit": 1}});
    refused("/a", vec![filter(), in_query("limit")], &arguments, words);
    let deep = parameter(Place::Query, "filter", Style::DeepObject);
    assert_eq!(address("/a", vec![deep, in_query("limit")], &arguments), "/a?filter%5Blimit%5D=1");
    let own = json!({"filter": {"filter": 1}});
    assert_eq!(address("/a", vec![filter()], &own), "/a?filter=1");
}

#[test]
fn a_spread_object_cannot_pass_for_an_api_key() {
    let prepare = |parameter: Parameter, arguments: &Value| {
        let template = Template {
            parameters: vec![parameter],
            query_keys: vec!["kk".to_owned()],
            ..Template::default()
        };
        template.prepare("/a", arguments.as_object().unwrap())
    };
    for property in ["kk", "KK"] {
        let expected = format!(
            "the argument \"filter\" has the property {property:?}, which is the API key of the operation and no \
             argument; leave it out"
        );
        let refused = prepare(in_query("filter"), &json!({"filter": {"a": 1, property: "mine"}}));
        assert_eq!(refused.unwrap_err(), expected);
    }
    assert_eq!(prepare(in_query("filter"), &json!({"filter": {"sid": 1}})).unwrap().query, "sid=1");
    let deep = parameter(Place::Query, "filter", Style::DeepObject);
    assert_eq!(prepare(deep, &json!({"filter": {"kk": 1}})).unwrap().query, "filter%5Bkk%5D=1");
}

#[test]
fn an_argument_that_writes_nothing_replaces_nothing() {
    for value in [json!([]), json!({}), json!([null]), json!(null)] {
        assert_eq!(address("/a?fixed=1", vec![in_query("fixed")], &json!({"fixed": value})), "/a?fixed=1");
    }
    assert_eq!(address("/a?fixed=1", vec![in_query("fixed")], &json!({"fixed": ""})), "/a?fixed=");
}

#[test]
fn a_header_holds_no_line_break() {
    let header = |name| vec![parameter(Place::Header, name, Style::Exploded)];
    for (value, shown) in [("a\r\nX: 1", "'\\r'"), ("a\n", "'\\n'"), ("\0", "'\\0'"), ("\t", "'\\t'")] {
        let words = format!("the argument \"X-A\" has the character {shown}, which no header may have");
        refused("/a", header("X-A"), &json!({"X-A": value}), &words);
        refused("/a", header("X-A"), &json!({"X-A": [value]}), &words);
        refused("/a", header("X-A"), &json!({"X-A": {value: 1}}), &words);
    }
    let words = "the argument \"X-A\" has the character 'é', and a header has only those of ASCII";
    refused("/a", header("X-A"), &json!({"X-A": "é"}), words);
    let long = json!({"X-A": "x".repeat(ADDRESS_BYTES)});
    refused(
        "/a",
        header("X-A"),
        &long,
        "the argument \"X-A\" makes the headers longer than 16384 bytes; send less",
    );
}

#[test]
fn an_address_has_a_length_that_it_cannot_pass() {
    let long = "x".repeat(ADDRESS_BYTES);
    let words = |place| format!("the argument \"id\" makes the {place} longer than 16384 bytes; send less");
    refused("/a", vec![in_query("id")], &json!({"id": long}), &words("address"));
    refused("/{id}", vec![in_path("id")], &json!({"id": long}), &words("address"));
    let half = json!({"id": "x".repeat(ADDRESS_BYTES / 2)});
    refused("/{id}/{id}", vec![in_path("id")], &half, &words("address"));
    refused("/?a={id}&b={id}", vec![in_path("id")], &half, &words("address"));
    let sum = "the path and the query would have 16388 bytes, and 16384 is the most; send less";
    refused("/{id}", vec![in_path("id"), in_query("id")], &half, sum);
}

/// Texts that like to break out, and any others.
fn any_text() -> impl Strategy<Value = String> {
    let hostile = prop::sample::select(vec![
        "..", "%2e%2e", "../../x", "a/b", "?x=1", "#f", "&admin=1", "=", "+", ";", "%", "%0d%0a", "\r\nX: 1",
        "\0", "//h2/", "@h2", "\\", " ", "é",
    ]);
    prop_oneof![any::<String>(), ".{0,12}", hostile.prop_map(str::to_owned)]
}

proptest! {
    #[test]
    fn no_value_leaves_its_place_in_an_address(
        id in any_text(),
        name in any_text(),
        list in prop::collection::vec(any_text(), 0..4),
    ) {
        let parameters = vec![in_path("id"), in_query(&name), in_query("fixed")];
        let arguments = json!({"id": id, name.clone(): list, "fixed": id});
        prop_assume!(name != "id" && name != "fixed");
        let prepared = match prepare("/v1/{id}/end", parameters, &arguments) {
            Ok(prepared) => prepared,
            Err(words) => {
                prop_assert!(id.is_empty() || id == "." || id.contains(".."), "{words}");
                return Ok(());
            }
        };
        let url = Url::parse(&format!("http://h{}?{}", prepared.path, prepared.query)).unwrap();
        prop_assert_eq!(url.host_str(), Some("h"));
        prop_assert_eq!(url.path(), &prepared.path);
        let segments: Vec<_> = url.path_segments().unwrap().collect();
        prop_assert_eq!(segments.len(), 3);
        prop_assert_eq!(percent_encoding::percent_decode_str(segments[1]).decode_utf8().unwrap(), id.as_str());
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let mut expected: Vec<_> = list.iter().map(|value| (name.clone(), value.clone())).collect();
        expected.push(("fixed".to_owned(), id));
        prop_assert_eq!(pairs, expected);
    }

    #[test]
    fn no_style_lets_a_value_end_its_pair(
        key in any_text(),
        value in any_text(),
        allow_reserved in any::<bool>(),
    ) {
        for style in [Style::Joined, Style::Exploded, Style::DeepObject, Style::Json] {
            let serialization = Serialization { style, allow_reserved };
            let parameters = vec![Parameter { serialization, ..in_query("q") }];
            let prepared = prepare("/a", parameters, &json!({"q": {key.clone(): value}})).unwrap();
            let url = Url::parse(&format!("http://h{}?{}", prepared.path, prepared.query)).unwrap();
            prop_assert_eq!(url.path(), "/a");
            prop_assert_eq!(url.fragment(), None);
            prop_assert_eq!(url.query().unwrap().split('&').count(), 1);
        }
    }

    #[test]
    fn no_value_leaves_its_header(value in any_text()) {
        let parameters = vec![parameter(Place::Header, "x", Style::Exploded)];
        if let Ok(prepared) = prepare("/a", parameters, &json!({"x": value})) {
            prop_assert!(http::HeaderValue::from_str(&prepared.headers[0].1).is_ok());
            prop_assert_eq!(&prepared.headers[0].1, &value);
        }
    }
}
