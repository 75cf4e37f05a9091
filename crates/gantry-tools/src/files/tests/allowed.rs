//! The file tools of a catalogue entry: which they are, and that they work at the allowed paths and nowhere else.

use super::*;
use crate::builtin::BuiltinProvider;
use gantry_core::ToolKind;
use gantry_core::names::Style;
use gantry_provider::Provider as _;
use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::collections::BTreeSet;

/// The provider of an entry `files` that allows these paths.
fn entry(bench: &Bench, tools: FsTools, allowed: &[&str]) -> Result<ToolBox, Error> {
    let allowed_paths = allowed.iter().map(|path| bench.ws(path)).collect();
    let policy = FilePolicy { allowed_paths, ..FilePolicy::default() };
    catalogue_tools("files", &bench.ws(""), hiding(bench.ws(".gantry")), tools, &policy)
}

impl Bench {
    fn confined(self, protected: ProtectedPaths, allowed: &[PathBuf]) -> Self {
        let root = WorkspaceRoot::open(&self.ws(""), protected).unwrap();
        let allowed = Allowed::new("files", &self.ws(""), allowed).unwrap();
        self.on(root.confined(allowed))
    }

    /// The same files, to which the tools (all of them, so that each is tried) have access at these paths.
    fn allowing(self, allowed: &[&str]) -> Self {
        let allowed: Vec<_> = allowed.iter().map(|path| self.ws(path)).collect();
        let hidden = hiding(self.ws(".gantry"));
        self.confined(hidden, &allowed)
    }

    /// Files to try things on: `docs` is allowed.
    fn with_docs() -> Self {
        let bench = Self::new();
        bench.put("docs/a.txt", "a");
        bench.put("docs/sub/b.txt", "b");
        bench.put("docs/mover", "m");
        bench.put("src/secret", "SECRET");
        bench.put("src/sub/secret", "SECRET");
        bench.put("docs2/secret", "SECRET");
        bench.allowing(&["docs"])
    }
}

/// A call of each tool that takes this path, the other end of a move being allowed.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    let mut calls = every_tool(path);
    calls.retain(|(tool, _)| *tool != "move_file");
    calls.push(("move_file", json!({ "from": path, "to": "docs/moved", "overwrite": true })));
    calls.push(("move_file", json!({ "from": "docs/mover", "to": path, "overwrite": true })));
    calls
}

#[track_caller]
fn refused(bench: &Bench, path: &str) {
    let before = bench.tree("ws");
    for (tool, arguments) in calls(path) {
        let error = bench.approved(tool, arguments).error();
        // A path that cannot be meant is refused as such.
        let malformed = error.code.as_str() == "INVALID_PATH" && tool != "list_directory";
        assert!(malformed || error.code.as_str() == "PERMISSION_DENIED", "{tool} {path}: {error:?}");
        assert!(malformed || error.message.contains("(docs)"), "{tool} {path}: {error:?}");
    }
    assert_eq!(bench.tree("ws"), before, "{path}");
}

#[test]
fn blt_4_an_entry_gives_the_reading_tools_or_the_writing_ones_under_its_name() {
    let bench = Bench::new();
    for (which, expected) in [
        (FsTools::Read, vec!["list_directory", "read_file"]),
        (FsTools::Write, vec!["delete_file", "move_file", "write_file"]),
    ] {
        let part = entry(&bench, which, &["docs", "notes.txt"]).unwrap();
        for tool in toolset(part.tools()).tools() {
            assert_eq!(tool.quarantined(), None);
            assert!(tool.spec.description.contains("docs, notes.txt"), "{}", tool.spec.description);
        }
        assert!(part.instructions.as_deref().unwrap().contains("docs, notes.txt"));
        let provider = BuiltinProvider::entry("files", part);
        let origin = provider.origin();
        assert_eq!(
            (&*origin.provider, &*origin.namespace, origin.kind, provider.naming()),
            ("files", "files", ToolKind::Builtin, Style::Prefixed)
        );
        let names: BTreeSet<_> = provider.tools().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }
    let everywhere = entry(&bench, FsTools::Read, &[]).unwrap();
    let tools = everywhere.tools();
    assert!(
        tools.iter().all(|tool| tool.description.ends_with("Works in the whole workspace.")),
        "{tools:?}"
    );
}

#[test]
fn blt_4_an_entry_does_not_run_a_tool_that_it_does_not_give() {
    let bench = Bench::new();
    let reading = BuiltinProvider::entry("files", entry(&bench, FsTools::Read, &[]).unwrap());
    let has = |name: &str| reading.tools().iter().any(|tool| tool.name == name);
    assert!(has("read_file") && !has("write_file"));
    let permit = bench.permit("write_file", &json!({ "path": "a", "content": "" })).unwrap();
    let fault = RUNTIME.block_on(reading.execute(&context(), &permit)).unwrap_err();
    let error = fault.error;
    assert_eq!((error.code.as_str(), &*error.message), ("TOOL_NOT_FOUND", "files has no tool write_file"));
    assert!(!bench.ws("a").exists());
}

#[test]
fn blt_4_inside_of_an_allowed_folder_each_tool_works() {
    let bench = Bench::with_docs();
    let listed = bench.call("list_directory", json!({ "path": "docs", "recursive": true })).done();
    assert_eq!(listed["entries"].as_array().unwrap().len(), 4);
    bench.call("list_directory", json!({ "path": "docs/sub/.." })).done();
    bench.call("list_directory", json!({ "path": "src/../docs/./sub" })).done();
    assert_eq!(bench.call("read_file", json!({ "path": "docs/sub/b.txt" })).done()["content"], "b");
    assert_eq!(bench.call("read_file", json!({ "path": "docs/none/x" })).code(), "FILE_NOT_FOUND");
    bench.call("write_file", json!({ "path": "docs/new", "content": "n" })).done();
    bench.call("write_file", json!({ "path": "docs/n/e/w", "content": "n", "createDirs": true })).done();
    bench.call("write_file", json!({ "path": "docs/a.txt", "content": "changed" })).asked();
    bench.approved("write_file", json!({ "path": "docs/a.txt", "content": "changed" })).done();
    bench.call("move_file", json!({ "from": "docs/sub", "to": "docs/n/sub" })).done();
    bench.approved("delete_file", json!({ "path": "docs/n", "recursive": true })).done();
    assert_eq!(bench.read("docs/a.txt"), "changed");
    assert!(!bench.ws("docs/n").exists());
}

#[test]
fn blt_4_everything_else_in_the_workspace_is_out_of_reach_for_each_tool() {
    let bench = Bench::with_docs();
    for path in ["src", "src/secret", "src/sub/secret", "docs2/secret", "new", "src/new", "no/such/thing"] {
        refused(&bench, path);
    }
    for path in ["docs/../src/secret", "docs/sub/../../src/new", "./src/secret", "src/./secret", "Docs/a.txt"]
    {
        refused(&bench, path);
    }
    for path in [".", "docs/..", "docs/sub/../.."] {
        refused(&bench, path);
    }
    let error = bench.call("read_file", json!({ "path": "src/secret" })).error();
    assert_eq!(
        error.message,
        "src/secret is outside of where the tools of files may work (docs); use a path in there, or ask a person to \
         add this one to the allowedPaths of files"
    );
}

#[test]
fn blt_4_a_link_does_not_lead_out_of_an_allowed_folder() {
    let bench = Bench::with_docs();
    bench.link("../src", "docs/folder");
    bench.link("..", "docs/up");
    bench.link("../src/secret", "docs/file");
    bench.link("../src/none", "docs/dangling");
    bench.link("folder/secret", "docs/chain");
    for path in
        ["docs/folder/secret", "docs/folder/new", "docs/up/src/secret", "docs/up/new", "docs/folder/sub"]
    {
        refused(&bench, path);
    }
    let before = bench.tree("ws");
    for path in ["docs/file", "docs/dangling", "docs/chain"] {
        for (tool, arguments) in [
            ("read_file", json!({ "path": path })),
            ("write_file", json!({ "path": path, "content": "x" })),
            ("write_file", json!({ "path": path, "content": "x", "createDirs": true })),
        ] {
            assert_eq!(bench.approved(tool, arguments).code(), "PERMISSION_DENIED", "{tool} {path}");
        }
    }
    for path in ["docs/folder", "docs/up", "docs/folder/sub"] {
        assert_eq!(
            bench.call("list_directory", json!({ "path": path })).code(),
            "PERMISSION_DENIED",
            "{path}"
        );
    }
    let listed = bench.call("list_directory", json!({ "path": "docs", "recursive": true })).done();
    assert!(!listed.to_string().contains("secret"), "{listed}");
    assert_eq!(bench.tree("ws"), before);
    // The links themselves are in the folder.
    bench.approved("delete_file", json!({ "path": "docs/up", "recursive": true })).done();
    bench.call("move_file", json!({ "from": "docs/folder", "to": "docs/renamed" })).done();
    assert_eq!(bench.read("src/secret"), "SECRET");
}

#[test]
fn blt_4_a_refusal_does_not_tell_what_exists_elsewhere() {
    let bench = Bench::with_docs();
    bench.link("secret", "src/link");
    bench.link("none", "src/dangling");
    for (tool, _) in every_tool("") {
        let message = |path: &str| {
            let (_, arguments) = calls(path).into_iter().find(|(name, _)| *name == tool).unwrap();
            bench.approved(tool, arguments).error().message.replace(path, "P")
        };
        for path in
            ["src/none", "src/sub", "src/link", "src/dangling", "src/secret/x", "src/none/x", "none/x"]
        {
            assert_eq!(message("src/secret"), message(path), "{tool} {path}");
        }
    }
}

#[test]
fn blt_4_an_allowed_file_is_allowed_and_nothing_beside_it() {
    let bench = Bench::new();
    bench.put("notes.txt", "n");
    bench.put("d/other", "SECRET");
    fs::hard_link(bench.ws("notes.txt"), bench.ws("same")).unwrap();
    let bench = bench.allowing(&["notes.txt", "d/e/later.txt"]);
    assert_eq!(bench.call("read_file", json!({ "path": "notes.txt" })).done()["content"], "n");
    assert_eq!(bench.call("read_file", json!({ "path": "notes.txt/x" })).code(), "FILE_NOT_FOUND");
    bench.approved("write_file", json!({ "path": "notes.txt", "content": "new" })).done();
    for path in ["same", "other", "d/other", "d/e/other", "d", "notes.txt2"] {
        for (tool, arguments) in every_tool(path) {
            assert_eq!(bench.approved(tool, arguments).code(), "PERMISSION_DENIED", "{tool} {path}");
        }
    }
    assert_eq!(bench.call("read_file", json!({ "path": "d/e/later.txt" })).code(), "FILE_NOT_FOUND");
    bench.call("write_file", json!({ "path": "d/e/later.txt", "content": "l", "createDirs": true })).done();
    bench.approved("delete_file", json!({ "path": "notes.txt" })).done();
    bench.call("move_file", json!({ "from": "d/e/later.txt", "to": "notes.txt" })).done();
    assert_eq!((bench.read("notes.txt"), bench.read("same")), ("l".into(), "n".into()));
}

#[test]
fn blt_4_an_allowed_folder_that_does_not_exist_yet_can_be_made_and_nothing_else() {
    let bench = Bench::new();
    fs::create_dir(bench.ws("d")).unwrap();
    let bench = bench.allowing(&["d/out/here"]);
    assert_eq!(bench.call("list_directory", json!({ "path": "d/out/here" })).code(), "FILE_NOT_FOUND");
    for path in
        ["d/out/x", "d/out", "d/out/hers/x", "d/out/here/../x", "d/out/here/../../x", "d/out/../x", "d"]
    {
        let write = json!({ "path": path, "content": "", "createDirs": true });
        assert_eq!(bench.approved("write_file", write).code(), "PERMISSION_DENIED", "{path}");
    }
    assert_eq!(fs::read_dir(bench.ws("d")).unwrap().count(), 0);
    bench.call("write_file", json!({ "path": "d/out/here/a/f", "content": "f", "createDirs": true })).done();
    bench.call("write_file", json!({ "path": "d/out/here/g", "content": "g" })).done();
    bench.call("list_directory", json!({ "path": "d/out/here" })).done();
    assert_eq!(bench.call("list_directory", json!({ "path": "d/out" })).code(), "PERMISSION_DENIED");
}

#[test]
fn blt_4_a_directory_around_an_allowed_folder_is_neither_deleted_nor_moved() {
    let bench = Bench::new();
    bench.put("a/b/docs/f", "f");
    let bench = bench.allowing(&["a/b/docs", "elsewhere"]);
    let before = bench.tree("ws");
    for path in ["a", "a/b", "a/b/"] {
        for (tool, arguments) in [
            ("delete_file", json!({ "path": path, "recursive": true })),
            ("move_file", json!({ "from": path.trim_end_matches('/'), "to": "elsewhere" })),
            ("list_directory", json!({ "path": path })),
        ] {
            assert_eq!(bench.approved(tool, arguments).code(), "PERMISSION_DENIED", "{tool} {path}");
        }
    }
    assert_eq!(bench.tree("ws"), before);
    // The folder itself is at an allowed path, and can be made there again.
    bench.approved("delete_file", json!({ "path": "a/b/docs", "recursive": true })).done();
    bench.call("write_file", json!({ "path": "a/b/docs/f", "content": "again", "createDirs": true })).done();
    bench.call("move_file", json!({ "from": "a/b/docs", "to": "elsewhere" })).done();
    assert_eq!(bench.read("elsewhere/f"), "again");
}

#[test]
fn blt_4_an_allowed_link_is_what_it_was_when_the_tools_were_opened() {
    let bench = Bench::new();
    bench.put("real/docs/f", "f");
    bench.put("real/notes.txt", "n");
    bench.put("src/f", "SECRET");
    bench.put("src/notes.txt", "SECRET");
    bench.link("real/docs", "docs");
    bench.link("real/notes.txt", "notes.txt");
    let bench = bench.allowing(&["docs", "notes.txt", "later"]);
    for path in ["docs/f", "real/docs/f", "notes.txt", "real/notes.txt"] {
        bench.call("read_file", json!({ "path": path })).done();
    }
    bench.approved("write_file", json!({ "path": "notes.txt", "content": "new" })).done();
    assert_eq!(bench.read("real/notes.txt"), "new");
    for (link, target) in [("docs", "src"), ("notes.txt", "src/notes.txt"), ("later", "src")] {
        fs::remove_file(bench.ws(link)).ok();
        bench.link(target, link);
    }
    for path in ["docs/f", "notes.txt", "later/f"] {
        assert_eq!(bench.call("read_file", json!({ "path": path })).code(), "PERMISSION_DENIED", "{path}");
        let write = json!({ "path": path, "content": "x", "createDirs": true });
        assert_eq!(bench.approved("write_file", write).code(), "PERMISSION_DENIED", "{path}");
    }
    assert_eq!(bench.call("list_directory", json!({ "path": "later" })).code(), "PERMISSION_DENIED");
    assert_eq!((bench.read("src/f").as_str(), bench.read("src/notes.txt").as_str()), ("SECRET", "SECRET"));
}

#[test]
fn blt_4_what_no_tool_may_touch_stays_so_inside_of_an_allowed_folder() {
    let bench = Bench::new();
    bench.put("docs/.git/config", "");
    bench.put("docs/gantry.yaml", "");
    bench.put("docs/agents/a.md", "");
    let fenced = ProtectedPaths {
        hidden: vec![bench.ws(".gantry")],
        read_only: vec![bench.ws("docs/gantry.yaml"), bench.ws("docs/agents/a.md")],
    };
    let allowed = [bench.ws("docs"), bench.ws(".gantry")];
    let bench = bench.confined(fenced, &allowed);
    let before = bench.tree("ws");
    let paths = ["docs/.git/config", "docs/gantry.yaml", "docs/agents/a.md"];
    for path in paths.into_iter().chain([".gantry/gantry.db"]) {
        let write = json!({ "path": path, "content": "", "createDirs": true });
        assert_eq!(bench.approved("write_file", write).code(), "PERMISSION_DENIED", "{path}");
    }
    assert_eq!(bench.call("read_file", json!({ "path": ".gantry/gantry.db" })).code(), "PERMISSION_DENIED");
    assert_eq!(bench.tree("ws"), before);
}

#[test]
fn blt_4_a_path_that_cannot_be_allowed_says_so_at_the_start() {
    let bench = Bench::new();
    fs::create_dir(bench.ws("d")).unwrap();
    bench.link("../outside", "out");
    let error = |path: &str| entry(&bench, FsTools::Read, &["d", path]).unwrap_err().to_string();
    for path in ["../outside", "..", "/etc", "out", "out/sub", "d/../../outside", "none/../../outside"] {
        let error = error(path);
        assert!(
            error.contains("files allows") && error.contains("not inside the workspace"),
            "{path}: {error}"
        );
    }
    assert!(entry(&bench, FsTools::Read, &["d/..", ".", "d/../new"]).is_ok());
    let relative = FilePolicy { allowed_paths: vec!["d".into()], ..FilePolicy::default() };
    assert!(
        catalogue_tools("files", &bench.ws(""), ProtectedPaths::default(), FsTools::Read, &relative).is_ok()
    );
    let error = entry(&bench, FsTools::Read, &["d"; 257]).unwrap_err().to_string();
    assert!(error.contains("257 paths and at most 256"), "{error}");
}

#[test]
fn blt_4_many_allowed_paths_are_counted_not_listed() {
    let bench = Bench::new();
    let names: Vec<String> = (0..20).map(|n| format!("d{n:02}")).collect();
    let bench = bench.allowing(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let message = bench.call("read_file", json!({ "path": "x" })).error().message;
    assert!(message.contains("d07 and 12 more") && !message.contains("d08"), "{message}");
    bench.call("write_file", json!({ "path": "d19/f", "content": "", "createDirs": true })).done();
}

#[test]
fn blt_4_a_folder_swapped_for_a_link_never_leads_out_of_an_allowed_one() {
    let bench = Bench::with_docs();
    bench.put("docs/d/secret", "inside");
    bench.link("../src", "docs/l");
    let before = bench.tree("ws/src");
    let (d, l) = (bench.ws("docs/d"), bench.ws("docs/l"));
    let swap = || renameat_with(CWD, &d, CWD, &l, RenameFlags::EXCHANGE).unwrap();
    let mut done = 0;
    race::while_disturbed(swap, || {
        for n in 0..5_000 {
            let read = bench.call("read_file", json!({ "path": "docs/d/secret" }));
            let write = bench.call("write_file", json!({ "path": format!("docs/d/n{n}"), "content": "x" }));
            for answer in [read, write] {
                if let Answer::Done(value) = answer {
                    assert!(!value.to_string().contains("SECRET"));
                    done += 1;
                } else {
                    assert_eq!(answer.code(), "PERMISSION_DENIED");
                }
            }
        }
    });
    assert_eq!(bench.tree("ws/src"), before);
    assert!(done > 0);
}

fn part() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "..", ".", "", "docs", "src", "sub", "secret", "up", "l", "a.txt", "new", "Docs",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn blt_4_no_path_whatsoever_leads_out_of_the_allowed_ones(parts in prop::collection::vec(part(), 1..7)) {
        let bench = Bench::with_docs();
        bench.link("..", "docs/up");
        bench.link("../src", "docs/l");
        bench.link("docs", "l");
        let elsewhere = |bench: &Bench| {
            let mut tree = bench.tree("ws");
            tree.retain(|(path, _)| !path.starts_with(bench.ws("docs")));
            tree
        };
        let before = elsewhere(&bench);
        let path = parts.join("/");
        for (tool, arguments) in calls(&path).into_iter().chain(every_tool(&path)) {
            let answer = format!("{:?}", bench.approved(tool, arguments));
            prop_assert!(!answer.contains("SECRET"), "{tool} {path:?}: {answer}");
        }
        prop_assert_eq!(before, elsewhere(&bench), "{:?}", path);
    }
}
