//! What may be shown of arguments: values under keys that name a secret are masked.

use crate::json::Canonical;
use serde_json::Value;

/// Stands where a secret stood.
pub const MASK: &str = "[redacted]";

/// Words that make a key's value a secret, compared without case, `_` and `-`.
const SECRET_WORDS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "privatekey",
    "credential",
    "cookie",
];

/// Whole keys that contain one of the above and are no secrets: how much, and how to cut.
const PLAIN_KEYS: [&str; 10] = [
    "tokens",
    "maxtokens",
    "mintokens",
    "tokencount",
    "totaltokens",
    "inputtokens",
    "outputtokens",
    "prompttokens",
    "completiontokens",
    "tokenizer",
];

/// Whether a key's value is to be masked.
#[must_use]
pub fn names_a_secret(key: &str) -> bool {
    // The shortest secret word has five letters; most keys are shorter or end here.
    if key.len() < 5 {
        return false;
    }
    let folded: String =
        key.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect();
    SECRET_WORDS.iter().any(|word| folded.contains(word)) && !PLAIN_KEYS.contains(&folded.as_str())
}

/// The arguments as the log and the ledger may show them, at most `limit` bytes long.
#[must_use]
pub fn shown(arguments: &Canonical, limit: usize) -> String {
    if !arguments.is_sensitive() {
        return crate::shape::truncated(arguments.text(), limit).into_owned();
    }
    let masked = match serde_json::from_str::<Value>(arguments.text()) {
        Ok(mut value) => {
            mask(&mut value);
            value.to_string()
        }
        // Cannot happen for a scanned text; if it does, nothing of it is shown.
        Err(_) => MASK.to_owned(),
    };
    crate::shape::truncated(&masked, limit).into_owned()
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                if names_a_secret(key) {
                    *member = Value::from(MASK);
                } else {
                    mask(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn check(arguments: &str, expected: &str) {
        assert_eq!(shown(&json::canonical(arguments).unwrap(), 1000), expected);
    }

    #[test]
    fn values_under_secret_keys_are_masked_at_any_depth() {
        check(
            r#"{"a":{"api_key":"s3","b":[{"Authorization":"s3"}]}}"#,
            r#"{"a":{"api_key":"[redacted]","b":[{"Authorization":"[redacted]"}]}}"#,
        );
        check(r#"{"access_tokens":["s3"]}"#, r#"{"access_tokens":"[redacted]"}"#);
        let long = format!("{}_token", "x".repeat(80));
        check(&format!(r#"{{"{long}":"s3"}}"#), &format!(r#"{{"{long}":"[redacted]"}}"#));
        check(r#"{"clientSecret":{"inner":"s3"}}"#, r#"{"clientSecret":"[redacted]"}"#);
    }

    #[test]
    fn plain_keys_are_left_alone() {
        check(
            r#"{"max_tokens":5,"path":"token.txt","tokens":[1]}"#,
            r#"{"max_tokens":5,"path":"token.txt","tokens":[1]}"#,
        );
    }

    #[test]
    fn redaction_happens_before_cutting() {
        let arguments = json::canonical(r#"{"a_password":"0123456789"}"#).unwrap();
        for limit in 0..40 {
            assert!(!shown(&arguments, limit).contains("0123"));
        }
    }
}
