//! Parameters by place, style and explode: what arrives is what the tables of the OpenAPI specification say (3.1.1, "Style
//! Examples").

use super::{Rig, document};
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

const PATH: [Row; 18] = [
    ("path", "matrix", false, Text, ";color=blue"),
    ("path", "matrix", false, List, ";color=blue,black,brown"),
    ("path", "matrix", false, Object, ";color=R,100,G,200,B,150"),
    ("path", "matrix", true, Text, ";color=blue"),
    ("path", "matrix", true, List, ";color=blue;color=black;color=brown"),
    ("path", "matrix", true, Object, ";R=100;G=200;B=150"),
    ("path", "label", false, Text, ".blue"),
    ("path", "label", false, List, ".blue,black,brown"),
    ("path", "label", false, Object, ".R,100,G,200,B,150"),
    ("path", "label", true, Text, ".blue"),
    ("path", "label", true, List, ".blue.black.brown"),
    ("path", "label", true, Object, ".R=100.G=200.B=150"),
    ("path", "simple", false, Text, "blue"),
    ("path", "simple", false, List, "blue,black,brown"),
    ("path", "simple", false, Object, "R,100,G,200,B,150"),
    ("path", "simple", true, Text, "blue"),
    ("path", "simple", true, List, "blue,black,brown"),
    ("path", "simple", true, Object, "R=100,G=200,B=150"),
];

const QUERY: [Row; 13] = [
    ("query", "form", false, Empty, "color="),
    ("query", "form", false, Text, "color=blue"),
    ("query", "form", false, List, "color=blue,black,brown"),
    ("query", "form", false, Object, "color=R,100,G,200,B,150"),
    ("query", "form", true, Empty, "color="),
    ("query", "form", true, Text, "color=blue"),
    ("query", "form", true, List, "color=blue&color=black&color=brown"),
    ("query", "form", true, Object, "R=100&G=200&B=150"),
    ("query", "spaceDelimited", false, List, "color=blue%20black%20brown"),
    ("query", "spaceDelimited", false, Object, "color=R%20100%20G%20200%20B%20150"),
    ("query", "pipeDelimited", false, List, "color=blue%7Cblack%7Cbrown"),
    ("query", "pipeDelimited", false, Object, "color=R%7C100%7CG%7C200%7CB%7C150"),
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

/// Exploded lists and objects are separate cookies: the `&` of the tables is no separator there (3.1.1, appendix D).
const COOKIE: [Row; 6] = [
    ("cookie", "form", false, Text, "color=blue"),
    ("cookie", "form", false, List, "color=blue,black,brown"),
    ("cookie", "form", false, Object, "color=R,100,G,200,B,150"),
    ("cookie", "form", true, Text, "color=blue"),
    ("cookie", "form", true, List, "color=blue; color=black; color=brown"),
    ("cookie", "form", true, Object, "R=100; G=200; B=150"),
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
            "header" => (sent["headers"]["color"][0].clone(), (*wire).to_owned()),
            _ => (sent["headers"]["cookie"][0].clone(), (*wire).to_owned()),
        };
        assert_eq!(arrived, expected, "{row:?}: {sent}");
    }
}

#[test]
fn rst_2_path_parameters_arrive_as_their_style_says() {
    check(&PATH);
}

#[test]
fn rst_2_query_parameters_arrive_as_their_style_says() {
    check(&QUERY);
}

#[test]
fn rst_2_header_parameters_arrive_as_their_style_says() {
    check(&HEADER);
}

#[test]
fn rst_2_cookie_parameters_arrive_as_their_style_says() {
    check(&COOKIE);
}

/// Without a word about it, `query` and `cookie` are `form` and exploded, `path` and `header` are `simple` and not.
#[test]
fn rst_2_parameters_without_a_style_have_the_usual_one() {
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place, "required": place == "path", "schema": list });
    let parameters = json!([
        parameter("p", "path"),
        parameter("q", "query"),
        parameter("X-H", "header"),
        parameter("c", "cookie")
    ]);
    let rig = Rig::api(&document(&json!({ "/a/{p}": {
        "parameters": parameters,
        "get": { "operationId": "all", "responses": { "200": { "description": "done" } } },
    } })));
    let sent = rig.sent("rest__api_all", &json!({ "p": [1, 2], "q": [3, 4], "X-H": [5, 6], "c": [7] }));
    assert_eq!((&sent["path"], &sent["query"]), (&json!("/a/1,2"), &json!("q=3&q=4")), "{sent}");
    assert_eq!(
        (&sent["headers"]["x-h"][0], &sent["cookies"]),
        (&json!("5,6"), &json!([["c", "7"]])),
        "{sent}"
    );
    // What nobody gives is not sent.
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
