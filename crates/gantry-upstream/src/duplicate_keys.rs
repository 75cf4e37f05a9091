//! Finds keys that occur twice in a definition: a person and a model could read two different things in it.
//!
//! Numbers beyond 64 bits are harmless, because no number of a definition decides anything; they are masked so that the
//! rest can be parsed.

use gantry_core::json;
use serde_json::Value;

/// The text with every number replaced by 0, so that all of it can be parsed.
pub(super) fn mask_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped, mut in_number) = (false, false, false);
    for c in text.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if in_number && matches!(c, '0'..='9' | '.' | 'e' | 'E' | '+' | '-') {
            continue;
        } else {
            in_number = matches!(c, '0'..='9' | '-');
            in_string = c == '"';
        }
        out.push(if in_number { '0' } else { c });
    }
    out
}

/// A key that some object in the text has twice. Text that is nested too deep to be parsed counts as having none: it is
/// shown as text.
pub(super) fn find_duplicate_key(text: &str) -> Option<String> {
    match json::check(&mask_numbers(text)) {
        Err(json::Error::DuplicateKey { key }) => Some(key),
        Ok(()) | Err(_) => None,
    }
}

/// A definition as a person sees it: its value, or its text where it cannot be parsed.
pub(super) fn displayed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_hide_nothing_else() {
        let text = r#"{"a":[-1.5e+400, 12,true,"1e5 \"7\" \\"],"e9":1E400,"b":null}"#;
        assert_eq!(mask_numbers(text), r#"{"a":[0, 0,true,"1e5 \"7\" \\"],"e9":0,"b":null}"#);
    }

    #[test]
    fn a_key_that_comes_twice_is_found_at_any_place_and_beside_any_number() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"n":1e400,"a":1,"a":2}"#,
            r#"{"n":[{"x":{"b":1,"c":1e999,"b":1}}]}"#,
            r#"{"a":1,"\u0061":2}"#,
        ] {
            assert!(find_duplicate_key(text).is_some(), "{text}");
        }
        for text in [r#"{"a":1e400,"b":{"a":1}}"#, r#"[{"a":1},{"a":1}]"#, "7"] {
            assert_eq!(find_duplicate_key(text), None, "{text}");
        }
    }

    #[test]
    fn what_has_no_value_is_shown_as_its_text() {
        assert_eq!(displayed(r#"{"a":1}"#), serde_json::json!({ "a": 1 }));
        assert_eq!(displayed(r#"{"a":1e400}"#), Value::String(r#"{"a":1e400}"#.to_owned()));
    }

    proptest! {
        #[test]
        fn everything_but_the_numbers_stays(text in "\\PC{0,30}", n in any::<f64>().prop_filter("finite", |n| n.is_finite())) {
            let with = |n: Value| serde_json::json!({ "a": [n, text], text.clone(): { "b": text } });
            let masked: Value = serde_json::from_str(&mask_numbers(&with(n.into()).to_string())).unwrap();
            prop_assert_eq!(masked, with(0.into()));
        }
    }
}
