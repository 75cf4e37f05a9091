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
