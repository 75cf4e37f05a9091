//! What a provider's own lists of its tools mean: `toolsAllowed` and `toolsDenied`.

use super::spelling::roots;
use super::{SEPARATOR, Style, Unnamed, cleaned, plain_name, sanitised, spellings, suffixed, unslashed};
use crate::pattern::Pattern;
use std::cell::OnceCell;

/// The names that a list of one provider may have for one of its tools.
///
/// Such a list is about tools of that provider only, so a name there needs no namespace; but people also copy names from where
/// they are shown. What is shown depends on what else there is, so all that could be is taken for it.
#[derive(Debug)]
pub struct OwnNames<'a> {
    id: &'a str,
    namespace: &'a str,
    tool: &'a str,
    /// Without a namespace.
    short: [String; 3],
    /// With one, or as they are shown where that is not possible otherwise.
    full: OnceCell<Vec<String>>,
}

impl<'a> OwnNames<'a> {
    /// The names of a tool, which is given by its provider's id and namespace and by its name there.
    #[must_use]
    pub fn of(id: &'a str, namespace: &'a str, tool: &'a str) -> Self {
        let short = [tool.to_owned(), unslashed(tool).into_owned(), sanitised(tool)];
        Self { id, namespace, tool, short, full: OnceCell::new() }
    }

    /// Whether an entry of an allow-list means the tool. A glob must have the namespace, word for word, to be about names that
    /// have it: `g*` means what the tools of `github` are called themselves.
    #[must_use]
    pub fn are_allowed_by(&self, pattern: &Pattern) -> bool {
        let within = || roots(self.id, self.namespace).iter().any(|root| pattern.begins(root));
        self.short(pattern) || ((pattern.exact().is_some() || within()) && self.full(pattern))
    }

    /// Whether an entry of a deny-list means the tool. In doubt it does, but a glob that says nothing of a namespace is not
    /// about names that have one: it would deny all tools of a provider for what the provider is called.
    #[must_use]
    pub fn are_denied_by(&self, pattern: &Pattern) -> bool {
        self.short(pattern)
            || ((pattern.exact().is_some() || pattern.contains(SEPARATOR)) && self.full(pattern))
    }

    fn short(&self, pattern: &Pattern) -> bool {
        self.short.iter().any(|name| pattern.matches(name))
    }

    fn full(&self, pattern: &Pattern) -> bool {
        self.full.get_or_init(|| self.all_full()).iter().any(|name| pattern.matches(name))
    }

    fn all_full(&self) -> Vec<String> {
        let Self { id, namespace, tool, .. } = *self;
        let mut all = spellings(id, namespace, tool);
        for style in [Style::Prefixed, Style::Bare] {
            let unnamed = Unnamed { namespace, tool, style };
            let name = plain_name(&unnamed);
            // What a tool is called if another one wants its name, and what models are shown.
            let legal = cleaned(&unnamed, &name);
            all.extend([
                suffixed(&unnamed, &name, super::FIRST_DIGITS),
                suffixed(&unnamed, &legal, super::FIRST_DIGITS),
            ]);
            all.extend([name, legal]);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::assign;
    use super::*;

    fn means(id: &str, tool: &str, text: &str) -> (bool, bool) {
        let (names, pattern) = (OwnNames::of(id, id, tool), Pattern::parse(text).unwrap());
        (names.are_allowed_by(&pattern), names.are_denied_by(&pattern))
    }

    #[test]
    fn nam_3_a_providers_own_list_means_a_tool_by_every_name_that_it_has() {
        for (id, tool, text) in [
            ("s", "@x/y", "@x/y"),
            ("s", "@x/y", "x__y"),
            ("s", "@x/y", "@x/*"),
            ("s", "@x/y", "_x_y"),
            ("s", "@x/y", "@s/@x/y"),
            ("s", "x__y", "@x/y"),
            ("s", "my-tool", "my_tool"),
            ("s", "my-tool", "my_*"),
            ("s", "my-tool", "s__my_tool"),
            ("github", "delete_repo", "github__delete_repo"),
            ("github", "delete_repo", "@github/delete_*"),
            ("github", "delete_repo", "*_repo"),
            ("org/srv", "push", "@org/srv/push"),
            ("org/srv", "push", "@org/srv/*"),
            ("org/srv", "push", "org_srv__push"),
            ("@scope/srv", "push", "@scope/srv__push"),
            ("@scope/srv", "push", "@@scope/srv/p*"),
        ] {
            assert_eq!(means(id, tool, text), (true, true), "{text} for {tool} of {id}");
        }
        let long = "x".repeat(80);
        let tools =
            ["b-c", "b.c", &long].map(|tool| Unnamed { namespace: "a", tool, style: Style::Prefixed });
        for (tool, shown) in tools.iter().zip(assign(&tools).0) {
            assert_eq!(means("a", tool.tool, &shown), (true, true), "{shown}");
        }
    }

    #[test]
    fn a_glob_without_a_namespace_is_not_about_what_the_provider_is_called() {
        for text in ["g*", "*hub*", "github_*", "*_delete", "gitlab__*", "gitlab__delete", "deleted"] {
            assert_eq!(means("github", "delete", text), (false, false), "{text}");
        }
        for text in ["*__*", "*__delete", "git*__delete"] {
            assert_eq!(
                means("github", "delete", text),
                (false, true),
                "{text}: denied in doubt, never allowed"
            );
        }
    }
}
