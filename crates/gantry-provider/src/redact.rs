//! Masks the secrets of the configuration wherever Gantry repeats what a service, a server or a program says.
//!
//! All of them are masked in errors and messages; results and everything else that a server sends, where a value is
//! known to be a secret and is long enough not to occur there by chance. A text may spell a secret with the escapes of
//! JSON, of JSON within JSON, of URLs or of forms. So escapes are decoded before secrets are searched, and the escaped
//! spelling is what is masked.

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_core::raw;
use gantry_core::redact::{MASK, names_a_secret};
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;
use url::Url;

/// The shortest value that is searched for: shorter ones occur in any text by chance.
const SECRET_BYTES: usize = 4;

/// The shortest value of a header or body that is taken for a secret without a name that says so: shorter ones are flags
/// and numbers.
pub const PERHAPS_SECRET_BYTES: usize = 8;

const QUOTED_MASK: &str = "\"[redacted]\"";

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
    /// What is masked in errors and messages.
    all: Values,
    /// What is masked in results as well.
    known: Values,
}

#[derive(Clone, Default)]
struct Values {
    values: Vec<String>,
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
        self.all.add(secret, SECRET_BYTES);
        self.known.add(secret, PERHAPS_SECRET_BYTES);
    }

    /// Adds a value that may be no secret, such as a path: it is masked in errors and messages only.
    pub fn add_perhaps(&mut self, value: &str) {
        self.all.add(value, PERHAPS_SECRET_BYTES);
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

    /// Adds a variable of a program: a secret if its name says so, as does what is secret in an address.
    pub fn add_variable(&mut self, name: &str, value: &str) {
        // `Bearer x` is a secret as a whole and in its last word. Of a key in PEM, each line can be shown by itself.
        for text in [value, value.rsplit(' ').next().unwrap_or_default()].into_iter().chain(value.lines()) {
            self.add_perhaps(text);
            if names_a_secret_variable(name) {
                self.add(text);
            }
        }
        if let Some(url) = Url::parse(value).ok().filter(|url| url.password().is_some()) {
            self.add_user(&url);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.values.is_empty()
    }

    pub fn with(&self, secret: Option<&str>) -> Self {
        let mut all = self.clone();
        secret.into_iter().for_each(|secret| all.add(secret));
        all
    }

    /// A text as it may be shown.
    pub fn mask(&self, text: String) -> String {
        self.all.mask(text)
    }

    /// The text of an error, which may be JSON and then stays JSON; none if it has nothing to mask.
    pub fn masked_error(&self, text: &str) -> Option<String> {
        self.all.masked_json(text)
    }

    /// A result, which may be JSON and then stays JSON; none if it has nothing to mask.
    pub fn masked_result(&self, text: &str) -> Option<String> {
        self.known.masked_json(text)
    }

    /// A message of an MCP server; none if it has nothing to mask. What is no message counts as an error.
    pub fn masked_message(&self, text: &str) -> Option<String> {
        let text = text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
        if !self.all.occurs(text) {
            return None;
        }
        let Some(batch) = raw::elements(text) else { return self.masked_one(text) };
        let one = |text| self.masked_one(text).map_or(Cow::Borrowed(text), Cow::Owned);
        Some(format!("[{}]", batch.into_iter().map(one).collect::<Vec<_>>().join(",")))
    }

    fn masked_one(&self, text: &str) -> Option<String> {
        let is_plain = raw::members(text).is_some()
            && raw::member(text, "error").is_none_or(|error| error == "null")
            && raw::member(text, "result").and_then(|result| raw::member(result, "isError")) != Some("true");
        let masked = if is_plain { self.masked_result(text) } else { self.masked_error(text) }?;
        // A number that is an id leads to the request, also if it has the digits of a secret.
        let id = raw::member(text, "id").filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
        Some(if let Some(id) = id { raw::with(&masked, "id", id) } else { masked })
    }
}

impl Values {
    fn add(&mut self, value: &str, shortest: usize) {
        if value.len() >= shortest && !self.values.iter().any(|known| known == value) {
            self.values.push(value.to_owned());
            self.matcher = OnceLock::new();
        }
    }

    fn matcher(&self) -> Option<&AhoCorasick> {
        self.matcher.get_or_init(|| AhoCorasick::new(&self.values).ok()).as_ref()
    }

    /// Whether a text has one of the values. One that cannot be searched counts as if it had.
    fn occurs(&self, text: &str) -> bool {
        let mut found = false;
        let occurs_in = |matcher| {
            each_layer(text, false, |layer| {
                found |= AhoCorasick::is_match(matcher, &layer.bytes);
                !found
            });
            found
        };
        !self.values.is_empty() && self.matcher().is_none_or(occurs_in)
    }

    fn mask(&self, text: String) -> String {
        if self.values.is_empty() {
            return text;
        }
        let Some(matcher) = self.matcher() else { return MASK.to_owned() };
        let (mut masked, mut from) = (String::with_capacity(text.len()), 0);
        for range in places(&text, matcher) {
            masked.push_str(text.get(from..range.start).unwrap_or_default());
            masked.push_str(MASK);
            from = range.end;
        }
        masked.push_str(text.get(from..).unwrap_or_default());
        masked
    }

    /// A text without the values; none if it has none. In JSON, only strings and numbers are masked.
    fn masked_json(&self, text: &str) -> Option<String> {
        if !self.occurs(text) {
            return None;
        }
        if !is_json(text) {
            return Some(self.mask(text.to_owned()));
        }
        let (mut masked, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((between, quoted)) = rest.split_once('"') {
            self.push_numbers(between, &mut masked);
            let (string, after) = quoted.split_at(string_end(quoted));
            let string = format!("\"{}\"", self.mask(string.to_owned()));
            // A value that holds a backslash may have begun within an escape.
            masked.push_str(if is_json(&string) { &string } else { QUOTED_MASK });
            rest = after.strip_prefix('"').unwrap_or(after);
        }
        self.push_numbers(rest, &mut masked);
        Some(masked)
    }

    /// Adds what stands between two strings of JSON. Words stay: `true` can be the value of a secret variable.
    fn push_numbers(&self, between: &str, masked: &mut String) {
        for part in between.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)) {
            let number = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let is_secret =
                number.starts_with(|c: char| c.is_ascii_digit() || c == '-') && self.occurs(number);
            masked.push_str(if is_secret { QUOTED_MASK } else { number });
            masked.push_str(part.get(number.len()..).unwrap_or_default());
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Where a string of JSON ends that began before this text.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// Whether values under this name are taken for secrets.
fn is_secret_name(name: &str) -> bool {
    let folded = name.to_ascii_lowercase();
    names_a_secret(name)
        || ["key", "sig", "auth", "code"].iter().any(|word| folded.contains(word))
        || folded.split(['-', '_', '.']).any(|word| matches!(word, "pw" | "pwd" | "pass"))
}

/// Whether the value of a variable of this name is a secret. Unlike a member of a body, a variable is named by words in
/// capitals, and may say something else about a secret, such as its place.
fn names_a_secret_variable(name: &str) -> bool {
    let folded = name.to_ascii_lowercase();
    let mut words = folded.split(['-', '_', '.']);
    let others = ["file", "path", "dir", "sock", "url", "uri", "host", "type", "mode", "name"];
    let is_about_it = words.clone().next_back().is_some_and(|last| others.contains(&last));
    let is_secret = |word| matches!(word, "key" | "auth" | "pat" | "pw" | "pwd" | "pass");
    !is_about_it && (names_a_secret(name) || words.any(is_secret))
}

/// Where a text has a secret, in order; places that overlap are one.
fn places(text: &str, matcher: &AhoCorasick) -> Vec<Range<usize>> {
    let mut found = Vec::<Range<usize>>::new();
    each_layer(text, true, |layer| {
        layer.find(matcher, &mut found);
        true
    });
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

/// Visits a text as it is and with its escapes decoded, for as long as `visit` wants more.
fn each_layer<'a>(text: &'a str, tracked: bool, mut visit: impl FnMut(&Layer<'a>) -> bool) {
    let starts = if tracked { (0..=text.len()).collect() } else { Vec::new() };
    let mut layer = Layer { bytes: text.as_bytes().into(), starts };
    if !visit(&layer) {
        return;
    }
    for depth in 0..DEPTH {
        let decoders: [(u8, Decode); 2] = [(b'%', percent), (b'+', form)];
        for (mark, decode) in decoders {
            if layer.bytes.contains(&mark) && !visit(&layer.decoded(decode)) {
                return;
            }
        }
        if depth + 1 == DEPTH || !layer.bytes.contains(&b'\\') {
            return;
        }
        layer = layer.decoded(escape);
        if !visit(&layer) {
            return;
        }
    }
}

/// Writes the first character decoded, and returns how many bytes it read.
type Decode = fn(&[u8], &mut Vec<u8>) -> Option<usize>;

/// A text with its escapes decoded.
struct Layer<'a> {
    bytes: Cow<'a, [u8]>,
    /// Where each byte begins in the text, if that is asked for. There is one more: the end.
    starts: Vec<usize>,
}

impl<'a> Layer<'a> {
    fn find(&self, matcher: &AhoCorasick, found: &mut Vec<Range<usize>>) {
        for hit in matcher.find_overlapping_iter(&*self.bytes) {
            if let (Some(start), Some(end)) = (self.starts.get(hit.start()), self.starts.get(hit.end())) {
                found.push(*start..*end);
            }
        }
    }

    /// The same, decoded once more.
    fn decoded(&self, decode: Decode) -> Layer<'a> {
        let (mut bytes, mut starts, mut at) = (Vec::with_capacity(self.bytes.len()), Vec::new(), 0);
        while let Some(rest @ [_, ..]) = self.bytes.get(at..) {
            let is_mark = |byte: &u8| matches!(byte, b'\\' | b'%' | b'+');
            let plain = rest.iter().position(is_mark).unwrap_or(rest.len());
            bytes.extend(rest.iter().take(plain));
            starts.extend(self.starts.iter().skip(at).take(plain));
            at += plain;
            let Some(rest @ [mark, ..]) = self.bytes.get(at..) else { break };
            let start = self.starts.get(at).copied();
            at += decode(rest, &mut bytes).unwrap_or_else(|| {
                bytes.push(*mark);
                1
            });
            if let Some(start) = start {
                starts.resize(bytes.len(), start);
            }
        }
        starts.extend(self.starts.last());
        Layer { bytes: bytes.into(), starts }
    }
}

/// Escapes of one letter in JSON.
const LETTERS: [(u8, u8); 8] = [
    (b'n', b'\n'),
    (b'"', b'"'),
    (b'\\', b'\\'),
    (b't', b'\t'),
    (b'/', b'/'),
    (b'r', b'\r'),
    (b'b', 8),
    (b'f', 12),
];

/// An escape of a JSON string: `\ud83d\ude00`, `\u00e9` or `\n`.
fn escape(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let [b'\\', letter, ..] = rest else { return None };
    if let Some((_, plain)) = LETTERS.iter().find(|(known, _)| known == letter) {
        out.push(*plain);
        return Some(2);
    }
    let unit = |at: usize| {
        let mut digits = rest.get(at..at + 6)?.strip_prefix(b"\\u")?.iter();
        digits.try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
    };
    let high = unit(0)?;
    let (decoded, length) = match (high, unit(6)) {
        (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
            (0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12)
        }
        _ => (high, 6),
    };
    out.extend_from_slice(char::from_u32(decoded)?.encode_utf8(&mut [0; 4]).as_bytes());
    Some(length)
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
