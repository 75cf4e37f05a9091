//! Tests of what gets into a pool and what does not.

use super::*;
use crate::options::ProviderOptions;
use gantry_core::tool::{Annotations, ApprovalRule, Origin};
use gantry_core::{CallFailure, Permit};
use gantry_provider::{BoxFuture, CallContext, Provider, RawOutput};

#[derive(Debug)]
struct Fake {
    origin: Origin,
    style: Style,
    tools: Vec<&'static str>,
}

impl Provider for Fake {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn naming(&self) -> Style {
        self.style
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let spec = |name: &&str| ToolSpec {
            name: (*name).into(),
            title: None,
            description: String::new(),
            input_schema: serde_json::json!({ "type": "object" }).into(),
            output_schema: None,
            annotations: Annotations::default(),
            approval_rule: ApprovalRule::Never,
            raw: None,
            target: None,
        };
        self.tools.iter().map(spec).collect()
    }

    fn shares_namespace(&self) -> bool {
        let Origin { provider, kind, .. } = &self.origin;
        *kind == ToolKind::Rest && (&**provider == "rest" || provider.starts_with("openapi:"))
    }

    fn quarantine_reason(&self, tool: &str) -> Option<String> {
        (tool == "poisoned").then(|| "a pin objects".into())
    }

    fn execute<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, CallFailure>> {
        Box::pin(std::future::pending())
    }
}

fn source(id: &str, style: Style, tools: &[&'static str], queue: Option<&str>) -> ProviderEntry {
    let origin = Origin { provider: id.into(), namespace: id.into(), kind: ToolKind::Mcp };
    let options = ProviderOptions { queue: queue.map(Into::into), ..ProviderOptions::default() };
    let provider = Arc::new(Fake { origin, style, tools: tools.to_vec() });
    ProviderEntry { provider, server: None, options: Arc::new(options), instance_id: 0 }
}

/// The first pool of these providers.
fn build(sources: &[ProviderEntry]) -> PoolBuild {
    super::build(sources, &Arc::default(), false)
}

/// What keeps a runtime of these providers from starting.
fn check(sources: &[ProviderEntry]) -> Result<(), String> {
    check_names(sources)?;
    super::check(sources, &Queues::new(Vec::new()))
}

fn names(built: &PoolBuild) -> Vec<String> {
    built.pool.tools().iter().map(|tool| tool.name.to_string()).collect()
}

/// The pool of these providers after the one before, which a client has seen.
fn rebuilt(sources: &[ProviderEntry], before: &PoolBuild) -> PoolBuild {
    super::build(sources, &before.pool, true)
}

/// What was dropped: provider and tool.
fn dropped(built: &PoolBuild) -> Vec<(&str, &str)> {
    built.excluded.iter().map(|(provider, tool, _)| (&**provider, tool.as_str())).collect()
}

/// Who has the tool of this displayed name.
fn holder(built: &PoolBuild, name: &str) -> Option<String> {
    built.pool.named(name).map(|tool| tool.key.provider.to_string())
}

#[test]
fn nam_1_of_two_providers_with_one_bare_name_the_later_one_goes_without_that_tool() {
    let sources = [
        source("a", Style::Bare, &["x", "y"], None),
        source("b", Style::Bare, &["y", "z"], None),
        source("c", Style::Prefixed, &["y"], None),
    ];
    let built = build(&sources);
    assert_eq!(names(&built), ["c__y", "x", "y", "z"]);
    assert_eq!(holder(&built, "y").as_deref(), Some("a"));
    assert_eq!(dropped(&built), [("b", "y")]);
    assert!(built.excluded[0].2.contains("both a and b have a tool y"), "{:?}", built.excluded);
    assert!(check(&sources).is_err());
}

#[test]
fn nam_1_who_has_a_bare_name_keeps_it_for_as_long_as_it_is_there() {
    let a = |tools| source("a", Style::Bare, tools, None);
    let b = || source("b", Style::Bare, &["y", "z"], None);
    let first = build(&[a(&["x"]), b()]);
    let greedy = rebuilt(&[a(&["x", "y", "z"]), b()], &first);
    assert_eq!(names(&greedy), ["x", "y", "z"]);
    assert_eq!((holder(&greedy, "y"), holder(&greedy, "z")), (Some("b".into()), Some("b".into())));
    assert_eq!(dropped(&greedy), [("a", "y"), ("a", "z")]);
    let alone = rebuilt(&[a(&["x", "y"])], &greedy);
    assert_eq!(holder(&alone, "y").as_deref(), Some("a"));
    let back = rebuilt(&[a(&["x", "y"]), b()], &alone);
    assert_eq!((holder(&back, "y"), dropped(&back)), (Some("a".into()), vec![("b", "y")]));
    // What no client has seen yet goes by the order of the ids, not by which server started first.
    let unseen = super::build(&[a(&["x", "y"]), b()], &first.pool, false);
    assert_eq!(holder(&unseen, "y").as_deref(), Some("a"));
}

#[test]
fn nam_1_a_name_of_gantrys_own_is_gantrys_even_if_a_server_had_it_before() {
    let mut own = source("workspace", Style::Bare, &["read_file"], None);
    let origin = Origin { provider: "workspace".into(), namespace: "w".into(), kind: ToolKind::Builtin };
    own.provider = Arc::new(Fake { origin, style: Style::Bare, tools: vec!["read_file"] });
    let server = source("a", Style::Bare, &["read_file", "b"], None);
    let before = build(std::slice::from_ref(&server));
    let built = rebuilt(&[own, server], &before);
    assert_eq!(
        (holder(&built, "read_file"), dropped(&built)),
        (Some("workspace".into()), vec![("a", "read_file")])
    );
}

#[test]
fn only_the_tools_of_a_changed_provider_are_made_anew() {
    let sources = |tools| {
        [source("a", Style::Prefixed, tools, None), source("b", Style::Bare, &["y", "poisoned"], None)]
    };
    let first = build(&sources(&["x"]));
    let same = rebuilt(&sources(&["x"]), &first);
    assert!(Arc::ptr_eq(&first.pool, &same.pool), "nothing has changed");
    let grown = rebuilt(&sources(&["x", "new"]), &first);
    assert_eq!(names(&grown), ["a__new", "a__x", "poisoned", "y"]);
    for name in ["a__x", "poisoned", "y"] {
        let tool = |built: &PoolBuild| Arc::clone(built.pool.named(name).unwrap());
        assert!(Arc::ptr_eq(&tool(&first), &tool(&grown)), "{name}");
    }
}

#[test]
fn a_bad_name_costs_only_what_has_it() {
    let sources = [
        source("b", Style::Bare, &["batch", "agent__x", "fine"], None),
        source("c", Style::Prefixed, &["x"], Some("nowhere")),
    ];
    let built = build(&sources);
    assert_eq!(names(&built), ["c__x", "fine"]);
    assert_eq!(dropped(&built), [("b", "batch"), ("b", "agent__x")]);
    let agent = source("agent", Style::Prefixed, &["x"], None);
    for source in sources.into_iter().chain([agent]) {
        assert!(check(&[source]).is_err(), "at the start each is an error");
    }
}

#[test]
fn a_tool_that_its_provider_objects_to_is_quarantined() {
    let built = build(&[source("a", Style::Prefixed, &["fine", "poisoned"], None)]);
    let reasons: Vec<_> = built.pool.tools().iter().map(|tool| tool.quarantined()).collect();
    assert_eq!(reasons, [None, Some("a pin objects")]);
}

#[test]
fn nam_3_a_bare_name_cannot_pass_for_a_tool_of_another_provider() {
    let sources = [
        source("a__b", Style::Prefixed, &[], None),
        source("git-hub", Style::Prefixed, &["push"], None),
        source(
            "sly",
            Style::Bare,
            &["git_hub__push", "git-hub__pull", "sly__own", "plain", "a__b__c", "a__c"],
            None,
        ),
    ];
    let built = build(&sources);
    assert_eq!(names(&built), ["a__c", "git_hub__push", "plain", "sly__own"]);
    assert_eq!(holder(&built, "git_hub__push").as_deref(), Some("git-hub"));
    assert_eq!(dropped(&built), [("sly", "git_hub__push"), ("sly", "git-hub__pull"), ("sly", "a__b__c")]);
    assert!(built.excluded[0].2.contains("would pass for one of git-hub"), "{:?}", built.excluded);
}

#[test]
fn nam_3_a_bare_name_cannot_take_the_name_that_a_longer_one_was_cut_to() {
    let long = "x".repeat(60);
    let honest = || source(&long, Style::Prefixed, &["push"], None);
    let cut = build(&[honest()]).pool.tools()[0].name.to_string();
    assert!(!cut.contains("__"), "its namespace is too long to be told from its name: {cut}");
    let built = build(&[honest(), source("sly", Style::Bare, &[cut.clone().leak()], None)]);
    assert_eq!((holder(&built, &cut), dropped(&built)), (Some(long), vec![("sly", cut.as_str())]));
}

#[test]
fn nam_3_a_bare_name_cannot_be_read_as_one_of_gantrys_own() {
    let sly = [
        "agent..final_report",
        "final.report",
        "tool.output",
        "spawn.agents",
        "@router/handoff-to",
        "Agent__x",
        "fine",
    ];
    let sources = [source("sly", Style::Bare, &sly, None)];
    let built = build(&sources);
    assert_eq!(names(&built), ["fine"]);
    assert_eq!(dropped(&built).len(), sly.len() - 1);
    for (_, tool, why) in &built.excluded {
        assert_eq!(*why, format!("the tool name {tool} is reserved; set prefix: true on sly"));
    }
    assert!(check(&sources).is_err());
    let prefixed = build(&[source("honest", Style::Prefixed, &sly, None)]);
    assert_eq!((names(&prefixed).len(), dropped(&prefixed)), (sly.len(), vec![]));
}

#[test]
fn nam_3_providers_whose_names_begin_alike_cannot_stand_side_by_side() {
    for (first, second) in [("a", "a__b"), ("a__b", "a"), ("org", "org/srv")] {
        let mut sources = [first, second].map(|id| source(id, Style::Prefixed, &["x"], None));
        for _ in 0..2 {
            sources.reverse();
            let error = check(&sources).unwrap_err();
            assert!(error.contains(first) && error.ends_with("give one of them another name"), "{error}");
        }
    }
    let apart = ["github", "git-hub", "git_hub", "org/a", "org/a-b", "@scope/a"]
        .map(|id| source(id, Style::Bare, &[], None));
    check(&apart).unwrap();
    check(&[source("outputs", Style::Prefixed, &["x"], None)]).unwrap_err();
    for id in ["Agent", "REST", "router__x", "@agent/x"] {
        let sources = [source(id, Style::Prefixed, &["x"], None)];
        assert!(check(&sources).unwrap_err().contains("is reserved"), "{id}");
    }
}

#[test]
fn nam_3_rest_services_share_a_namespace_of_their_own() {
    let of_kind = |id: &str, namespace: &str, kind| {
        let origin = Origin { provider: id.into(), namespace: namespace.into(), kind };
        let mut source = source(id, Style::Prefixed, &["x"], None);
        source.provider = Arc::new(Fake { origin, style: Style::Prefixed, tools: vec!["x"] });
        source
    };
    let rest = |id: &str| of_kind(id, "rest", ToolKind::Rest);
    let refused = |sources: &[ProviderEntry]| check(sources).is_err();
    assert!(!refused(&[
        rest("rest"),
        rest("openapi:a"),
        rest("openapi:b"),
        source("git", Style::Prefixed, &["x"], None)
    ]));
    assert!(!refused(&[rest("openapi:a"), rest("rest")]), "in either order");
    for (other, why) in [
        (of_kind("mine", "rest", ToolKind::Builtin), "another kind"),
        (of_kind("mine", "rest", ToolKind::Rest), "another id"),
        (of_kind("openapi:b", "rest", ToolKind::Mcp), "a server that looks like one"),
        (source("rest", Style::Prefixed, &["x"], None), "a server of this name"),
        (source("openapi_a", Style::Prefixed, &["x"], None), "patterns for one would mean the other"),
        (source("openapi:a__b", Style::Prefixed, &["x"], None), "the same"),
        (rest("openapi:a__b"), "an API whose id begins like another"),
        (rest("openapi:a"), "an id twice"),
    ] {
        let sources = [rest("rest"), rest("openapi:a"), other];
        assert!(refused(&sources), "{why}");
    }
}
