//! What the tools leave alone: Gantry's own data, and what makes git run programs.

use super::*;

#[test]
fn gantrys_own_data_is_neither_read_nor_changed_nor_listed() {
    let bench = Bench::new();
    fs::create_dir(bench.ws("d")).unwrap();
    bench.put("mover", "MOVER");
    bench.link(".gantry", "l");
    bench.link("../.gantry", "d/l");
    bench.link(".", "self");
    let before = bench.tree("ws/.gantry");
    let paths =
        [".gantry/gantry.db", ".gantry/new", "l/gantry.db", "d/l/gantry.db", "self/.gantry/gantry.db"];
    let deeper = [".gantry/none/x", ".gantry/gantry.db/x", "d/../l/gantry.db", "./d/l/../.gantry/gantry.db"];
    for path in paths.into_iter().chain(deeper) {
        for (tool, arguments) in every_tool(path) {
            assert_eq!(bench.approved(tool, arguments).code(), "PERMISSION_DENIED", "{tool} {path}");
        }
    }
    for path in ["l", "d/l", "l/."] {
        let list = json!({ "path": path, "includeHidden": true });
        assert_eq!(bench.call("list_directory", list).code(), "PERMISSION_DENIED", "{path}");
    }
    let all =
        bench.call("list_directory", json!({ "path": ".", "recursive": true, "includeHidden": true })).done();
    assert!(!all.to_string().contains("gantry"), "{all}");
    assert_eq!(bench.tree("ws/.gantry"), before);
}

#[test]
fn a_directory_around_protected_data_is_neither_deleted_nor_moved() {
    let bench = Bench::new();
    bench.put("a/b/data/db", "SECRET");
    bench.put("a/f", "f");
    let hidden = hiding(bench.ws("a/b/data"));
    let bench = bench.fenced(hidden);
    let before = bench.tree("ws");
    for path in ["a", "a/b", "a/b/data"] {
        let delete = json!({ "path": path, "recursive": true });
        assert_eq!(bench.approved("delete_file", delete).code(), "PERMISSION_DENIED", "{path}");
        let moving = json!({ "from": path, "to": "moved" });
        assert_eq!(bench.approved("move_file", moving).code(), "PERMISSION_DENIED", "{path}");
    }
    assert_eq!(bench.tree("ws"), before);
    bench.call("move_file", json!({ "from": "a/f", "to": "a/g" })).done();
}

#[test]
fn protected_data_that_comes_to_be_is_protected_from_then_on() {
    let bench = Bench::new();
    bench.link(".", "self");
    let hidden = hiding(bench.ws("later/data"));
    let bench = bench.fenced(hidden);
    bench.call("write_file", json!({ "path": "later/other", "content": "", "createDirs": true })).done();
    fs::create_dir(bench.ws("later/data")).unwrap();
    for path in ["later/data/x", "self/later/data/x"] {
        let write = json!({ "path": path, "content": "" });
        assert_eq!(bench.call("write_file", write).code(), "PERMISSION_DENIED", "{path}");
    }
}

#[test]
fn a_single_protected_file_is_kept_by_any_name() {
    let bench = Bench::new();
    bench.put("gantry.yaml", "SECRET");
    fs::hard_link(bench.ws("gantry.yaml"), bench.ws("other")).unwrap();
    bench.link("gantry.yaml", "l");
    let hidden = hiding(bench.ws("gantry.yaml"));
    let bench = bench.fenced(hidden);
    for path in ["gantry.yaml", "other", "l"] {
        assert_eq!(bench.call("read_file", json!({ "path": path })).code(), "PERMISSION_DENIED", "{path}");
        let write = json!({ "path": path, "content": "" });
        assert_eq!(bench.approved("write_file", write).code(), "PERMISSION_DENIED", "{path}");
    }
    let all = bench.call("list_directory", json!({ "path": ".", "includeHidden": true })).done();
    assert!(!all.to_string().contains("other") && !all.to_string().contains("gantry.yaml"), "{all}");
}

#[test]
fn what_configures_gantry_is_read_but_not_changed() {
    let bench = Bench::new();
    bench.put("gantry.yaml", "agents: {}");
    bench.put("sub/x", "x");
    bench.link("gantry.yaml", "l");
    let fenced = ProtectedPaths {
        read_only: vec![bench.ws("gantry.yaml"), bench.ws("sub/x")],
        ..ProtectedPaths::default()
    };
    let bench = bench.fenced(fenced);
    assert_eq!(bench.call("read_file", json!({ "path": "gantry.yaml" })).done()["content"], "agents: {}");
    for path in ["gantry.yaml", "l", "sub/x"] {
        let write = json!({ "path": path, "content": "" });
        assert_eq!(bench.approved("write_file", write).code(), "PERMISSION_DENIED", "{path}");
    }
    for path in ["gantry.yaml", "sub"] {
        let delete = json!({ "path": path, "recursive": true });
        assert_eq!(bench.approved("delete_file", delete).code(), "PERMISSION_DENIED", "{path}");
        let away = json!({ "from": path, "to": "away" });
        assert_eq!(bench.approved("move_file", away).code(), "PERMISSION_DENIED", "{path}");
    }
    bench.put("mine", "workspace: /");
    let onto = json!({ "from": "mine", "to": "gantry.yaml", "overwrite": true });
    assert_eq!(bench.approved("move_file", onto).code(), "PERMISSION_DENIED");
}

#[test]
fn what_makes_git_run_programs_is_read_but_not_changed() {
    let bench = Bench::new();
    bench.put(".git/config", "SECRET");
    bench.put(".git/hooks/pre-commit", "SECRET");
    bench.put(".git/index", "index");
    bench.put("sub/.git/config", "SECRET");
    bench.put("sub/f", "");
    bench.put("evil/config", "");
    bench.put("mover", "MOVER");
    bench.link(".git", "g");
    bench.link(".git/hooks", "h");
    let before = bench.tree("ws");
    let paths = [
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/hooks/new",
        ".git/hooks/a/b",
        "g/config",
        "h/pre-commit",
    ];
    let others =
        ["sub/.git/config", ".git/commondir", ".git/modules/m/config", ".GIT/config", "g/../.git/config"];
    for path in paths.into_iter().chain(others) {
        for (tool, arguments) in every_tool(path).into_iter().skip(2) {
            let error = bench.approved(tool, arguments.clone()).error();
            let missing = error.code.as_str() == "FILE_NOT_FOUND" && !bench.ws(path).exists();
            assert!(missing || error.code.as_str() == "PERMISSION_DENIED", "{tool} {arguments}: {error:?}");
        }
    }
    for (tool, arguments) in [
        ("move_file", json!({ "from": ".git", "to": "other" })),
        ("move_file", json!({ "from": "evil", "to": "evil/.git" })),
        ("move_file", json!({ "from": "evil", "to": ".git/hooks", "overwrite": true })),
        ("move_file", json!({ "from": "evil", "to": "sub/.git" })),
        ("delete_file", json!({ "path": ".git", "recursive": true })),
        ("delete_file", json!({ "path": "sub", "recursive": true })),
        ("write_file", json!({ "path": "evil/.git", "content": "gitdir: ." })),
        ("write_file", json!({ "path": "new/.git/config", "content": "", "createDirs": true })),
    ] {
        assert_eq!(bench.approved(tool, arguments.clone()).code(), "PERMISSION_DENIED", "{tool} {arguments}");
    }
    assert_eq!(bench.tree("ws"), before);
    assert_eq!(bench.call("read_file", json!({ "path": ".git/config" })).done()["content"], "SECRET");
    bench.approved("delete_file", json!({ "path": ".git/index" })).done();
    bench
        .call("write_file", json!({ "path": ".git/info/exclude", "content": "x", "createDirs": true }))
        .done();
    bench.call("move_file", json!({ "from": "sub", "to": "renamed" })).done();
}

#[test]
fn a_repository_that_a_git_file_leads_to_is_read_but_not_changed() {
    let bench = Bench::new();
    bench.put("mover", "MOVER");
    bench.put(".git", "gitdir: deep/tree\n");
    bench.put("deep/tree/commondir", "../.bare\n");
    bench.put("deep/tree/config", "SECRET");
    bench.put("deep/.bare/config", "SECRET");
    bench.put("deep/.bare/hooks/pre-commit", "SECRET");
    bench.link("deep/.bare", "bare");
    let before = bench.tree("ws");
    let sealed = ["config", "hooks/pre-commit", "hooks/new", "modules/m/config", "config.worktree"];
    let names =
        sealed.iter().flat_map(|name| ["deep/.bare", "deep/tree", "bare"].map(|at| format!("{at}/{name}")));
    for path in names.chain(["deep/tree/commondir".to_owned()]) {
        for (tool, arguments) in every_tool(&path).into_iter().skip(2) {
            let error = bench.approved(tool, arguments.clone()).error();
            let missing = error.code.as_str() == "FILE_NOT_FOUND" && !bench.ws(&path).exists();
            assert!(missing || error.code.as_str() == "PERMISSION_DENIED", "{tool} {arguments}: {error:?}");
        }
    }
    for path in ["deep", "deep/.bare", "deep/tree", "bare/hooks"] {
        for (tool, arguments) in [
            ("move_file", json!({ "from": path, "to": "other" })),
            ("delete_file", json!({ "path": path, "recursive": true })),
        ] {
            assert_eq!(bench.approved(tool, arguments).code(), "PERMISSION_DENIED", "{tool} {path}");
        }
    }
    assert_eq!(bench.tree("ws"), before);
    bench.call("write_file", json!({ "path": "deep/.bare/HEAD", "content": "x" })).done();
    bench.call("write_file", json!({ "path": "deep/plain", "content": "x" })).done();
}
