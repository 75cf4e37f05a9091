//! What Gantry has loaded is read, but no tool changes it. A name that was not loaded is as any other.

use super::*;
use std::os::unix::fs::PermissionsExt;

impl Bench {
    /// A workspace with the definitions that Gantry has loaded.
    fn with_catalogue() -> Self {
        let bench = Self::new();
        let loaded = ["agents/a.md", "agents/b/agent.json", "tools/t/tool.json"];
        loaded.iter().for_each(|path| bench.put(path, "definition"));
        bench.loading(&loaded)
    }

    /// The same files, of which Gantry has loaded these.
    fn loading(self, paths: &[&str]) -> Self {
        let read_only = paths.iter().map(|path| self.ws(path)).collect();
        self.fenced(ProtectedPaths { read_only, ..ProtectedPaths::default() })
    }

    /// Nothing comes of these calls.
    #[track_caller]
    fn denies(&self, calls: impl IntoIterator<Item = (&'static str, Value)>) {
        let before = self.tree("ws");
        for (tool, arguments) in calls {
            let error = self.approved(tool, arguments.clone()).error();
            assert_eq!(error.code.as_str(), "PERMISSION_DENIED", "{tool} {arguments}: {error:?}");
        }
        assert_eq!(self.tree("ws"), before);
    }

    #[track_caller]
    fn denies_writing(&self, paths: &[&str]) {
        for path in paths {
            self.denies([("write_file", json!({ "path": path, "content": "mine", "createDirs": true }))]);
        }
    }

    #[track_caller]
    fn denies_moving(&self, moves: &[(&str, &str)]) {
        for (from, to) in moves {
            self.denies([("move_file", json!({ "from": from, "to": to, "overwrite": true }))]);
        }
    }

    #[track_caller]
    fn moves(&self, from: &str, to: &str) {
        self.call("move_file", json!({ "from": from, "to": to })).done();
    }

    #[track_caller]
    fn writes(&self, path: &str) {
        self.approved("write_file", json!({ "path": path, "content": "w", "createDirs": true })).done();
    }
}

#[test]
fn pol_6_a_definition_is_read_but_not_changed_by_any_tool() {
    let bench = Bench::with_catalogue();
    bench.put("mover", "mine");
    bench.link("agents", "l");
    bench.link("tools/t/tool.json", "f");
    for path in
        ["agents/a.md", "agents/b/agent.json", "tools/t/tool.json", "l/a.md", "tools/../l/b/agent.json"]
    {
        assert_eq!(bench.call("read_file", json!({ "path": path })).done()["content"], "definition");
        bench.denies(every_tool(path).into_iter().skip(2));
    }
    bench.denies_writing(&["f"]);
    let listed = bench.call("list_directory", json!({ "path": "agents", "recursive": true })).done();
    assert_eq!(listed["entries"].as_array().unwrap().len(), 3);
    let error = bench.call("write_file", json!({ "path": "agents/a.md", "content": "" })).error();
    assert!(
        error.message.contains("configures Gantry") && error.message.contains("ask a person"),
        "{error:?}"
    );
}

#[test]
fn pol_6_a_name_that_was_not_loaded_is_as_any_other() {
    let bench = Bench::with_catalogue();
    bench.put("projects/README.md", "plain");
    bench.put("mine/agent.json", "mine");
    bench.link("mine", "link");
    for path in [
        "agents/x.md",
        "agents/x/agent.json",
        "agents/b/notes.md",
        "tools/build.sh",
        "tools/t/other.txt",
        "tools/x/tool.json",
        "projects/new/agents/x.md",
        "projects/README.md",
        "gantry.toml",
        "gantry.zz.lock",
        ".env",
        "AGENTS/a.md",
    ] {
        bench.writes(path);
    }
    bench.moves("mine", "agents/mine");
    bench.moves("link", "tools/link");
    bench.moves("projects", "elsewhere");
    bench.moves("tools/x", "other");
    for path in ["agents/x", "elsewhere", "tools/t/other.txt", ".env"] {
        bench.approved("delete_file", json!({ "path": path, "recursive": true })).done();
    }
    for path in ["agents/a.md", "agents/b/agent.json", "tools/t/tool.json"] {
        assert_eq!(bench.read(path), "definition");
    }
}

#[test]
fn pol_6_a_loaded_file_that_is_gone_is_as_any_other() {
    let bench = Bench::with_catalogue();
    fs::remove_file(bench.ws("agents/b/agent.json")).unwrap();
    bench.moves("agents/b", "away");
    bench.writes("agents/b/agent.json");
    // Now that it is there again, it is protected again: Gantry names it.
    bench.denies_writing(&["agents/b/agent.json"]);
}

#[test]
fn pol_6_no_folder_with_loaded_files_is_moved_replaced_or_deleted() {
    let bench = Bench::with_catalogue();
    fs::create_dir(bench.ws("empty")).unwrap();
    for path in ["agents", "agents/b", "tools", "tools/t"] {
        bench.denies([
            ("delete_file", json!({ "path": path, "recursive": true })),
            ("move_file", json!({ "from": path, "to": "away" })),
        ]);
        bench.denies_moving(&[("empty", path)]);
    }
}

#[test]
fn pol_6_beneath_a_protected_folder_everything_is_protected() {
    let bench = Bench::new();
    bench.put("venv/lib/x.py", "x");
    bench.put("mine", "mine");
    bench.link("venv/lib", "l");
    let bench = bench.loading(&["venv"]);
    assert_eq!(bench.call("read_file", json!({ "path": "venv/lib/x.py" })).done()["content"], "x");
    bench.denies_writing(&["venv/lib/x.py", "venv/lib/new.py", "venv/new/x.py", "l/x.py", "l/new"]);
    bench.denies_moving(&[
        ("venv/lib/x.py", "away"),
        ("venv/lib", "away"),
        ("venv", "away"),
        ("mine", "l/x"),
    ]);
    bench.denies([
        ("delete_file", json!({ "path": "venv/lib/x.py" })),
        ("delete_file", json!({ "path": "venv", "recursive": true })),
    ]);
}

#[test]
fn pol_6_a_loaded_file_is_kept_under_every_name() {
    let bench = Bench::new();
    bench.put("agents/a.md", "definition");
    fs::hard_link(bench.ws("agents/a.md"), bench.ws("hard")).unwrap();
    bench.link("agents/a.md", "soft");
    bench.put("mine", "mine");
    let bench = bench.loading(&["agents/a.md"]);
    bench.denies_writing(&["hard", "soft"]);
    bench.denies_moving(&[("mine", "hard"), ("hard", "away")]);
    assert_eq!(bench.call("read_file", json!({ "path": "hard" })).done()["content"], "definition");
}

#[test]
fn pol_6_what_a_loaded_link_leads_to_is_protected_too() {
    let bench = Bench::new();
    bench.put("prompts/a.md.txt", "definition");
    bench.put("prompts/free.txt", "");
    bench.put("dirs/b/agent.json", "definition");
    bench.put("mine/agent.json", "mine");
    bench.put("common/tools/t/tool.json", "definition");
    bench.put("deep/er/v.txt", "definition");
    bench.put("tools2/t/notes.txt", "");
    fs::create_dir(bench.ws("agents")).unwrap();
    bench.link("../prompts/a.md.txt", "agents/a.md");
    bench.link("hop", "agents/b");
    bench.link("../dirs/b", "agents/hop");
    bench.link("common/tools", "tools");
    bench.link("deep/er", "via");
    bench.link("../../via/v.txt", "tools2/t/tool.json");
    let loaded = ["agents/a.md", "agents/b/agent.json", "tools/t/tool.json", "tools2/t/tool.json"];
    let bench = bench.loading(&loaded);
    bench.denies_writing(&["agents/a.md", "prompts/a.md.txt", "dirs/b/agent.json", "agents/b/agent.json"]);
    bench.denies_writing(&["tools/t/tool.json", "common/tools/t/tool.json", "via/v.txt", "deep/er/v.txt"]);
    for path in [
        "prompts",
        "dirs",
        "dirs/b",
        "agents",
        "agents/a.md",
        "agents/b",
        "agents/hop",
        "tools",
        "common",
        "common/tools",
        "via",
        "deep",
        "deep/er",
        "deep/er/v.txt",
        "tools2",
        "tools2/t",
        "tools2/t/tool.json",
    ] {
        bench.denies_moving(&[(path, "away"), ("mine", path)]);
        bench.denies([("delete_file", json!({ "path": path, "recursive": true }))]);
    }
    for path in
        ["prompts/free.txt", "dirs/b/notes.txt", "common/tools/new/tool.json", "common/x", "agents/c.md"]
    {
        bench.writes(path);
    }
}

#[test]
fn pol_6_a_workspace_inside_of_a_folder_with_loaded_files_is_fenced_too() {
    let bench = Bench::new();
    bench.put("agents/b/agent.json", "definition");
    for (workspace, denied) in [("agents", "b/agent.json"), ("agents/b", "agent.json")] {
        let fenced =
            ProtectedPaths { read_only: vec![bench.ws("agents/b/agent.json")], ..ProtectedPaths::default() };
        let root = WorkspaceRoot::open(&bench.ws(workspace), fenced).unwrap();
        let inner = Bench::new().on(root);
        let write = json!({ "path": denied, "content": "mine" });
        assert_eq!(inner.approved("write_file", write).code(), "PERMISSION_DENIED", "{workspace}");
        inner.writes("notes.txt");
    }
    assert_eq!(bench.read("agents/b/agent.json"), "definition");
}

#[test]
fn pol_6_a_closed_folder_on_the_way_to_a_loaded_file_stays_where_it_is_and_hinders_nothing_else() {
    // Nothing is closed to root.
    if rustix::process::geteuid().is_root() {
        return;
    }
    let bench = Bench::with_catalogue();
    let mode = |mode| fs::set_permissions(bench.ws("tools/t"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0);
    let answer = bench.approved("move_file", json!({ "from": "tools/t", "to": "away" }));
    bench.writes("tools/build.sh");
    mode(0o700);
    assert_eq!(answer.code(), "PERMISSION_DENIED");
}

#[test]
fn a_link_on_the_way_to_what_configures_gantry_is_not_exchanged() {
    let bench = Bench::new();
    bench.put("real/gantry.yaml", "");
    bench.put("mine/gantry.yaml", "mine");
    bench.link("real", "l");
    let bench = bench.loading(&["l/gantry.yaml"]);
    bench.denies_moving(&[("l", "away"), ("real", "away"), ("mine", "l")]);
    bench.denies([("delete_file", json!({ "path": "l" }))]);
}
