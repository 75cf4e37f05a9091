//! What the configuration has to show to a service and nobody else is to see: it is masked wherever Gantry repeats what a
//! service says about a request that failed. What a tool answers is the tool's business, and passes as it is.

mod sought;

use super::encode;
use super::options::Credential;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_core::redact::{MASK, names_a_secret};
use gantry_egress::Url;
use serde_json::Value;

/// The shortest value that is looked for: shorter ones are all over any text.
const SECRET_BYTES: usize = 4;

/// The same of a header, or of a part of a text, that need not be a secret.
const HEADER_BYTES: usize = 8;

/// The shortest part of a path that is taken for a key.
const SEGMENT_BYTES: usize = 20;

/// Headers whose values are no secrets, and are found in answers.
const PLAIN_HEADERS: [&str; 12] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "content-language",
    "content-type",
    "from",
    "if-match",
    "if-none-match",
    "origin",
    "referer",
    "user-agent",
];

/// Values that are masked.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    values: Vec<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// Adds a value that is one.
    pub(super) fn add(&mut self, value: &str) {
        if value.len() < SECRET_BYTES {
            return;
        }
        if !self.values.iter().any(|known| known == value) {
            self.values.push(value.to_owned());
        }
    }

    /// Adds the value of a header, if it can be one.
    pub(super) fn add_header(&mut self, name: &str, value: &str) {
        if PLAIN_HEADERS.iter().any(|plain| name.eq_ignore_ascii_case(plain)) {
            return;
        }
        // `Bearer x` is a secret as a whole and in its last word, `session=x; other=y` in each of its values.
        let words = value.split([' ', ';', '=']).chain([value]);
        words.filter(|word| word.len() >= HEADER_BYTES).for_each(|word| self.add(word));
        if !is_secret_name(name) {
            return;
        }
        self.add(value);
        if let Some((_, both)) = value.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("basic"))
            && let Ok(Ok(both)) = STANDARD.decode(both.trim()).map(String::from_utf8)
        {
            let (username, password) = both.split_once(':').unwrap_or((&both, ""));
            self.add(if password.is_empty() { username } else { password });
        }
        for (n, word) in value.split([' ', ';']).enumerate() {
            match word.split_once('=') {
                // What ends a text in Base64 is no value.
                Some((_, inner)) if !inner.trim_matches('=').is_empty() => self.add(inner.trim_matches('"')),
                // The first word says what the others are.
                None if n == 0 && word.chars().all(|c| c.is_ascii_alphabetic()) => {}
                Some(_) | None => self.add(word.trim_end_matches('=')),
            }
        }
    }

    /// Adds the password that stands in an address, or the key that is its user, and what is sent for it.
    pub(super) fn add_user(&mut self, url: &Url) {
        let (user, written) = (url.username(), url.password().unwrap_or_default());
        if user.is_empty() && written.is_empty() {
            return;
        }
        let (username, password) = (encode::decoded(user), encode::decoded(written));
        self.add(if written.is_empty() { user } else { written });
        self.add_credential(&Credential::Basic { username, password });
    }

    /// Adds a part of a path, if it looks like one: some services have keys there.
    pub(super) fn add_segment(&mut self, part: &str) {
        let has = |test: fn(&char) -> bool| part.chars().any(|c| test(&c));
        if part.len() >= SEGMENT_BYTES && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic) {
            self.add(part);
        }
    }

    /// Adds a value that stands under a name, if the name says so.
    pub(super) fn add_named(&mut self, name: &str, value: &str) {
        if is_secret_name(name) {
            self.add(value);
        }
    }

    /// Adds a part of a text that stands under a name, if the name says so and the part is long enough to tell.
    pub(super) fn add_part(&mut self, name: &str, part: &str) {
        if part.len() >= HEADER_BYTES {
            self.add_named(name, part);
        }
    }

    /// Adds what a credential consists of.
    pub(super) fn add_credential(&mut self, credential: &Credential) {
        match credential {
            Credential::Key(key) => self.add(key),
            Credential::Basic { username, password } => {
                // Many services take a key as the user, and no password.
                self.add(if password.is_empty() { username } else { password });
                self.add(&STANDARD.encode(format!("{username}:{password}")));
            }
            Credential::Token(token) => self.add(token),
            Credential::Client { id, secret, .. } => {
                self.add(secret);
                self.add(&STANDARD.encode(format!("{id}:{secret}")));
            }
        }
    }

    /// Whether there is nothing to mask.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The same with one more.
    pub(super) fn with(&self, value: Option<&str>) -> Self {
        let mut all = self.clone();
        value.into_iter().for_each(|value| all.add(value));
        all
    }

    /// A text as it may be shown. Secrets are found as they are, and in the spellings of JSON and of addresses.
    pub(super) fn hide(&self, text: String) -> String {
        let found = sought::all(&text, &self.values);
        if found.is_empty() {
            return text;
        }
        let mut hidden = String::with_capacity(text.len());
        let mut from = 0;
        for range in found {
            hidden.push_str(text.get(from..range.start).unwrap_or_default());
            hidden.push_str(MASK);
            from = range.end;
        }
        hidden.push_str(text.get(from..).unwrap_or_default());
        hidden
    }

    /// A JSON value as it may be shown.
    pub(super) fn hide_in(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.hide(text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.hide_in(item)).collect(),
            Value::Object(members) => {
                let hidden = members.into_iter().map(|(key, member)| (self.hide(key), self.hide_in(member)));
                Value::Object(hidden.collect())
            }
            Value::Number(ref number) if self.values.contains(&number.to_string()) => MASK.into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }
}

/// Whether what stands under this name is a secret, as far as one can tell.
fn is_secret_name(name: &str) -> bool {
    let folded = name.to_ascii_lowercase();
    names_a_secret(name)
        || ["key", "sig", "auth", "code"].iter().any(|word| folded.contains(word))
        || folded.split(['-', '_', '.']).any(|word| matches!(word, "pw" | "pwd" | "pass"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hidden(secret: &str, text: &str) -> String {
        let mut secrets = Secrets::default();
        secrets.add(secret);
        secrets.hide(text.to_owned())
    }

    #[test]
    fn a_secret_is_found_however_it_is_spelled() {
        let secret = "a/b+c\"d é😀";
        let escaped = r#"a\/b\u002Bc\"d \u00E9\ud83d\uDE00"#;
        let once = serde_json::to_string(secret).unwrap();
        let twice = serde_json::to_string(&once).unwrap();
        let of_escaped = serde_json::to_string(escaped).unwrap();
        for text in [
            secret,
            escaped,
            once.trim_matches('"'),
            twice.trim_matches(['"', '\\']),
            of_escaped.trim_matches('"'),
            "a%2Fb%2Bc%22d%20%C3%A9%F0%9F%98%80",
            "a%2fb%2bc%22d+%c3%a9%f0%9f%98%80",
        ] {
            assert_eq!(hidden(secret, &format!("<{text}>")), "<[redacted]>", "{text}");
        }
        assert_eq!(hidden("secret", "no \\u00zz \\ %zz %4 secre"), "no \\u00zz \\ %zz %4 secre");
        assert_eq!(hidden("secret", "secretsecret é"), "[redacted][redacted] é");
        assert_eq!(hidden("back\\slash", r"back\slash"), "[redacted]");
    }

    #[test]
    fn short_values_are_masked_where_their_name_says_that_they_are_secret() {
        let mut secrets = Secrets::default();
        for (name, value) in [
            ("Authorization", "Bearer abcd"),
            ("Cookie", "session=xyz1; b=q2w3"),
            ("X-Api-Key", "k-12"),
            ("X-Team", "blue"),
            ("Proxy-Pwd", "pw12"),
        ] {
            secrets.add_header(name, value);
        }
        secrets.add_named("pw", "hunter");
        let text = "abcd xyz1 q2w3 k-12 blue pw12 hunter Bearer session".to_owned();
        let mask = MASK;
        let expected = format!("{mask} {mask} {mask} {mask} blue {mask} {mask} Bearer session");
        assert_eq!(secrets.hide(text), expected);
        secrets.add("1234567");
        assert_eq!(secrets.hide_in(json!({ "n": 1234567, "m": 1 })), json!({ "n": mask, "m": 1 }));
    }

    #[test]
    fn a_password_is_masked_however_the_configuration_has_it() {
        let both = STANDARD.encode("ada:pa:ss words");
        let mut secrets = Secrets::default();
        secrets.add_header("Authorization", &format!("Basic {both}"));
        let mask = MASK;
        let text = format!("ada <pa:ss words> {both} pa%3Ass+words");
        assert_eq!(secrets.hide(text), format!("ada <{mask}> {mask} {mask}"));
        let mut secrets = Secrets::default();
        secrets.add_user(&Url::parse("https://ada:p%40ss+%21@h.test/").unwrap());
        let text = format!("ada p@ss+! p%40ss+%21 {}", STANDARD.encode("ada:p@ss+!"));
        assert_eq!(secrets.hide(text), format!("ada {mask} {mask} {mask}"));
        secrets.add_user(&Url::parse("https://h.test/").unwrap());
    }

    #[test]
    fn a_key_that_stands_where_a_user_does_is_masked() {
        let (key, mask) = ("sk_live_a+b", MASK);
        let in_header = |text: &str| {
            let mut secrets = Secrets::default();
            secrets.add_header("Authorization", &format!("Basic {}", STANDARD.encode(text)));
            secrets
        };
        let in_address = |address: &str| {
            let mut secrets = Secrets::default();
            secrets.add_user(&Url::parse(address).unwrap());
            secrets
        };
        let mut credential = Secrets::default();
        credential.add_credential(&Credential::Basic { username: key.into(), password: String::new() });
        for secrets in [
            in_header("sk_live_a+b:"),
            in_address("https://sk_live_a%2Bb@h.test/"),
            in_address("https://sk_live_a+b:@h.test/"),
            credential,
        ] {
            let text = format!("<{key}> sk_live_a%2Bb {}", STANDARD.encode("sk_live_a+b:"));
            assert_eq!(secrets.hide(text), format!("<{mask}> {mask} {mask}"));
        }
        assert_eq!(in_header(key).hide(key.to_owned()), mask);
        // However short it is, something is shown to the service, and others must not see it.
        assert!(!in_address("https://a@h.test/").is_empty());
        assert!(in_address("https://h.test/").is_empty());
    }
}
