//! What holds for every pool, selection and place: what is listed is what can be called, and no view of the same
//! question contradicts another.

use super::*;
use crate::format::Format;
use crate::names::is_legal;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};

/// Few letters, so that names, spellings, aliases and patterns meet often.
fn a_tool() -> impl Strategy<Value = Candidate> {
    let names = prop_oneof![
        "[ab_.]{1,3}",
        "@?[ab]/[ab]",
        Just("spawn_agents".to_owned()),
        Just("list_available_agents".to_owned()),
        Just("b".repeat(70)),
    ];
    let providers = prop_oneof!["[ab]", "a[_.-]", "[ab]__[ab]", "@?[ab](/[ab])?", Just("a".repeat(70))];
    (providers, names, any::<(bool, bool, bool)>()).prop_map(|(id, tool, (bare, own, renamed))| {
        let mut made = candidate(&id, &tool, if bare { Style::Bare } else { Style::Prefixed });
        if renamed {
            made.origin.provider = format!("{id}-id").into();
        }
        if own {
            made.origin.kind = ToolKind::Builtin;
        }
        made
    })
}

fn a_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab_.]{1,3}",
        "@?[ab]/[ab.]",
        "[ab]__[ab]{1,2}",
        "@?@[ab]/[ab](/|__)[ab]",
        Just("spawn_agents".to_owned()),
        Just("tool_output".to_owned()),
    ]
}

fn a_pattern() -> impl Strategy<Value = Pattern> {
    let text = prop_oneof![3 => a_text(), 2 => "[ab_@/]{0,2}[*?][ab_]{0,2}", 1 => Just("*".to_owned())];
    text.prop_map(|text| Pattern::parse(&text).unwrap())
}

fn patterns(most: usize) -> impl Strategy<Value = Vec<Pattern>> {
    prop::collection::vec(a_pattern(), 0..=most)
}

fn a_selection() -> impl Strategy<Value = Selection> {
    let used = prop_oneof![
        4 => a_pattern().prop_map(ToolSelector::Tools),
        1 => a_pattern().prop_map(ToolSelector::ProviderOrTools),
        1 => "[ab](-id)?".prop_map(|id| ToolSelector::Provider(id.into())),
    ];
    let aliases = prop::collection::btree_map(a_text(), a_text(), 0..4);
    (prop::collection::vec(used, 0..4), prop::option::of(patterns(3)), aliases, patterns(2)).prop_map(
        |(include, allowed, aliases, auto_approve)| Selection {
            include,
            allowed,
            aliases: aliases.into_iter().map(|(a, b)| (a.into(), b.into())).collect::<BTreeMap<_, _>>(),
            auto_approve,
        },
    )
}

fn a_place() -> impl Strategy<Value = SpawnContext> {
    (0u32..4, 0u32..4, prop::option::weighted(0.3, patterns(3))).prop_map(|(depth, max_depth, narrowed)| {
        SpawnContext { depth, max_depth, parent_limit: narrowed.map(Into::into) }
    })
}

proptest! {
    #[test]
    fn listing_calling_explaining_and_needing_never_contradict_each_other(
        candidates in prop::collection::vec(a_tool(), 0..12), selection in a_selection(), place in a_place()
    ) {
        let bare: HashSet<Arc<str>> = candidates
            .iter()
            .filter(|it| it.style == Style::Bare)
            .map(|it| Arc::clone(&it.origin.provider))
            .collect();
        let pool = Arc::new(Pool::build(candidates));
        let (set, _) = Toolset::resolve(&pool, &selection, &place);

        let names: Vec<&str> = set.entries().map(|entry| entry.name).collect();
        prop_assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        for entry in set.entries() {
            prop_assert!(set.has(entry.tool));
            let found = set.find(entry.name);
            prop_assert!(found.is_ok_and(|tool| Arc::ptr_eq(tool, entry.tool)), "{}", entry.name);
            let is_alias = set.aliases_of(entry.tool).any(|alias| alias == entry.name);
            prop_assert_eq!(is_alias, entry.alias);
        }
        for tool in pool.tools() {
            let access = explain_access(&pool, &selection, &place, tool);
            prop_assert_eq!(access.is_visible, set.has(tool), "{}: {:?}", tool.name, access);
            let approved = access.sentences.iter().any(|sentence| sentence.starts_with("need not ask a person"));
            prop_assert_eq!(approved, set.auto_approves(tool));
            prop_assert!(!set.auto_approves(tool) || set.has(tool));
            for spelling in tool.spellings().chain([tool.model_name()]) {
                let Ok(found) = set.find(spelling) else { continue };
                prop_assert!(set.has(found));
                let is_alias = set.aliases_of(found).any(|alias| alias == &*expand_at_syntax(spelling));
                let is_own = found.spellings().any(|own| own == spelling || own == expand_at_syntax(spelling));
                prop_assert!(set.has(tool) || is_alias || is_own, "{spelling}");
            }
        }
        for tool in set.tools() {
            let prefixed = !bare.contains(&tool.key.provider);
            prop_assert!(selection.may_need(&tool.key.provider, &tool.namespace, prefixed), "{}", tool.name);
        }
        for format in [Format::OpenAi, Format::Anthropic] {
            let shown = set.entries().filter_map(|entry| format.definition(&entry));
            let shown: Vec<serde_json::Value> =
                shown.map(|text| serde_json::from_str(&text).unwrap()).collect();
            let names: HashSet<&str> = shown
                .iter()
                .filter_map(|tool| tool.get("name").or_else(|| tool.pointer("/function/name"))?.as_str())
                .collect();
            prop_assert_eq!(names.len(), shown.len());
            for name in names {
                prop_assert!(is_legal(name) && set.find(name).is_ok(), "{name}");
            }
            prop_assert!(shown.len() >= set.len());
        }
    }

    #[test]
    fn nam_2_a_text_that_calls_a_tool_means_it_everywhere_and_what_means_one_tool_calls_it(
        candidates in prop::collection::vec(a_tool(), 1..8), texts in prop::collection::vec(a_text(), 0..8)
    ) {
        let pool = Arc::new(Pool::build(candidates));
        let (all, _) = Toolset::resolve(&pool, &Selection::everything(), &SpawnContext::top(2));
        let written = |tool: &Arc<Tool>| {
            let (id, ns, own) = (&tool.key.provider, &tool.namespace, &tool.key.tool);
            [format!("@{id}/{own}"), format!("{id}__{own}"), format!("@{ns}/{own}"), format!("{ns}__{own}")]
        };
        let spellings = pool.tools().iter().flat_map(|tool| tool.spellings().map(str::to_owned).chain(written(tool)));
        for text in spellings.chain(texts) {
            let pattern = Pattern::parse(&text).unwrap();
            let (used, _) = Toolset::resolve(&pool, &Selection::of([pattern.clone()]), &SpawnContext::top(2));
            let used: Vec<&str> = used.tools().map(|tool| &*tool.name).collect();
            let denied: Vec<&str> =
                all.tools().filter(|tool| spelling::is_denied(&all, tool, &text)).map(|tool| &*tool.name).collect();
            match all.find(&text) {
                Ok(tool) => {
                    prop_assert_eq!(&used, &[&*tool.name], "{}", text);
                    prop_assert!(denied.contains(&&*tool.name), "{text}: {denied:?}");
                }
                Err(_) => prop_assert!(used.is_empty() && denied.len() != 1, "{text}: {used:?}, {denied:?}"),
            }
            for tool in pool.tools().iter().filter(|tool| written(tool).contains(&text)) {
                prop_assert!(denied.contains(&&*tool.name), "{text}: {denied:?}");
            }
        }
    }
}
