//! URIs of a server as clients see them: `gantry:{server}/{uri}`, so that two servers never claim the same one.
//!
//! A message is changed only where it holds a URI, and there only by the prefix; every other byte stays what the
//! server sent.

use gantry_core::raw;
use gantry_provider::resources::ListKind;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The scheme of mapped URIs.
pub(crate) const SCHEME: &str = "gantry:";

/// How clients see the URIs of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UriMap {
    /// The prefix of each URI; none for a server with `prefix: false`.
    prefix: Option<Box<str>>,
}

/// Where a message has URIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// An item of a list.
    Item(ListKind),
    /// `{"uri": …}`: the notice that a resource changed.
    Uri,
    /// The result of `resources/read`.
    Contents,
    /// The result of `tools/call`.
    ToolResult,
    /// A task, which may hold the result of a tool.
    Task,
    /// The result of `prompts/get`.
    Messages,
}

impl UriMap {
    /// The map of a server.
    pub(crate) fn new(server: &str, prefix: bool) -> Self {
        Self { prefix: prefix.then(|| format!("{SCHEME}{}/", encoded(server)).into()) }
    }

    /// The server's own URI, if the client's is one of this server.
    pub(crate) fn upstream_uri<'a>(&self, shown: &'a str) -> Option<&'a str> {
        match &self.prefix {
            Some(prefix) => shown.strip_prefix(&**prefix),
            None => Some(shown),
        }
    }

    /// Whether URIs are shown unchanged.
    pub(crate) fn is_plain(&self) -> bool {
        self.prefix.is_none()
    }

    /// A message of the server as clients see it.
    pub(crate) fn rewrite<'a>(&self, kind: MessageKind, text: &'a str) -> Cow<'a, str> {
        let Some(prefix) = &self.prefix else { return text.into() };
        // A key `uri` contains one of these, even if it is written with escapes.
        if !text.contains("uri") && !text.contains("\\u") {
            return text.into();
        }
        let mut edits = Edits::of(text);
        for uri in uris(kind, text) {
            let inner = uri.strip_prefix('"').unwrap_or_default();
            edits.replace(uri, format!("\"{prefix}{inner}"));
        }
        edits.done()
    }
}

/// The object with another value of this string member, and nothing else changed.
pub(crate) fn with_string_member<'a>(text: &'a str, member: &str, name: &str) -> Cow<'a, str> {
    let mut edits = Edits::of(text);
    for value in named(text, member) {
        edits.replace(value, raw::quoted(name));
    }
    edits.done()
}

/// The object with another value of a string member inside another member.
pub(crate) fn with_nested_member<'a>(text: &'a str, outer: &str, member: &str, name: &str) -> Cow<'a, str> {
    let mut edits = Edits::of(text);
    for value in named(text, outer).flat_map(|object| named(object, member)) {
        edits.replace(value, raw::quoted(name));
    }
    edits.done()
}

/// A server's id as part of a URI: letters, digits, `-`, `_` and `.`; the rest is percent-encoded.
fn encoded(server: &str) -> String {
    let mut out = String::with_capacity(server.len());
    for byte in server.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").unwrap_or_default();
        }
    }
    out
}

/// The URIs in a message, as the texts of JSON strings.
fn uris(kind: MessageKind, text: &str) -> Vec<&str> {
    let found: Vec<&str> = match kind {
        MessageKind::Item(ListKind::Templates) => named(text, "uriTemplate").collect(),
        MessageKind::Item(ListKind::Resources) | MessageKind::Uri => named(text, "uri").collect(),
        MessageKind::Item(ListKind::Tools | ListKind::Prompts) => Vec::new(),
        MessageKind::Contents => each(text, "contents").flat_map(|content| named(content, "uri")).collect(),
        MessageKind::ToolResult => each(text, "content").flat_map(in_block).collect(),
        MessageKind::Task => {
            named(text, "result").flat_map(|result| uris(MessageKind::ToolResult, result)).collect()
        }
        MessageKind::Messages => {
            let contents = each(text, "messages").flat_map(|message| named(message, "content"));
            contents
                .flat_map(|content| raw::elements(content).unwrap_or_else(|| vec![content]))
                .flat_map(in_block)
                .collect()
        }
    };
    found.into_iter().filter(|uri| uri.starts_with('"')).collect()
}

/// The URIs of a content block: a link has one, an embedded resource holds one.
fn in_block(block: &str) -> impl Iterator<Item = &str> {
    named(block, "uri").chain(named(block, "resource").flat_map(|resource| named(resource, "uri")))
}

/// The values of all members of this name. Usually there is one; with several, readers differ in which one counts.
fn named<'t>(text: &'t str, key: &str) -> std::vec::IntoIter<&'t str> {
    let members = raw::members(text).unwrap_or_default();
    let values: Vec<&str> =
        members.into_iter().filter(|(name, _)| name == key).map(|(_, value)| value).collect();
    values.into_iter()
}

/// The elements of the arrays under this name.
fn each<'t>(text: &'t str, key: &str) -> impl Iterator<Item = &'t str> {
    named(text, key).flat_map(|array| raw::elements(array).unwrap_or_default())
}

/// Changes to parts of a text.
struct Edits<'t> {
    text: &'t str,
    parts: Vec<(usize, usize, String)>,
}

impl<'t> Edits<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, parts: Vec::new() }
    }

    /// Puts something in place of a part, which must be a slice of the text; parts come in their order.
    fn replace(&mut self, part: &'t str, with: String) {
        if let Some(start) = part.as_ptr().addr().checked_sub(self.text.as_ptr().addr()) {
            self.parts.push((start, start + part.len(), with));
        }
    }

    fn done(mut self) -> Cow<'t, str> {
        if self.parts.is_empty() {
            return self.text.into();
        }
        self.parts.sort_by_key(|part| part.0);
        let mut out = String::with_capacity(self.text.len() + self.parts.len() * 32);
        let mut at = 0;
        for (start, end, with) in self.parts {
            out.push_str(self.text.get(at..start).unwrap_or_default());
            out.push_str(&with);
            at = end;
        }
        out.push_str(self.text.get(at..).unwrap_or_default());
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The way back, which product code goes URI by URI.
    impl UriMap {
        fn shown<'a>(&self, uri: &'a str) -> Cow<'a, str> {
            match &self.prefix {
                Some(prefix) => format!("{prefix}{uri}").into(),
                None => uri.into(),
            }
        }

        fn unshow(&self, kind: MessageKind, text: &str) -> Option<String> {
            let mut edits = Edits::of(text);
            for uri in uris(kind, text) {
                edits.replace(uri, raw::quoted(self.upstream_uri(&raw::string(uri)?)?));
            }
            Some(edits.done().into_owned())
        }
    }

    fn files() -> UriMap {
        UriMap::new("files", true)
    }

    #[test]
    fn only_uris_change_and_everything_else_keeps_its_bytes() {
        let result = r#"{ "content" : [ {"type":"resource_link","uri":"file:///a","n":1.10},
            {"type":"resource","resource":{"text":"uri","uri" : "file:///\u00e9"}}, {"type":"text","text":"\"uri\":\"x\""} ] ,"x":1e2}"#;
        let shown = result
            .replace("\"file:///a\"", "\"gantry:files/file:///a\"")
            .replace("\"file:///\\u00e9\"", "\"gantry:files/file:///\\u00e9\"");
        assert_eq!(files().rewrite(MessageKind::ToolResult, result), shown);
        assert_eq!(files().unshow(MessageKind::ToolResult, &shown).unwrap(), result.replace("\\u00e9", "é"));
        assert_eq!(UriMap::new("files", false).rewrite(MessageKind::ToolResult, result), result);
    }

    #[test]
    fn every_place_of_a_uri_is_known() {
        let rows = [
            (MessageKind::Item(ListKind::Resources), r#"{"uri":"a:b","name":"n"}"#, 1),
            (MessageKind::Item(ListKind::Templates), r#"{"uriTemplate":"a:{b}","uri":"not mine"}"#, 1),
            (MessageKind::Item(ListKind::Prompts), r#"{"name":"n","uri":"a:b"}"#, 0),
            (MessageKind::Uri, r#"{"uri":"a:b"}"#, 1),
            (MessageKind::Contents, r#"{"contents":[{"uri":"a:b"},{"uri":"a:c"}]}"#, 2),
            (
                MessageKind::Messages,
                r#"{"messages":[{"content":{"type":"resource","resource":{"uri":"a:b"}}}]}"#,
                1,
            ),
            (MessageKind::Messages, r#"{"messages":[{"content":[{"uri":"a:b"},{"uri":"a:b"}]}]}"#, 2),
            (MessageKind::Task, r#"{"taskId":"t","result":{"content":[{"uri":"a:b"}]}}"#, 1),
            (MessageKind::Uri, r#"{"uri":7}"#, 0),
        ];
        for (kind, text, count) in rows {
            let shown = files().rewrite(kind, text);
            assert_eq!(shown.matches("gantry:files/a:").count(), count, "{shown}");
            assert_eq!(files().unshow(kind, &shown).unwrap(), text);
        }
    }

    #[test]
    fn another_servers_uri_is_not_ours() {
        assert_eq!(files().upstream_uri("gantry:other/a:b"), None);
        assert_eq!(files().upstream_uri("a:b"), None);
        assert_eq!(files().unshow(MessageKind::Uri, r#"{"uri":"gantry:other/a:b"}"#), None);
        // A client may write the same string with escapes.
        let escaped = r#"{"uri":"\u0067antry:files/a:b"}"#;
        assert_eq!(files().unshow(MessageKind::Uri, escaped).unwrap(), r#"{"uri":"a:b"}"#);
        // A server's id cannot end the prefix early.
        assert_eq!(UriMap::new("a/b", true).upstream_uri("gantry:a/b/c"), None);
    }

    #[test]
    fn a_name_is_replaced_where_it_stands() {
        assert_eq!(
            with_string_member(r#"{ "name" : "a", "x":1.0}"#, "name", "s__a"),
            r#"{ "name" : "s__a", "x":1.0}"#
        );
        assert_eq!(
            with_nested_member(r#"{"ref":{"name":"s__a"},"name":"b"}"#, "ref", "name", "a"),
            r#"{"ref":{"name":"a"},"name":"b"}"#
        );
    }

    proptest! {
        #[test]
        fn what_is_shown_and_taken_back_is_the_same(server in "\\PC{1,12}", uri in "\\PC{0,40}", key in "[a-z]{1,6}") {
            let uri_map = UriMap::new(&server, true);
            let both = uri_map.shown(&uri).into_owned();
            prop_assert_eq!(uri_map.upstream_uri(&both), Some(uri.as_str()));
            let text = format!("{{\"{key}\": 1.50, \"contents\":[ {{\"uri\":{}}} ]}}", raw::quoted(&uri));
            let shown = uri_map.rewrite(MessageKind::Contents, &text).into_owned();
            prop_assert_eq!(uri_map.unshow(MessageKind::Contents, &shown).unwrap(), text);
        }

        #[test]
        fn no_two_servers_share_a_uri(a in "\\PC{1,6}", b in "\\PC{1,6}", uri in "\\PC{0,20}") {
            prop_assume!(a != b);
            let shown = UriMap::new(&a, true).shown(&uri).into_owned();
            prop_assert_eq!(UriMap::new(&b, true).upstream_uri(&shown), None);
        }
    }
}
