//! Gantry's own data inside the workspace is neither readable, listable nor writable, by any way that leads there.

use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

/// A home whose folder is the workspace, with the data folder in it.
fn served() -> (TestDir, Server) {
    let home = TestDir::new();
    home.write("mine", "mine");
    home.write("sub/file", "sub");
    let server = home.serve();
    (home, server)
}

/// What a call with the approval of the person comes to: its reply.
fn approved(server: &Server, tool: &str, arguments: &Value) -> Value {
    let body = json!({ "tool": tool, "arguments": arguments, "approve": true }).to_string();
    let headers = [("content-type", "application/json")];
    gantry_testkit::server::send(&server.admin(), http::Method::POST, "/api/v1/calls", &headers, &body).json()
}

#[track_caller]
fn refused(server: &Server, path: &str, code: &str) {
    for (tool, arguments) in [
        ("list_directory", json!({ "path": path, "includeHidden": true })),
        ("read_file", json!({ "path": path, "encoding": "base64" })),
        ("write_file", json!({ "path": path, "content": "x", "createDirs": true })),
        ("write_file", json!({ "path": format!("{path}/deep/new"), "content": "x", "createDirs": true })),
        ("delete_file", json!({ "path": path, "recursive": true })),
        ("move_file", json!({ "from": path, "to": "stolen" })),
        ("move_file", json!({ "from": "mine", "to": path, "overwrite": true })),
    ] {
        let reply = approved(server, tool, &arguments);
        assert_eq!(reply["error"]["code"], code, "{tool} {arguments}: {reply}");
        assert!(!reply.to_string().contains(server.key.trim()), "the key was told");
    }
}

#[test]
fn blt_1_the_data_folder_is_out_of_reach_although_it_lies_in_the_workspace() {
    let (home, server) = served();
    for path in [
        ".gantry",
        "./.gantry",
        ".gantry/admin.key",
        ".gantry/gantry.db",
        ".gantry//gantry.db-wal",
        ".gantry/server.json",
        ".gantry/server.lock",
        ".gantry/new",
        "sub/../.gantry/admin.key",
    ] {
        refused(&server, path, "PERMISSION_DENIED");
    }
    assert_eq!(home.read(".gantry/admin.key"), server.key);
    assert_eq!((home.read("mine"), home.read("sub/file")), ("mine".into(), "sub".into()));
    let whole = server.get_as_admin("/api/v1/audit/verify").json();
    assert_eq!(whole["ok"], true, "{whole}");
}

#[test]
fn blt_1_a_link_to_the_data_folder_opens_nothing() {
    let (home, server) = served();
    symlink(".gantry", home.path().join("dir")).unwrap();
    symlink("../dir", home.path().join("sub/chain")).unwrap();
    symlink(".gantry/admin.key", home.path().join("key")).unwrap();
    symlink("../key", home.path().join("sub/key-chain")).unwrap();
    for path in ["dir/admin.key", "dir/new", "sub/chain/gantry.db"] {
        refused(&server, path, "PERMISSION_DENIED");
    }
    for path in ["key", "sub/key-chain"] {
        let read = approved(&server, "read_file", &json!({ "path": path }));
        assert_eq!(read["error"]["code"], "PERMISSION_DENIED", "{read}");
        let written = approved(&server, "write_file", &json!({ "path": path, "content": "x" }));
        assert_eq!(written["error"]["code"], "PERMISSION_DENIED", "{written}");
    }
    let listed = approved(&server, "list_directory", &json!({ "path": "sub/chain", "includeHidden": true }));
    assert_eq!(listed["error"]["code"], "PERMISSION_DENIED", "{listed}");
    assert_eq!(home.read(".gantry/admin.key"), server.key);
}

#[test]
fn blt_1_the_data_folder_is_in_no_listing() {
    let (_home, server) = served();
    let listing = approved(
        &server,
        "list_directory",
        &json!({ "path": ".", "recursive": true, "includeHidden": true }),
    );
    let entries = listing["result"]["entries"].as_array().unwrap();
    let names: Vec<_> = entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["mine", "sub", "sub/file"]);
}

#[test]
fn blt_1_a_folder_that_holds_the_data_folder_is_not_moved_or_deleted() {
    let home = TestDir::new().env("GANTRY_DATA", "deep/er/data");
    home.write("deep/file", "deep");
    assert_eq!(home.call("read_file", &json!({ "path": "deep/file" }))["ok"], true);
    home.write("key-was-made", &home.run(["doctor"]).stdout);
    for (tool, arguments) in [
        ("delete_file", json!({ "path": "deep", "recursive": true })),
        ("delete_file", json!({ "path": "deep/er", "recursive": true })),
        ("move_file", json!({ "from": "deep", "to": "elsewhere" })),
        ("move_file", json!({ "from": "deep/er/data", "to": "mine" })),
        ("read_file", json!({ "path": "deep/er/data/gantry.db", "encoding": "base64" })),
    ] {
        let reply = home.call_yes(tool, &arguments);
        assert_eq!(reply["error"]["code"], "PERMISSION_DENIED", "{tool} {arguments}: {reply}");
    }
    assert_eq!(home.read("deep/file"), "deep");
    assert!(home.path().join("deep/er/data/gantry.db").exists());
}

#[test]
fn blt_1_a_database_in_the_workspace_is_refused() {
    let home = TestDir::new().config("store: { url: \"sqlite://ledger.db\" }\n");
    let advice = "gantry.yaml:1: store.url: ";
    for command in [&["config", "check"][..], &["tools"], &["serve"]] {
        let ran = home.run(command);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            ran.code != 0 && said.contains(advice) && said.contains("is in a workspace"),
            "{command:?}: {said}"
        );
    }
    assert!(!home.path().join("ledger.db").exists());
}

#[test]
fn blt_1_a_database_outside_of_the_workspace_is_used() {
    let home = TestDir::new().config("workspace: ws\nstore: { url: \"sqlite://ledger.db\" }\n");
    home.write("ws/file", "");
    assert_eq!(home.call("list_directory", &json!({ "path": "." }))["ok"], true);
    assert!(home.path().join("ledger.db").exists());
    assert_eq!(home.run(["audit", "verify"]).code, 0);
}

#[test]
fn blt_1_the_parts_of_a_repository_that_make_git_run_programs_are_not_written() {
    let (home, server) = served();
    home.write("repo/.git/HEAD", "ref: refs/heads/main\n");
    home.write("repo/.git/config", "[core]\n");
    for path in ["repo/.git/hooks/post-checkout", "repo/.git/config", ".git/hooks/pre-commit", ".GIT/config"]
    {
        let call = json!({ "path": path, "content": "x", "createDirs": true });
        let reply = approved(&server, "write_file", &call);
        assert_eq!(reply["error"]["code"], "PERMISSION_DENIED", "{path}: {reply}");
    }
    assert_eq!(home.read("repo/.git/config"), "[core]\n");
    assert!(!home.path().join(".git").exists() && !home.path().join(".GIT").exists());
    let read = approved(&server, "read_file", &json!({ "path": "repo/.git/HEAD" }));
    assert_eq!(read["ok"], true, "reading a repository is fine: {read}");
}
