//! Projects: what each has of its own, what it inherits, and where it keeps things.

use std::path::Path;
use std::time::Duration;

use expect_test::{Expect, expect};

use super::{Folder, load, uses, values, yaml};
use crate::config::MAIN_PROJECT;
use crate::config::document::Format;

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "an expectation is written at the call")]
fn refused(text: &str, expected: Expect) {
    match load(Format::Yaml, text) {
        Ok(config) => panic!("{text}\nis accepted: {config:?}"),
        Err(error) => expected.assert_eq(&error.to_string()),
    }
}

#[test]
fn the_file_itself_is_the_project_default() {
    let config = yaml("agents: { a: {} }\nprojects: { b: { workspace: b }, a: { workspace: /srv/a } }\n");
    let names: Vec<&str> = config.all().map(|(name, _)| name).collect();
    assert_eq!(names, [MAIN_PROJECT, "a", "b"]);
    assert_eq!(config.project("default"), Some(config.main()));
    assert_eq!(config.project("a").map(|project| project.workspace.as_path()), Some(Path::new("/srv/a")));
    assert_eq!(config.project("c"), None);
}

#[test]
fn each_project_has_its_places() {
    let config = yaml("projects: { other: { workspace: ../other } }");
    let (main, other) = (config.main(), &config.projects["other"]);
    assert_eq!(main.places.lock, Path::new("/home/project/gantry.lock"));
    assert_eq!(main.places.data, Path::new("/home/project/.gantry"));
    assert_eq!(main.places.folder, Path::new("/home/project"));
    assert_eq!(other.workspace, Path::new("/home/project/../other"));
    assert_eq!(other.places.lock, Path::new("/home/project/gantry.other.lock"));
    assert_eq!(other.places.data, Path::new("/home/project/.gantry/projects/other"));
    assert_eq!(other.places.folder, Path::new("/home/project/projects/other"));
}

#[test]
fn a_project_has_what_the_file_has_and_shares_none_of_it() {
    let config = yaml(
        "queues: { disk: { concurrent: 1 } }\nagents: { a: { tools: [x] } }\nmcpServers: { s: { command: m } }\n\
         approvals: { requiresApprovalTools: all }\npolicies: [{ name: p, tools: ['*'], decide: deny }]\n\
         tools: { workspace: { enabled: false } }\n\
         projects:\n  bare: { workspace: . }\n  full:\n    workspace: .\n    agents: { a: { tools: [y] } }\n    \
         mcpServers: { s: { command: other, queue: disk } }\n    approvals: { requiresApprovalTools: [z] }\n    \
         policies: [{ name: p, tools: [b], decide: ask }]\n    \
         tools: { workspace: { toolsDenied: [d] }, f: { kind: builtin, builtinPolicy: { name: fs_read } } }\n",
    );
    let (bare, full) = (&config.projects["bare"], &config.projects["full"]);
    assert!(bare.agents.is_empty() && bare.mcp_servers.is_empty() && bare.policies.is_empty());
    assert!(bare.approvals.rules.requires_approval.is_empty(), "rules are not inherited");
    assert!(bare.tools.workspace.options.enabled && !config.main().tools.workspace.options.enabled);
    assert_eq!(uses(&full.agents["a"].selection), ["y"]);
    assert_eq!(uses(&config.main().agents["a"].selection), ["x"]);
    assert_eq!(full.mcp_servers["s"].tools.queue.as_deref(), Some("disk"));
    assert_eq!(values(&full.tools.workspace.options.denied), ["d"]);
    assert!(full.builtin.contains_key("f") && config.main().builtin.is_empty());
}

#[test]
fn limits_fall_back_to_those_of_the_file_key_by_key() {
    let config = yaml(
        "defaults: { toolTimeout: 5, maxDepth: 7, contextBudgetTokens: 9, traceMCP: true, maxConcurrentCalls: 11 }\n\
         projects:\n  same: { workspace: . }\n  own: { workspace: ., defaults: { toolTimeout: 6, maxDepth: 0, \
         contextBudgetTokens: 10, traceMCP: false, outputRetentionMs: 12 } }\n",
    );
    assert_eq!(config.projects["same"].limits, config.main().limits);
    let own = &config.projects["own"].limits;
    assert_eq!(own.tool_timeout.get(), Duration::from_millis(6));
    assert_eq!(own.max_depth.get(), 7, "0 is the default, which is the file's");
    assert_eq!((own.context_budget_tokens.map(|tokens| tokens.get()), own.trace_mcp), (Some(10), false));
    assert_eq!(own.output_retention.get(), Duration::from_millis(12));
    assert_eq!((own.max_concurrent_calls.get(), own.mcp_init_concurrency.get()), (11, 8));
    assert_eq!(own.tool_response_max_bytes.get(), 100_000);
    for nothing in ["", "{}", "{ toolTimeout: 0 }", "{ toolTimeout: '${T:-0}' }"] {
        let config = yaml(&format!(
            "defaults: {{ toolTimeout: 5, traceMCP: true }}\nprojects:\n  same:\n    workspace: .\n    defaults: {nothing}\n"
        ));
        assert_eq!(config.projects["same"].limits, config.main().limits, "{nothing}");
    }
    let own = yaml(
        "defaults: { toolTimeout: 5 }\nprojects: { o: { workspace: ., defaults: { toolTimeout: '${MS}' } } }",
    );
    assert_eq!(own.projects["o"].limits.tool_timeout.get(), Duration::from_millis(250));
}

#[test]
fn a_zero_hides_no_mistake_and_a_mistake_at_the_top_is_named_once() {
    refused(
        "defaults: { toolTimeout: soon, maxDepth: -1 }\nprojects:\n  bare: { workspace: . }\n  own:\n    workspace: .\n    \
         defaults: { toolTimout: 0, traceMCP: 0, contextBudgetTokens: 0, maxConcurrentCalls: 0 }\n",
        expect![[r#"
            gantry.yaml:1: defaults.toolTimeout must be a whole number of milliseconds, found "soon"
            gantry.yaml:1: defaults.maxDepth must be a whole number, found -1
            gantry.yaml:6: projects.own.defaults.maxConcurrentCalls counts for the whole process; set it under "defaults" at the top of the file
            gantry.yaml:6: projects.own.defaults.traceMCP must be true or false, found 0
            gantry.yaml:6: projects.own.defaults.contextBudgetTokens must be a whole number, at least 1, found 0
            gantry.yaml:6: unknown key "toolTimout" in projects.own.defaults; did you mean "toolTimeout"?"#]],
    );
}

#[test]
fn what_is_for_all_projects_is_not_set_in_one() {
    refused(
        "projects:\n  default: { workspace: . }\n  'a b': { workspace: . }\n  none:\n  some:\n    workspace: .\n    \
         server: {}\n    queues: {}\n    store: {}\n    projects: {}\n    defaults: { maxConcurrentCalls: 1, mcpInitConcurrency: 1 }\n    \
         mcpServer: {}\n    agents: { x: { tols: [] } }\n    tools: { workspace: { queue: disk } }\n",
        expect![[r#"
            gantry.yaml:2: "default" in projects is the file itself; choose another name
            gantry.yaml:3: "a b" in projects must be a name of 1 to 64 letters, digits, _ and -
            gantry.yaml:4: projects.none needs the key "workspace"
            gantry.yaml:7: projects.some.server is set once, at the top of the file; move it there
            gantry.yaml:8: projects.some.queues is set once, at the top of the file, and shared by all projects; move it there
            gantry.yaml:9: projects.some.store is set once, at the top of the file; move it there
            gantry.yaml:10: projects.some.projects is set once, at the top of the file; move it there
            gantry.yaml:11: projects.some.defaults.maxConcurrentCalls counts for the whole process; set it under "defaults" at the top of the file
            gantry.yaml:11: projects.some.defaults.mcpInitConcurrency counts for the whole process; set it under "defaults" at the top of the file
            gantry.yaml:12: unknown key "mcpServer" in projects.some; did you mean "mcpServers"?
            gantry.yaml:13: unknown key "tols" in projects.some.agents.x; did you mean "tools"?
            gantry.yaml:14: projects.some.tools.workspace.queue: unknown queue "disk"; no queue is configured; add it under "queues""#]],
    );
}

#[test]
fn a_variable_that_is_not_set_switches_off_the_server_of_that_project_only() {
    let config = yaml(
        "mcpServers: { s: { command: x } }\n\
         projects: { a: { workspace: ., mcpServers: { s: { command: '${NONE}' } } } }\n",
    );
    assert!(config.main().mcp_servers["s"].off().is_none());
    assert!(config.projects["a"].mcp_servers["s"].off().is_some());
}

#[test]
fn every_workspace_must_be_a_folder() {
    let folder = Folder::with(&[(
        "gantry.yaml",
        "workspace: one\nprojects:\n  a: { workspace: two }\n  b:\n    workspace: .\n",
    )]);
    let (one, two) = (folder.path("one"), folder.path("two"));
    assert_eq!(
        folder.refused(),
        format!(
            "gantry.yaml:1: workspace: {} is not a folder; create it\n\
             gantry.yaml:3: workspace: {} is not a folder; create it",
            one.display(),
            two.display()
        )
    );
}

#[test]
fn all_lock_files_govern_and_all_folders_of_agents_and_tools_are_named() {
    let folder = Folder::with(&[("in/gantry.yaml", "projects: { a: { workspace: . } }")]);
    let source = crate::config::Source { config: Some("in/gantry.yaml".into()), ..folder.source() };
    let loaded = crate::config::Config::load(&source, &crate::config::Env::from([])).unwrap();
    for lock in ["in/gantry.lock", "in/gantry.a.lock", "in/.env", "in/gantry.yaml", "gantry.yaml"] {
        assert!(loaded.config_files.contains(&folder.path(lock)), "{lock}");
    }
    assert_eq!(loaded.definition_roots, [folder.path(""), folder.path("in"), folder.path("in/projects/a")]);
    let folder = Folder::with(&[]);
    assert_eq!(folder.load().definition_roots, [folder.0.path()]);
}

#[test]
fn protected_is_what_gantry_has_read_and_nothing_that_it_would_read_elsewhere() {
    let text = "projects: { o: { workspace: ../other }, p: { workspace: ../third } }";
    let folder = Folder::with(&[
        ("in/gantry.yaml", text),
        ("in/.env", "A=b"),
        ("in/gantry.o.lock", "{}"),
        ("in/agents/a.md", "---\ntools: []\n---\n"),
        ("in/tools/t/tool.json", r#"{ "kind": "builtin", "builtinPolicy": { "name": "fs_read" } }"#),
        ("in/tools/t/other.txt", ""),
        ("in/projects/README.md", ""),
        ("other/.gantry/admin.key", ""),
        ("other/gantry.yaml", ""),
        ("third/agents/x.md", ""),
    ]);
    let source = crate::config::Source { config: Some("in/gantry.yaml".into()), ..folder.source() };
    let loaded = crate::config::Config::load(&source, &crate::config::Env::from([])).unwrap();
    let protected = loaded.protected_paths(&loaded.config.store);
    let paths = |names: &[&str]| names.iter().map(|name| folder.path(name)).collect::<Vec<_>>();
    let hidden = ["in/.env", "in/.gantry", "in/gantry.o.lock", "in/gantry.yaml", "in/tools/t/tool.json"];
    assert_eq!(protected.hidden, paths(&hidden));
    assert_eq!(protected.read_only, paths(&["in/agents/a.md"]));
}

#[test]
fn without_a_configuration_only_the_data_folder_is_protected() {
    let folder = Folder::with(&[(".env", "A=b"), ("projects/README.md", ""), ("tools/t/x.txt", "")]);
    let protected = folder.load().protected_paths(&folder.path(".gantry/gantry.db"));
    assert_eq!((protected.hidden, protected.read_only), (vec![folder.path(".gantry")], Vec::new()));
}

#[test]
fn the_ledger_that_is_open_stays_hidden_when_the_file_names_another() {
    let folder =
        Folder::with(&[("gantry.yaml", "workspace: w\nstore: { url: 'sqlite://new.db' }"), ("w/x", "")]);
    let hidden = folder.load().protected_paths(&folder.path("old.db")).hidden;
    for file in ["old.db", "old.db-wal", "new.db", "new.db-journal", ".gantry"] {
        assert!(hidden.contains(&folder.path(file)), "{file}");
    }
}

#[test]
fn a_ledger_in_a_workspace_is_refused_unless_it_is_in_the_data_folder() {
    let load = |text: &str| {
        let folder = Folder::with(&[("gantry.yaml", text), ("w/deep/x", ""), ("out/x", "")]);
        std::os::unix::fs::symlink("w", folder.path("link")).unwrap();
        crate::config::Config::load(&folder.source(), &crate::config::Env::from([]))
            .map_err(|e| e.to_string())
    };
    for url in ["w/l.db", "w/deep/l.db", "link/deep/l.db", "out/../w/l.db"] {
        let refused = load(&format!("workspace: w\nstore: {{ url: 'sqlite://{url}' }}")).unwrap_err();
        assert!(
            refused.starts_with("gantry.yaml:2: store.url: ") && refused.contains("is in a workspace"),
            "{refused}"
        );
    }
    let other = load("workspace: out\nprojects: { p: { workspace: w } }\nstore: { url: 'sqlite://w/l.db' }");
    assert!(other.unwrap_err().contains("is in a workspace"));
    for url in ["l.db", "out/l.db", ".gantry/l.db", "gone/l.db"] {
        load(&format!("workspace: w\nstore: {{ url: 'sqlite://{url}' }}")).unwrap();
    }
    load("store: { url: 'sqlite://.gantry/l.db' }").unwrap();
}

#[test]
fn a_project_without_policies_is_named_where_the_file_denies_something() {
    let projects = "projects:\n  bare: { workspace: . }\n  none: { workspace: ., policies: [] }\n";
    let with = |decide: &str| {
        let policy = format!("policies: [{{ name: p, tools: ['*'], decide: {decide} }}]\n{projects}");
        Folder::with(&[("gantry.yaml", &policy)]).load().warnings.join("\n")
    };
    expect!["gantry.yaml:3: projects.bare has no policies, and those of the file are not inherited; write its own, or policies: [] if it needs none"].assert_eq(&with("deny"));
    assert_eq!(with("ask"), "");
}

#[test]
fn the_files_of_a_project_are_below_its_folder() {
    let folder = Folder::with(&[
        ("gantry.yaml", "projects: { a: { workspace: w } }"),
        ("w/x", ""),
        ("agents/main.md", "---\ntools: []\n---\n"),
        ("projects/a/agents/theirs.md", "---\ntools: []\n---\n"),
        ("projects/a/tools/t/tool.json", r#"{ "kind": "builtin", "builtinPolicy": { "name": "fs_read" } }"#),
        ("projects/stranger/agents/nobody.md", "---\ntools: []\n---\n"),
    ]);
    let config = folder.load().config;
    assert_eq!(config.main().agents.keys().collect::<Vec<_>>(), ["main"]);
    let a = &config.projects["a"];
    assert_eq!(a.agents.keys().collect::<Vec<_>>(), ["theirs"]);
    assert_eq!(super::catalogue::paths(&a.builtin["t"]), [folder.path("w")]);
}

#[test]
fn a_server_that_is_added_takes_no_id_of_the_catalogue() {
    let folder = Folder::with(&[(
        "gantry.yaml",
        "tools: { files: { kind: builtin, builtinPolicy: { name: fs_read } } }\nqueues: { q: { concurrent: 1 } }\n\
         projects: { a: { workspace: . } }\n",
    )]);
    let loaded = folder.load();
    let env = crate::config::Env::from([]);
    let entry = r#"{ "command": "x", "queue": "q" }"#;
    let error = loaded.read_server(loaded.config.main(), "files", entry, &env).unwrap_err();
    assert_eq!(error.to_string(), "\"files\" is in the catalogue of tools; choose another id");
    let other = &loaded.config.projects["a"];
    let taken = loaded.read_server(other, "outputs", entry, &env).unwrap_err();
    assert!(taken.problems()[0].message().contains("is a name of Gantry's own"), "{taken}");
    let (server, warnings) = loaded.read_server(other, "files", entry, &env).unwrap();
    assert_eq!((server.options.transport().as_str(), warnings.len()), ("stdio", 0));
}
