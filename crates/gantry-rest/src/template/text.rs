//! A text with placeholders.

use super::Arguments;
use crate::encode;
use serde_json::Value;

/// A text with placeholders. It may hold secrets, so it has no `Debug`.
#[derive(Default)]
pub(crate) struct Text {
    /// What stands before, between and after the placeholders: one part more than there are placeholders.
    parts: Vec<String>,
    /// What each placeholder names: an argument, and perhaps members or elements of it, with dots between.
    pub(crate) paths: Vec<String>,
}

/// The value that a placeholder names, which may be null.
pub(crate) fn find<'a>(path: &str, arguments: &'a Arguments) -> Option<&'a Value> {
    let mut keys = path.split('.');
    let argument = arguments.get(keys.next()?)?;
    keys.try_fold(argument, |value, key| match value {
        Value::Object(members) => members.get(key),
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

impl Text {
    /// Parses a text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (inside, behind) = after.split_once('}').ok_or("a ${ has no } that ends it")?;
            parsed.parts.push(before.to_owned());
            let unknown =
                || format!("${{{inside}}} stands for nothing; write ${{parameters.x}} for the argument x");
            let path = inside.trim().strip_prefix("parameters.").ok_or_else(unknown)?;
            if path.split('.').any(str::is_empty) {
                return Err(unknown());
            }
            parsed.paths.push(path.to_owned());
            rest = behind;
        }
        parsed.parts.push(rest.to_owned());
        Ok(parsed)
    }

    /// The placeholder, if the text is nothing else.
    pub(crate) fn sole(&self) -> Option<&str> {
        let [path] = self.paths.as_slice() else { return None };
        self.literals().next().is_none().then_some(path)
    }

    /// The text, if it has no placeholder.
    pub(crate) fn literal(&self) -> Option<&str> {
        self.parts.first().filter(|_| self.paths.is_empty()).map(String::as_str)
    }

    /// Its parts beside placeholders.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(String::as_str).filter(|part| !part.is_empty())
    }

    /// Whether it has placeholders, and the arguments have a value for none of them.
    pub(crate) fn is_void(&self, arguments: &Arguments) -> bool {
        let is_missing = |path: &String| find(path, arguments).is_none_or(Value::is_null);
        !self.paths.is_empty() && self.paths.iter().all(is_missing)
    }

    /// The text with each value in its place; nothing where there is none.
    pub(crate) fn fill(&self, arguments: &Arguments) -> String {
        self.fill_with(arguments, |value| value)
    }

    /// The same, with each value changed by a function.
    pub(crate) fn fill_with(&self, arguments: &Arguments, change: impl Fn(String) -> String) -> String {
        let value = |path: &String| change(find(path, arguments).map(encode::value_text).unwrap_or_default());
        let values = self.paths.iter().map(value).chain([String::new()]);
        self.parts.iter().zip(values).map(|(part, value)| format!("{part}{value}")).collect()
    }

    /// The same text as a part of a query.
    pub(crate) fn with_encoded_literals(mut self) -> Self {
        self.parts.iter_mut().for_each(|part| *part = encode::component(part));
        self
    }
}
