//! Resolution: exactly the listed tools, by every spelling, and nothing about the others.

mod properties;
mod rules;
mod spelling;

use super::*;
use crate::names::Style;
use crate::pattern::Pattern;
use crate::tool::{Annotations, ApprovalRule, Origin, Settings, Status, ToolKind, ToolSpec};
use serde_json::json;

fn candidate(namespace: &str, tool: &str, style: Style) -> Candidate {
    Candidate {
        origin: Origin { provider: namespace.into(), namespace: namespace.into(), kind: ToolKind::Mcp },
        style,
        spec: ToolSpec {
            name: tool.into(),
            title: None,
            description: String::new(),
            input_schema: json!({ "type": "object" }).into(),
            output_schema: None,
            annotations: Annotations::default(),
            approval_rule: ApprovalRule::Never,
            raw: None,
            target: None,
        },
        settings: Settings::default(),
    }
}

impl Toolset {
    fn has(&self, tool: &Tool) -> bool {
        self.same(tool).is_some()
    }
}

fn pool() -> Arc<Pool> {
    Arc::new(Pool::build(vec![
        candidate("workspace", "read_file", Style::Bare),
        candidate("workspace", "write_file", Style::Bare),
        candidate("git-hub", "search-code", Style::Prefixed),
        candidate("git-hub", "delete_repo", Style::Prefixed),
        candidate("db", "query", Style::Prefixed),
    ]))
}

fn resolve(patterns: &[&str]) -> (Vec<String>, Vec<String>) {
    let selection = Selection::of(patterns.iter().map(|p| Pattern::parse(p).unwrap()));
    let (set, unmatched) = Toolset::resolve(&pool(), &selection, &SpawnContext::top(2));
    (set.tools().map(|t| t.name.to_string()).collect(), unmatched.iter().map(ToString::to_string).collect())
}

fn toolset(patterns: &[&str]) -> Toolset {
    let selection = Selection::of(patterns.iter().map(|p| Pattern::parse(p).unwrap()));
    Toolset::resolve(&pool(), &selection, &SpawnContext::top(2)).0
}

#[test]
fn pol_3_exact_names_globs_and_star_select_and_unmatched_patterns_warn() {
    assert_eq!(resolve(&["read_file", "db__query"]).0, ["db__query", "read_file"]);
    assert_eq!(resolve(&["git_hub__*"]).0, ["git_hub__delete_repo", "git_hub__search_code"]);
    assert_eq!(resolve(&["*"]).0.len(), 5);
    assert_eq!(resolve(&[]), (vec![], vec![]));
    assert_eq!(
        resolve(&["read_file", "nothing_*", "typo"]),
        (
            vec!["read_file".into()],
            vec![r#""nothing_*" matches no tool"#.into(), r#""typo" matches no tool"#.into()]
        )
    );
}

#[test]
fn nam_2_and_3_every_spelling_means_the_same_tool() {
    let set = toolset(&["*"]);
    for spelling in
        ["git_hub__search_code", "git-hub__search-code", "@git-hub/search-code", "@git_hub/search_code"]
    {
        assert_eq!(&*set.find(spelling).unwrap().name, "git_hub__search_code", "{spelling}");
    }
    assert_eq!(&*set.find("@workspace/read_file").unwrap().name, "read_file");
    assert_eq!(resolve(&["@git-hub/*"]).0.len(), 2);
}

#[test]
fn nam_6_hidden_and_missing_tools_are_answered_alike() {
    let set = toolset(&["read_file", "db__query"]);
    let hidden = set.find("write_file").unwrap_err();
    let missing = toolset(&["read_file", "db__query"]).find("write_filf").unwrap_err();
    let blank = |refusal: &Refusal| {
        format!("{:?}", refusal.error()).replace("write_filf", "X").replace("write_file", "X")
    };
    assert_eq!(blank(&hidden), blank(&missing));
    assert_eq!(hidden.error().code, ErrorCode::ToolNotFound);
    assert!(!hidden.error().message.contains("delete_repo"));
    assert!(set.find("read_fil").unwrap_err().error().message.ends_with("Did you mean read_file?"));
}

#[test]
fn one_bad_schema_quarantines_one_tool() {
    let mut bad = candidate("db", "bad", Style::Prefixed);
    bad.spec.input_schema = json!({ "type": "strin" }).into();
    let pool = Pool::build(vec![bad, candidate("db", "good", Style::Prefixed)]);
    let quarantined: Vec<bool> = pool.tools().iter().map(|t| t.quarantined().is_some()).collect();
    assert_eq!(quarantined, [true, false]);
}

#[test]
fn a_server_with_too_many_patterns_keeps_no_other_waiting() {
    let many = |provider: &str, tool: usize| {
        let mut candidate = candidate(provider, &format!("t{tool:02}"), Style::Prefixed);
        let patterns = (0..128).map(|n| (format!("^{n}$"), json!({ "type": "string" })));
        let patterns: serde_json::Map<_, _> = patterns.collect();
        candidate.spec.input_schema = json!({ "type": "object", "patternProperties": patterns }).into();
        candidate
    };
    let mut candidates: Vec<Candidate> = (0..33).map(|tool| many("a", tool)).collect();
    candidates.extend([candidate("a", "without", Style::Prefixed), many("b", 0)]);
    let pool = Pool::build(candidates);
    assert!(pool.tools().iter().all(|tool| tool.quarantined().is_none()));
    let unenforced = |name: &str| match &pool.named(name).unwrap().status {
        Status::Ready(schema) => schema.unenforced().len(),
        Status::Quarantined(reason) => panic!("{name}: {reason}"),
    };
    // 31 schemas have their 128 patterns, the next one what is left of 4,000.
    let counts = ["a__t30", "a__t31", "a__t32", "a__without", "b__t00"].map(unenforced);
    assert_eq!(counts, [0, 96, 128, 0, 0]);
}

#[test]
fn another_tools_original_spelling_never_takes_a_displayed_name_over() {
    // `a` has a tool whose original full spelling is the displayed name of a tool of `a__b`.
    let pool = Arc::new(Pool::build(vec![
        candidate("a", "b__c-d", Style::Prefixed),
        candidate("a__b", "c_d", Style::Prefixed),
    ]));
    let (set, _) = Toolset::resolve(&pool, &Selection::everything(), &SpawnContext::top(2));
    assert_eq!(&*set.find("a__b__c_d").unwrap().key.provider, "a__b");
    assert_eq!(&*set.find("a__b__c-d").unwrap().key.provider, "a");
}

#[test]
fn nam_3_a_spelling_that_several_tools_have_means_none_of_them() {
    let pool = Arc::new(Pool::build(vec![
        candidate("a", "b-c", Style::Prefixed),
        candidate("a", "b.c", Style::Prefixed),
        candidate("a", "d", Style::Prefixed),
    ]));
    let (set, _) = Toolset::resolve(&pool, &Selection::everything(), &SpawnContext::top(2));
    set.find("a__b_c").unwrap_err();
    for own in ["b-c", "b.c", "d"] {
        assert_eq!(&*set.find(&format!("a__{own}")).unwrap().key.tool, own);
    }
}

/// The pool after a change: these tools, and an objection to those of that name.
fn rebuilt(before: &Arc<Pool>, candidates: Vec<Candidate>, bad: &str) -> Arc<Pool> {
    Pool::rebuild(before, candidates, |candidate| (candidate.spec.name == bad).then(|| "because".into()))
}

/// Which tools of a pool, by name, are those of the pool before.
fn taken_over(before: &Pool, now: &Pool) -> Vec<String> {
    let same = now.tools().iter().filter(|tool| before.tools().iter().any(|known| Arc::ptr_eq(known, tool)));
    same.map(|tool| tool.name.to_string()).collect()
}

#[test]
fn only_what_is_new_is_made_anew() {
    let candidates = || {
        let mut broken = candidate("a", "broken", Style::Prefixed);
        broken.spec.input_schema = json!({ "type": "strin" }).into();
        let mut worded = candidate("a", "worded", Style::Prefixed);
        worded.spec.raw = Some(r#"{"name":"worded","x":1}"#.into());
        vec![broken, worded, candidate("a", "plain", Style::Prefixed), candidate("b", "other", Style::Bare)]
    };
    let before = Arc::new(Pool::build(candidates()));
    assert!(Arc::ptr_eq(&before, &rebuilt(&before, candidates(), "")), "nothing is new");
    let check = |change: fn(&mut Vec<Candidate>), bad: &str, expected: &[&str]| {
        let mut changed = candidates();
        change(&mut changed);
        let now = rebuilt(&before, changed, bad);
        assert_eq!(taken_over(&before, &now), expected);
        now
    };
    check(|all| all.truncate(3), "", &["a__broken", "a__plain", "a__worded"]);
    check(|all| all[2].spec.description.push('x'), "", &["a__broken", "a__worded", "other"]);
    check(
        |all| all[2].settings.cache = Some(std::time::Duration::ZERO),
        "",
        &["a__broken", "a__worded", "other"],
    );
    check(|all| all[3].style = Style::Prefixed, "", &["a__broken", "a__plain", "a__worded"]);
    check(|all| all[3].origin.kind = ToolKind::Rest, "", &["a__broken", "a__plain", "a__worded"]);
    // The same to a judge, but another text for clients.
    let now = check(
        |all| all[1].spec.raw = Some(r#"{"x":1,"name":"worded"}"#.into()),
        "",
        &["a__broken", "a__plain", "other"],
    );
    assert_eq!(now.named("a__worded").unwrap().definition(), r#"{"x":1,"name":"a__worded"}"#);
    // An objection comes, stays and goes.
    let objected = check(|_| {}, "plain", &["a__broken", "a__worded", "other"]);
    assert_eq!(objected.named("a__plain").unwrap().quarantined(), Some("because"));
    assert!(Arc::ptr_eq(&objected, &rebuilt(&objected, candidates(), "plain")));
    let lifted = rebuilt(&objected, candidates(), "");
    assert_eq!(lifted.named("a__plain").unwrap().quarantined(), None);
    assert_eq!(taken_over(&objected, &lifted), ["a__broken", "a__worded", "other"]);
}
