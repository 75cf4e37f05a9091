//! By which texts a tool is meant: every spelling of it, and how the spellings of one provider begin.

use super::{HASH_DIGITS, SEPARATOR, sanitised};
use crate::limits::TOOL_NAME_CHARS;
use std::borrow::Cow;
use std::collections::HashMap;

/// Turns `@ns/tool` into `ns__tool`; anything else is returned as it is.
#[must_use]
pub fn unslashed(spelling: &str) -> Cow<'_, str> {
    match spelling.strip_prefix('@').and_then(|rest| rest.split_once('/')) {
        Some((namespace, tool)) => format!("{namespace}{SEPARATOR}{tool}").into(),
        None => spelling.into(),
    }
}

/// Every text that means a tool by its provider and its own name, with `@ns/tool` read as `ns__tool`.
///
/// An id may have a `/` or an `@` of its own. What then looks like `@ns/tool` is read as that in patterns and calls, so the
/// outcome of such a reading is a spelling, too.
#[must_use]
pub fn spellings(id: &str, namespace: &str, tool: &str) -> Vec<String> {
    let mut all = vec![format!("{}{SEPARATOR}{}", sanitised(namespace), sanitised(tool))];
    for owner in [namespace, id] {
        let (plain, slashed) = (format!("{owner}{SEPARATOR}{tool}"), format!("@{owner}/{tool}"));
        let read = [unslashed(&plain), unslashed(&slashed)].map(Cow::into_owned);
        for spelling in std::iter::once(plain).chain(read) {
            if !all.contains(&spelling) {
                all.push(spelling);
            }
        }
    }
    all
}

/// How every one of these spellings begins, whatever the tool is called.
pub(super) fn roots(id: &str, namespace: &str) -> Vec<String> {
    let mut all = Vec::new();
    for owner in [&*sanitised(namespace), namespace, &*sanitised(id), id] {
        let plain = format!("{owner}{SEPARATOR}");
        let read = [unslashed(&plain), unslashed(&format!("@{owner}/"))].map(Cow::into_owned);
        // With the first `/` in the tool's name, `@ns__a/b` is read as `ns__a__b`.
        let open = owner.strip_prefix('@').filter(|rest| !rest.contains('/'));
        let open = open.map(|rest| format!("{rest}{SEPARATOR}"));
        for root in std::iter::once(plain).chain(read).chain(open) {
            if !all.contains(&root) {
                all.push(root);
            }
        }
    }
    all
}

/// How every spelling begins that a tool of this provider has, if its names have a prefix.
///
/// A cut name keeps at least that much of its beginning, so what does not begin like this is another provider's.
#[must_use]
pub fn prefixes(id: &str, namespace: &str) -> Vec<String> {
    let cut = |root: String| crate::truncate::truncate(&root, TOOL_NAME_CHARS - HASH_DIGITS - 1).to_owned();
    roots(id, namespace).into_iter().map(cut).collect()
}

/// Providers whose tools can be told apart by how their names begin, so that a pattern for one never means another.
#[derive(Debug, Default)]
pub struct Roots<'a> {
    owners: HashMap<String, &'a str>,
    /// Beginnings of what is there, which nobody else may have as a whole.
    within: HashMap<String, &'a str>,
}

impl<'a> Roots<'a> {
    /// Adds a provider, given by its id and its namespace.
    ///
    /// # Errors
    /// The provider that is there already and has the same beginning, or one that the other's begins with.
    pub fn add(&mut self, id: &'a str, namespace: &str) -> Result<(), &'a str> {
        let new = roots(id, namespace);
        let other = |root: &String| {
            let shorter = starts(root).find_map(|start| self.owners.get(start));
            shorter.or_else(|| self.within.get(root)).copied().filter(|owner| *owner != id)
        };
        if let Some(owner) = new.iter().find_map(other) {
            return Err(owner);
        }
        for root in new {
            self.within.extend(starts(&root).map(|start| (start.to_owned(), id)));
            self.owners.insert(root, id);
        }
        Ok(())
    }
}

/// Every beginning of a text at which a provider's name could end, the whole text included.
fn starts(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'_' | b'/'));
    ends.filter_map(|(end, _)| text.get(..=end))
}

/// Which beginnings of names belong to which provider, so that a name which is shown unchanged cannot pass for a name of
/// another provider.
#[derive(Debug, Default)]
pub struct Beginnings<'a> {
    /// Sanitised, each with the `_` that it ends in.
    owners: HashMap<String, Vec<&'a str>>,
    longest: usize,
}

impl<'a> Beginnings<'a> {
    /// Those of these providers, each given by its id and its namespace.
    #[must_use]
    pub fn of(providers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut all = Self::default();
        for (id, namespace) in providers {
            for spelling in roots(id, namespace).iter().map(|root| sanitised(root)) {
                all.longest = all.longest.max(spelling.len());
                let owners = all.owners.entry(spelling).or_default();
                if !owners.contains(&id) {
                    owners.push(id);
                }
            }
        }
        all
    }

    /// The provider, other than `own`, that this name would seem to come from, as it is or read as `@ns/tool`.
    #[must_use]
    pub fn imitated(&self, name: &str, own: &str) -> Option<&'a str> {
        self.begun(&sanitised(name), own).or_else(|| self.begun(&sanitised(&unslashed(name)), own))
    }

    fn begun(&self, name: &str, own: &str) -> Option<&'a str> {
        let known = starts(name).take_while(|start| start.len() <= self.longest);
        known.filter_map(|start| self.owners.get(start)).flatten().copied().find(|owner| *owner != own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_mean_the_separator() {
        assert_eq!(unslashed("@files/read_file"), "files__read_file");
        assert_eq!(unslashed("read_file"), "read_file");
        assert_eq!(unslashed("@odd"), "@odd");
    }

    #[test]
    fn nam_2_every_way_to_write_a_tool_of_an_odd_id_comes_to_a_spelling_of_it() {
        for id in ["git-hub", "org/srv", "@scope/srv", "@scope", "a/b/c", "@a/b/c"] {
            for tool in ["push", "a/b", "@x/y"] {
                let all = spellings(id, id, tool);
                for written in [format!("{id}__{tool}"), format!("@{id}/{tool}")] {
                    assert!(all.contains(&unslashed(&written).into_owned()), "{written}: {all:?}");
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
            for (first, second) in [(first, second), (second, first)] {
                let mut roots = Roots::default();
                assert_eq!(roots.add(first, first), Ok(()));
                assert_eq!(roots.add(second, second), Err(first), "{second}");
            }
        }
        let mut roots = Roots::default();
        for id in
            ["git", "github", "git-hub", "org/srv", "org/srv-two", "@scope/a", "@scope/ab", "a", "ab", "b"]
        {
            assert_eq!(roots.add(id, id), Ok(()), "{id}");
        }
        assert_eq!(roots.add("other", "a"), Err("a"), "a namespace counts like an id");
    }

    #[test]
    fn nam_3_a_name_passes_for_one_of_every_provider_that_a_spelling_of_it_could_mean() {
        let ids = ["git-hub", "a__b", "org/srv", "@scope/srv", "my server", "sly", "x-y", "x.y"];
        let beginnings = Beginnings::of(ids.map(|id| (id, id)));
        for (name, imitated) in [
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
            assert_eq!(beginnings.imitated(name, "sly"), imitated, "{name}");
        }
        assert_eq!(beginnings.imitated("x_y__z", "x-y"), Some("x.y"), "whoever else has the same beginning");
        for spelling in ["@git-hub/x", "@a__b/x", "@org/srv/x", "@scope/srv__x", "@@scope/srv/x"] {
            assert!(beginnings.imitated(&unslashed(spelling), "sly").is_some(), "{spelling}");
        }
    }
}
