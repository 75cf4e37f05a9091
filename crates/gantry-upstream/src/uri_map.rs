//! URIs of a server as clients see them: `gantry:{server}/{uri}`, so that two servers never claim the same one.
//!
//! A message is changed only where it holds a URI, and there only by the prefix; every other byte stays what the
//! server sent.

use gantry_core::raw;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::borrow::Cow;

const SCHEME: &str = "gantry:";

/// What is percent-encoded of a server's id in a URI: everything but letters, digits, `-`, `_` and `.`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UriMap {
    /// The prefix of each URI; none for a server with `prefix: false`.
    prefix: Option<Box<str>>,
}

/// Where messages of a kind have URIs: paths as [`values_at`] takes them.
pub(crate) type UriPlaces = &'static [&'static [&'static str]];

/// `{"uri": …}`: a resource in a list, or the notice that it changed.
pub(crate) const OBJECT: UriPlaces = &[&["uri"]];

/// A template in a list.
pub(crate) const TEMPLATE: UriPlaces = &[&["uriTemplate"]];

/// The result of `resources/read`.
pub(crate) const CONTENTS: UriPlaces = &[&["contents", "*", "uri"]];

/// The result of `tools/call`: a link has a URI, an embedded resource holds one.
pub(crate) const TOOL_RESULT: UriPlaces = &[&["content", "*", "uri"], &["content", "*", "resource", "uri"]];

/// A task, which may hold the result of a tool.
pub(crate) const TASK: UriPlaces =
    &[&["result", "content", "*", "uri"], &["result", "content", "*", "resource", "uri"]];

/// The result of `prompts/get`.
pub(crate) const PROMPT: UriPlaces =
    &[&["messages", "*", "content", "*", "uri"], &["messages", "*", "content", "*", "resource", "uri"]];

impl UriMap {
    pub(crate) fn new(server: &str, prefix: bool) -> Self {
        let prefixed = || format!("{SCHEME}{}/", utf8_percent_encode(server, ENCODED)).into();
        Self { prefix: prefix.then(prefixed) }
    }

    /// The server's own URI, if the client's is one of this server.
    pub(crate) fn upstream_uri<'a>(&self, shown: &'a str) -> Option<&'a str> {
        match &self.prefix {
            Some(prefix) => shown.strip_prefix(&**prefix),
            None => Some(shown),
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.prefix.is_none()
    }

    pub(crate) fn rewrite<'a>(&self, places: UriPlaces, text: &'a str) -> Cow<'a, str> {
        let Some(prefix) = &self.prefix else { return text.into() };
        // A key `uri` contains one of these, even if it is written with escapes.
        if !text.contains("uri") && !text.contains("\\u") {
            return text.into();
        }
        let with_prefix = |uri: &'a str| {
            let inner = uri.strip_prefix('"').unwrap_or_default();
            (uri, format!("\"{prefix}{inner}"))
        };
        replaced(text, uris(places, text).map(with_prefix).collect())
    }
}

/// The object with another text in the member at this path, and nothing else changed.
pub(crate) fn with_string_at(text: &str, path: &[&str], new: &str) -> String {
    let parts = values_at(text, path).into_iter().map(|value| (value, raw::quoted(new)));
    replaced(text, parts.collect()).into_owned()
}

/// The URIs in a message, as the texts of JSON strings.
fn uris(places: UriPlaces, text: &str) -> impl Iterator<Item = &str> {
    places.iter().flat_map(|place| values_at(text, place)).filter(|uri| uri.starts_with('"'))
}

/// The values at a path. A name stands for all members of that name: usually there is one; with several, readers differ in
/// which one counts. `*` stands for the elements of an array, or for the value itself if it is none.
fn values_at<'t>(text: &'t str, path: &[&str]) -> Vec<&'t str> {
    path.iter().fold(vec![text], |values, step| {
        let next = |value: &'t str| match *step {
            "*" => raw::elements(value).unwrap_or_else(|| vec![value]),
            name => {
                let members = raw::members(value).unwrap_or_default().into_iter();
                members.filter(|(key, _)| key == name).map(|(_, value)| value).collect()
            }
        };
        values.into_iter().flat_map(next).collect()
    })
}

/// The text with other texts in place of some slices of it.
fn replaced<'t>(text: &'t str, mut parts: Vec<(&'t str, String)>) -> Cow<'t, str> {
    if parts.is_empty() {
        return text.into();
    }
    let start = |part: &str| part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    parts.sort_by_key(|(part, _)| start(part));
    let (mut out, mut at) = (String::with_capacity(text.len() + parts.len() * 32), 0);
    for (part, with) in parts {
        out.push_str(text.get(at..start(part)).unwrap_or_default());
        out.push_str(&with);
        at = start(part) + part.len();
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out.into()
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

        fn unshow(&self, places: UriPlaces, text: &str) -> Option<String> {
            let own = |uri| Some((uri, raw::quoted(self.upstream_uri(&raw::string(uri)?)?)));
            let parts: Option<Vec<_>> = uris(places, text).map(own).collect();
            Some(replaced(text, parts?).into_owned())
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
        assert_eq!(files().rewrite(TOOL_RESULT, result), shown);
        assert_eq!(files().unshow(TOOL_RESULT, &shown).unwrap(), result.replace("\\u00e9", "é"));
        assert_eq!(UriMap::new("files", false).rewrite(TOOL_RESULT, result), result);
    }

    #[test]
    fn every_place_of_a_uri_is_known() {
        let rows = [
            (OBJECT, r#"{"uri":"a:b","name":"n"}"#, 1),
            (TEMPLATE, r#"{"uriTemplate":"a:{b}","uri":"not mine"}"#, 1),
            (OBJECT, r#"{"uri":"a:b"}"#, 1),
            (CONTENTS, r#"{"contents":[{"uri":"a:b"},{"uri":"a:c"}]}"#, 2),
            (PROMPT, r#"{"messages":[{"content":{"type":"resource","resource":{"uri":"a:b"}}}]}"#, 1),
            (PROMPT, r#"{"messages":[{"content":[{"uri":"a:b"},{"uri":"a:b"}]}]}"#, 2),
            (TASK, r#"{"taskId":"t","result":{"content":[{"uri":"a:b"}]}}"#, 1),
            (OBJECT, r#"{"uri":7}"#, 0),
        ];
        for (places, text, count) in rows {
            let shown = files().rewrite(places, text);
            assert_eq!(shown.matches("gantry:files/a:").count(), count, "{shown}");
            assert_eq!(files().unshow(places, &shown).unwrap(), text);
        }
    }

    #[test]
    fn another_servers_uri_is_not_ours() {
        assert_eq!(files().upstream_uri("gantry:other/a:b"), None);
        assert_eq!(files().upstream_uri("a:b"), None);
        assert_eq!(files().unshow(OBJECT, r#"{"uri":"gantry:other/a:b"}"#), None);
        // A client may write the same string with escapes.
        let escaped = r#"{"uri":"\u0067antry:files/a:b"}"#;
        assert_eq!(files().unshow(OBJECT, escaped).unwrap(), r#"{"uri":"a:b"}"#);
        // A server's id cannot end the prefix early.
        assert_eq!(UriMap::new("a/b", true).upstream_uri("gantry:a/b/c"), None);
    }

    #[test]
    fn a_name_is_replaced_where_it_stands() {
        assert_eq!(
            with_string_at(r#"{ "name" : "a", "x":1.0}"#, &["name"], "s__a"),
            r#"{ "name" : "s__a", "x":1.0}"#
        );
        assert_eq!(
            with_string_at(r#"{"ref":{"name":"s__a"},"name":"b"}"#, &["ref", "name"], "a"),
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
            let shown = uri_map.rewrite(CONTENTS, &text).into_owned();
            prop_assert_eq!(uri_map.unshow(CONTENTS, &shown).unwrap(), text);
        }

        #[test]
        fn no_two_servers_share_a_uri(a in "\\PC{1,6}", b in "\\PC{1,6}", uri in "\\PC{0,20}") {
            prop_assume!(a != b);
            let shown = UriMap::new(&a, true).shown(&uri).into_owned();
            prop_assert_eq!(UriMap::new(&b, true).upstream_uri(&shown), None);
        }
    }
}
