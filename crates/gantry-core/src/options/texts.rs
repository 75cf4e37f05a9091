//! Texts that keep a rule. The rule is checked where a text is read, and its words are in the error and in the schema.

use crate::limits::PATTERN_BYTES;
use serde::de::{Deserializer, Error, Unexpected, Visitor};
use std::fmt;

/// Longest name of an agent, a queue, a rule, a server, an approver.
const MAX_NAME_BYTES: usize = 64;
/// Longest name that people are shown.
const MAX_TITLE_CHARS: usize = 100;

/// Declares texts that keep a rule, each with the words for it. `plain` texts may be quoted in errors. `address` texts may
/// hold a secret and `secret` texts are one: they are never quoted, and `Debug` does not show them.
#[macro_export]
macro_rules! option_texts {
    ($($(#[$attribute:meta])* $kind:ident $name:ident = $noun:literal, $rule:expr;)+) => {
        $(
            $(#[$attribute])*
            #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name(String);

            impl std::fmt::Debug for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    if stringify!($kind) != "plain" { f.write_str("[secret]") } else { self.0.fmt(f) }
                }
            }

            impl std::ops::Deref for $name {
                type Target = str;

                fn deref(&self) -> &str {
                    &self.0
                }
            }

            impl std::borrow::Borrow<str> for $name {
                fn borrow(&self) -> &str {
                    &self.0
                }
            }

            impl From<$name> for String {
                fn from(text: $name) -> Self {
                    text.0
                }
            }

            impl From<$name> for std::sync::Arc<str> {
                fn from(text: $name) -> Self {
                    text.0.into()
                }
            }

            impl From<$name> for Box<str> {
                fn from(text: $name) -> Self {
                    text.0.into()
                }
            }

            impl std::str::FromStr for $name {
                type Err = &'static str;

                fn from_str(text: &str) -> Result<Self, Self::Err> {
                    let rule: fn(&str) -> bool = $rule;
                    if rule(text) { Ok(Self(text.to_owned())) } else { Err($noun) }
                }
            }

            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                    $crate::options::read_text(input, $noun, stringify!($kind) != "plain", $rule).map(Self)
                }
            }

            $crate::inline_schema!($name, |_| {
                let mut schema = schemars::json_schema!({ "type": "string", "title": $noun });
                if stringify!($kind) != "plain" {
                    schema.insert("writeOnly".to_owned(), true.into());
                }
                schema
            });
        )+
    };
}

impl From<PathText> for std::path::PathBuf {
    fn from(text: PathText) -> Self {
        text.0.into()
    }
}

option_texts! {
    /// The name of an agent, a queue, a project, a rule.
    plain Name = "a name of 1 to 64 letters, digits, _ and -", |text| is_word(text, MAX_NAME_BYTES, b"_-");
    /// A name for people.
    plain Title = "text of 1 to 100 characters",
        |text| (1..=MAX_TITLE_CHARS).contains(&text.chars().count()) && !text.contains(char::is_control);
    /// Some text.
    plain NotEmpty = "text that is not empty", |text| !text.trim().is_empty();
    /// A path.
    plain PathText = "a path", |text| !text.is_empty() && !text.contains('\0');
    /// The id of an MCP server. Editors name servers more freely than agents and queues are named.
    plain ServerId = "a name of 1 to 64 letters, digits, spaces and _ - . / @",
        |text| is_word(text, MAX_NAME_BYTES, b"_-./@ ") && text.trim() == text;
    /// The name of a single tool.
    plain ToolName = "the name of a tool", |text| is_tool(text) && !text.contains(['*', '?']);
    /// The name of a tool, as its provider has it.
    plain ToolKey = "the name of a tool", is_tool;
    /// The name of an approver's key.
    plain Approver = "the name of a key, or person",
        |text| (1..=MAX_NAME_BYTES).contains(&text.len()) && text.trim() == text && !text.contains(char::is_control);
}

/// Letters, digits and some others, at least one.
pub fn is_word(text: &str, max_bytes: usize, others: &[u8]) -> bool {
    (1..=max_bytes).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
}

/// Whether a text can be a pattern or a name of tools.
pub(crate) fn is_tool(text: &str) -> bool {
    (1..=PATTERN_BYTES).contains(&text.len()) && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Reads a text that keeps a rule.
pub fn read_text<'de, D: Deserializer<'de>>(
    input: D,
    noun: &'static str,
    is_secret: bool,
    rule: fn(&str) -> bool,
) -> Result<String, D::Error> {
    let visitor = Text { noun, is_secret, rule };
    // The name tells the reader of the configuration not to quote what it finds.
    if is_secret {
        input.deserialize_newtype_struct("$secret", visitor)
    } else {
        input.deserialize_string(visitor)
    }
}

struct Text {
    noun: &'static str,
    is_secret: bool,
    rule: fn(&str) -> bool,
}

impl<'de> Visitor<'de> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.noun)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, input: D) -> Result<String, D::Error> {
        input.deserialize_string(self)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<String, E> {
        match (self.rule)(&text) {
            true => Ok(text),
            false if self.is_secret => Err(E::custom(format_args!("must be {}", self.noun))),
            false => Err(E::invalid_value(Unexpected::Str(&text), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_form() {
        for (text, name, server, tool) in [
            ("ok_1-2", true, true, true),
            ("a b", false, true, false),
            (" a", false, false, false),
            ("", false, false, false),
            ("io.github/x@1", false, true, true),
            ("read_*", false, false, false),
        ] {
            assert_eq!(text.parse::<Name>().is_ok(), name, "{text:?}");
            assert_eq!(text.parse::<ServerId>().is_ok(), server, "{text:?}");
            assert_eq!(text.parse::<ToolName>().is_ok(), tool, "{text:?}");
        }
        let error = serde_json::from_str::<Name>("\"a b\"").unwrap_err().to_string();
        assert!(error.contains("expected a name of 1 to 64 letters"), "{error}");
    }
}
