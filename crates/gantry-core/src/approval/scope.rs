//! How far a yes may reach: for one call, or as a grant for further calls.

use std::collections::BTreeMap;
use std::sync::Arc;

words! {
    /// How far a yes reaches, the narrowest first: `once` is for this call, `session` also for calls of this tool until the
    /// session ends, `always` also for calls of this tool until the grant is revoked or the tool changes.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Scope {
        #[default]
        Once = "once",
        Session = "session",
        Always = "always",
    }
}

/// The widest scope that each rule that asks allows. A rule without an entry allows a yes to one call, so a row of a version
/// that did not know of it grants nothing.
pub type Remember = BTreeMap<Arc<str>, Scope>;

/// The widest scope that all rules that ask allow; without such a rule there is nothing to remember.
pub fn widest(rules: &[Arc<str>], remember: &Remember) -> Scope {
    rules.iter().map(|rule| allowed(rule, remember)).min().unwrap_or_default()
}

fn allowed(rule: &str, remember: &Remember) -> Scope {
    remember.get(rule).copied().unwrap_or_default()
}

/// The rules that allow less than a scope, in words: `policy a allows once`.
pub fn narrower(rules: &[Arc<str>], remember: &Remember, scope: Scope) -> String {
    let all = rules.iter().map(|rule| (rule, allowed(rule, remember)));
    let less = all.filter(|(_, allows)| *allows < scope);
    less.map(|(rule, allows)| format!("{rule} allows `{allows}`")).collect::<Vec<_>>().join(", ")
}

/// Which of the rules a grant would answer, and which it would not, in words; empty if no rule asks.
pub fn answers(rules: &[Arc<str>], remember: &Remember) -> String {
    let (not, would): (Vec<&str>, Vec<&str>) =
        rules.iter().map(|rule| &**rule).partition(|rule| allowed(rule, remember) == Scope::Once);
    match (would.join(", "), not.join(", ")) {
        (would, not) if not.is_empty() && would.is_empty() => would,
        (would, not) if not.is_empty() => format!("would answer {would}, and no other rule"),
        (would, not) if would.is_empty() => format!("would not answer {not}"),
        (would, not) => format!("would answer {would}, but not {not}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apr_10_the_narrowest_of_the_rules_that_ask_counts() {
        let remember: Remember =
            [("a", Scope::Always), ("b", Scope::Session)].map(|(rule, scope)| (rule.into(), scope)).into();
        let cases: [(&[&str], Scope, &str, &str); 5] = [
            (&[], Scope::Once, "", ""),
            (&["a"], Scope::Always, "", "would answer a, and no other rule"),
            (&["a", "b"], Scope::Session, "b allows `session`", "would answer a, b, and no other rule"),
            (&["old"], Scope::Once, "old allows `once`", "would not answer old"),
            (
                &["b", "a", "old"],
                Scope::Once,
                "b allows `session`, old allows `once`",
                "would answer b, a, but not old",
            ),
        ];
        for (rules, scope, less, text) in cases {
            let rules: Vec<Arc<str>> = rules.iter().map(|rule| Arc::from(*rule)).collect();
            assert_eq!(widest(&rules, &remember), scope, "{rules:?}");
            assert_eq!(narrower(&rules, &remember, Scope::Always), less, "{rules:?}");
            assert_eq!(answers(&rules, &remember), text, "{rules:?}");
        }
    }
}
