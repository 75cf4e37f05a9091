//! The choice of operations, and warnings about filters that match nothing.

use crate::openapi::import::ImportOptions;
use crate::openapi::import::operations::OperationRef;
use gantry_core::pattern::Pattern;
use std::collections::BTreeSet;

/// Names that a warning gives as examples.
const EXAMPLES: usize = 5;

pub(crate) fn chosen(
    found: &[OperationRef<'_>],
    names: &[String],
    options: &ImportOptions,
    warnings: &mut Vec<String>,
) -> Vec<bool> {
    let all: Vec<Names<'_>> = found.iter().zip(names).map(|(found, name)| Names::new(found, name)).collect();
    warn_of_tags(found, options, warnings);
    let include = options.include.as_deref();
    for (word, patterns) in [("include", include.unwrap_or_default()), ("exclude", &options.exclude)] {
        for pattern in patterns.iter().filter(|pattern| !all.iter().any(|names| names.match_any(pattern))) {
            let alike = examples(pattern.as_str(), names.iter().map(String::as_str));
            warnings.push(format!("{word}: {:?} matches no operation; {alike}", pattern.as_str()));
        }
    }
    let each = found.iter().zip(&all);
    each.map(|(found, names)| {
        let method = options.methods.is_empty() || options.methods.contains(&found.method);
        let tag =
            options.tags.is_empty() || found.tags().any(|tag| options.tags.iter().any(|other| other == tag));
        let included = include.is_none_or(|patterns| patterns.iter().any(|pattern| names.match_any(pattern)));
        let excluded = options.exclude.iter().any(|pattern| names.match_any(pattern));
        method && tag && included && !excluded && !found.is_disabled()
    })
    .collect()
}

/// The names of an operation that patterns may match.
struct Names<'a> {
    name: &'a str,
    id: Option<&'a str>,
    line: String,
}

impl<'a> Names<'a> {
    fn new(found: &OperationRef<'a>, name: &'a str) -> Self {
        Self { name, id: found.id(), line: format!("{} {}", found.method, found.path) }
    }

    fn match_any(&self, pattern: &Pattern) -> bool {
        pattern.matches(self.name)
            || self.id.is_some_and(|id| pattern.matches(id))
            || pattern.matches(&self.line)
    }
}

fn warn_of_tags(found: &[OperationRef<'_>], options: &ImportOptions, warnings: &mut Vec<String>) {
    if options.tags.is_empty() {
        return;
    }
    let known: BTreeSet<&str> = found.iter().flat_map(OperationRef::tags).collect();
    for tag in options.tags.iter().filter(|tag| !known.contains(tag.as_str())) {
        let alike = examples(tag, known.iter().copied());
        warnings.push(format!("no operation has the tag {tag:?}; {alike}"));
    }
}

/// Names that there are, the most similar ones first.
fn examples<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> String {
    let likeness = |name: &str| strsim::jaro_winkler(&wanted.to_lowercase(), &name.to_lowercase());
    let mut names: Vec<(f64, &str)> = names.map(|name| (likeness(name), name)).collect();
    if names.is_empty() {
        return "there are none".to_owned();
    }
    names.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let some: Vec<String> = names.iter().take(EXAMPLES).map(|(_, name)| format!("{name:?}")).collect();
    let more = if names.len() > some.len() { ", …" } else { "" };
    format!("there are {}{more}", some.join(", "))
}
