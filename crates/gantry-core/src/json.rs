//! JSON text from clients, servers and files, read by one scanner.
//!
//! serde_json silently keeps the *last* of two equal keys and other parsers keep the first, so a policy and the tool
//! behind it could read different things in the same bytes. One reader rounds a number that no 64-bit type holds, another
//! keeps it. A *strict* pass ([`check`], [`canonical`], [`Object::scan`]) refuses both and bounds the nesting. A *lenient*
//! pass ([`Object::split`], [`elements`]) checks the syntax only; it serves text that passed a strict pass before or that
//! Gantry forwards without judging it.
//!
//! Both give spans: values as pieces of the text itself, with nothing copied or rounded.

mod scan;

use crate::limits;
use scan::{Member, Scanner};
use std::borrow::Cow;
use std::fmt::Write as _;

/// What is wrong with a JSON text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("not valid JSON at byte {at}: {what}")]
    Syntax { at: usize, what: &'static str },
    /// Nested deeper than [`limits::JSON_DEPTH`].
    #[error("JSON is nested deeper than {} levels", limits::JSON_DEPTH)]
    TooDeep,
    #[error("the key {key:?} appears twice in one object")]
    DuplicateKey { key: String },
    /// A number that a reader could round.
    #[error("the number {text} does not fit 64 bits and could be rounded on the way; send it as a string")]
    Number { text: String },
    /// Valid JSON, but not the object that [`Object::scan`] expects.
    #[error("not a JSON object")]
    NotAnObject,
}

/// The canonical form of a JSON text that passed a strict pass; digests and permits are made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonical {
    text: String,
    sensitive: bool,
}

impl Canonical {
    /// The canonical text: keys sorted by their bytes, no white space, fewest escapes, numbers as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether some key names a secret, so that the text must be redacted before it is shown.
    pub fn is_sensitive(&self) -> bool {
        self.sensitive
    }
}

/// Checks a text and returns its canonical form.
pub fn canonical(text: &str) -> Result<Canonical, Error> {
    let mut scanner = Scanner::strict(text);
    scanner.out = Some(String::with_capacity(text.len()));
    scanner.document()?;
    Ok(Canonical { text: scanner.out.unwrap_or_default(), sensitive: scanner.is_sensitive })
}

/// Checks a text.
pub fn check(text: &str) -> Result<(), Error> {
    Scanner::strict(text).document().map(drop)
}

/// The members of a JSON object in their order, each value as its span of the text.
#[derive(Debug, Clone, Default)]
pub struct Object<'a> {
    members: Vec<Member<'a>>,
}

impl<'a> Object<'a> {
    /// Levels of nested objects whose members [`Self::scan`] keeps: a message, its parameters, and their `_meta`.
    const LEVELS: usize = 3;

    /// Checks a text and finds its members, in one strict pass.
    pub fn scan(text: &'a str) -> Result<Self, Error> {
        let mut scanner = Scanner::strict(text);
        scanner.object_levels = Self::LEVELS;
        scanner.document()?.map(|members| Self { members }).ok_or(Error::NotAnObject)
    }

    /// Finds the members of an object in a lenient pass; `None` if the text is no object.
    pub fn split(text: &'a str) -> Option<Self> {
        let mut scanner = Scanner::lenient(text);
        scanner.object_levels = 1;
        scanner.document().ok().flatten().map(|members| Self { members })
    }

    /// The value of a member; the first one if a lenient pass found several.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.member(key).map(|member| member.value)
    }

    /// The decoded value of a member that is a string.
    pub fn string(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(string)
    }

    /// The members of a member that is an object, from the same pass where it kept them.
    pub fn object(&self, key: &str) -> Option<Cow<'_, Self>> {
        let member = self.member(key)?;
        match &member.object {
            Some(object) => Some(Cow::Borrowed(object)),
            None => Self::split(member.value).map(Cow::Owned),
        }
    }

    /// As [`Self::object`], but moves the members out.
    pub fn take_object(&mut self, key: &str) -> Option<Self> {
        let member = self.members.iter_mut().find(|member| member.key == key)?;
        member.object.take().or_else(|| Self::split(member.value))
    }

    /// Keys and values in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.members.iter().map(|member| (&*member.key, member.value))
    }

    pub(crate) fn into_members(self) -> impl Iterator<Item = (Cow<'a, str>, &'a str)> {
        self.members.into_iter().map(|member| (member.key, member.value))
    }

    fn member(&self, key: &str) -> Option<&Member<'a>> {
        self.members.iter().find(|member| member.key == key)
    }
}

/// The elements of an array in a lenient pass; `None` if the text is no array or has more than `limit` of them.
pub fn elements(text: &str, limit: usize) -> Option<Vec<&str>> {
    if !text.trim_start().starts_with('[') {
        return None;
    }
    let mut scanner = Scanner::lenient(text);
    scanner.elements = Some((Vec::new(), limit));
    scanner.document().ok()?;
    scanner.elements.map(|(elements, _)| elements)
}

/// The decoded text of a JSON string, borrowed where it has no escapes; `None` if the span is no string.
pub fn string(span: &str) -> Option<Cow<'_, str>> {
    Scanner::lenient(span).only_string().ok()
}

/// Writes a string in quotes with the fewest escapes that JSON allows.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut clean = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(text.get(clean..at).unwrap_or_default());
        clean = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            control => write!(out, "\\u{control:04x}").unwrap_or_default(),
        }
    }
    out.push_str(text.get(clean..).unwrap_or_default());
    out.push('"');
}

#[cfg(test)]
mod tests;
