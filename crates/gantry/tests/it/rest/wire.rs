//! Parameters by place, style and explode: what arrives is what the tables of the OpenAPI specification say (3.1.1, "Style
//! Examples").

use super::{Rig, document, inspect, with};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// The kinds of values in the tables.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Empty,
    Text,
    List,
    Object,
}

use Kind::{Empty, List, Object, Text};

impl Kind {
    fn value(self) -> Value {
        match self {
            Empty => json!(""),
            Text => json!("blue"),
            List => json!(["blue", "black", "brown"]),
            Object => json!({ "R": 100, "G": 200, "B": 150 }),
        }
    }

    fn schema(self) -> Value {
        match self {
            Empty | Text => json!({ "type": "string" }),
            List => json!({ "type": "array", "items": { "type": "string" } }),
            Object => json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
        }
    }
}

/// Place, style, explode, kind of the value of `color`, what arrives.
type Row = (&'static str, &'static str, bool, Kind, &'static str);

const PATH: [Row; 6] = [
    ("path", "simple", false, Text, "blue"),
    ("path", "simple", false, List, "blue,black,brown"),
    ("path", "simple", false, Object, "R,100,G,200,B,150"),
    ("path", "simple", true, Text, "blue"),
    ("path", "simple", true, List, "blue,black,brown"),
    ("path", "simple", true, Object, "R=100,G=200,B=150"),
];

const QUERY: [Row; 9] = [
    ("query", "form", false, Empty, "color="),
    ("query", "form", false, Text, "color=blue"),
    ("query", "form", false, List, "color=blue,black,brown"),
    ("query", "form", false, Object, "color=R,100,G,200,B,150"),
    ("query", "form", true, Empty, "color="),
    ("query", "form", true, Text, "color=blue"),
    ("query", "form", true, List, "color=blue&color=black&color=brown"),
    ("query", "form", true, Object, "R=100&G=200&B=150"),
    ("query", "deepObject", true, Object, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
];

const HEADER: [Row; 6] = [
    ("header", "simple", false, Text, "blue"),
    ("header", "simple", false, List, "blue,black,brown"),
    ("header", "simple", false, Object, "R,100,G,200,B,150"),
    ("header", "simple", true, Text, "blue"),
    ("header", "simple", true, List, "blue,black,brown"),
    ("header", "simple", true, Object, "R=100,G=200,B=150"),
];

/// Place and style of parameters that refuse their operation, and what of them the reason names.
const REFUSED: [(&str, &str, &str); 5] = [
    ("path", "matrix", "the style \"matrix\""),
    ("path", "label", "the style \"label\""),
    ("query", "spaceDelimited", "the style \"spaceDelimited\""),
    ("query", "pipeDelimited", "the style \"pipeDelimited\""),
    ("cookie", "form", "a cookie"),
];

/// Sends every row and compares what arrives.
#[track_caller]
fn check(rows: &[Row]) {
    let mut paths = json!({});
    for (n, (place, style, explode, kind, _)) in rows.iter().enumerate() {
        let parameter = json!({
            "name": "color", "in": place, "required": true, "style": style, "explode": explode, "schema": kind.schema(),
        });
        let path = if *place == "path" { format!("/row{n}/{{color}}/end") } else { format!("/row{n}") };
        paths[path] = json!({ "get": {
            "operationId": format!("row{n}"), "parameters": [parameter], "responses": { "200": { "description": "done" } },
        } });
    }
    let rig = Rig::api(&document(&paths));
    for (n, row) in rows.iter().enumerate() {
        let (place, _, _, kind, wire) = row;
        let sent = rig.sent(&format!("rest__api_row{n}"), &json!({ "color": kind.value() }));
        let (arrived, expected) = match *place {
            "path" => (sent["path"].clone(), format!("/row{n}/{wire}/end")),
            "query" => (sent["query"].clone(), (*wire).to_owned()),
            _ => (sent["headers"]["color"][0].clone(), (*wire).to_owned()),
        };
        assert_eq!(arrived, expected, "{row:?}: {sent}");
    }
}

#[test]
fn rst_2_path_parameters_arrive_as_their_style_says() {
    check(&PATH);
    check_refused("path");
}

#[test]
fn rst_2_query_parameters_arrive_as_their_style_says() {
    check(&QUERY);
    check_refused("query");
}

#[test]
fn rst_2_header_parameters_arrive_as_their_style_says() {
    check(&HEADER);
}

/// Each row refuses its operation, and no other.
#[track_caller]
fn check_refused(place: &str) {
    for (_, style, words) in REFUSED.iter().filter(|row| row.0 == place) {
        let mut paths = json!({ "/good": { "get": super::operation("good") } });
        for (n, kind) in [Text, List, Object].into_iter().enumerate() {
            let parameter = json!({ "name": "color", "in": place, "required": place == "path", "style": style, "schema": kind.schema() });
            let path = if place == "path" { format!("/row{n}/{{color}}") } else { format!("/row{n}") };
            paths[path] = json!({ "get": { "operationId": format!("row{n}"), "parameters": [parameter], "responses": {} } });
        }
        let home = TestDir::new();
        let document = with(document(&paths), &json!({ "servers": [{ "url": "https://api.example.com" }] }));
        home.write("api.json", &document.to_string());
        let report = inspect(&home, "api.json");
        assert_eq!(report["counts"], json!({ "operations": 4, "tools": 1, "filtered": 0, "skipped": 3 }));
        for skipped in report["skipped"].as_array().expect("a list") {
            let reason = skipped["reason"].as_str().expect("a reason");
            assert!(reason.contains(words) && reason.contains("\"color\""), "{style}: {reason}");
            assert!(reason.contains("not supported"), "{style}: {reason}");
        }
    }
}

#[test]
fn rst_2_cookie_parameters_refuse_their_operation() {
    check_refused("cookie");
}

/// Without a word about it, `query` is `form` and exploded, `path` and `header` are `simple` and not.
#[test]
fn rst_2_parameters_without_a_style_have_the_usual_one() {
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place, "required": place == "path", "schema": list });
    let parameters = json!([parameter("p", "path"), parameter("q", "query"), parameter("X-H", "header")]);
    let rig = Rig::api(&document(&json!({ "/a/{p}": {
        "parameters": parameters,
        "get": { "operationId": "all", "responses": { "200": { "description": "done" } } },
    } })));
    let sent = rig.sent("rest__api_all", &json!({ "p": [1, 2], "q": [3, 4], "X-H": [5, 6] }));
    assert_eq!((&sent["path"], &sent["query"]), (&json!("/a/1,2"), &json!("q=3&q=4")), "{sent}");
    assert_eq!(sent["headers"]["x-h"][0], "5,6", "{sent}");
    // What is not given is not sent.
    let sent = rig.sent("rest__api_all", &json!({ "p": [1] }));
    assert_eq!(
        (&sent["path"], &sent["query"], sent["headers"].get("x-h")),
        (&json!("/a/1"), &Value::Null, None),
        "{sent}"
    );
    assert!(sent["headers"].get("cookie").is_none(), "{sent}");
}

#[test]
fn rst_2_every_kind_of_value_has_its_text() {
    let parameter = |name: &str, schema: Value| json!({ "name": name, "in": "query", "schema": schema });
    let rig = Rig::api(&document(&json!({ "/a": { "get": { "operationId": "all", "parameters": [
        parameter("flag", json!({ "type": "boolean" })),
        parameter("number", json!({ "type": "number" })),
        parameter("big", json!({ "type": "integer", "format": "int64" })),
        parameter("text", json!({ "type": "string" })),
        { "name": "filter", "in": "query", "content": { "application/json": { "schema": { "type": "object" } } } },
    ], "responses": { "200": { "description": "done" } } } } })));
    let arguments = json!({ "flag": false, "number": -1.5, "big": 9_007_199_254_740_993_i64, "text": "007", "filter": { "a": [1, "é"] } });
    let sent = rig.sent("rest__api_all", &arguments);
    let expected =
        "flag=false&number=-1.5&big=9007199254740993&text=007&filter=%7B%22a%22%3A%5B1%2C%22%C3%A9%22%5D%7D";
    assert_eq!(sent["query"], expected, "{sent}");
}
