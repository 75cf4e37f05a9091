//! The spellings of a tool, and the prefixes that the spellings of one provider have.

use super::{HASH_DIGITS, SEPARATOR, sanitised};
use crate::limits::TOOL_NAME_CHARS;
use std::borrow::Cow;

/// Turns `@ns/tool` into `ns__tool`; any other text is returned unchanged.
pub(crate) fn expand_at_syntax(spelling: &str) -> Cow<'_, str> {
    match spelling.strip_prefix('@').and_then(|rest| rest.split_once('/')) {
        Some((namespace, tool)) => format!("{namespace}{SEPARATOR}{tool}").into(),
        None => spelling.into(),
    }
}

/// Every spelling of a tool by its provider and its own name, with `@ns/tool` expanded.
///
/// An id may itself contain a `/` or an `@`. Patterns and calls then expand it like `@ns/tool`, so the expanded text is a
/// spelling too.
pub(crate) fn spellings(id: &str, namespace: &str, tool: &str) -> Vec<String> {
    let mut all = vec![format!("{}{SEPARATOR}{}", sanitised(namespace), sanitised(tool))];
    for owner in [namespace, id] {
        let (plain, slashed) = (format!("{owner}{SEPARATOR}{tool}"), format!("@{owner}/{tool}"));
        let expanded = [expand_at_syntax(&plain), expand_at_syntax(&slashed)].map(Cow::into_owned);
        for spelling in std::iter::once(plain).chain(expanded) {
            if !all.contains(&spelling) {
                all.push(spelling);
            }
        }
    }
    all
}

/// The prefixes that these spellings have, for any tool of the provider.
pub(super) fn prefixes(id: &str, namespace: &str) -> Vec<String> {
    let mut all = Vec::new();
    for owner in [&*sanitised(namespace), namespace, &*sanitised(id), id] {
        let plain = format!("{owner}{SEPARATOR}");
        let expanded =
            [expand_at_syntax(&plain), expand_at_syntax(&format!("@{owner}/"))].map(Cow::into_owned);
        // If the first `/` is in the tool's name, `@ns__a/b` is expanded to `ns__a__b`.
        let open = owner.strip_prefix('@').filter(|rest| !rest.contains('/'));
        let open = open.map(|rest| format!("{rest}{SEPARATOR}"));
        for prefix in std::iter::once(plain).chain(expanded).chain(open) {
            if !all.contains(&prefix) {
                all.push(prefix);
            }
        }
    }
    all
}

/// The same, as short as they are in a displayed name that was cut.
pub(crate) fn cut_prefixes(id: &str, namespace: &str) -> Vec<String> {
    let cut =
        |prefix: String| crate::truncate::truncate(&prefix, TOOL_NAME_CHARS - HASH_DIGITS - 1).to_owned();
    prefixes(id, namespace).into_iter().map(cut).collect()
}

/// The prefixes of the tool names of one provider, in every spelling.
#[derive(Debug)]
pub struct NamePrefixes<'a> {
    pub provider: &'a str,
    texts: Vec<String>,
    sanitised: Vec<String>,
}

impl<'a> NamePrefixes<'a> {
    pub fn new(provider: &'a str, namespace: &str) -> Self {
        let texts = prefixes(provider, namespace);
        Self { provider, sanitised: texts.iter().map(|text| sanitised(text)).collect(), texts }
    }

    /// Whether a pattern for tools of one of the two providers could mean tools of the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        let overlap = |one: &String, two: &String| one.starts_with(&**two) || two.starts_with(&**one);
        self.texts.iter().any(|own| other.texts.iter().any(|text| overlap(own, text)))
    }
}

/// The provider other than `own` that a name which is displayed unchanged would seem to come from, as it is or with
/// `@ns/tool` expanded.
pub fn imitated<'a>(name: &str, own: &str, providers: &[NamePrefixes<'a>]) -> Option<&'a str> {
    let readings = [sanitised(name), sanitised(&expand_at_syntax(name))];
    let begins = |prefix: &String| readings.iter().any(|reading| reading.starts_with(&**prefix));
    let others = providers.iter().filter(|other| other.provider != own);
    others.filter(|other| other.sanitised.iter().any(begins)).map(|other| other.provider).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_mean_the_separator() {
        assert_eq!(expand_at_syntax("@files/read_file"), "files__read_file");
        assert_eq!(expand_at_syntax("read_file"), "read_file");
        assert_eq!(expand_at_syntax("@odd"), "@odd");
    }

    #[test]
    fn nam_2_every_way_to_write_a_tool_of_an_unusual_id_comes_to_a_spelling_of_it() {
        for id in ["git-hub", "org/srv", "@scope/srv", "@scope", "a/b/c", "@a/b/c"] {
            for tool in ["push", "a/b", "@x/y"] {
                let all = spellings(id, id, tool);
                for written in [format!("{id}__{tool}"), format!("@{id}/{tool}")] {
                    assert!(all.contains(&expand_at_syntax(&written).into_owned()), "{written}: {all:?}");
                }
                let begins =
                    |text: &String| prefixes(id, id).iter().any(|prefix| text.starts_with(&**prefix));
                assert!(all.iter().all(begins), "{all:?}: {:?}", prefixes(id, id));
            }
        }
        assert_eq!(spellings("db", "db", "query"), ["db__query"], "an ordinary one has no more than before");
    }

    #[test]
    fn nam_3_providers_that_one_glob_could_mean_both_cannot_stand_side_by_side() {
        let overlap = |first: &str, second: &str| {
            NamePrefixes::new(first, first).overlaps(&NamePrefixes::new(second, second))
        };
        for (first, second) in [
            ("git_hub", "git-hub"),
            ("a", "a__b"),
            ("a", "a_"),
            // `@org/*` and `@scope/*` would mean both.
            ("org", "org/srv"),
            ("scope", "@scope/srv"),
            ("@org", "org"),
            ("org__srv", "@org/srv"),
        ] {
            assert!(overlap(first, second) && overlap(second, first), "{first} {second}");
        }
        let apart =
            ["git", "github", "git-hub", "org/srv", "org/srv-two", "@scope/a", "@scope/ab", "a", "ab", "b"];
        for (n, first) in apart.iter().enumerate() {
            assert!(apart[..n].iter().all(|second| !overlap(first, second)), "{first}");
        }
        let other = NamePrefixes::new("other", "a");
        assert!(other.overlaps(&NamePrefixes::new("a", "a")), "a namespace counts like an id");
    }

    #[test]
    fn nam_3_a_name_passes_for_one_of_every_provider_that_a_spelling_of_it_could_mean() {
        let ids = ["git-hub", "a__b", "org/srv", "@scope/srv", "my server", "sly", "x-y", "x.y"];
        let all = ids.map(|id| NamePrefixes::new(id, id));
        for (name, other) in [
            ("git-hub__push", Some("git-hub")),
            ("git_hub__push", Some("git-hub")),
            ("git.hub__", Some("git-hub")),
            ("git-hub", None),
            ("git-hub_push", None),
            ("xgit-hub__push", None),
            ("a__b__c", Some("a__b")),
            ("a__c", None),
            // What `@org/srv/*`, `@scope/srv__*` and `@@scope/srv/*` come to.
            ("org__srv/push", Some("org/srv")),
            ("scope__srv__push", Some("@scope/srv")),
            ("@scope__srv/push", Some("@scope/srv")),
            // What is called as `@git-hub/push` comes to `git-hub__push`.
            ("@git-hub/push", Some("git-hub")),
            ("@sly/push", None),
            ("my server__x", Some("my server")),
            ("sly__own", None),
            ("x_y__z", Some("x-y")),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(imitated(name, "sly", &all), other, "{name}");
        }
        assert_eq!(imitated("x_y__z", "x-y", &all), Some("x.y"), "the other with the same prefix");
        for spelling in ["@git-hub/x", "@a__b/x", "@org/srv/x", "@scope/srv__x", "@@scope/srv/x"] {
            assert!(imitated(&expand_at_syntax(spelling), "sly", &all).is_some(), "{spelling}");
        }
    }
}
