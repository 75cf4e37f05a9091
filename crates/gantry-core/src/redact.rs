//! Masking of JSON values under keys that name a secret.

use crate::json::{self, Canonical};
use crate::truncate::truncate;
use serde_json::Value;

/// Replaces a secret.
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

/// Whole keys that contain one of the words and are no secrets.
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

/// Whether the value of this key is masked.
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
pub fn redacted(arguments: &Canonical, limit: usize) -> String {
    if !arguments.is_sensitive() {
        return truncate(arguments.text(), limit).to_owned();
    }
    let masked = masked(arguments.text(), 0).unwrap_or_else(|_| MASK.to_owned());
    truncate(&masked, limit).to_owned()
}

/// JSON text with values under keys that name a secret masked; the text unchanged if there are none. Strings that are
/// JSON themselves are masked too, `text_depth` levels deep.
///
/// # Errors
/// The text cannot be parsed, so it could contain secrets.
pub fn masked(text: &str, text_depth: usize) -> Result<String, json::Error> {
    json::check(text)?;
    // A checked text always parses.
    let Ok(mut value) = serde_json::from_str(text) else { return Ok(MASK.to_owned()) };
    Ok(if mask(&mut value, text_depth) { value.to_string() } else { text.to_owned() })
}

/// Masks the secrets of a value. Returns whether there are any.
fn mask(value: &mut Value, text_depth: usize) -> bool {
    match value {
        Value::String(text) if text_depth > 0 && text.starts_with(['{', '[']) => {
            match masked(text, text_depth - 1) {
                Ok(masked) if masked != *text => {
                    *text = masked;
                    true
                }
                Ok(_) | Err(_) => false,
            }
        }
        Value::Array(items) => items.iter_mut().fold(false, |found, item| mask(item, text_depth) | found),
        Value::Object(members) => members.iter_mut().fold(false, |found, (key, member)| {
            if names_a_secret(key) {
                *member = MASK.into();
                return true;
            }
            mask(member, text_depth) | found
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &str, expected: &str) {
        assert_eq!(redacted(&json::canonical(arguments).unwrap(), 1000), expected);
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
            assert!(!redacted(&arguments, limit).contains("0123"));
        }
    }
}
