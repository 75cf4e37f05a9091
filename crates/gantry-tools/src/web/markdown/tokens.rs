//! Reads HTML as tags and text.
//!
//! Linear: what is not closed (a tag, a comment, a script) takes the rest of the page with it, so nothing is scanned
//! twice.

use super::entities::decoded;

/// A piece of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Text with its entities still in it.
    Text(&'a str),
    Open(Tag<'a>),
    /// The name of an element, in lower case.
    Close(String),
    /// The title of the page.
    Title(&'a str),
}

/// A tag that opens an element.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    /// In lower case.
    pub(super) name: String,
    attributes: &'a str,
}

impl Tag<'_> {
    /// The value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            if rest.is_empty() {
                return None;
            }
            let end =
                rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/')).unwrap_or(rest.len());
            // A name has at least one character, so that this ends.
            let (found, after) = split(rest, end.max(first_char(rest)));
            let after_blank = after.trim_start();
            let Some(value) = after_blank.strip_prefix('=') else {
                if found.eq_ignore_ascii_case(name) {
                    return Some(String::new());
                }
                rest = after;
                continue;
            };
            let (value, after) = value_of(value.trim_start());
            if found.eq_ignore_ascii_case(name) {
                return Some(decoded(value).into_owned());
            }
            rest = after;
        }
    }
}

fn first_char(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

fn split(text: &str, at: usize) -> (&str, &str) {
    text.split_at_checked(at).unwrap_or((text, ""))
}

/// A value, quoted or not, and what comes after it.
fn value_of(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or((quoted, ""));
        }
    }
    split(text, text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len()))
}

/// The pieces of a page.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(html: &'a str) -> Self {
        Self { rest: html }
    }

    /// Takes everything up to a mark, and the mark; the rest of the page if it is not there.
    fn up_to(&mut self, mark: &str) -> &'a str {
        let (before, after) = self.rest.split_once(mark).unwrap_or((self.rest, ""));
        self.rest = after;
        before
    }

    /// Takes everything up to the tag that closes this element, whatever stands in between.
    fn up_to_close(&mut self, name: &str) -> &'a str {
        let mut from = 0;
        while let Some(found) = self.rest.get(from..).and_then(|rest| rest.find("</")) {
            let at = from + found;
            let after = self.rest.get(at + 2..).unwrap_or_default();
            if after.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
                let (before, close) = split(self.rest, at);
                self.rest = close;
                self.up_to(">");
                return before;
            }
            from = at + 2;
        }
        std::mem::take(&mut self.rest)
    }

    /// A tag, after its `<`.
    fn tag(&mut self) -> Option<Token<'a>> {
        let (inner, after) = split(self.rest, end_of_tag(self.rest)?);
        self.rest = after.strip_prefix('>').unwrap_or(after);
        let (close, inner) = match inner.strip_prefix('/') {
            Some(inner) => (true, inner),
            None => (false, inner),
        };
        let end = inner.find(|c: char| c.is_ascii_whitespace() || c == '/').unwrap_or(inner.len());
        let (name, attributes) = split(inner, end);
        let name = name.to_ascii_lowercase();
        if close {
            return Some(Token::Close(name));
        }
        match name.as_str() {
            "script" | "style" | "template" | "noscript" | "iframe" | "svg" | "textarea" | "noframes"
            | "noembed" => {
                // An element without content closes itself only in foreign markup.
                if !(name == "svg" && attributes.trim_end().ends_with('/')) {
                    self.up_to_close(&name);
                }
                None
            }
            "title" => Some(Token::Title(self.up_to_close(&name))),
            _ => Some(Token::Open(Tag { name, attributes })),
        }
    }
}

/// Where the `>` of a tag is, which may stand in quotes before.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote: Option<u8> = None;
    let mut after_equals = false;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            // A quote only begins a value; elsewhere it is a slip of the pen.
            (None, b'"' | b'\'') if after_equals => quote = Some(byte),
            (None, b'>') => return Some(at),
            (None, _) => {}
        }
        after_equals = byte == b'=' || (after_equals && byte.is_ascii_whitespace());
    }
    None
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        while !self.rest.is_empty() {
            let Some(after) = self.rest.strip_prefix('<') else {
                let end = self.rest.find('<').unwrap_or(self.rest.len());
                let (text, rest) = split(self.rest, end);
                self.rest = rest;
                return Some(Token::Text(text));
            };
            let tag = after.strip_prefix('/').unwrap_or(after);
            if after.starts_with("!--") {
                self.rest = after.get(3..).unwrap_or_default();
                self.up_to("-->");
            } else if after.starts_with(['!', '?']) {
                self.up_to(">");
            } else if tag.starts_with(|c: char| c.is_ascii_alphabetic()) {
                self.rest = after;
                if end_of_tag(after).is_none() {
                    self.rest = "";
                } else if let Some(token) = self.tag() {
                    return Some(token);
                }
            } else {
                let (text, rest) = split(self.rest, 1);
                self.rest = rest;
                return Some(Token::Text(text));
            }
        }
        None
    }
}
