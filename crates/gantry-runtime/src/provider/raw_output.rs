//! What a tool gave back, before it is shaped.

use gantry_core::json::write_string;
use gantry_core::raw;
use std::sync::Arc;

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawOutput {
    /// A JSON value, as text. It is valid against the tool's output schema.
    Json(String),
    /// Plain text.
    Text(String),
    /// The result of an MCP server.
    Content(Content),
}

impl RawOutput {
    /// The output as a conversation would show it.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Json(text) | Self::Text(text) => text,
            Self::Content(content) => &content.text,
        }
    }

    /// How many bytes it takes to keep it.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Json(text) | Self::Text(text) => text.len(),
            Self::Content(content) => content.text.len() + content.result.len(),
        }
    }

    /// How many bytes a conversation has to take in. Pictures and sound do not count: no model reads them as text.
    #[must_use]
    pub fn readable_size(&self) -> usize {
        match self {
            Self::Json(text) | Self::Text(text) => text.len(),
            Self::Content(content) => content.text.len().max(content.structured().map_or(0, str::len)),
        }
    }

    /// Writes the output as the value of `result` in a reply.
    pub(crate) fn write_json(&self, out: &mut String) {
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
    /// A result object as the server sent it.
    #[must_use]
    pub fn new(result: &str) -> Self {
        let blocks = raw::member(result, "content").and_then(raw::elements).unwrap_or_default();
        let mut only_text = true;
        let mut texts: Vec<String> = Vec::with_capacity(blocks.len());
        for block in blocks {
            only_text &= raw::string_member(block, "type").as_deref() == Some("text");
            texts.extend(shown(block));
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
    #[must_use]
    pub fn result(&self) -> &Arc<str> {
        &self.result
    }

    /// Its text, as a conversation shows it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its structured content, if it has any.
    #[must_use]
    pub fn structured(&self) -> Option<&str> {
        raw::member(&self.result, "structuredContent")
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

/// What a conversation shows of a content block.
fn shown(block: &str) -> Option<String> {
    let say = |key: &str| raw::string_member(block, key).unwrap_or_default();
    match &*raw::string_member(block, "type")? {
        "text" => raw::string_member(block, "text").map(std::borrow::Cow::into_owned),
        "resource" => {
            let resource = raw::member(block, "resource")?;
            let uri = raw::string_member(resource, "uri").unwrap_or_default();
            let text = raw::string_member(resource, "text").map(std::borrow::Cow::into_owned);
            text.or_else(|| Some(format!("[resource {uri}]")))
        }
        "resource_link" => Some(format!("[resource {}]", say("uri"))),
        kind => Some(format!("[{kind} {}, {} bytes of base64]", say("mimeType"), say("data").len())),
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

    #[test]
    fn a_result_of_another_kind_is_shown_whole() {
        let task = r#"{"resultType":"task","taskId":"t"}"#;
        assert_eq!(Content::new(task).text(), task);
        assert_eq!(result(&Content::new(task)), task);
    }
}
