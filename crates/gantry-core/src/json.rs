//! JSON from outside, read once with suspicion.
//!
//! serde_json keeps the *last* of two equal keys without a word, and other parsers keep the first, so the same
//! bytes can mean one thing to a policy and another to the tool behind it. Numbers that no 64-bit type holds are
//! rounded by one reader and kept by another. This scanner refuses both, bounds the nesting, and writes the
//! canonical form (sorted keys, plain escapes, numbers as their text) that digests and permits are made of.

use crate::limits;
use std::fmt::Write as _;

/// What is wrong with a JSON text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not JSON.
    #[error("not valid JSON at byte {at}: {what}")]
    Syntax { at: usize, what: &'static str },
    /// Nested deeper than [`limits::JSON_DEPTH`].
    #[error("JSON is nested deeper than {} levels", limits::JSON_DEPTH)]
    TooDeep,
    /// An object that has one key twice.
    #[error("the key {key:?} appears twice in one object")]
    DuplicateKey { key: String },
    /// A number that could be rounded on the way.
    #[error("the number {text} does not fit 64 bits and could be rounded on the way; send it as a string")]
    Number { text: String },
}

/// A JSON text that was scanned: valid, without duplicate keys, with bounded depth and numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonical {
    text: String,
    sensitive: bool,
}

impl Canonical {
    /// The canonical text: keys sorted by their bytes, no white space, numbers as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether some key names a secret, so that showing the text needs redaction.
    #[must_use]
    pub fn is_sensitive(&self) -> bool {
        self.sensitive
    }
}

/// Checks a text and returns its canonical form.
///
/// # Errors
/// Names the first thing that makes the text unfit to be judged.
pub fn canonical(text: &str) -> Result<Canonical, Error> {
    let mut scanner = Scanner::new(text, Some(String::with_capacity(text.len())));
    scanner.document()?;
    Ok(Canonical { text: scanner.out.unwrap_or_default(), sensitive: scanner.sensitive })
}

/// Checks a text without writing anything.
///
/// # Errors
/// As [`canonical`].
pub fn check(text: &str) -> Result<(), Error> {
    Scanner::new(text, None).document()
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    out: Option<String>,
    sensitive: bool,
}

/// One member of an object: its decoded key and where its canonical text lies in the output.
struct Member<'a> {
    key: std::borrow::Cow<'a, str>,
    start: usize,
    end: usize,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str, out: Option<String>) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0, depth: 0, out, sensitive: false }
    }

    fn document(&mut self) -> Result<(), Error> {
        self.white();
        self.value()?;
        self.white();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.syntax("text after the value")) }
    }

    fn value(&mut self) -> Result<(), Error> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => {
                let text = self.string()?;
                self.write_string(&text);
                Ok(())
            }
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(self.syntax("expected a value")),
            None => Err(self.syntax("the text ends where a value is expected")),
        }
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        if self.depth == limits::JSON_DEPTH {
            return Err(Error::TooDeep);
        }
        self.depth += 1;
        self.at += 1;
        inner(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn array(&mut self) -> Result<(), Error> {
        self.push('[');
        self.white();
        if self.eat(b']') {
            self.push(']');
            return Ok(());
        }
        loop {
            self.white();
            self.value()?;
            self.white();
            if self.eat(b',') {
                self.push(',');
            } else if self.eat(b']') {
                self.push(']');
                return Ok(());
            } else {
                return Err(self.syntax("expected , or ] in an array"));
            }
        }
    }

    fn object(&mut self) -> Result<(), Error> {
        self.push('{');
        let body = self.written();
        let mut members: Vec<Member<'a>> = Vec::new();
        self.white();
        if !self.eat(b'}') {
            loop {
                self.member(&mut members)?;
                self.white();
                if self.eat(b',') {
                    continue;
                }
                if self.eat(b'}') {
                    break;
                }
                return Err(self.syntax("expected , or } in an object"));
            }
        }
        self.sort_members(body, &mut members)?;
        self.push('}');
        Ok(())
    }

    fn member(&mut self, members: &mut Vec<Member<'a>>) -> Result<(), Error> {
        self.white();
        if self.peek() != Some(b'"') {
            return Err(self.syntax("expected a key in quotes"));
        }
        let key = self.string()?;
        self.white();
        if !self.eat(b':') {
            return Err(self.syntax("expected : after a key"));
        }
        self.white();
        // Only those who keep the text ask whether it may be shown.
        self.sensitive |= self.out.is_some() && crate::redact::names_a_secret(&key);
        let start = self.written();
        self.write_string(&key);
        self.push(':');
        self.value()?;
        members.push(Member { key, start, end: self.written() });
        Ok(())
    }

    /// Puts the members that were just written into key order and refuses equal keys.
    fn sort_members(&mut self, body: usize, members: &mut [Member<'a>]) -> Result<(), Error> {
        let sorted = members.is_sorted_by(|a, b| a.key < b.key);
        if !sorted {
            members.sort_by(|a, b| a.key.cmp(&b.key));
            if let Some(pair) = members.windows(2).find(|pair| matches!(pair, [a, b] if a.key == b.key)) {
                let key = pair.iter().map(|m| m.key.chars().take(80).collect()).next().unwrap_or_default();
                return Err(Error::DuplicateKey { key });
            }
        }
        let Some(out) = &mut self.out else { return Ok(()) };
        let written = out.split_off(body);
        for (n, member) in members.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            out.push_str(written.get(member.start - body..member.end - body).unwrap_or_default());
        }
        Ok(())
    }

    /// Reads a string and returns what it means, borrowed where it has no escapes.
    fn string(&mut self) -> Result<std::borrow::Cow<'a, str>, Error> {
        self.at += 1;
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    let text = self.text.get(start..self.at).unwrap_or_default();
                    self.at += 1;
                    return Ok(text.into());
                }
                b'\\' => return self.escaped_string(start).map(Into::into),
                0..0x20 => return Err(self.syntax("a control character in a string")),
                _ => self.at += 1,
            }
        }
        Err(self.syntax("a string without an end"))
    }

    fn escaped_string(&mut self, start: usize) -> Result<String, Error> {
        let mut text = String::from(self.text.get(start..self.at).unwrap_or_default());
        loop {
            let run = self.at;
            while self.peek().is_some_and(|b| b >= 0x20 && b != b'"' && b != b'\\') {
                self.at += 1;
            }
            text.push_str(self.text.get(run..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.syntax("a control character in a string")),
                None => return Err(self.syntax("a string without an end")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        self.at += 1;
        let byte = self.peek().ok_or_else(|| self.syntax("a string without an end"))?;
        self.at += 1;
        match byte {
            b'"' => Ok('"'),
            b'\\' => Ok('\\'),
            b'/' => Ok('/'),
            b'b' => Ok('\u{8}'),
            b'f' => Ok('\u{c}'),
            b'n' => Ok('\n'),
            b'r' => Ok('\r'),
            b't' => Ok('\t'),
            b'u' => self.unicode(),
            _ => Err(self.syntax("an unknown escape")),
        }
    }

    fn unicode(&mut self) -> Result<char, Error> {
        let first = self.hex4()?;
        if !(0xD800..0xE000).contains(&first) {
            return char::from_u32(first).ok_or_else(|| self.syntax("an unknown character"));
        }
        let low = if first < 0xDC00 && self.eat(b'\\') && self.eat(b'u') { self.hex4()? } else { 0 };
        if !(0xDC00..0xE000).contains(&low) {
            return Err(self.syntax("half of a surrogate pair"));
        }
        let code = 0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00);
        char::from_u32(code).ok_or_else(|| self.syntax("an unknown character"))
    }

    fn hex4(&mut self) -> Result<u32, Error> {
        let digits = self.bytes.get(self.at..self.at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.ok_or_else(|| self.syntax("expected four hexadecimal digits"))?;
        self.at += 4;
        Ok(digits.iter().fold(0, |n, d| n * 16 + char::from(*d).to_digit(16).unwrap_or(0)))
    }

    fn number(&mut self) -> Result<(), Error> {
        let start = self.at;
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        let mut whole = true;
        if self.eat(b'.') {
            whole = false;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        let fits = if whole {
            text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()
        } else {
            text.parse::<f64>().is_ok_and(f64::is_finite)
        };
        if !fits {
            return Err(Error::Number { text: text.chars().take(40).collect() });
        }
        if let Some(out) = &mut self.out {
            out.push_str(text);
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Error> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.syntax("expected a digit")) } else { Ok(()) }
    }

    fn word(&mut self, word: &'static str) -> Result<(), Error> {
        if !self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            return Err(self.syntax("expected true, false or null"));
        }
        self.at += word.len();
        if let Some(out) = &mut self.out {
            out.push_str(word);
        }
        Ok(())
    }

    fn white(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn push(&mut self, c: char) {
        if let Some(out) = &mut self.out {
            out.push(c);
        }
    }

    fn written(&self) -> usize {
        self.out.as_ref().map_or(0, String::len)
    }

    fn write_string(&mut self, text: &str) {
        if let Some(out) = &mut self.out {
            write_string(out, text);
        }
    }

    fn syntax(&self, what: &'static str) -> Error {
        Error::Syntax { at: self.at, what }
    }
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
