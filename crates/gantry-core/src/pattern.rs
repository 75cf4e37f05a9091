//! Name patterns: exact names, globs with `*` and `?`, and `*` alone for everything.

use crate::limits::{PATTERN_BYTES, PATTERN_WILDCARDS};
use crate::names::expand_at_syntax;
use crate::options::{is_tool, read_text};

const PATTERN: &str = "the name of a tool or a glob";

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a tool pattern is empty; write a tool name, a glob such as \"github__*\", or \"*\"")]
    Empty,
    #[error("the tool pattern {start:?}… is longer than {PATTERN_BYTES} bytes")]
    TooLong { start: String },
    #[error("the tool pattern {pattern:?} has more than {PATTERN_WILDCARDS} wildcards")]
    TooManyWildcards { pattern: String },
}

/// A pattern that tool names are matched against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Word for word.
    written: Box<str>,
    /// With `@ns/tool` expanded to `ns__tool`, where that makes it another text.
    expanded: Option<Box<str>>,
    wild: bool,
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.written.into()
    }
}

/// In the configuration. Names of tools have no spaces, so one in a pattern is a mistake.
impl<'de> serde::Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = read_text(input, PATTERN, false, is_tool)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

inline_schema!(Pattern, |_| schemars::json_schema!({ "type": "string", "title": PATTERN }));

impl Pattern {
    /// Reads a pattern; `@ns/tool` means `ns__tool`, or a name that is spelled just so.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Empty);
        }
        if text.len() > PATTERN_BYTES {
            return Err(Error::TooLong { start: text.chars().take(40).collect() });
        }
        let wildcards = text.bytes().filter(|b| matches!(b, b'*' | b'?')).count();
        if wildcards > PATTERN_WILDCARDS {
            return Err(Error::TooManyWildcards { pattern: text.to_owned() });
        }
        let expanded = Some(expand_at_syntax(text)).filter(|expanded| expanded != text).map(Into::into);
        Ok(Self { written: text.into(), expanded, wild: wildcards > 0 })
    }

    pub fn everything() -> Self {
        Self { written: "*".into(), expanded: None, wild: true }
    }

    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The text of a pattern without wildcards. It means the same tool as a call with this text.
    pub fn exact(&self) -> Option<&str> {
        (!self.wild).then_some(&*self.written)
    }

    pub(crate) fn is_everything(&self) -> bool {
        &*self.written == "*"
    }

    /// Whether the pattern matches this name, as it is written or expanded.
    pub fn matches(&self, name: &str) -> bool {
        self.texts()
            .any(|text| if self.wild { glob(text.as_bytes(), name.as_bytes()) } else { *text == *name })
    }

    /// Whether the pattern can match a name with this prefix. Only its text before the first wildcard is compared, so in
    /// doubt it can.
    pub(crate) fn can_begin_with(&self, prefix: &str) -> bool {
        let can = |literal: &str| literal.starts_with(prefix) || (self.wild && prefix.starts_with(literal));
        self.texts().any(|text| can(literal_prefix(text)))
    }

    /// Whether the pattern has this prefix before its first wildcard, and so matches no other names.
    pub(crate) fn begins_with(&self, prefix: &str) -> bool {
        self.texts().any(|text| literal_prefix(text).starts_with(prefix))
    }

    pub(crate) fn contains(&self, part: &str) -> bool {
        self.texts().any(|text| text.contains(part))
    }

    /// The pattern as it is written, and expanded.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.written).chain(self.expanded.as_deref())
    }
}

/// The text of a pattern before its first wildcard.
pub(crate) fn literal_prefix(pattern: &str) -> &str {
    pattern.split(['*', '?']).next().unwrap_or_default()
}

/// Backtracks to the last star only, so the cost is at most pattern times name.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == b'?' || name.get(n) == Some(c) => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                n = from + 1;
            }
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|c| *c == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(pattern: &str, matching: &[&str], other: &[&str]) {
        let pattern = Pattern::parse(pattern).unwrap();
        for name in matching {
            assert!(pattern.matches(name), "{pattern:?} should match {name}");
        }
        for name in other {
            assert!(!pattern.matches(name), "{pattern:?} should not match {name}");
        }
    }

    #[test]
    fn patterns_match_what_they_say() {
        check("entities_*", &["entities_", "entities_get"], &["entities", "xentities_get"]);
        check("*", &["", "a", "a__b"], &[]);
        check(
            "github__search_*_v?",
            &["github__search_code_v2"],
            &["github__search_code_v", "github__search_v2"],
        );
        check("@files/read_*", &["files__read_file", "@files/read_file"], &["files/read_file"]);
        check("read_file", &["read_file"], &["read_files", "read_fil"]);
        check("*a*b*", &["ab", "xaxbx"], &["ba"]);
    }

    #[test]
    fn useless_patterns_are_refused() {
        assert_eq!(Pattern::parse(""), Err(Error::Empty));
        assert!(matches!(Pattern::parse(&"a".repeat(513)), Err(Error::TooLong { .. })));
        assert!(matches!(Pattern::parse(&"*a".repeat(17)), Err(Error::TooManyWildcards { .. })));
    }

    #[test]
    fn a_pattern_tells_which_beginnings_it_can_have() {
        for (pattern, prefix, expected) in [
            ("github__*", "github__", true),
            ("github__search", "github__", true),
            ("git*", "github__", true),
            ("*_code", "github__", true),
            ("git???__*", "github__", true),
            ("github__", "github__", true),
            ("github_", "github__", false),
            ("git??__*", "github__", true),
            ("gitlab__*", "github__", false),
            ("read_file", "github__", false),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().can_begin_with(prefix), expected, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn what_a_pattern_matches_it_can_begin_with(pattern in "[ab*?]{1,8}", name in "[ab]{0,8}", cut in 0usize..9) {
            let pattern = Pattern::parse(&pattern).unwrap();
            let prefix = name.get(..cut.min(name.len())).unwrap();
            prop_assert!(!pattern.matches(&name) || pattern.can_begin_with(prefix));
        }

        #[test]
        fn a_name_with_parts_starred_out_still_matches(name in "[a-c_]{0,12}", from in 0usize..12, len in 0usize..12) {
            let from = from.min(name.len());
            let to = (from + len).min(name.len());
            let pattern = format!("{}*{}", name.get(..from).unwrap(), name.get(to..).unwrap());
            prop_assert!(Pattern::parse(&pattern).unwrap().matches(&name));
        }
    }
}
