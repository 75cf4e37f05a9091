//! A text with placeholders.

use super::Arguments;
use crate::encode;
use serde_json::Value;

/// A text with placeholders. It may hold secrets, so it has no `Debug`.
pub(crate) struct Text(Vec<Piece>);

enum Piece {
    Literal(String),
    Argument(Path),
}

/// The names in a placeholder: an argument, then members or elements of it.
pub(crate) struct Path(Vec<String>);

impl Path {
    /// The argument's name.
    pub(crate) fn root(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// The value there, which may be null.
    pub(crate) fn find<'a>(&self, arguments: &'a Arguments) -> Option<&'a Value> {
        let (first, rest) = self.0.split_first()?;
        rest.iter().try_fold(arguments.get(first)?, |value, key| match value {
            Value::Object(members) => members.get(key),
            Value::Array(items) => items.get(key.parse::<usize>().ok()?),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        })
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl Text {
    /// Parses a text.
    ///
    /// # Errors
    /// A placeholder is malformed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inside, behind)) = after.split_once('}') else {
                return Err("a ${ has no } that ends it".to_owned());
            };
            if !before.is_empty() {
                pieces.push(Piece::Literal(before.to_owned()));
            }
            pieces.push(Piece::Argument(path(inside)?));
            rest = behind;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest.to_owned()));
        }
        Ok(Self(pieces))
    }

    /// The placeholder, if the text is nothing else.
    pub(crate) fn sole(&self) -> Option<&Path> {
        match self.0.as_slice() {
            [Piece::Argument(path)] => Some(path),
            _ => None,
        }
    }

    /// The text, if it has no placeholder.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Its placeholders.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Argument(path) => Some(path),
            Piece::Literal(_) => None,
        })
    }

    /// Its parts between placeholders.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Literal(text) => Some(text.as_str()),
            Piece::Argument(_) => None,
        })
    }

    /// Whether it has placeholders, and the arguments have a value for none of them.
    pub(crate) fn is_void(&self, arguments: &Arguments) -> bool {
        let mut paths = self.paths().peekable();
        paths.peek().is_some() && paths.all(|path| path.find(arguments).is_none_or(Value::is_null))
    }

    /// The text with each value in its place; nothing where there is none.
    pub(crate) fn fill(&self, arguments: &Arguments) -> String {
        self.fill_with(arguments, |value| value)
    }

    /// The same, with each value changed by a function.
    pub(crate) fn fill_with(&self, arguments: &Arguments, change: impl Fn(String) -> String) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Literal(text) => text.clone(),
            Piece::Argument(path) => change(path.find(arguments).map(encode::value_text).unwrap_or_default()),
        };
        self.0.iter().map(piece).collect()
    }

    /// The same text as a part of a query.
    pub(crate) fn with_encoded_literals(self) -> Self {
        let piece = |piece| match piece {
            Piece::Literal(text) => Piece::Literal(encode::component(&text)),
            Piece::Argument(path) => Piece::Argument(path),
        };
        Self(self.0.into_iter().map(piece).collect())
    }
}

fn path(inside: &str) -> Result<Path, String> {
    let unknown = || format!("${{{inside}}} stands for nothing; write ${{parameters.x}} for the argument x");
    let names = inside.trim().strip_prefix("parameters.").ok_or_else(unknown)?;
    let names: Vec<String> = names.split('.').map(str::to_owned).collect();
    if names.iter().any(String::is_empty) { Err(unknown()) } else { Ok(Path(names)) }
}
