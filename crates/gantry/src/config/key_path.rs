//! The path of a value in a file, as messages print it: `policies[0].when`.

use std::fmt;

use super::document::quoted;

/// A chain of borrowed steps, so that reading a large tree copies no keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyPath<'a> {
    /// The top of a file, and what the file is.
    Root(&'static str),
    Key(&'a KeyPath<'a>, &'a str),
    Item(&'a KeyPath<'a>, usize),
}

impl<'a> KeyPath<'a> {
    pub(super) const CONFIGURATION: Self = Self::Root("the configuration");

    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }

    pub(super) fn item(&'a self, n: usize) -> Self {
        Self::Item(self, n)
    }

    /// ` in tools.workspace`, and nothing at the top.
    pub(super) fn within(&self) -> String {
        if matches!(self, Self::Root(_)) { String::new() } else { format!(" in {self}") }
    }
}

impl fmt::Display for KeyPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parent, key) = match self {
            Self::Root(what) => return f.write_str(what),
            Self::Item(parent, n) => return write!(f, "{parent}[{n}]"),
            Self::Key(parent, key) => (parent, key),
        };
        if !matches!(parent, Self::Root(_)) {
            write!(f, "{parent}.")?;
        }
        let plain = key.len() <= 64
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-@/*".contains(&byte));
        if plain { f.write_str(key) } else { f.write_str(&quoted(key)) }
    }
}
