//! Which operations are wanted, and what a filter asks for in vain.

use crate::openapi::import::Choice;
use crate::openapi::import::operations::Found;
use gantry_core::pattern::Pattern;
use std::collections::BTreeSet;

/// Names that a warning gives as examples.
const EXAMPLES: usize = 5;

/// Whether each operation is wanted.
pub(crate) fn wanted(
    found: &[Found<'_>],
    names: &[String],
    choice: &Choice,
    warnings: &mut Vec<String>,
) -> Vec<bool> {
    let called: Vec<Called<'_>> =
        found.iter().zip(names).map(|(found, name)| Called::new(found, name)).collect();
    warn_of_tags(found, choice, warnings);
    let include = choice.include.as_deref();
    for (word, patterns) in [("include", include.unwrap_or_default()), ("exclude", &choice.exclude)] {
        for pattern in patterns.iter().filter(|pattern| !called.iter().any(|called| called.is(pattern))) {
            let alike = examples(pattern.as_str(), names.iter().map(String::as_str));
            warnings.push(format!("{word}: {:?} matches no operation; {alike}", pattern.as_str()));
        }
    }
    let each = found.iter().zip(&called);
    each.map(|(found, called)| {
        let method = choice.methods.is_empty() || choice.methods.contains(&found.method);
        let tag =
            choice.tags.is_empty() || found.tags().any(|tag| choice.tags.iter().any(|wanted| wanted == tag));
        let included = include.is_none_or(|patterns| patterns.iter().any(|pattern| called.is(pattern)));
        let excluded = choice.exclude.iter().any(|pattern| called.is(pattern));
        method && tag && included && !excluded && !found.is_disabled()
    })
    .collect()
}

/// All that an operation is called.
struct Called<'a> {
    name: &'a str,
    id: Option<&'a str>,
    line: String,
}

impl<'a> Called<'a> {
    fn new(found: &Found<'a>, name: &'a str) -> Self {
        Self { name, id: found.id(), line: format!("{} {}", found.method, found.path) }
    }

    fn is(&self, pattern: &Pattern) -> bool {
        pattern.matches(self.name)
            || self.id.is_some_and(|id| pattern.matches(id))
            || pattern.matches(&self.line)
    }
}

fn warn_of_tags(found: &[Found<'_>], choice: &Choice, warnings: &mut Vec<String>) {
    if choice.tags.is_empty() {
        return;
    }
    let known: BTreeSet<&str> = found.iter().flat_map(Found::tags).collect();
    for tag in choice.tags.iter().filter(|tag| !known.contains(tag.as_str())) {
        let alike = examples(tag, known.iter().copied());
        warnings.push(format!("no operation has the tag {tag:?}; {alike}"));
    }
}

/// What there is instead, what looks most like the wanted first.
fn examples<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<(usize, &str)> = names.map(|name| (likeness(wanted, name), name)).collect();
    if names.is_empty() {
        return "there are none".to_owned();
    }
    names.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let some: Vec<String> = names.iter().take(EXAMPLES).map(|(_, name)| format!("{name:?}")).collect();
    let more = if names.len() > some.len() { ", …" } else { "" };
    format!("there are {}{more}", some.join(", "))
}

/// How many pairs of letters two texts have in common.
fn likeness(a: &str, b: &str) -> usize {
    let pairs = |text: &str| -> BTreeSet<(u8, u8)> {
        let text = text.to_ascii_lowercase();
        let bytes = text.as_bytes();
        bytes.iter().copied().zip(bytes.iter().copied().skip(1)).collect()
    };
    pairs(a).intersection(&pairs(b)).count()
}
