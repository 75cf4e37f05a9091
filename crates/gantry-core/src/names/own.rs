//! The names that a provider's own lists may have for its tools: `toolsAllowed` and `toolsDenied`.

use super::spelling::prefixes;
use super::{
    FIRST_DIGITS, NameRequest, SEPARATOR, Style, cleaned, expand_at_syntax, plain_name, sanitised, spellings,
    with_hash,
};
use crate::pattern::Pattern;
use std::cell::OnceCell;

/// The names that a list of one provider may have for one of its tools.
///
/// Such a list concerns tools of that provider only, so a name in it needs no namespace; but people also copy displayed
/// names into it. The displayed name depends on the other tools of the pool, so every possible one counts.
#[derive(Debug)]
pub struct OwnNames<'a> {
    id: &'a str,
    namespace: &'a str,
    tool: &'a str,
    /// Without a namespace.
    short: [String; 3],
    /// With a namespace, and the displayed names.
    full: OnceCell<Vec<String>>,
}

impl<'a> OwnNames<'a> {
    /// The names of a tool, by the id and the namespace of its provider and its name there.
    pub fn of(id: &'a str, namespace: &'a str, tool: &'a str) -> Self {
        let short = [tool.to_owned(), expand_at_syntax(tool).into_owned(), sanitised(tool)];
        Self { id, namespace, tool, short, full: OnceCell::new() }
    }

    /// Whether an entry of `toolsAllowed` means the tool. A glob matches full names only if it begins with the namespace,
    /// literally: `g*` means the own names of tools, also in a list of `github`.
    pub fn are_allowed_by(&self, pattern: &Pattern) -> bool {
        let within = || prefixes(self.id, self.namespace).iter().any(|prefix| pattern.begins_with(prefix));
        self.matches(pattern, within)
    }

    /// Whether an entry of `toolsDenied` means the tool. In doubt it does, but a glob without a separator matches no full
    /// names: it would deny all tools of a provider because of the provider's name.
    pub fn are_denied_by(&self, pattern: &Pattern) -> bool {
        self.matches(pattern, || pattern.contains(SEPARATOR))
    }

    /// Whether a pattern matches a short name, or a full one where `has_namespace` says that it is about those.
    fn matches(&self, pattern: &Pattern, has_namespace: impl Fn() -> bool) -> bool {
        let any = |names: &[String]| names.iter().any(|name| pattern.matches(name));
        let is_full = || pattern.exact().is_some() || has_namespace();
        any(&self.short) || (is_full() && any(self.full.get_or_init(|| self.full_names())))
    }

    fn full_names(&self) -> Vec<String> {
        let Self { id, namespace, tool, .. } = *self;
        let mut all = spellings(id, namespace, tool);
        for style in [Style::Prefixed, Style::Bare] {
            let request = NameRequest { namespace, tool, style };
            let name = plain_name(&request);
            let model_name = cleaned(&request, &name);
            // A name that another tool wants ends in a hash.
            let hashed = [&name, &model_name].map(|name| with_hash(&request, name, FIRST_DIGITS));
            all.extend([name, model_name].into_iter().chain(hashed));
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
            ["b-c", "b.c", &long].map(|tool| NameRequest { namespace: "a", tool, style: Style::Prefixed });
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
