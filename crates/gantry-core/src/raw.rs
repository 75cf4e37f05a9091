//! Reads and edits single members of JSON text; everything else keeps its text and order.

use crate::json::{self, Object, write_string};
use std::borrow::Cow;

/// The members of an object in their order, values as text; `None` if the text is not an object.
pub fn members(text: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    Some(Object::split(text)?.into_members().collect())
}

/// The value of a member as text; the first one if there are several.
pub fn member<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    Object::split(text)?.get(key)
}

/// The decoded value of a member that is a string.
pub fn string_member<'a>(text: &'a str, key: &str) -> Option<Cow<'a, str>> {
    Object::split(text)?.string(key)
}

pub use json::string;

/// The elements of an array as text; `None` if the text is not an array.
pub fn elements(text: &str) -> Option<Vec<&str>> {
    json::elements(text, usize::MAX)
}

pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::from("{");
    for (key, value) in members {
        if out.len() > 1 {
            out.push(',');
        }
        write_string(&mut out, key);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    out
}

/// The object with one member set: replaced where it stands, or added at the end. A text that is not an object is
/// taken for an empty one; an object that cannot be split (it is nested too deep) stays as it is.
#[must_use]
pub fn with(text: &str, key: &str, value: &str) -> String {
    let Some(members) = members_to_edit(text) else { return text.to_owned() };
    let is_new = members.get(key).is_none();
    let kept = members.iter().map(|(name, old)| (name, if name == key { value } else { old }));
    object(kept.chain(is_new.then_some((key, value))))
}

/// The object without the members that `drop` names; other texts are treated as in [`with`].
pub fn without(text: &str, drop: impl Fn(&str) -> bool) -> String {
    let Some(members) = members_to_edit(text) else { return text.to_owned() };
    object(members.iter().filter(|(name, _)| !drop(name)))
}

/// `None` for an object that cannot be split: its members must not be lost.
fn members_to_edit(text: &str) -> Option<Object<'_>> {
    Object::split(text).or_else(|| (!text.trim_ascii_start().starts_with('{')).then(Object::default))
}

/// The text of a JSON string that says this.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::JSON_SKIPPED_DEPTH;

    #[test]
    fn what_is_not_named_stays_as_it_was() {
        let text = r#"{"b":1.10,"a":{"z":1e400},"\u0063":"\u00e9"}"#;
        assert_eq!(with(text, "a", "2"), r#"{"b":1.10,"a":2,"c":"\u00e9"}"#);
        assert_eq!(with(text, "n", "[]"), r#"{"b":1.10,"a":{"z":1e400},"c":"\u00e9","n":[]}"#);
        assert_eq!(without(text, |key| key == "b"), r#"{"a":{"z":1e400},"c":"\u00e9"}"#);
        assert_eq!(member(text, "a"), Some(r#"{"z":1e400}"#));
        assert_eq!(string_member(text, "c").as_deref(), Some("é"));
        assert_eq!(members("[1]"), None);
        assert_eq!(elements("[1, {\"a\":2}]"), Some(vec!["1", "{\"a\":2}"]));
    }

    #[test]
    fn an_object_that_is_too_deep_to_be_split_loses_nothing() {
        let nested = |levels| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        let (deepest, too_deep) = (nested(JSON_SKIPPED_DEPTH - 1), nested(JSON_SKIPPED_DEPTH));
        assert_eq!(without(&with(&deepest, "b", "1"), |key| key == "b"), deepest);
        assert_eq!(with(&too_deep, "b", "1"), too_deep);
        assert_eq!(without(&too_deep, |key| key == "a"), too_deep);
        assert_eq!((with("5", "b", "1"), without("[]", |_| false)), (r#"{"b":1}"#.into(), "{}".into()));
    }
}
