//! What defines agents and tools is read, but no tool changes it, makes it or brings it along.

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::thread;

impl Bench {
    /// A workspace whose root is a catalogue with some definitions.
    fn with_catalogue() -> Self {
        let bench = Self::new();
        for path in ["agents/a.md", "agents/b/agent.json", "tools/t/tool.json"] {
            bench.put(path, "definition");
        }
        let catalogue = bench.ws("");
        bench.catalogued(catalogue)
    }

    fn catalogued(self, catalogue: PathBuf) -> Self {
        self.fenced(ProtectedPaths { definition_dirs: vec![catalogue], ..ProtectedPaths::default() })
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
fn pol_6_a_definition_that_does_not_exist_cannot_be_made() {
    let bench = Bench::new();
    bench.put("mine", "mine");
    let root = bench.ws("");
    let bench = bench.catalogued(root);
    let paths =
        ["agents/x.md", "agents/x/agent.json", "tools/x/tool.json", "AGENTS/X.MD", "Tools/x/Tool.Json"];
    bench.denies_writing(&paths);
    bench.denies_writing(&["./agents//x.md", "agents/x.md/notes.txt", "agents/x.md/agent.json"]);
    fs::create_dir_all(bench.ws("agents/x")).unwrap();
    fs::create_dir_all(bench.ws("tools/x")).unwrap();
    bench.link("agents/x", "l");
    bench.denies_writing(&["agents/x.md", "agents/y.md", "agents/x/agent.json", "agents/x/../y/agent.json"]);
    bench.denies_writing(&["tools/x/tool.json", "tools/y/tool.json", "l/agent.json", "l/../y.Md"]);
    bench.denies_moving(&[("mine", "agents/x.md"), ("mine", "l/agent.json"), ("mine", "tools/x/TOOL.json")]);
    assert!(!bench.ws("agents/y").exists() && !bench.ws("tools/y").exists());
}

#[test]
fn pol_6_what_would_define_something_for_a_later_project_cannot_be_made() {
    let bench = Bench::new();
    bench.put("mover", "mine");
    bench.put("one/agents/x.md", "mine");
    bench.put("two/tools/x/tool.json", "mine");
    bench.put("many/new/agents/x.md", "mine");
    bench.put("empty/notes.txt", "");
    bench.link("one", "link");
    let root = bench.ws("");
    let bench = bench.catalogued(root);
    let paths =
        ["projects/new/agents/x.md", "projects/new/agents/x/agent.json", "Projects/new/tools/x/tool.json"];
    bench.denies_writing(&paths);
    bench.denies_writing(&["gantry.lock", "gantry.zz.lock", "Gantry.a.b.LOCK"]);
    bench.denies_moving(&[("mover", "gantry.zz.lock"), ("many", "projects"), ("link", "projects")]);
    bench.writes("projects/new/notes.txt");
    bench.denies_writing(&paths);
    bench.denies_moving(&[("one", "projects/other"), ("two", "projects/other"), ("link", "projects/other")]);
    bench.denies_moving(&[("one/agents", "projects/new/agents"), ("two/tools", "projects/new/tools")]);
    bench.put("projects/old/agents/x.md", "definition");
    bench.put("gantry.old.lock", "definition");
    bench.denies(every_tool("projects/old/agents/x.md").into_iter().skip(2));
    bench.denies(every_tool("gantry.old.lock").into_iter().skip(2));
    bench.denies_moving(&[("projects", "away"), ("projects/old", "away"), ("projects/old/agents", "away")]);
    for path in [
        "projects/old/notes.txt",
        "projects/old/src/agents/x.md",
        "gantryx.lock",
        "gantry.lock.md",
        "Cargo.lock",
    ] {
        bench.writes(path);
    }
    bench.moves("empty", "projects/empty");
    bench.moves("projects/new", "projects/newer");
}

#[test]
fn pol_6_other_files_beside_the_definitions_stay_writable() {
    let bench = Bench::with_catalogue();
    bench.put("files/agent.txt", "");
    for path in [
        "tools/build.sh",
        "tools/tool.json",
        "tools/new.md",
        "tools/t/src/tool.json",
        "tools/t/agent.json",
        "agents/b/notes.txt",
        "agents/b/notes.md",
        "agents/readme.txt",
        "agents/agent.json",
        "agents/b/c/agent.json",
        "sub/agents/x.md",
        "sub/tools/t/tool.json",
        "agent.json",
        "a.md",
    ] {
        bench.writes(path);
        bench.writes(path);
        bench.moves(path, "elsewhere");
        bench.moves("elsewhere", path);
        bench.approved("delete_file", json!({ "path": path })).done();
    }
    bench.moves("files", "agents/files");
    bench.moves("agents/files", "tools/files");
    bench.approved("delete_file", json!({ "path": "tools/files", "recursive": true })).done();
}

#[test]
fn pol_6_folders_without_definitions_come_and_go() {
    let bench = Bench::new();
    let root = bench.ws("");
    let bench = bench.catalogued(root);
    bench.writes("agents/x/notes.txt");
    bench.moves("agents", "other");
    bench.moves("other", "tools");
    bench.approved("delete_file", json!({ "path": "tools", "recursive": true })).done();
    bench.put("x.md", "a file");
    bench.moves("x.md", "agents");
    assert_eq!(bench.read("agents"), "a file");
}

#[test]
fn pol_6_no_folder_brings_definitions_along() {
    let bench = Bench::new();
    bench.put("one/agent.json", "mine");
    bench.put("one/notes.txt", "");
    bench.put("two/tool.json", "mine");
    bench.put("all/one/agent.json", "mine");
    bench.put("every/two/tool.json", "mine");
    bench.put("marked/x.MD", "mine");
    bench.put("linked/notes.txt", "");
    bench.link("../one", "linked/l");
    bench.link("one", "link");
    let root = bench.ws("");
    let bench = bench.catalogued(root);
    let top = [("all", "agents"), ("marked", "Agents"), ("linked", "agents"), ("link", "agents")];
    bench.denies_moving(&top);
    bench.denies_moving(&[("every", "tools"), ("linked", "tools"), ("link", "tools")]);
    fs::create_dir(bench.ws("agents")).unwrap();
    fs::create_dir(bench.ws("tools")).unwrap();
    bench.denies_moving(&[
        ("one", "agents/x"),
        ("link", "agents/x"),
        ("one", "agents/x.md"),
        ("link", "agents/x.md"),
    ]);
    bench.denies_moving(&[("two", "tools/x"), ("link", "tools/x")]);
    // What defines nothing at the place where it comes to be is free to go there.
    bench.moves("one", "tools/one");
    bench.moves("tools/one", "one");
    bench.moves("two", "agents/two");
    bench.moves("all", "agents/all");
    bench.moves("marked", "sub");
}

#[test]
fn pol_6_no_folder_with_definitions_is_moved_or_deleted() {
    let bench = Bench::with_catalogue();
    for path in ["agents", "agents/b", "tools", "tools/t"] {
        bench.denies([
            ("delete_file", json!({ "path": path, "recursive": true })),
            ("move_file", json!({ "from": path, "to": "away" })),
        ]);
    }
    let bench = Bench::new();
    bench.put("p/q/f", "");
    bench.put("other/agents/x.md", "mine");
    let catalogue = bench.ws("p/q");
    let bench = bench.catalogued(catalogue);
    // Even while it is without definitions, so that no other folder can take its place.
    for path in ["p", "p/q"] {
        bench.denies([
            ("delete_file", json!({ "path": path, "recursive": true })),
            ("move_file", json!({ "from": path, "to": "away" })),
        ]);
    }
    bench.denies_writing(&["p/q/agents/x.md"]);
    bench.writes("p/agents/x.md");
    fs::rename(bench.ws("p"), bench.ws("away")).unwrap();
    bench.denies_moving(&[("other", "p")]);
    bench.denies_writing(&["p/q/f"]);
}

#[test]
fn pol_6_what_a_link_in_a_catalogue_leads_to_is_a_definition_too() {
    let bench = Bench::new();
    bench.put("prompts/a.md.txt", "definition");
    bench.put("prompts/free.txt", "");
    bench.put("dirs/b/agent.json", "definition");
    bench.put("dirs/empty/notes.txt", "");
    bench.put("scripts/build.sh", "");
    bench.put("mine/agent.json", "mine");
    bench.put("mine/tool.json", "mine");
    bench.put("evil/a.md.txt", "mine");
    fs::create_dir(bench.ws("agents")).unwrap();
    bench.link("../prompts/a.md.txt", "agents/a.md");
    bench.link("../prompts/later.txt", "agents/later.md");
    bench.link("../dirs/b", "agents/b");
    bench.link("../dirs/empty", "agents/empty");
    bench.link("hop", "agents/hopping");
    bench.link("../dirs/none", "agents/hop");
    bench.link("common/tools", "tools");
    bench.put("common/tools/t/tool.json", "definition");
    bench.link("../../scripts/build.sh", "common/tools/build.sh");
    let root = bench.ws("");
    let bench = bench.catalogued(root);

    bench.denies_writing(&["agents/a.md", "prompts/a.md.txt", "prompts/later.txt", "dirs/b/agent.json"]);
    bench.denies_writing(&["agents/later.md", "dirs/empty/agent.json", "dirs/none/agent.json"]);
    bench.denies_writing(&["tools/t/tool.json", "common/tools/new/tool.json", "common/tools/t/tool.json"]);
    let swaps = [
        ("prompts", "x"),
        ("dirs", "x"),
        ("dirs/b", "x"),
        ("agents/b", "x"),
        ("tools", "x"),
        ("common", "x"),
    ];
    bench.denies_moving(&swaps);
    bench.denies_moving(&[("mine", "dirs/none"), ("mine", "agents/x"), ("agents/empty", "agents/x")]);
    bench.approved("delete_file", json!({ "path": "dirs/empty", "recursive": true })).done();
    bench.denies_moving(&[("mine", "dirs/empty")]);

    for path in
        ["prompts/free.txt", "dirs/b/notes.txt", "scripts/build.sh", "common/tools/build.sh", "common/x"]
    {
        bench.writes(path);
    }
    bench.approved("delete_file", json!({ "path": "scripts/build.sh" })).done();
    bench.denies_moving(&[("mine", "scripts/build.sh"), ("scripts", "x")]);
}

#[test]
fn pol_6_what_a_link_in_a_catalogue_leads_to_is_not_exchanged() {
    let bench = Bench::new();
    bench.put("shared/notes.txt", "");
    bench.put("mine/x.md", "mine");
    bench.put("deep/er/v.txt", "definition");
    bench.put("tools/t/notes.txt", "");
    bench.link("shared/agents", "agents");
    bench.link("deep/er", "via");
    bench.link("../../via/v.txt", "tools/t/tool.json");
    let root = bench.ws("");
    let bench = bench.catalogued(root);
    bench.denies_writing(&["shared/agents/x.md", "shared/agents/x/agent.json"]);
    bench.denies_moving(&[("mine", "shared/agents"), ("shared", "away"), ("tools/t", "away")]);
    bench.denies_moving(&[("via", "away"), ("deep", "away"), ("deep/er", "away"), ("deep/er/v.txt", "away")]);
    bench.denies([("delete_file", json!({ "path": "via" }))]);
    bench.writes("shared/agents/x/notes.txt");
    bench.denies_writing(&["shared/agents/x.md", "agents/x/agent.json", "shared/agents/x/agent.json"]);
}

#[test]
fn pol_6_a_catalogue_around_the_workspace_counts() {
    let bench = Bench::new();
    bench.put("agents/b/agent.json", "definition");
    for (workspace, denied, free) in [
        ("agents", ["x.md", "x/agent.json", "b/agent.json"], "x/notes.txt"),
        ("agents/b", ["agent.json", "Agent.json", "./agent.json"], "x.md"),
    ] {
        let fenced = ProtectedPaths { definition_dirs: vec![bench.ws("")], ..ProtectedPaths::default() };
        let root = WorkspaceRoot::open(&bench.ws(workspace), fenced).unwrap();
        let inner = Bench::new().on(root);
        for path in denied {
            let write = json!({ "path": path, "content": "mine", "createDirs": true });
            assert_eq!(
                inner.approved("write_file", write).code(),
                "PERMISSION_DENIED",
                "{workspace}: {path}"
            );
        }
        inner.writes(free);
    }
    assert_eq!(bench.read("agents/b/agent.json"), "definition");
}

#[test]
fn pol_6_nothing_is_changed_while_it_is_unknown_what_is_defined() {
    let bench = Bench::new();
    fs::create_dir(bench.ws("tools")).unwrap();
    for n in 0..=crate::workspace::definitions::ENTRIES {
        fs::write(bench.ws(&format!("tools/{n}")), "").unwrap();
    }
    let root = bench.ws("");
    let bench = bench.catalogued(root);
    let error = bench.call("write_file", json!({ "path": "f", "content": "" })).error();
    assert_eq!(error.code.as_str(), "PERMISSION_DENIED");
    assert!(error.message.contains("tools has more than 10000 entries"), "{}", error.message);
    bench.call("read_file", json!({ "path": "tools/0" })).done();
    fs::remove_file(bench.ws("tools/0")).unwrap();
    bench.writes("f");
}

#[test]
fn pol_6_a_closed_folder_in_a_catalogue_stays_where_it_is_and_hinders_nothing_else() {
    // Nothing is closed to root.
    if rustix::process::geteuid().is_root() {
        return;
    }
    let bench = Bench::with_catalogue();
    bench.put("tools/closed/tool.json", "definition");
    bench.put("projects/closed/agents/x.md", "definition");
    let closed = ["tools/closed", "projects/closed"];
    let mode = |mode| {
        for path in closed {
            fs::set_permissions(bench.ws(path), fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    mode(0);
    let answers = closed.map(|path| bench.approved("move_file", json!({ "from": path, "to": "away" })));
    bench.writes("tools/build.sh");
    mode(0o700);
    for answer in answers {
        assert_eq!(answer.code(), "PERMISSION_DENIED");
    }
}

#[test]
fn pol_6_a_definition_is_not_written_into_a_folder_that_is_moved_into_a_catalogue_meanwhile() {
    let bench = Bench::new();
    fs::create_dir(bench.ws("agents")).unwrap();
    let root = bench.ws("");
    let bench = bench.catalogued(root);
    let content = "x".repeat(100_000);
    let (mut written, mut moved) = (0, 0);
    for round in 0..300 {
        let (from, to) = (format!("d{round}"), format!("agents/d{round}"));
        fs::create_dir(bench.ws(&from)).unwrap();
        let write = json!({ "path": format!("{from}/agent.json"), "content": content });
        let write = bench.permit("write_file", &write).unwrap();
        let moving = bench.permit("move_file", &json!({ "from": from, "to": to })).unwrap();
        let answers: Vec<Answer> = thread::scope(|scope| {
            let running = [&write, &moving].map(|permit| scope.spawn(|| bench.run(permit)));
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let done =
            answers.iter().map(|answer| usize::from(matches!(answer, Answer::Done(_)))).collect::<Vec<_>>();
        assert!(!bench.ws(&format!("{to}/agent.json")).exists(), "{answers:?}");
        (written, moved) = (written + done[0], moved + done[1]);
    }
    assert!(written + moved >= 300, "{written} {moved}");
}

#[test]
fn a_link_on_the_way_to_what_configures_gantry_is_not_exchanged() {
    let bench = Bench::new();
    bench.put("real/gantry.yaml", "");
    bench.put("mine/gantry.yaml", "mine");
    bench.link("real", "l");
    let read_only = vec![bench.ws("l/gantry.yaml")];
    let bench = bench.fenced(ProtectedPaths { read_only, ..ProtectedPaths::default() });
    bench.denies_moving(&[("l", "away"), ("real", "away"), ("mine", "l")]);
    bench.denies([("delete_file", json!({ "path": "l" }))]);
}
