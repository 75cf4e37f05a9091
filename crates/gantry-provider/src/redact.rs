//! Masks the secrets of the configuration wherever Gantry repeats what a service, a server or a program says.
//!
//! Results of tools are not masked. A text may spell a secret with the escapes of JSON, of JSON within JSON, of URLs or of
//! forms. So escapes are decoded before secrets are searched, and the escaped spelling is what is masked.

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_core::redact::{MASK, names_a_secret};
use std::ops::Range;
use std::sync::OnceLock;
use url::Url;

/// The shortest value that is searched for: shorter ones occur in any text by chance.
const SECRET_BYTES: usize = 4;

/// The shortest value of a header or body that is taken for a secret without a name that says so: shorter ones are flags
/// and numbers.
pub const PERHAPS_SECRET_BYTES: usize = 8;

/// A text, JSON, JSON within JSON, and that within JSON.
const DEPTH: usize = 4;

/// Headers with values that are no secrets and are common in answers.
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

/// Secrets that are masked.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
    /// Made when the first text is masked; without a value if it cannot be made.
    matcher: OnceLock<Option<AhoCorasick>>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    pub fn add(&mut self, secret: &str) {
        if secret.len() >= SECRET_BYTES && !self.secrets.iter().any(|known| known == secret) {
            self.secrets.push(secret.to_owned());
            self.matcher = OnceLock::new();
        }
    }

    /// Adds a value that stands under a name, if the name says that it is a secret.
    pub fn add_named(&mut self, name: &str, value: &str) {
        if is_secret_name(name) {
            self.add(value);
        }
    }

    /// Adds a user and a password, plain and as they are sent.
    pub fn add_basic(&mut self, username: &str, password: &str) {
        // Many services take a key as the user, and no password.
        self.add(if password.is_empty() { username } else { password });
        self.add(&STANDARD.encode(format!("{username}:{password}")));
    }

    /// Adds the password in a URL, or the key in place of its user, plain and as they are sent.
    pub fn add_user(&mut self, url: &Url) {
        let (user, password) = (url.username(), url.password().unwrap_or_default());
        if user.is_empty() && password.is_empty() {
            return;
        }
        self.add(if password.is_empty() { user } else { password });
        self.add(&format!("{user}:{password}"));
        let decoded = |part| percent_encoding::percent_decode_str(part).decode_utf8_lossy();
        self.add_basic(&decoded(user), &decoded(password));
    }

    /// Adds the value of a header, if it can be a secret.
    pub fn add_header(&mut self, name: &str, value: &str) {
        if PLAIN_HEADERS.iter().any(|plain| name.eq_ignore_ascii_case(plain)) {
            return;
        }
        // `Bearer x` is a secret as a whole and in its last word, `session=x; other=y` in each of its values.
        let words = value.split([' ', ';', '=']).chain([value]);
        words.filter(|word| word.len() >= PERHAPS_SECRET_BYTES).for_each(|word| self.add(word));
        if !is_secret_name(name) {
            return;
        }
        self.add(value);
        if let Some((_, both)) = value.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("basic"))
            && let Ok(Ok(both)) = STANDARD.decode(both.trim()).map(String::from_utf8)
        {
            let (username, password) = both.split_once(':').unwrap_or((&both, ""));
            self.add_basic(username, password);
        }
        for (n, word) in value.split([' ', ';']).enumerate() {
            match word.split_once('=') {
                // The padding of Base64 is no value.
                Some((_, inner)) if !inner.trim_matches('=').is_empty() => self.add(inner.trim_matches('"')),
                // The first word is the scheme, such as `Bearer`.
                None if n == 0 && word.chars().all(|c| c.is_ascii_alphabetic()) => {}
                Some(_) | None => self.add(word.trim_end_matches('=')),
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    pub fn with(&self, secret: Option<&str>) -> Self {
        let mut all = self.clone();
        secret.into_iter().for_each(|secret| all.add(secret));
        all
    }

    /// A text as it may be shown.
    pub fn mask(&self, text: String) -> String {
        if self.is_empty() {
            return text;
        }
        let Some(matcher) = self.matcher.get_or_init(|| AhoCorasick::new(&self.secrets).ok()) else {
            return MASK.to_owned();
        };
        let (mut masked, mut from) = (String::with_capacity(text.len()), 0);
        for range in places(&text, matcher) {
            masked.push_str(text.get(from..range.start).unwrap_or_default());
            masked.push_str(MASK);
            from = range.end;
        }
        masked.push_str(text.get(from..).unwrap_or_default());
        masked
    }
}

/// Whether values under this name are taken for secrets.
fn is_secret_name(name: &str) -> bool {
    let folded = name.to_ascii_lowercase();
    names_a_secret(name)
        || ["key", "sig", "auth", "code"].iter().any(|word| folded.contains(word))
        || folded.split(['-', '_', '.']).any(|word| matches!(word, "pw" | "pwd" | "pass"))
}

/// Where a text has a secret, in order; places that overlap are one.
fn places(text: &str, matcher: &AhoCorasick) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = matcher.find_overlapping_iter(text).map(|hit| hit.range()).collect();
    if text.contains(['\\', '%', '+']) {
        let mut layer = Layer { bytes: text.into(), starts: (0..=text.len()).collect() };
        for _ in 0..DEPTH {
            layer.find(matcher, &mut found);
            layer.decoded(percent).find(matcher, &mut found);
            layer.decoded(form).find(matcher, &mut found);
            layer = layer.decoded(escape);
        }
    }
    found.sort_by_key(|range| (range.start, range.end));
    found.dedup_by(|next, last| {
        let overlaps = next.start < last.end;
        if overlaps {
            last.end = last.end.max(next.end);
        }
        overlaps
    });
    found
}

/// A text with its escapes decoded.
struct Layer {
    bytes: Vec<u8>,
    /// Where each byte begins in the text. There is one more: the end.
    starts: Vec<usize>,
}

impl Layer {
    fn find(&self, matcher: &AhoCorasick, found: &mut Vec<Range<usize>>) {
        for hit in matcher.find_overlapping_iter(&self.bytes) {
            if let (Some(start), Some(end)) = (self.starts.get(hit.start()), self.starts.get(hit.end())) {
                found.push(*start..*end);
            }
        }
    }

    /// The same, decoded once more: `decode` writes the first character decoded, and returns how many bytes it read.
    fn decoded(&self, decode: fn(&[u8], &mut Vec<u8>) -> Option<usize>) -> Self {
        let (mut bytes, mut starts, mut at) = (Vec::with_capacity(self.bytes.len()), Vec::new(), 0);
        while let Some(rest @ [byte, ..]) = self.bytes.get(at..) {
            let start = self.starts.get(at).copied().unwrap_or_default();
            at += decode(rest, &mut bytes).unwrap_or_else(|| {
                bytes.push(*byte);
                1
            });
            starts.resize(bytes.len(), start);
        }
        starts.extend(self.starts.last());
        Self { bytes, starts }
    }
}

/// An escape of a JSON string: `\ud83d\ude00`, `\u00e9` or `\n`.
fn escape(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    if rest.first() != Some(&b'\\') {
        return None;
    }
    let lengths = if rest.get(1) == Some(&b'u') { &[12, 6][..] } else { &[2] };
    lengths.iter().copied().find(|length| {
        let part = rest.get(..*length).and_then(|part| std::str::from_utf8(part).ok());
        let decoded = part.and_then(|part| serde_json::from_str::<String>(&format!("\"{part}\"")).ok());
        let decoded = decoded.filter(|decoded| decoded.chars().count() == 1);
        decoded.map(|decoded| out.extend_from_slice(decoded.as_bytes())).is_some()
    })
}

/// A byte of an address.
fn percent(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let [b'%', high, low, ..] = rest else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    out.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
    Some(3)
}

/// The same of a form, where a space is a `+`.
fn form(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    if rest.first() != Some(&b'+') {
        return percent(rest, out);
    }
    out.push(b' ');
    Some(1)
}

#[cfg(test)]
mod tests;
