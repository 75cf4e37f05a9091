//! Tests of YAML.

use super::parse;
use proptest::prelude::*;
use serde_json::{Value, json};

const ROOM: usize = 1_000_000;

#[track_caller]
fn read(text: &str) -> Value {
    parse(text, ROOM).expect("it can be read").value
}

#[track_caller]
fn refused(text: &str) -> String {
    parse(text, ROOM).expect_err("it cannot be read")
}

#[test]
fn only_true_and_false_are_booleans() {
    let found = read("[true, True, FALSE, NO, no, on, Off, yes, y, null, Null, ~, ]");
    let outcome = json!([true, true, false, "NO", "no", "on", "Off", "yes", "y", null, null, null]);
    assert_eq!(found, outcome);
}

#[test]
fn numbers_are_those_that_are_written_again_as_they_were() {
    let found = read("[0, 12, -7, 1.5, -0.5, 2.0, 18446744073709551615]");
    assert_eq!(found, json!([0, 12, -7, 1.5, -0.5, 2.0, 18446744073709551615_u64]));
    let texts = ["012345", "10_069", "2020-01-02", "0x", "0xG", "1.2.3", ".", "12:30", "1e", "+", "0x+1"];
    let versions = ["1.10", "1.20", "1e3", "0x1F", "0o17", "+7", ".5", "-.5", "2.", "2.00", "1E5", "-0"];
    for text in texts.into_iter().chain(versions) {
        assert_eq!(read(text), json!(text), "{text}");
    }
}

#[test]
fn a_number_that_would_lose_digits_is_text_unless_it_says_that_it_is_none() {
    let digits = "123456789012345678901234567890";
    assert_eq!(read(digits), json!(digits));
    assert_eq!(read("[!!float 1.10, !!int 0x1F, !!float 1e3]"), json!([1.1, 31, 1000.0]));
    assert_eq!(read("[.inf, -.inf, .nan, 1e999]"), json!([".inf", "-.inf", ".nan", "1e999"]));
}

#[test]
fn what_is_quoted_is_text() {
    assert_eq!(read("['200', \"true\", '~', \"\"]"), json!(["200", "true", "~", ""]));
    assert_eq!(read("|\n  12\n"), json!("12\n"));
}

#[test]
fn keys_are_text_as_they_are_written() {
    let found = read("200: a\non: b\ntrue: c\nnull: d\n1.0: e\n0x10: f\n'4XX': g\n? explicit\n: h\n");
    let outcome = json!({"200": "a", "on": "b", "true": "c", "null": "d", "1.0": "e", "0x10": "f", "4XX": "g", "explicit": "h"});
    assert_eq!(found, outcome);
}

#[test]
fn keys_keep_their_order_and_the_last_of_the_same_name_counts() {
    let found = read("z: 1\na: 2\nm: 3\na: 4\n");
    assert_eq!(found.to_string(), r#"{"z":1,"a":4,"m":3}"#);
}

#[test]
fn a_key_that_stands_twice_is_said() {
    let text = "swagger: 2.0\npaths: {/a: {get: {}}}\npaths:\n  /b: {get: {}}\n";
    let location = url::Url::parse("file:///spec/api.yaml").unwrap();
    let bundle = crate::openapi::Bundle::open(location, text.as_bytes()).unwrap();
    let out = crate::openapi::import(&bundle, &crate::openapi::ImportOptions::default());
    let expected = "api.yaml: the last \"paths\" counts, as there is another before it, at line 3 column 1";
    assert_eq!(out.warnings, [expected]);
    let many: String = (0..50).map(|_| "a: 1\n").collect();
    assert_eq!(parse(&many, ROOM).unwrap().warnings.len(), 10);
    assert!(parse("a: &x {b: 1}\nc: {<<: *x, b: 2}\nd: {b: 3}\n", ROOM).unwrap().warnings.is_empty());
}

#[test]
fn a_key_that_is_a_list_a_mapping_or_an_alias_is_refused() {
    assert_eq!(
        refused("? [a, b]\n: c\n"),
        "a key must be text, not a list, a mapping or an alias at line 1 column 3"
    );
    assert!(refused("a: &x name\n*x : 2\n").starts_with("a key must be text"));
}

#[test]
fn aliases_are_copies() {
    let found = read("a: &x {b: [1, 2]}\nc: *x\n&k e: *k\n");
    assert_eq!(found, json!({"a": {"b": [1, 2]}, "c": {"b": [1, 2]}, "e": "e"}));
}

#[test]
fn an_alias_inside_its_own_anchor_is_refused() {
    assert!(refused("a: &x\n  b: *x\n").starts_with("this alias is inside the value it refers to at line 2"));
    assert!(refused("&x [*x]").contains("inside the value"));
    assert!(!refused("a: *nothing\n").is_empty());
}

#[test]
fn merge_keys_give_what_is_not_written_out() {
    let text = "
one: &one {a: 1, b: 1}
two: &two {b: 2, c: 2}
single:
  <<: *one
  b: own
before:
  b: own
  <<: *one
list:
  <<: [*one, *two, {d: 4}]
twice:
  <<: *two
  <<: *one
inherited: &inherited
  <<: *one
  z: 0
again:
  <<: *inherited
";
    let found = read(text);
    assert_eq!(found["single"], json!({"a": 1, "b": "own"}));
    assert_eq!(found["before"], json!({"a": 1, "b": "own"}));
    assert_eq!(found["list"], json!({"a": 1, "b": 1, "c": 2, "d": 4}));
    assert_eq!(found["twice"], json!({"a": 1, "b": 2, "c": 2}));
    assert_eq!(found["again"], json!({"a": 1, "b": 1, "z": 0}));
}

#[test]
fn a_merge_key_wants_mappings_and_a_quoted_one_is_a_key() {
    let wrong = "under a merge key (<<) there must be a mapping or a list of mappings";
    assert!(refused("a: {<<: 1}").starts_with(wrong));
    assert!(refused("a:\n  <<: [{b: 1}, 2]\n").starts_with(wrong));
    assert_eq!(read("\"<<\": 1"), json!({"<<": 1}));
}

#[test]
fn tags_of_the_core_count_and_others_do_not() {
    let found = read("[!!str 12, !!int '12', !!float '1.5', !!bool 'true', !!null '', !!int x, !!str null]");
    assert_eq!(found, json!(["12", 12, 1.5, true, null, "x", "null"]));
    let found = read("[!mine 12, !mine '12', !!timestamp 2020-01-02, !!binary aGk=, !ref {a: 1}, !!set [1]]");
    assert_eq!(found, json!([12, "12", "2020-01-02", "aGk=", {"a": 1}, [1]]));
}

#[test]
fn one_document_is_read_and_a_second_refused() {
    assert_eq!(read("%YAML 1.1\n---\na: 1\n...\n"), json!({"a": 1}));
    assert_eq!(read("---\na: 1\n---\n"), json!({"a": 1}));
    let error = refused("a: 1\n---\nb: 2\n");
    assert_eq!(error, "a second document starts here; only files with one are read at line 3 column 1");
}

#[test]
fn comments_texts_over_lines_and_tabs_in_them_are_read() {
    let text = "# top\na: > # folded\n  one\n  two\n\nb: |-\n  x\n  \ty\nc: \"1\\n2\\u00e9\" # end\nd:\n- 1\n-  - 2\n";
    assert_eq!(read(text), json!({"a": "one two\n", "b": "x\n\ty", "c": "1\n2é", "d": [1, [2]]}));
}

#[test]
fn an_error_says_where() {
    let error = refused("a: 1\nb: [1, 2\nc: 3\n");
    assert!(error.contains(" at line "), "{error}");
}

#[test]
fn billion_laughs_are_refused() {
    let mut text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(9);
        text += &format!("a{level}: &a{level} [{below}]\n");
    }
    let error = refused(&text);
    assert!(error.starts_with("anchors and aliases repeat more than 12 MiB"), "{error}");
}

#[test]
fn merge_keys_cannot_multiply_either() {
    let mut text = "a0: &a0 {k: {x: 1, y: 2}, l: {x: 1, y: 2}}\n".to_owned();
    for level in 1..30 {
        let below = level - 1;
        text += &format!("a{level}: &a{level} {{<<: [*a{below}, *a{below}], p: *a{below}, q: *a{below}}}\n");
    }
    assert!(refused(&text).contains("repeat more than"));
}

#[test]
fn a_long_text_counts_by_its_length_when_it_is_repeated() {
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(1000));
    assert!(refused(&text).contains("repeat more than"));
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(1000), "*a, ".repeat(1000));
    assert_eq!(read(&text)["b"].as_array().unwrap().len(), 1000);
}

#[test]
fn nesting_is_limited() {
    for deep in [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        "? ".repeat(100_000),
        (0..2000).map(|level| format!("{}a:\n", " ".repeat(level))).collect(),
    ] {
        assert!(!refused(&deep).is_empty());
    }
    let fits = format!("{}{}", "[".repeat(100), "]".repeat(100));
    assert!(read(&fits).is_array());
    // Aliases add the depth of what they stand for.
    let half = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    assert!(
        refused(&format!("a: &a {half}\nb: {}*a{}\n", "[".repeat(100), "]".repeat(100)))
            .contains("nested too deeply")
    );
}

#[test]
fn there_may_be_so_many_values() {
    assert_eq!(parse("[1, 2, {a: 3}]", 5).unwrap().nodes, 5);
    assert_eq!(parse("[1, 2, {a: 3}]", 4).unwrap_err(), "it has more than 4 values at line 1 column 12");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[-a:{}\\[\\]&*!|>?#'\"%@, \n\t0-9~<.]{0,200}") {
        drop(parse(&text, ROOM));
    }

    #[test]
    fn json_is_read_as_json_reads_it(value in json_value()) {
        let text = value.to_string();
        prop_assert_eq!(parse(&text, ROOM).map(|read| read.value), Ok(value));
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u32>().prop_map(|number| Value::from(f64::from(number) + 0.5)),
        "[ -~éß]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[ -~]{0,12}", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[test]
fn a_schema_makes_numbers_of_texts_where_it_needs_them() {
    let text = "openapi: 3.0.0\ninfo: {title: t, version: 1.10}\nservers: [{url: 'https://a.example/{v}', \
                variables: {v: {default: 1.10}}}]\npaths: {/a: {get: {parameters: [\
                {name: n, in: query, schema: {type: number, maximum: 1e3, minimum: .5, default: 1.10}},\
                {name: v, in: query, schema: {type: string, enum: [1.10, 1.20, 2.0, 1e3]}}]}}}\n";
    let location = url::Url::parse("file:///spec/api.yaml").unwrap();
    let out = crate::openapi::import(
        &crate::openapi::Bundle::open(location, text.as_bytes()).unwrap(),
        &crate::openapi::ImportOptions::default(),
    );
    assert_eq!(out.api_version, "1.10");
    assert_eq!(out.operations[0].server.as_str(), "https://a.example/1.10");
    let properties = &out.operations[0].input_schema.value()["properties"];
    assert_eq!(properties["n"]["maximum"], json!(1000.0));
    assert_eq!(properties["n"]["minimum"], json!(0.5));
    assert_eq!(properties["n"]["default"], json!(1.1));
    assert_eq!(properties["v"]["enum"], json!(["1.10", "1.20", "2.0", "1e3"]));
}
