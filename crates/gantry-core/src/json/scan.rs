//! The scanner: one loop over a JSON text, with a stack of the arrays and objects that are open.

use super::{Error, Object, write_string};
use crate::limits::{JSON_DEPTH, JSON_SKIPPED_DEPTH};
use crate::truncate::truncate;
use std::borrow::Cow;
use std::ops::Range;

/// Members of an object whose keys are compared each with each, which takes no memory; more are sorted.
const FEW_MEMBERS: usize = 8;

#[derive(Default)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    is_strict: bool,
    /// How many levels of objects keep their members for the caller.
    pub(super) object_levels: usize,
    /// The elements of the outermost array, and how many there may be, if the caller wants them.
    pub(super) elements: Option<(Vec<&'a str>, usize)>,
    /// The canonical text so far, if the caller wants it.
    pub(super) out: Option<String>,
    /// Whether some key of the canonical text names a secret.
    pub(super) is_sensitive: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Member<'a> {
    pub(super) key: Cow<'a, str>,
    pub(super) value: &'a str,
    /// The members of the value, if it is an object and they are kept.
    pub(super) object: Option<Object<'a>>,
    /// Where key and value are in the canonical text.
    written: Range<usize>,
}

/// An array or object that has begun and not ended.
struct Open<'a> {
    closer: u8,
    /// Where the current element or the value of the current member begins.
    start: usize,
    /// Where the canonical text of the first member begins.
    body: usize,
    /// The members so far. A lenient pass keeps only those that the caller asked for.
    members: Vec<Member<'a>>,
}

impl<'a> Scanner<'a> {
    pub(super) fn strict(text: &'a str) -> Self {
        Self { is_strict: true, ..Self::lenient(text) }
    }

    pub(super) fn lenient(text: &'a str) -> Self {
        Self { text, ..Self::default() }
    }

    /// Scans the whole text. Returns the members if it is an object.
    pub(super) fn document(&mut self) -> Result<Option<Vec<Member<'a>>>, Error> {
        let members = self.value()?;
        self.white();
        if self.at == self.text.len() { Ok(members) } else { Err(self.syntax("text after the value")) }
    }

    pub(super) fn only_string(&mut self) -> Result<Cow<'a, str>, Error> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax("expected a string"));
        }
        let text = self.decoded_string()?;
        if self.at == self.text.len() { Ok(text) } else { Err(self.syntax("text after the value")) }
    }

    /// Scans one value. Returns its members if it is an object.
    fn value(&mut self) -> Result<Option<Vec<Member<'a>>>, Error> {
        // Limit: `open` refuses more than `JSON_DEPTH` or `JSON_SKIPPED_DEPTH`.
        let mut open: Vec<Open<'a>> = Vec::new();
        loop {
            self.white();
            let mut ended = None;
            match self.peek() {
                Some(opener @ (b'{' | b'[')) => {
                    let mut container = self.open(opener, open.len())?;
                    if !self.eat(container.closer) {
                        self.begin_part(&mut container, open.len() + 1)?;
                        open.push(container);
                        continue;
                    }
                    ended = self.close(container)?;
                }
                _ => self.scalar()?,
            }
            // A value has ended, and with it the containers that end right after it.
            loop {
                let depth = open.len();
                let Some(mut container) = open.pop() else { return Ok(ended) };
                self.end_part(&mut container, depth, ended)?;
                self.white();
                if self.eat(b',') {
                    self.push(",");
                    self.white();
                    self.begin_part(&mut container, depth)?;
                    open.push(container);
                    break;
                }
                if !self.eat(container.closer) {
                    return Err(self.syntax(match container.closer {
                        b'}' => "expected , or } in an object",
                        _ => "expected , or ] in an array",
                    }));
                }
                ended = self.close(container)?;
            }
        }
    }

    fn open(&mut self, opener: u8, depth: usize) -> Result<Open<'a>, Error> {
        if depth == if self.is_strict { JSON_DEPTH } else { JSON_SKIPPED_DEPTH } {
            return Err(Error::TooDeep);
        }
        self.at += 1;
        let closer = if opener == b'{' { b'}' } else { b']' };
        self.push(if opener == b'{' { "{" } else { "[" });
        self.white();
        Ok(Open { closer, start: self.at, body: self.written(), members: Vec::new() })
    }

    /// Begins an element, or a member with its key and colon.
    fn begin_part(&mut self, container: &mut Open<'a>, depth: usize) -> Result<(), Error> {
        if container.closer == b'}' {
            self.key(&mut container.members, depth)?;
        }
        container.start = self.at;
        Ok(())
    }

    /// Takes note of the value that ended as a part of its container. `ended` has its members if it is an object.
    fn end_part(
        &mut self,
        container: &mut Open<'a>,
        depth: usize,
        ended: Option<Vec<Member<'a>>>,
    ) -> Result<(), Error> {
        let value = self.text.get(container.start..self.at).unwrap_or_default();
        if container.closer == b'}' {
            let written = self.written();
            if let Some(member) = container.members.last_mut() {
                member.value = value;
                member.written.end = written;
                if depth < self.object_levels {
                    member.object = ended.map(|members| Object { members });
                }
            }
        } else if depth == 1
            && let Some((elements, limit)) = &mut self.elements
        {
            if elements.len() == *limit {
                return Err(Error::Syntax { at: self.at, what: "too many elements" });
            }
            elements.push(value);
        }
        Ok(())
    }

    fn key(&mut self, members: &mut Vec<Member<'a>>, depth: usize) -> Result<(), Error> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax("expected a key in quotes"));
        }
        if self.is_strict || depth <= self.object_levels {
            let key = self.decoded_string()?;
            let start = self.written();
            if let Some(out) = &mut self.out {
                self.is_sensitive |= crate::redact::names_a_secret(&key);
                write_string(out, &key);
                out.push(':');
            }
            members.push(Member { key, value: "", object: None, written: start..start });
        } else {
            self.string()?;
        }
        self.white();
        if !self.eat(b':') {
            return Err(self.syntax("expected : after a key"));
        }
        self.white();
        Ok(())
    }

    /// Ends a container that was read whole. Returns its members if it is an object.
    fn close(&mut self, container: Open<'a>) -> Result<Option<Vec<Member<'a>>>, Error> {
        if container.closer == b']' {
            self.push("]");
            return Ok(None);
        }
        if self.is_strict && !container.members.is_sorted_by(|a, b| a.key < b.key) {
            self.sort_members(&container)?;
        }
        self.push("}");
        Ok(Some(container.members))
    }

    /// Refuses equal keys and puts the canonical text of an object into key order.
    fn sort_members(&mut self, object: &Open<'a>) -> Result<(), Error> {
        if self.out.is_none() && object.members.len() <= FEW_MEMBERS {
            let repeated = |(n, member): &(usize, &Member<'a>)| {
                object.members.iter().take(*n).any(|earlier| earlier.key == member.key)
            };
            let found = object.members.iter().enumerate().find(repeated);
            return found.map_or(Ok(()), |(_, member)| Err(duplicate(member)));
        }
        let mut sorted: Vec<&Member<'a>> = object.members.iter().collect();
        sorted.sort_by(|a, b| a.key.cmp(&b.key));
        if let Some([first, _]) = sorted.array_windows().find(|[a, b]| a.key == b.key) {
            return Err(duplicate(first));
        }
        let Some(out) = &mut self.out else { return Ok(()) };
        let written = out.split_off(object.body);
        for (n, member) in sorted.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            let Range { start, end } = member.written;
            out.push_str(written.get(start - object.body..end - object.body).unwrap_or_default());
        }
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), Error> {
        match self.peek() {
            Some(b'"') if self.is_strict => {
                let text = self.decoded_string()?;
                if let Some(out) = &mut self.out {
                    write_string(out, &text);
                }
                Ok(())
            }
            Some(b'"') => self.string().map(drop),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(self.syntax("expected a value")),
            None => Err(self.syntax("the text ends where a value is expected")),
        }
    }

    fn decoded_string(&mut self) -> Result<Cow<'a, str>, Error> {
        let start = self.at + 1;
        let (text, has_escapes) = self.string()?;
        if has_escapes { self.decoded(start, text).map(Cow::Owned) } else { Ok(text.into()) }
    }

    /// Moves past a string. Returns the text between its quotes, and whether it has escapes; these have the right form.
    fn string(&mut self) -> Result<(&'a str, bool), Error> {
        self.at += 1;
        let (start, mut has_escapes) = (self.at, false);
        loop {
            self.at += plain_length(self.text.as_bytes().get(self.at..).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    let text = self.text.get(start..self.at).unwrap_or_default();
                    self.at += 1;
                    return Ok((text, has_escapes));
                }
                Some(b'\\') => {
                    self.escape()?;
                    has_escapes = true;
                }
                Some(_) => return Err(self.syntax("a control character in a string")),
                None => return Err(self.syntax("a string without an end")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Error> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                let digits = self.text.as_bytes().get(self.at..self.at + 4);
                if digits.is_none_or(|digits| !digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(self.syntax("expected four hexadecimal digits"));
                }
                self.at += 4;
            }
            Some(_) => return Err(self.syntax("an unknown escape")),
            None => return Err(self.syntax("a string without an end")),
        }
        Ok(())
    }

    /// Decodes the text of a string that `string` returned; it began at byte `start`.
    fn decoded(&self, start: usize, text: &str) -> Result<String, Error> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((plain, escape)) = rest.split_once('\\') {
            out.push_str(plain);
            let (c, length) = unescaped(escape).ok_or(Error::Syntax {
                at: start + text.len() - escape.len(),
                what: "half of a surrogate pair",
            })?;
            out.push(c);
            rest = escape.get(length..).unwrap_or_default();
        }
        out.push_str(rest);
        Ok(out)
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
        let fits = || match whole {
            true => text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok(),
            false => text.parse::<f64>().is_ok_and(f64::is_finite),
        };
        if self.is_strict && !fits() {
            return Err(Error::Number { text: truncate(text, 40).to_owned() });
        }
        self.push(text);
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
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.syntax("expected true, false or null"));
        }
        self.at += word.len();
        self.push(word);
        Ok(())
    }

    fn white(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn push(&mut self, text: &str) {
        if let Some(out) = &mut self.out {
            out.push_str(text);
        }
    }

    fn written(&self) -> usize {
        self.out.as_ref().map_or(0, String::len)
    }

    fn syntax(&self, what: &'static str) -> Error {
        Error::Syntax { at: self.at, what }
    }
}

fn duplicate(member: &Member<'_>) -> Error {
    Error::DuplicateKey { key: truncate(&member.key, 80).to_owned() }
}

/// How many bytes there are before the first that is a quote, a backslash or a control character.
fn plain_length(bytes: &[u8]) -> usize {
    let is_plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    // Whole chunks first and without a branch per byte: the compiler makes vector instructions of that.
    let (chunks, _) = bytes.as_chunks::<16>();
    let plain = chunks.iter().take_while(|chunk| chunk.iter().fold(true, |all, byte| all & is_plain(byte)));
    let start = plain.count() * 16;
    start + bytes.iter().skip(start).take_while(|byte| is_plain(byte)).count()
}

/// The character that the start of `escape` means (the text after a backslash), and how many bytes that start has.
/// `None` for half of a surrogate pair.
fn unescaped(escape: &str) -> Option<(char, usize)> {
    let unit = |from: usize| u32::from_str_radix(escape.get(from..from + 4)?, 16).ok();
    let simple = match escape.as_bytes().first()? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let first = unit(1)?;
            if let Some(c) = char::from_u32(first) {
                return Some((c, 5));
            }
            let low = escape.get(5..7).filter(|next| *next == "\\u").and_then(|_| unit(7))?;
            let pair = char::decode_utf16([u16::try_from(first).ok()?, u16::try_from(low).ok()?]).next()?;
            return Some((pair.ok()?, 11));
        }
        other => char::from(*other),
    };
    Some((simple, 1))
}
