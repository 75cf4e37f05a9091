//! Gantry's own tools in the catalogue: `fs_read` and `fs_write`, which keep to the paths that they are given.

use super::Site;
use gantry_testkit::TestDir;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

/// An entry of kind `builtin`, in a file of its own, and an agent that uses it and nothing else.
fn site(id: &str, policy: &Value) -> Site {
    let home = TestDir::new();
    let entry = json!({ "id": id, "kind": "builtin", "builtinPolicy": policy });
    home.write(&format!("tools/{id}/tool.json"), &entry.to_string());
    home.write("agents/a/agent.json", &json!({ "tools": { "use": [id] } }).to_string());
    home.write("docs/in.txt", "inside");
    home.write("docs/deep/in.txt", "deep inside");
    home.write("out.txt", "outside");
    for (target, link) in [("../out.txt", "docs/leads-out"), ("..", "docs/up"), ("/etc", "docs/etc")] {
        symlink(target, home.path().join(link)).expect("a link");
    }
    Site::at(home)
}

/// Spellings of what is outside of `docs`.
fn outside(site: &Site) -> Vec<String> {
    let mut paths: Vec<String> = [
        "out.txt",
        "docs/../out.txt",
        "./docs/./../out.txt",
        "docs/leads-out",
        "docs/up/out.txt",
        "docs/etc/passwd",
        "docs2/out.txt",
        "/etc/passwd",
        "../out.txt",
        ".",
    ]
    .map(str::to_owned)
    .into();
    // Paths are relative to the workspace, for any content of it.
    paths.extend(["out.txt", "docs/in.txt"].map(|path| site.home.path().join(path).display().to_string()));
    paths
}

#[test]
fn pol_6_fs_read_reads_at_its_paths_and_nowhere_else() {
    let site = site("files", &json!({ "name": "fs_read", "allowedPaths": ["./docs"] }));
    assert_eq!(site.tools("a"), ["files__list_directory", "files__read_file"]);
    for (path, content) in
        [("docs/in.txt", "inside"), ("./docs/deep/../in.txt", "inside"), ("docs/deep/in.txt", "deep inside")]
    {
        let read = site.result("a", "@files/read_file", &json!({ "path": path }));
        assert_eq!(read["content"], content, "{path}: {read}");
    }
    let listed = site.result("a", "files__list_directory", &json!({ "path": "docs/deep" }));
    assert_eq!(listed["entries"][0]["name"], "in.txt", "{listed}");
    for path in outside(&site) {
        for tool in ["files__read_file", "files__list_directory"] {
            let reply = site.call("a", tool, &json!({ "path": path }));
            assert_eq!(reply["ok"], false, "{tool} {path}: {reply}");
            assert!(!reply.to_string().contains("outside\""), "{tool} {path}: {reply}");
        }
    }
    let refused = site.error("a", "files__read_file", &json!({ "path": "out.txt" }), "PERMISSION_DENIED");
    let message = refused["message"].as_str().expect("a message");
    assert!(message.contains("outside of where the tools of files may work (docs)"), "{refused}");
    // It reads, and there is nothing in it that writes.
    for tool in ["files__write_file", "write_file", "files__delete_file"] {
        site.not_found("a", tool, &json!({ "path": "docs/new.txt", "content": "" }));
    }
}

#[test]
fn pol_6_fs_write_writes_at_its_paths_and_nowhere_else() {
    let site = site("out", &json!({ "name": "fs_write", "allowedPaths": ["docs"] }));
    let names = site.tools("a");
    assert!(names.contains(&"out__write_file".to_owned()), "{names:?}");
    assert!(names.iter().all(|name| !name.contains("read") && !name.contains("list")), "{names:?}");
    site.result("a", "@out/write_file", &json!({ "path": "docs/new.txt", "content": "new" }));
    assert_eq!(site.home.read("docs/new.txt"), "new");
    for path in outside(&site) {
        let reply = site.call("a", "out__write_file", &json!({ "path": path, "content": "spoilt" }));
        assert_eq!(reply["ok"], false, "{path}: {reply}");
    }
    for path in ["fresh.txt", "docs/../fresh.txt", "docs/up/fresh.txt", "docs2/fresh.txt"] {
        site.error("a", "out__write_file", &json!({ "path": path, "content": "" }), "PERMISSION_DENIED");
    }
    // Neither by moving there, nor from there.
    for (from, to) in
        [("docs/new.txt", "fresh.txt"), ("docs/new.txt", "docs/up/fresh.txt"), ("out.txt", "docs/taken.txt")]
    {
        site.error("a", "out__move_file", &json!({ "from": from, "to": to }), "PERMISSION_DENIED");
    }
    for path in ["fresh.txt", "docs2/fresh.txt", "docs/taken.txt"] {
        assert!(!site.home.path().join(path).exists(), "{path}");
    }
    assert_eq!((site.home.read("out.txt"), site.home.read("docs/new.txt")), ("outside".into(), "new".into()));
    // A person's yes is for what the tool does, not for where.
    let yes = json!({ "path": "out.txt", "content": "spoilt" }).to_string();
    let approved = site.home.run(["call", "out__write_file", &yes, "--agent", "a", "--yes", "--json"]).json();
    assert_eq!(approved["error"]["code"], "PERMISSION_DENIED", "{approved}");
    assert_eq!(site.home.read("out.txt"), "outside");
}

#[test]
fn pol_6_entries_of_the_catalogue_keep_their_paths_apart() {
    let home = TestDir::new();
    for (id, name, path) in [("notes", "fs_write", "notes"), ("docs", "fs_read", "docs")] {
        let policy = json!({ "name": name, "allowedPaths": [path] });
        let entry = json!({ "kind": "builtin", "builtinPolicy": policy });
        home.write(&format!("tools/{id}/tool.json"), &entry.to_string());
    }
    home.write("docs/a.txt", "hi");
    home.write("notes/b.txt", "ho");
    home.write("agents/a/agent.json", r#"{ "tools": { "use": ["docs", "notes"] } }"#);
    let site = Site::at(home);
    assert_eq!(site.result("a", "docs__read_file", &json!({ "path": "docs/a.txt" }))["content"], "hi");
    site.result("a", "notes__write_file", &json!({ "path": "notes/c.txt", "content": "x" }));
    site.error("a", "docs__read_file", &json!({ "path": "notes/b.txt" }), "PERMISSION_DENIED");
    site.error(
        "a",
        "notes__write_file",
        &json!({ "path": "docs/c.txt", "content": "x" }),
        "PERMISSION_DENIED",
    );
    assert!(!site.home.path().join("docs/c.txt").exists());
}

#[test]
fn pol_6_without_paths_the_whole_workspace_is_covered_and_the_catalogue_itself_stays_out_of_reach() {
    let site = site("out", &json!({ "name": "fs_write" }));
    site.result("a", "out__write_file", &json!({ "path": "fresh.txt", "content": "x" }));
    for path in ["tools/out/tool.json", "agents/a/agent.json", ".gantry/x"] {
        let reply = site.call("a", "out__write_file", &json!({ "path": path, "content": "{}" }));
        assert_eq!(reply["ok"], false, "{path}: {reply}");
    }
}
