//! The scanner agrees with serde_json on what JSON is, and refuses what two readers could read differently.

use super::*;
use proptest::prelude::*;
use serde_json::Value;

fn canon(text: &str) -> String {
    canonical(text).unwrap().text().to_owned()
}

#[test]
fn keys_are_sorted_at_every_level_and_nothing_else_changes() {
    assert_eq!(
        canon(r#" { "b" : [ {"z":1.10,"a":-0} ] , "a" : "x\u0041\n" } "#),
        r#"{"a":"xA\n","b":[{"a":-0,"z":1.10}]}"#
    );
    assert_eq!(canon("[]"), "[]");
    assert_eq!(canon("{}"), "{}");
    assert_eq!(canon(r#""\ud83d\ude00""#), "\"😀\"");
}

#[test]
fn duplicate_keys_are_refused_however_they_are_spelled() {
    for text in [
        r#"{"name":1,"name":2}"#,
        r#"{"a":1,"b":2,"a":3}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"[{"x":{"k":1,"k":1}}]"#,
    ] {
        assert!(matches!(canonical(text), Err(Error::DuplicateKey { .. })), "{text}");
        assert!(matches!(check(text), Err(Error::DuplicateKey { .. })), "{text}");
    }
}

#[test]
fn numbers_that_would_be_rounded_are_refused() {
    for text in ["18446744073709551616", "-9223372036854775809", "1e400", "-1e999"] {
        assert!(matches!(check(text), Err(Error::Number { .. })), "{text}");
    }
    for text in ["18446744073709551615", "-9223372036854775808", "0.1", "1e300", "-0"] {
        assert_eq!(canon(text), text);
    }
}

#[test]
fn nesting_is_bounded_without_recursing_far() {
    assert_eq!(check(&"[".repeat(100_000)), Err(Error::TooDeep));
    let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
    assert_eq!(check(&deep), Ok(()));
}

#[test]
fn broken_texts_are_syntax_errors() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\":}",
        "{\"a\" 1}",
        "{a:1}",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "tru",
        "nul",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"a",
        "\"\u{1}\"",
        "1 2",
        "[1 2]",
        "{\"a\":1,}",
        "\u{feff}1",
        "NaN",
        "'a'",
    ] {
        assert!(matches!(check(text), Err(Error::Syntax { .. })), "{text:?} was accepted");
    }
}

#[test]
fn a_secret_named_key_marks_the_text() {
    assert!(canonical(r#"{"deep":[{"apiKey":"x"}]}"#).unwrap().is_sensitive());
    assert!(!canonical(r#"{"path":"password.txt"}"#).unwrap().is_sensitive());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300f64..1e300).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same value with every object's members in reverse order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().rev().map(|(k, v)| (k.clone(), reversed(v))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

proptest! {
    #[test]
    fn what_serde_json_writes_is_accepted_and_means_the_same(value in any_json()) {
        let canon = canon(&value.to_string());
        prop_assert_eq!(serde_json::from_str::<Value>(&canon).unwrap(), value);
    }

    #[test]
    fn the_canonical_form_is_a_fixed_point_and_ignores_key_order(value in any_json()) {
        let once = canon(&value.to_string());
        prop_assert_eq!(&canon(&once), &once);
        prop_assert_eq!(canon(&serde_json::to_string_pretty(&reversed(&value)).unwrap()), once);
    }

    #[test]
    fn nothing_but_key_order_is_ignored(a in any_json(), b in any_json()) {
        prop_assert_eq!(canon(&a.to_string()) == canon(&b.to_string()), a == b);
    }

    #[test]
    fn arbitrary_text_never_panics_and_acceptance_implies_serde_accepts(text in ".{0,64}") {
        if check(&text).is_ok() {
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        }
    }

    #[test]
    fn mutated_json_is_judged_like_serde_does(value in any_json(), at in 0usize..200, with in "[\\]{}\",:0-9a-z\\\\ ]") {
        let mut text: Vec<char> = value.to_string().chars().collect();
        let at = at % (text.len() + 1);
        text.splice(at..(at + 1).min(text.len()), with.chars());
        let text: String = text.into_iter().collect();
        match check(&text) {
            Ok(()) => prop_assert!(serde_json::from_str::<Value>(&text).is_ok()),
            Err(Error::Syntax { .. }) => prop_assert!(serde_json::from_str::<Value>(&text).is_err(), "{}", text),
            Err(_) => {}
        }
    }
}

/// The members as serde_json finds them, without judging the values.
#[derive(Debug, PartialEq)]
struct SerdeMembers(Vec<(String, String)>);

struct Visitor;

impl<'de> serde::de::Visitor<'de> for Visitor {
    type Value = SerdeMembers;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<SerdeMembers, A::Error> {
        let mut members = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, &serde_json::value::RawValue>()? {
            members.push((key, value.get().to_owned()));
        }
        Ok(SerdeMembers(members))
    }
}

fn serde_members(text: &str) -> Option<Vec<(String, String)>> {
    use serde::Deserializer as _;
    let mut reader = serde_json::Deserializer::from_str(text);
    let SerdeMembers(members) = reader.deserialize_map(Visitor).ok()?;
    reader.end().ok().map(|()| members)
}

fn split_members(text: &str) -> Option<Vec<(String, String)>> {
    let object = Object::split(text)?;
    Some(object.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

#[test]
fn a_strict_scan_gives_the_spans_of_nested_objects() {
    let text = r#" { "id" : 7, "params":{"name":"a\u0062", "arguments":{"b":[1, {"arguments":0}],"a":1.10},
        "_meta":{"x":{"y":{}}}} } "#;
    let message = Object::scan(text).unwrap();
    assert_eq!(message.get("id"), Some("7"));
    let params = message.object("params").unwrap();
    assert!(matches!(params, Cow::Borrowed(_)));
    assert_eq!(params.string("name").as_deref(), Some("ab"));
    assert_eq!(params.get("arguments"), Some(r#"{"b":[1, {"arguments":0}],"a":1.10}"#));
    let keys: Vec<&str> = params.iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["name", "arguments", "_meta"]);
    let x = params.object("_meta").unwrap().object("x").unwrap().into_owned();
    assert_eq!(x.get("y"), Some("{}"));
    assert_eq!(Object::scan("[1]").unwrap_err(), Error::NotAnObject);
    assert!(message.object("id").is_none());
}

#[test]
fn a_lenient_pass_takes_what_serde_would_only_skip() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(9_999), "]".repeat(9_999));
    for text in [
        r#"{"a":1,"a":2}"#,
        r#"{"a":{"b":1e400,"b":123456789012345678901234567890}}"#,
        r#"{"a":"\ud800","b":{"\ud800":1}}"#,
        r#"{"\ud800":1}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":"\u12g4"}"#,
        r#"{"a":[1,2}"#,
        r#"{"a":{"b" 1}}"#,
        r#"{"a":01}"#,
        r#"{"a":1} x"#,
        "[1]",
        "{}",
        "",
        &deep,
    ] {
        assert_eq!(split_members(text), serde_members(text), "{text}");
    }
    assert!(Object::split(&format!("{{\"a\":{}", "[".repeat(1_000_000))).is_none());
    assert_eq!(elements(" [ 1 , [2,3], {} ] ", 3), Some(vec!["1", "[2,3]", "{}"]));
    assert_eq!(elements("[1,2,3,4]", 3), None);
    assert_eq!(elements("[]", 0), Some(Vec::new()));
    assert_eq!(elements("{\"a\":[1]}", 3), None);
    assert_eq!(string(r#""a\ud83d\ude00""#).as_deref(), Some("a😀"));
    for text in ["7", "\"a", "\"a\"b\"", "\"\\ud800\"", ""] {
        assert_eq!(string(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn both_passes_find_the_members_that_serde_finds(value in any_json(), at in 0usize..200, with in "[\\]{}\",:0-9a-z\\\\ ]") {
        let mut text: Vec<char> = value.to_string().chars().collect();
        let at = at % (text.len() + 1);
        text.splice(at..(at + 1).min(text.len()), with.chars());
        for text in [value.to_string(), text.into_iter().collect()] {
            prop_assert_eq!(split_members(&text), serde_members(&text), "{}", text);
            match Object::scan(&text) {
                Ok(object) => {
                    let members = object.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
                    prop_assert_eq!(serde_members(&text), Some(members));
                    prop_assert_eq!(check(&text), Ok(()));
                }
                Err(Error::NotAnObject) => prop_assert!(serde_members(&text).is_none()),
                Err(error) => prop_assert_eq!(check(&text), Err(error)),
            }
        }
    }
}
