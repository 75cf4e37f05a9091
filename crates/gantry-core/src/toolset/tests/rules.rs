//! Selections rule by rule: what is allowed, aliased, approved, narrowed and removed for depth, and why.

use super::*;

/// A selection in the words of a configuration.
fn selection(uses: &[&str]) -> Selection {
    Selection::of(patterns(uses))
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::parse(text).unwrap()).collect()
}

trait With {
    fn allowed(self, texts: &[&str]) -> Self;
    fn alias(self, alias: &str, target: &str) -> Self;
    fn auto_approve(self, texts: &[&str]) -> Self;
    fn provider(self, id: &str) -> Self;
}

impl With for Selection {
    fn allowed(mut self, texts: &[&str]) -> Self {
        self.allowed = Some(patterns(texts));
        self
    }

    fn alias(mut self, alias: &str, target: &str) -> Self {
        self.aliases.insert(alias.into(), target.into());
        self
    }

    fn auto_approve(mut self, texts: &[&str]) -> Self {
        self.auto_approve = patterns(texts);
        self
    }

    fn provider(mut self, id: &str) -> Self {
        self.include.push(ToolSelector::Provider(id.into()));
        self
    }
}

fn own(namespace: &str, tool: &str) -> Candidate {
    let mut own = candidate(namespace, tool, Style::Bare);
    own.origin.kind = ToolKind::Builtin;
    own
}

fn pool() -> Arc<Pool> {
    let mut files = candidate("files", "read_file", Style::Prefixed);
    files.spec.description = "Reads a file.".into();
    Arc::new(Pool::build(vec![
        files,
        candidate("files", "write_file", Style::Prefixed),
        candidate("git-hub", "search-code", Style::Prefixed),
        candidate("git-hub", "delete_repo", Style::Prefixed),
        own("workspace", "read_file"),
        own("agents", "spawn_agents"),
        own("agents", "list_available_agents"),
    ]))
}

fn resolved(selection: &Selection) -> (Toolset, Vec<Warning>) {
    Toolset::resolve(&pool(), selection, &SpawnContext::top(2))
}

fn names(set: &Toolset) -> Vec<&str> {
    set.tools().map(|tool| &*tool.name).collect()
}

fn listed(set: &Toolset) -> Vec<&str> {
    set.entries().map(|entry| entry.name).collect()
}

fn seen(selection: &Selection) -> Vec<String> {
    names(&resolved(selection).0).into_iter().map(str::to_owned).collect()
}

fn found<'a>(set: &'a Toolset, spelling: &str) -> &'a str {
    set.find(spelling).map_or("", |tool| &*tool.name)
}

#[test]
fn pol_3_a_provider_in_use_gives_all_its_tools_and_one_without_tools_warns() {
    let (set, warnings) = resolved(&Selection::default().provider("git-hub").provider("git_hub"));
    assert_eq!(names(&set), ["git_hub__delete_repo", "git_hub__search_code"]);
    assert_eq!(warnings, [Warning::Unmatched("git_hub".into())], "an id is not a spelling");
    let empty = Arc::new(Pool::default());
    let (_, warnings) =
        Toolset::resolve(&empty, &selection(&["*", "a"]).provider("p"), &SpawnContext::top(2));
    assert_eq!(warnings, [Warning::Unmatched("a".into()), Warning::Unmatched("p".into())]);
}

#[test]
fn pol_7_nothing_written_nothing_listed_and_a_star_permit_all_that_is_used() {
    let uses = || selection(&["files__*", "read_file"]);
    let all = seen(&uses());
    assert_eq!(all, ["files__read_file", "files__write_file", "read_file"]);
    for allowed in [&[][..], &["*"], &["*", "typo"]] {
        assert_eq!(seen(&uses().allowed(allowed)), all, "{allowed:?}");
        assert_eq!(resolved(&uses().allowed(allowed)).1, []);
    }
}

#[test]
fn pol_7_otherwise_exactly_the_listed_ones_and_what_permits_nothing_warns() {
    let uses = || selection(&["files__*", "read_file"]);
    assert_eq!(seen(&uses().allowed(&["@files/write_file"])), ["files__write_file"]);
    assert_eq!(seen(&uses().allowed(&["*_file"])).len(), 3);
    let (set, warnings) = resolved(&uses().allowed(&["read_file", "git_hub__*", "typo"]));
    assert_eq!(names(&set), ["read_file"]);
    assert_eq!(
        warnings,
        [Warning::AllowedUnmatched("git_hub__*".into()), Warning::AllowedUnmatched("typo".into())]
    );
    assert_eq!(warnings[1].to_string(), r#""typo" is allowed, but matches none of the tools it uses"#);
    set.find("files__write_file").unwrap_err();
}

#[test]
fn nam_4_an_alias_and_every_spelling_are_the_same_tool() {
    let (set, warnings) = resolved(&selection(&["files__*"]).alias("read", "@files/read_file"));
    assert_eq!(warnings, []);
    let tool = set.find("@files/read_file").unwrap();
    assert!(Arc::ptr_eq(set.find("read").unwrap(), tool));
    assert_eq!(set.aliases_of(tool).collect::<Vec<_>>(), ["read"]);
    assert_eq!(listed(&set), ["files__read_file", "files__write_file", "read"]);
    assert_eq!(set.len(), 2);
    let message = set.find("raed").unwrap_err().error().message.clone();
    assert!(message.contains("Did you mean read?"), "{message}");
}

#[test]
fn nam_4_an_alias_in_an_allow_list_permits_both_spellings() {
    for entry in ["read", "re*", "@my/r"] {
        let selection = selection(&["files__*"])
            .alias("read", "@files/read_file")
            .alias("@my/r", "files__read_file")
            .allowed(&[entry]);
        let (set, warnings) = resolved(&selection);
        assert_eq!(warnings, [], "{entry}");
        assert_eq!(listed(&set), ["files__read_file", "my__r", "read"], "{entry}");
        for spelling in ["read", "@my/r", "my__r", "@files/read_file", "files__read_file"] {
            assert_eq!(found(&set, spelling), "files__read_file", "{spelling}");
        }
    }
    // The alias of a tool that is not used permits nothing.
    let (set, warnings) =
        resolved(&selection(&["git_hub__*"]).alias("read", "@files/read_file").allowed(&["read"]));
    assert!(set.is_empty());
    assert_eq!(warnings.len(), 2, "{warnings:?}");
}

#[test]
fn nam_4_what_is_visible_is_called_before_an_alias_and_what_is_hidden_is_not() {
    let read = |uses: &[&str]| selection(uses).alias("read_file", "@files/read_file");
    let (set, warnings) = resolved(&read(&["*"]));
    assert_eq!(found(&set, "read_file"), "read_file");
    let shadowed = Warning::AliasShadowed { alias: "read_file".into(), tool: "read_file".into() };
    assert_eq!(warnings, [shadowed]);
    // Another spelling of a visible tool counts like its name.
    let (set, warnings) = resolved(&selection(&["*"]).alias("git-hub__search-code", "read_file"));
    assert_eq!(found(&set, "@git-hub/search-code"), "git_hub__search_code");
    assert!(matches!(&warnings[..], [Warning::AliasShadowed { .. }]), "{warnings:?}");
    // A hidden one does not: nothing tells that it exists.
    for hidden in [read(&["files__*"]), read(&["*"]).allowed(&["files__*"])] {
        let (set, warnings) = resolved(&hidden);
        assert_eq!(warnings, []);
        assert_eq!(found(&set, "read_file"), "files__read_file");
        assert_eq!(found(&set, "@workspace/read_file"), "");
    }
    // In an allow-list, too, a text means the tool in use that is called so, and not the alias.
    assert_eq!(seen(&read(&["*"]).allowed(&["read_file"])), ["read_file"]);
    // A name that the tool has anyway is no contradiction.
    let (set, warnings) = resolved(&selection(&["*"]).alias("@files/read_file", "files__read_file"));
    assert_eq!((warnings, listed(&set).len()), (vec![], 7));
}

#[test]
fn nam_4_an_alias_of_nothing_visible_is_left_out_with_a_warning() {
    for target in ["@git-hub/delete_repo", "typo"] {
        let (set, warnings) = resolved(&selection(&["files__*"]).alias("x", target));
        assert_eq!(warnings, [Warning::AliasUnmatched { alias: "x".into(), target: target.into() }]);
        assert_eq!(found(&set, "x"), "");
        assert!(!listed(&set).contains(&"x"));
    }
    for reserved in ["tool_output", "agent__final_report", "@agent/final_report"] {
        let (set, warnings) = resolved(&selection(&["files__*"]).alias(reserved, "files__read_file"));
        assert_eq!(listed(&set).len(), 2, "{reserved}");
        assert!(matches!(&warnings[..], [Warning::AliasShadowed { .. }]), "{warnings:?}");
    }
    let twins = selection(&["*"]).alias("@my/r", "files__read_file").alias("my__r", "files__write_file");
    for twins in [twins.clone(), twins.allowed(&["my__r"])] {
        let (set, warnings) = resolved(&twins);
        assert_eq!(found(&set, "@my/r"), "files__read_file");
        assert_eq!(set.find("files__write_file").is_ok(), twins.allowed.is_none());
        assert!(matches!(&warnings[..], [Warning::AliasShadowed { .. }]), "{warnings:?}");
    }
}

#[test]
fn nam_4_an_alias_is_listed_with_the_words_of_its_tool() {
    let mut wordy = candidate("p", "raw", Style::Prefixed);
    wordy.spec.raw = Some(
        r#"{"x":1.10,"name":"raw","description":"\u00e9 \"q\"","inputSchema":{"type":"object"}}"#.into(),
    );
    let mut broken = candidate("p", "broken", Style::Prefixed);
    broken.spec.input_schema = json!({ "type": "strin" }).into();
    let mut mute = candidate("p", "mute", Style::Prefixed);
    mute.spec.raw = Some(r#"{"name":"mute","outputSchema":{"type":"array"}}"#.into());
    mute.spec.output_schema = Some(json!({ "type": "array" }).into());
    let pool = Arc::new(Pool::build(vec![wordy, broken, mute]));
    let selection = selection(&["*"]).alias("a", "p__raw").alias("b", "p__broken").alias("z", "@p/mute");
    let (set, warnings) = Toolset::resolve(&pool, &selection, &SpawnContext::top(2));
    assert_eq!(warnings, []);
    let same = r#"{"x":1.10,"name":"a","description":"The same tool as p__raw. \u00e9 \"q\"","inputSchema":{"type":"object"}}"#;
    let own = r#"{"x":1.10,"name":"p__raw","description":"\u00e9 \"q\"","inputSchema":{"type":"object"}}"#;
    let mute = |name: &str, more: &str| format!(r#"{{"name":"{name}"{more}}}"#);
    let (out, outcome) =
        (r#","outputSchema":{"type":"array"}"#, r#","description":"The same tool as p__mute. ""#);
    let expected = [same, &mute("p__mute", out), own, &mute("z", &format!("{out}{outcome}"))].join(",");
    assert_eq!(**set.definitions(), format!("[{expected}]"));
    assert_eq!(**set.legacy_definitions(), format!("[{}]", expected.replace(out, "")));
}

#[test]
fn auto_approval_goes_by_spellings_globs_and_aliases_of_what_may_be_called() {
    let approving = |texts: &[&str]| {
        let selection = selection(&["files__*", "git_hub__*"])
            .alias("read", "@files/read_file")
            .allowed(&["read", "git_hub__*"])
            .auto_approve(texts);
        let (set, warnings) = resolved(&selection);
        let tools: Vec<String> =
            set.tools().filter(|tool| set.auto_approves(tool)).map(|tool| tool.name.to_string()).collect();
        let hidden = pool().tools().iter().any(|tool| set.auto_approves(tool) && !set.has(tool));
        assert!(!hidden, "{texts:?}");
        (tools.join(" "), warnings)
    };
    assert_eq!(approving(&[]), (String::new(), vec![]));
    assert_eq!(approving(&["read"]).0, "files__read_file");
    assert_eq!(approving(&["@git-hub/search-code", "rea?"]).0, "files__read_file git_hub__search_code");
    assert_eq!(approving(&["*"]).0.split(' ').count(), 3);
    let unmatched = vec![Warning::ApprovedUnmatched("files__write_file".into())];
    assert_eq!(approving(&["files__write_file"]), (String::new(), unmatched));
}

/// The tools that start agents which an agent keeps at a depth, and the warnings.
fn kept(selection: &Selection, depth: u32) -> (Vec<String>, Vec<Warning>) {
    let place = SpawnContext { depth, max_depth: 2, parent_limit: None };
    let (set, warnings) = Toolset::resolve(&pool(), selection, &place);
    let own = |name: &&str| crate::names::COORDINATION_TOOLS.contains(name);
    (names(&set).into_iter().filter(own).map(str::to_owned).collect(), warnings)
}

#[test]
fn pol_9_below_the_first_agent_only_the_literal_name_keeps_what_starts_agents() {
    let both = ["list_available_agents", "spawn_agents"];
    for uses in [&["*"][..], &["spawn_*", "list_*"]] {
        assert_eq!(kept(&selection(uses), 0).0, both);
        for depth in [1, 2, 3] {
            assert_eq!(kept(&selection(uses), depth), (vec![], vec![]), "{uses:?} at {depth}");
        }
    }
    assert_eq!(kept(&Selection::default().provider("agents"), 1).0, [""; 0]);
    for uses in [&["spawn_agents"][..], &["*", "spawn_agents"], &["@agents/spawn_agents"]] {
        assert_eq!(kept(&selection(uses), 1), (vec!["spawn_agents".into()], vec![]), "{uses:?}");
        for depth in [2, 3] {
            let warning = Warning::MaxDepth { tool: "spawn_agents".into(), max_depth: 2 };
            assert_eq!(kept(&selection(uses), depth), (vec![], vec![warning]), "{uses:?} at {depth}");
        }
    }
    let named = || selection(&["spawn_agents", "files__*"]);
    assert_eq!(kept(&named().allowed(&["files__*"]), 1), (vec![], vec![]));
    assert_eq!(kept(&named().allowed(&["spawn_*"]), 1).0, ["spawn_agents"]);
    // An alias is no way around it.
    let aliased = named().alias("go", "list_available_agents").allowed(&["go", "spawn_*"]);
    assert_eq!(kept(&aliased, 1).0, ["spawn_agents"]);
}

#[test]
fn pol_9_a_servers_tool_of_the_same_name_starts_no_agents() {
    let pool = Arc::new(Pool::build(vec![
        candidate("s", "spawn_agents", Style::Bare),
        candidate("s", "list_available_agents", Style::Prefixed),
    ]));
    let place = SpawnContext { depth: 2, max_depth: 2, parent_limit: None };
    assert_eq!(Toolset::resolve(&pool, &selection(&["*"]), &place).0.len(), 2);
}

#[test]
fn pol_9_a_spawn_narrows_what_the_definition_gives() {
    let narrowed = |texts: &[&str]| {
        let place = SpawnContext { depth: 1, max_depth: 2, parent_limit: Some(patterns(texts).into()) };
        let selection = selection(&["files__*", "read_file"]).alias("w", "@files/write_file");
        let (set, _) = Toolset::resolve(&pool(), &selection, &place);
        listed(&set).join(" ")
    };
    assert_eq!(narrowed(&["*"]), "files__read_file files__write_file read_file w");
    assert_eq!(narrowed(&["w"]), "files__write_file w");
    assert_eq!(narrowed(&["@files/read_*", "git_hub__*"]), "files__read_file");
    assert_eq!(narrowed(&[]), "", "what names nothing leaves nothing");
}

#[test]
fn pol_10_every_reason_has_a_sentence() {
    let pool = pool();
    let check = |selection: &Selection, place: &SpawnContext, tool: &str, expected: &[&str]| {
        let access = explain_access(&pool, selection, place, pool.named(tool).unwrap());
        assert_eq!(access.sentences, expected);
        let (set, _) = Toolset::resolve(&pool, selection, place);
        assert_eq!(access.is_visible, set.has(pool.named(tool).unwrap()));
    };
    let (top, below) =
        (SpawnContext::top(2), |depth| SpawnContext { depth, max_depth: 2, parent_limit: None });
    let files = selection(&["typo", "@files/*"]).alias("read", "files__read_file").auto_approve(&["read"]);
    check(
        &files,
        &top,
        "files__read_file",
        &[
            r#"may use it: "@files/*" in its tools matches"#,
            r#"also calls it "read""#,
            "need not ask a person for what the tool's own rule would ask",
        ],
    );
    check(
        &Selection::default().provider("files"),
        &top,
        "files__write_file",
        &[r#"may use it: provider "files" in its tools matches"#],
    );
    check(&files, &top, "read_file", &["does not have it: nothing in its tools matches"]);
    check(
        &files.clone().allowed(&["read", "a", "b", "c", "d", "e", "f"]),
        &top,
        "files__write_file",
        &[
            r#"may not use it: "@files/*" in its tools matches, but it is allowed only "read", "a", "b", "c", "d" and 2 more"#,
        ],
    );
    let narrowed = SpawnContext { parent_limit: Some(patterns(&["files__write_file"]).into()), ..below(1) };
    check(
        &files,
        &narrowed,
        "files__read_file",
        &["may not use it: the agent that spawned it narrowed its tools to others"],
    );
    check(
        &selection(&["*"]),
        &below(1),
        "spawn_agents",
        &[
            "may not use it: it is at depth 1, where its tools must name this one literally; a pattern is not enough",
        ],
    );
    let deep = "may not use it: it is at depth 2, and maxDepth 2 lets no agent start others there";
    check(&selection(&["*"]), &below(2), "spawn_agents", &[deep]);
    let named = format!("{deep}, although its tools name it");
    check(&selection(&["spawn_agents"]), &below(2), "spawn_agents", &[&named]);
}

#[test]
fn a_tool_is_known_by_its_identity_in_every_pool() {
    let (set, _) = resolved(&selection(&["files__*"]));
    for tool in pool().tools() {
        assert_eq!(set.has(tool), &*tool.key.provider == "files", "{}", tool.name);
    }
    let twins = || candidate("p", "twin", Style::Prefixed);
    let pool = Arc::new(Pool::build(vec![twins(), twins(), candidate("p", "other", Style::Prefixed)]));
    let (set, _) = Toolset::resolve(&pool, &selection(&["p__twin*"]), &SpawnContext::top(2));
    assert_eq!(set.len(), 2);
    assert!(set.tools().all(|tool| set.has(tool)));
    assert!(!set.has(pool.named("p__other").unwrap()));
    for only in set.tools() {
        let selection = selection(&[&only.name]);
        let (set, _) = Toolset::resolve(&pool, &selection, &SpawnContext::top(2));
        assert!(set.len() == 1 && set.has(only));
        assert!(explain_access(&pool, &selection, &SpawnContext::top(2), only).is_visible, "{}", only.name);
    }
}

#[test]
fn pol_8_a_server_is_needed_only_if_one_of_its_tools_could_be_selected() {
    let github = |selection: &Selection| selection.may_need("gh", "git-hub", true);
    for uses in ["*", "git_hub__*", "git-hub__search", "@git-hub/x", "gh__x", "git*", "*_code", "git?hub__x"]
    {
        assert!(github(&selection(&[uses])), "{uses}");
    }
    for uses in ["gitlab__*", "git_hub", "read_file", "@git/hub__x"] {
        assert!(!github(&selection(&[uses])), "{uses}");
        assert!(selection(&[uses]).may_need("gh", "git-hub", false), "{uses}: a bare name may be anything");
    }
    assert!(!Selection::default().may_need("gh", "git-hub", false));
    let used = || Selection::default().provider("gh");
    assert!(github(&used()) && !github(&Selection::default().provider("git-hub")));
    assert!(used().may_need("gh", "git-hub", false));
    for (allowed, expected) in [
        (&[][..], true),
        (&["*"], true),
        (&["files__*", "git_hub__x"], true),
        (&["files__*"], false),
        (&["s"], true),
        (&["r"], false),
    ] {
        let selection = used().alias("s", "@git-hub/search").alias("r", "@files/read").allowed(allowed);
        assert_eq!(github(&selection), expected, "{allowed:?}");
    }
    assert!(used().allowed(&["search"]).may_need("gh", "git-hub", false));
}

#[test]
fn srv_4_names_that_look_like_a_namespace_are_called_as_they_are_shown() {
    let mut renamed = candidate("n", "t", Style::Prefixed);
    renamed.origin.provider = "i_d".into();
    let pool = Arc::new(Pool::build(vec![
        candidate("s", "@a/b", Style::Bare),
        candidate("a", "b", Style::Prefixed),
        candidate("s", "x.y", Style::Bare),
        candidate("s", "x_y", Style::Bare),
        candidate("s", "i.d__t", Style::Bare),
        renamed,
    ]));
    let find = |uses: &[&str], spelling: &str| {
        let (set, _) = Toolset::resolve(&pool, &selection(uses), &SpawnContext::top(2));
        set.find(spelling).map_or(String::new(), |tool| tool.key.tool.to_string())
    };
    assert_eq!(find(&["*"], "@a/b"), "@a/b", "what is shown is what can be called");
    assert_eq!(find(&["@a/b"], "@a/b"), "@a/b", "an entry means what a call means");
    assert_eq!(find(&["a__b"], "@a/b"), "b", "and so does another spelling");
    assert_eq!(find(&["?a/b"], "@a/b"), "@a/b");
    assert_eq!(find(&["*"], "a__b"), "b", "the displayed name of another");
    assert_eq!(find(&["?a/b"], "a__b"), "@a/b", "of another that is not there for the caller");
    assert_eq!(find(&["*"], "_a_b"), "@a/b");
    assert_eq!(
        find(&["*"], "i_d__t"),
        "i.d__t",
        "the name that a model is shown wins over one that is not shown"
    );
    assert_eq!(find(&["*"], "x_y"), "x_y");
    let legal = pool.named("x.y").unwrap().model_name();
    assert_ne!(legal, "x_y");
    assert_eq!(find(&["*"], legal), "x.y");
    assert_eq!(find(&[legal], "x.y"), "x.y", "a legal name selects like any spelling");
}
