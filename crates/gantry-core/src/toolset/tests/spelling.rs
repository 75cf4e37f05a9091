//! Texts and what they mean: odd ids, names that several tools have, ids of providers, and too many aliases.

use super::*;
use crate::call::{CallRequest, ResolvedCall};
use crate::limits::ALIASES_PER_AGENT;
use crate::policy::{ApprovalRules, Policies, RuleSpec, judge};
use crate::principal::{Caller, Role};

/// Whether a policy that denies this text denies a call of the tool.
pub(super) fn is_denied(set: &Toolset, tool: &Tool, text: &str) -> bool {
    let rule = RuleSpec { name: "r".into(), tools: vec![text.to_owned()], ..RuleSpec::default() };
    let policies = Policies::compile(&[rule], ApprovalRules::default()).unwrap();
    let caller = Caller {
        principal: "p".into(),
        role: Role::Agent,
        agent: None,
        project: "default".into(),
        parent_agents: Arc::default(),
    };
    let request = CallRequest { tool: tool.name.to_string(), ..CallRequest::default() };
    let call = ResolvedCall::resolve(set, &request).unwrap();
    judge(&policies, &caller, call).is_err_and(|refusal| refusal.error().code == ErrorCode::PermissionDenied)
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::parse(text).unwrap()).collect()
}

fn seen(pool: &Arc<Pool>, selection: &Selection) -> Vec<String> {
    let (set, _) = Toolset::resolve(pool, selection, &SpawnContext::top(2));
    set.tools().map(|tool| tool.name.to_string()).collect()
}

fn all(pool: &Arc<Pool>) -> Toolset {
    Toolset::resolve(pool, &Selection::everything(), &SpawnContext::top(2)).0
}

#[test]
fn nam_2_a_tool_with_an_unusual_id_is_called_denied_and_used_by_the_same_texts() {
    let pool = Arc::new(Pool::build(vec![
        candidate("org/srv", "push", Style::Prefixed),
        candidate("@scope/pkg", "push", Style::Prefixed),
        candidate("other", "push", Style::Prefixed),
    ]));
    let set = all(&pool);
    for (shown, texts) in [
        ("org_srv__push", ["@org/srv/push", "org/srv__push", "org_srv__push", "@org/srv/*"]),
        ("_scope_pkg__push", ["@@scope/pkg/push", "@scope/pkg__push", "@_scope_pkg/push", "@@scope/pkg/*"]),
    ] {
        for text in texts {
            assert_eq!(seen(&pool, &Selection::of(patterns(&[text]))), [shown], "{text}");
            let denied: Vec<&str> =
                set.tools().filter(|tool| is_denied(&set, tool, text)).map(|tool| &*tool.name).collect();
            assert_eq!(denied, [shown], "{text}");
            let found = set.find(text).map_or("", |tool| &*tool.name);
            assert_eq!(found, if text.contains('*') { "" } else { shown }, "{text}");
            let id = &*pool.named(shown).unwrap().key.provider;
            assert!(Selection::of(patterns(&[text])).may_need(id, id, true), "{text}");
            assert!(!Selection::of(patterns(&[text])).may_need("other", "other", true), "{text}");
        }
    }
}

#[test]
fn nam_6_a_hidden_tool_does_not_make_the_spelling_of_a_visible_one_unclear() {
    let pool = Arc::new(Pool::build(vec![
        candidate("a", "b-c", Style::Prefixed),
        candidate("a", "b.c", Style::Prefixed),
        candidate("a", "b+c", Style::Prefixed),
    ]));
    let found = |uses: &[&str]| {
        let (set, _) = Toolset::resolve(&pool, &Selection::of(patterns(uses)), &SpawnContext::top(2));
        set.find("a__b_c").map_or(String::new(), |tool| tool.key.tool.to_string())
    };
    assert_eq!(found(&["*"]), "");
    assert_eq!(found(&["a__b-c", "a__b.c"]), "");
    assert_eq!(found(&["a__b-c"]), "b-c");
    let mut selection = Selection::of(patterns(&["a__b-c"]));
    selection.allowed = Some(patterns(&["a__b_c"]));
    selection.aliases.insert("x".into(), "a__b_c".into());
    let (set, warnings) = Toolset::resolve(&pool, &selection, &SpawnContext::top(2));
    assert_eq!((set.len(), warnings), (1, vec![]), "an entry and an alias mean what a call means");
    assert_eq!(&*set.find("x").unwrap().key.tool, "b-c");
}

#[test]
fn pol_3_a_provider_that_comes_while_running_is_matched_by_its_id() {
    let docs = || candidate("extra", "docs", Style::Bare);
    let before = Arc::new(Pool::build(vec![docs(), candidate("files", "docs_x", Style::Prefixed)]));
    let now = Arc::new(Pool::build(vec![docs(), candidate("docs", "find", Style::Prefixed)]));
    let uses = |text: &str| Selection {
        include: patterns(&[text]).into_iter().map(ToolSelector::ProviderOrTools).collect(),
        ..Selection::default()
    };
    assert_eq!(seen(&before, &uses("docs")), ["docs"]);
    assert_eq!(seen(&now, &uses("docs")), ["docs__find"]);
    assert_eq!(seen(&now, &uses("doc*")), ["docs", "docs__find"]);
    let access = explain_access(&now, &uses("docs"), &SpawnContext::top(2), now.named("docs__find").unwrap());
    assert_eq!(access.sentences, [r#"may use it: provider "docs" in its tools matches"#]);
    let access = explain_access(&before, &uses("docs"), &SpawnContext::top(2), before.named("docs").unwrap());
    assert_eq!(access.sentences, [r#"may use it: "docs" in its tools matches"#]);
    let (_, warnings) = Toolset::resolve(&now, &uses("typo"), &SpawnContext::top(2));
    assert_eq!(warnings, [Warning::Unmatched("typo".into())]);
    assert!(uses("docs").may_need("docs", "docs", true) && uses("docs__x").may_need("docs", "docs", true));
    assert!(!uses("docs").may_need("files", "files", true));
}

#[test]
fn pol_7_an_allow_list_takes_ids_of_providers() {
    let pool = pool();
    let mut selection = Selection::everything();
    selection.allowed = Some(patterns(&["git-hub", "db__query"]));
    selection.auto_approve = patterns(&["git-hub"]);
    let (set, warnings) = Toolset::resolve(&pool, &selection, &SpawnContext::top(2));
    assert_eq!(warnings, []);
    let names: Vec<&str> = set.tools().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["db__query", "git_hub__delete_repo", "git_hub__search_code"]);
    let approved: Vec<bool> = set.tools().map(|tool| set.auto_approves(tool)).collect();
    assert_eq!(approved, [false, true, true]);
    assert!(selection.may_need("git-hub", "git-hub", true));
    let said = |name: &str| {
        explain_access(&pool, &selection, &SpawnContext::top(2), pool.named(name).unwrap())
            .sentences
            .join("; ")
    };
    assert_eq!(said("db__query"), r#"may use it: "*" in its tools matches; is allowed it by "db__query""#);
    assert!(said("git_hub__delete_repo").contains(r#"is allowed it by provider "git-hub""#));
    let only =
        r#"may not use it: "*" in its tools matches, but it is allowed only provider "git-hub", "db__query""#;
    assert_eq!(said("read_file"), only);
    // Only what is used, and only if the text means no tool.
    selection.include =
        patterns(&["git_hub__search_code", "db__query"]).into_iter().map(ToolSelector::Tools).collect();
    assert_eq!(seen(&pool, &selection), ["db__query", "git_hub__search_code"]);
    selection.aliases.insert("git-hub".into(), "db__query".into());
    assert_eq!(seen(&pool, &selection), ["db__query"]);
    selection.aliases.insert("git-hub".into(), "typo".into());
    assert_eq!(seen(&pool, &selection), ["db__query"], "an alias of nothing is no id either");
    let narrowed = SpawnContext { parent_limit: Some(patterns(&["db"]).into()), ..SpawnContext::top(2) };
    assert_eq!(Toolset::resolve(&pool, &Selection::everything(), &narrowed).0.len(), 1);
}

#[test]
fn nam_4_more_aliases_than_an_agent_may_have_are_left_out_with_a_warning() {
    let mut selection = Selection::everything();
    for n in 0..ALIASES_PER_AGENT + 2 {
        selection.aliases.insert(format!("a{n:06}").into(), "read_file".into());
    }
    let (set, warnings) = Toolset::resolve(&pool(), &selection, &SpawnContext::top(2));
    assert_eq!(set.entries().filter(|entry| entry.alias).count(), ALIASES_PER_AGENT);
    assert_eq!(warnings, [Warning::TooManyAliases { dropped: 2 }]);
    assert!(warnings[0].to_string().starts_with("2 aliases are left out"), "{}", warnings[0]);
}

#[test]
fn nam_4_an_alias_that_looks_slashed_twice_is_called_as_it_is_listed() {
    let mut selection = Selection::everything();
    selection.aliases.insert("@@my/x/y".into(), "read_file".into());
    let (set, warnings) = Toolset::resolve(&pool(), &selection, &SpawnContext::top(2));
    assert_eq!(warnings, []);
    assert!(set.entries().any(|entry| entry.name == "@my__x/y"));
    for text in ["@@my/x/y", "@my__x/y"] {
        assert_eq!(set.find(text).map_or("", |tool| &*tool.name), "read_file", "{text}");
    }
}
