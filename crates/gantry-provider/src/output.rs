//! Raw output: what a tool returned, before it is shaped.

use gantry_core::json::{canonical, write_string};
use gantry_core::raw;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::sync::Arc;

/// Levels of a stored JSON text that are broken into lines. What is nested deeper stays on its line, so that blanks never
/// make up more than a few times the text.
const INDENTED_LEVELS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawOutput {
    /// A JSON value, as text. It is valid against the tool's output schema.
    Json(String),
    Text(String),
    Content(Content),
}

impl RawOutput {
    pub fn text(&self) -> &str {
        match self {
            Self::Json(text) | Self::Text(text) => text,
            Self::Content(content) => &content.text,
        }
    }

    /// How many bytes it takes to keep it.
    pub fn size(&self) -> usize {
        match self {
            Self::Json(text) | Self::Text(text) => text.len(),
            Self::Content(content) => content.text.len() + content.result.len(),
        }
    }

    /// Bytes of it that a model reads as text. Pictures and sound do not count.
    pub fn readable_size(&self) -> usize {
        match self {
            Self::Json(text) | Self::Text(text) => text.len(),
            Self::Content(content) => content.text.len().max(content.structured().map_or(0, str::len)),
        }
    }

    /// The output as it is stored when it is too large to show: all readable content, in lines.
    pub fn whole(&self) -> Cow<'_, str> {
        match self {
            Self::Json(text) | Self::Text(text) => text.into(),
            Self::Content(content) => content.whole(),
        }
    }

    /// Writes the output as the value of `result` in a reply.
    pub fn write_json(&self, out: &mut String) {
        match self {
            Self::Json(text) => out.push_str(text),
            Self::Text(text) => write_string(out, text),
            Self::Content(content) => content.write_json(out),
        }
    }
}

/// The result of an MCP server, word for word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    result: Arc<str>,
    text: String,
    /// Whether the text is all that there is.
    only_text: bool,
}

impl Content {
    pub fn new(result: &str) -> Self {
        let blocks = raw::member(result, "content").and_then(raw::elements).unwrap_or_default();
        let mut only_text = true;
        let mut texts: Vec<String> = Vec::with_capacity(blocks.len());
        for block in blocks {
            only_text &= raw::string_member(block, "type").as_deref() == Some("text");
            texts.extend(block_text(block));
        }
        if texts.is_empty() {
            texts.extend(raw::member(result, "structuredContent").map(str::to_owned));
        }
        // A result of another kind (a task that was started) has no content to show but itself.
        if texts.is_empty() && raw::member(result, "content").is_none() {
            texts.push(result.to_owned());
        }
        Self { result: result.into(), text: texts.join("\n"), only_text }
    }

    /// The result object as the server sent it.
    pub fn result(&self) -> &Arc<str> {
        &self.result
    }

    /// Its text, as a conversation shows it.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn structured(&self) -> Option<&str> {
        raw::member(&self.result, "structuredContent")
    }

    /// The text, unless there is structured content that says more. Then that is put below a text for people, and anything
    /// else is the whole result, which is JSON.
    fn whole(&self) -> Cow<'_, str> {
        let text = self.text.as_str();
        let Some(structured) = self.structured().filter(|it| !wraps(it, text)) else { return text.into() };
        if is_same(structured, text) {
            return indented(structured).into();
        }
        let is_prose = || serde_json::from_str::<IgnoredAny>(text).is_err();
        if text.len() > structured.len() && is_prose() {
            return format!("{text}\n\nstructuredContent: {}", indented(structured)).into();
        }
        indented(&self.result).into()
    }

    fn write_json(&self, out: &mut String) {
        match (self.structured(), raw::member(&self.result, "content")) {
            (Some(structured), _) => out.push_str(structured),
            (None, Some(_)) if self.only_text => write_string(out, &self.text),
            (None, Some(content)) => out.push_str(content),
            (None, None) => out.push_str(&self.result),
        }
    }
}

/// Whether structured content is nothing but a wrapper around the text, as some SDKs make it.
fn wraps(structured: &str, text: &str) -> bool {
    let members = raw::members(structured).unwrap_or_default();
    matches!(members.as_slice(), [(_, only)] if raw::string(only).is_some_and(|only| only == text))
}

/// Whether two texts are the same JSON, number for number.
fn is_same(structured: &str, text: &str) -> bool {
    structured == text
        || canonical(structured).is_ok_and(|it| canonical(text).is_ok_and(|other| it.text() == other.text()))
}

/// A JSON text in lines. Nothing but white space is changed: strings and numbers stay as they were written.
fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 2);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let new_line = |out: &mut String, level: usize, blanks: usize| {
        if level <= INDENTED_LEVELS {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', blanks));
        }
    };
    for c in json.chars() {
        if quoted {
            out.push(c);
            (quoted, escaped) = (escaped || c != '"', !escaped && c == '\\');
            continue;
        }
        match c {
            ' ' | '\t' | '\n' | '\r' => {}
            '{' | '[' => {
                out.push(c);
                depth += 1;
                new_line(&mut out, depth, depth);
            }
            '}' | ']' => {
                let filled = out.trim_end().len();
                if out.get(..filled).is_some_and(|before| before.ends_with(['{', '['])) {
                    out.truncate(filled);
                } else {
                    new_line(&mut out, depth, depth.saturating_sub(1));
                }
                out.push(c);
                depth = depth.saturating_sub(1);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                quoted = c == '"';
                out.push(c);
            }
        }
    }
    out
}

/// A content block as text in a conversation.
fn block_text(block: &str) -> Option<String> {
    let member = |key: &str| raw::string_member(block, key).unwrap_or_default();
    match &*raw::string_member(block, "type")? {
        "text" => raw::string_member(block, "text").map(Cow::into_owned),
        "resource" => {
            let resource = raw::member(block, "resource")?;
            let text = raw::string_member(resource, "text").map(Cow::into_owned);
            text.or_else(|| {
                Some(format!("[resource {}]", raw::string_member(resource, "uri").unwrap_or_default()))
            })
        }
        "resource_link" => Some(format!("[resource {}]", member("uri"))),
        kind => Some(format!("[{kind} {}, {} bytes of base64]", member("mimeType"), member("data").len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(content: &Content) -> String {
        let mut out = String::new();
        content.write_json(&mut out);
        out
    }

    #[test]
    fn text_is_shown_as_text_and_the_rest_as_what_it_is() {
        let text = Content::new(r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#);
        assert_eq!((text.text(), &*result(&text)), ("a\nb", r#""a\nb""#));
        let mixed = Content::new(
            r#"{"content":[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png","data":"AAAA"}]}"#,
        );
        assert_eq!(mixed.text(), "a\n[image image/png, 4 bytes of base64]");
        assert!(result(&mixed).starts_with("[{"), "a picture is not lost on the way to a program");
    }

    #[test]
    fn structure_comes_first_and_keeps_its_numbers() {
        let content = Content::new(
            r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":1.10,"big":12345678901234567890123}}"#,
        );
        assert_eq!(result(&content), r#"{"n":1.10,"big":12345678901234567890123}"#);
        assert_eq!(Content::new(r#"{"structuredContent":[1]}"#).text(), "[1]");
    }

    #[track_caller]
    fn check(result: &str, whole: &str) {
        let content = Content::new(result);
        assert_eq!(content.whole(), whole, "{result}");
    }

    #[test]
    fn cal_9_what_is_stored_has_the_text_and_the_structure() {
        // The structure is what is large: the whole result, so that the text is not lost either.
        check(
            r#"{"content":[{"type":"text","text":"2 rows"}],"structuredContent":{"rows":[1.10,1e400]},"isError":false}"#,
            "{\n \"content\": [\n  {\n   \"type\": \"text\",\n   \"text\": \"2 rows\"\n  }\n ],\n \"structuredContent\": {\n  \"rows\": [\n   1.10,\n   1e400\n  ]\n },\n \"isError\": false\n}",
        );
        // The text is: it stays as it is, and the structure follows.
        check(
            r#"{"content":[{"type":"text","text":"a long text\nfor people"}],"structuredContent":{"n":2}}"#,
            "a long text\nfor people\n\nstructuredContent: {\n \"n\": 2\n}",
        );
        // JSON as text that is not the structure: both can be read by path.
        let both = r#"{"content":[{"type":"text","text":"[1,   2,   3,   4]"}],"structuredContent":{"n":2}}"#;
        assert_eq!(Content::new(both).whole(), indented(both));
    }

    #[test]
    fn cal_9_what_is_said_twice_is_stored_once() {
        let lines = "{\n \"b\": 1,\n \"a\": []\n}";
        check(
            r#"{"content":[{"type":"text","text":"{\"a\":[], \"b\":1}"}],"structuredContent":{"b":1,"a":[]}}"#,
            lines,
        );
        check(r#"{"content":[],"structuredContent":{"b":1,"a":[]}}"#, lines);
        check(r#"{"content":[{"type":"text","text":"a\nb"}],"structuredContent":{"result":"a\nb"}}"#, "a\nb");
        // Almost the same is not the same.
        let almost = r#"{"content":[{"type":"text","text":"{\"a\":1.0}"}],"structuredContent":{"a":1.00}}"#;
        assert_eq!(Content::new(almost).whole(), indented(almost));
        check(r#"{"content":[{"type":"text","text":"plain"}]}"#, "plain");
    }

    #[test]
    fn lines_change_nothing_but_white_space() {
        let json = r#" { "a {[,:\" \\" : [ ] ,"b":{},"c":[{"d\u00e9":"\\\""},-1.50E+3,null , true]} "#;
        let lines = indented(json);
        assert_eq!(
            lines,
            r#"{
 "a {[,:\" \\": [],
 "b": {},
 "c": [
  {
   "d\u00e9": "\\\""
  },
  -1.50E+3,
  null,
  true
 ]
}"#
        );
        assert_eq!(indented(&lines), lines);
        // Nesting without end costs no more than its text.
        let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        let lines = indented(&deep);
        assert_eq!(lines.replace([' ', '\n'], ""), deep);
        assert!(lines.len() < deep.len() + 200, "{}", lines.len());
    }

    #[test]
    fn a_result_of_another_kind_is_shown_whole() {
        let task = r#"{"resultType":"task","taskId":"t"}"#;
        assert_eq!(Content::new(task).text(), task);
        assert_eq!(result(&Content::new(task)), task);
    }
}
