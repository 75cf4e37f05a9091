//! Name patterns: exact names, globs with `*` and `?`, and `*` alone for everything.

use crate::limits::{PATTERN_BYTES, PATTERN_WILDCARDS};
use crate::names::unslashed;

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing was written.
    #[error("a tool pattern is empty; write a tool name, a glob such as \"github__*\", or \"*\"")]
    Empty,
    /// Longer than any name could be.
    #[error("the tool pattern {start:?}… is longer than {PATTERN_BYTES} bytes")]
    TooLong { start: String },
    /// So many wildcards that it is a mistake or an attack.
    #[error("the tool pattern {pattern:?} has more than {PATTERN_WILDCARDS} wildcards")]
    TooManyWildcards { pattern: String },
}

/// A pattern that tool names are matched against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: Box<str>,
    wild: bool,
}

impl Pattern {
    /// Reads a pattern; `@ns/tool` means `ns__tool` here as everywhere.
    ///
    /// # Errors
    /// The text is empty, too long, or has too many wildcards.
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
        Ok(Self { text: unslashed(text).into(), wild: wildcards > 0 })
    }

    /// The pattern as it is matched.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The one name that this pattern matches, if it has no wildcard.
    #[must_use]
    pub fn exact(&self) -> Option<&str> {
        (!self.wild).then_some(&*self.text)
    }

    /// Whether the pattern matches every name.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        &*self.text == "*"
    }

    /// Whether the pattern matches this name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        if self.wild { glob(self.text.as_bytes(), name.as_bytes()) } else { *self.text == *name }
    }
}

/// Matches with one place to come back to, so the cost is at most pattern times name.
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
        check("@files/read_*", &["files__read_file"], &["files/read_file"]);
        check("read_file", &["read_file"], &["read_files", "read_fil"]);
        check("*a*b*", &["ab", "xaxbx"], &["ba"]);
    }

    #[test]
    fn useless_patterns_are_refused() {
        assert_eq!(Pattern::parse(""), Err(Error::Empty));
        assert!(matches!(Pattern::parse(&"a".repeat(513)), Err(Error::TooLong { .. })));
        assert!(matches!(Pattern::parse(&"*a".repeat(17)), Err(Error::TooManyWildcards { .. })));
    }

    proptest! {
        #[test]
        fn a_name_with_parts_starred_out_still_matches(name in "[a-c_]{0,12}", from in 0usize..12, len in 0usize..12) {
            let from = from.min(name.len());
            let to = (from + len).min(name.len());
            let pattern = format!("{}*{}", name.get(..from).unwrap(), name.get(to..).unwrap());
            prop_assert!(Pattern::parse(&pattern).unwrap().matches(&name));
        }
    }
}
