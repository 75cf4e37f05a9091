//! Nothing leads out of the workspace: absolute paths, unusual spellings, links of every kind.

use super::bench::{Bench, SECRET};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

/// Every way to use a path, with approval, so that only confinement can refuse it.
fn uses(path: &str) -> [(&'static str, Value); 7] {
    [
        ("list_directory", json!({ "path": path })),
        ("read_file", json!({ "path": path })),
        ("write_file", json!({ "path": path, "content": "x" })),
        ("write_file", json!({ "path": path, "content": "x", "createDirs": true })),
        ("delete_file", json!({ "path": path, "recursive": true })),
        ("move_file", json!({ "from": path, "to": "stolen", "overwrite": true })),
        ("move_file", json!({ "from": "mine", "to": path, "overwrite": true })),
    ]
}

/// Asserts that no tool gets anywhere with this path, and says so in one way.
#[track_caller]
fn refused(bench: &Bench, path: &str) {
    for (tool, arguments) in uses(path) {
        let error = bench.approved(tool, arguments.clone()).error();
        assert_eq!(error["code"], "INVALID_PATH", "{tool} {arguments}: {error}");
    }
}

fn bench() -> Bench {
    let bench = Bench::over_http();
    bench.put("mine", "mine");
    bench.put("sub/file", "sub");
    bench
}

#[track_caller]
fn assert_nothing_changed(bench: &Bench) {
    bench.assert_outside_untouched();
    assert_eq!((bench.read("mine"), bench.read("sub/file")), ("mine".into(), "sub".into()));
    assert!(!bench.inside("stolen").exists());
}

#[test]
fn blt_1_absolute_paths_are_refused_wherever_they_lead() {
    let bench = bench();
    let real = |path: &str| bench.home.path().join(path).display().to_string();
    for path in [
        "/etc/passwd".to_owned(),
        "//etc/passwd".into(),
        "/".into(),
        "/proc/self/root/etc/passwd".into(),
        "/proc/self/cwd/gantry.yaml".into(),
        "/dev/fd/0".into(),
        real("outside/secret"),
        // Even where it names a file of the workspace.
        real("ws/mine"),
    ] {
        refused(&bench, &path);
    }
    assert_nothing_changed(&bench);
}

#[test]
fn blt_1_paths_that_go_up_are_refused_whether_or_not_something_is_there() {
    let bench = bench();
    for path in [
        "..",
        "../",
        "../..",
        "../outside/secret",
        "../outside/nothing",
        "../ws/mine",
        "./../outside/secret",
        "sub/../../outside/secret",
        "sub/./..//../outside/secret",
        "nowhere/../../outside/secret",
        "sub/../sub/../../ws/mine",
    ] {
        refused(&bench, path);
    }
    let there = bench.error("read_file", json!({ "path": "../outside/secret" }));
    let not_there = bench.error("read_file", json!({ "path": "../outside/nosuch" }));
    let words = |error: &Value, name: &str| error["message"].as_str().unwrap().replace(name, "NAME");
    assert_eq!(words(&there, "secret"), words(&not_there, "nosuch"), "a refusal tells what exists outside");
    // Going up and down within is fine.
    assert_eq!(bench.done("read_file", json!({ "path": "sub/../mine" }))["content"], "mine");
    assert_nothing_changed(&bench);
}

#[test]
fn blt_1_unusable_names_are_refused_with_what_is_wrong() {
    let bench = bench();
    let (long_name, long_path) = ("n".repeat(256), "d/".repeat(2100) + "f");
    for (path, word) in [
        ("mine\0", "NUL"),
        ("mine\0.png", "NUL"),
        ("\0", "NUL"),
        (&*long_name, "255"),
        (&*format!("sub/{long_name}/x"), "255"),
        (&*long_path, "4096"),
        ("", "empty"),
    ] {
        refused(&bench, path);
        let error = bench.error("read_file", json!({ "path": path }));
        assert!(error["message"].as_str().unwrap().contains(word), "{word}: {error}");
    }
    assert_nothing_changed(&bench);
    // A text that is no Unicode at all does not even become a path.
    let body = r#"{"tool":"read_file","arguments":{"path":"mine\ud800"}}"#;
    let answer = bench.server().post("/api/v1/calls", body);
    assert!((400..500).contains(&answer.status), "{answer:?}");
    assert_eq!(answer.json()["error"]["code"], "INVALID_ARGUMENTS");
}

#[test]
fn blt_1_links_that_lead_outside_are_refused_by_every_tool() {
    let bench = bench();
    let outside = bench.home.path().join("outside");
    symlink("../outside", bench.inside("dir")).unwrap();
    symlink(&outside, bench.inside("absolute-dir")).unwrap();
    symlink("/", bench.inside("root")).unwrap();
    symlink("/proc/self/root", bench.inside("proc-root")).unwrap();
    symlink("/proc/self/cwd", bench.inside("proc-cwd")).unwrap();
    symlink("..", bench.inside("up")).unwrap();
    symlink("../..", bench.inside("sub/up")).unwrap();
    // A chain whose single links look harmless.
    symlink("dir", bench.inside("chain-1")).unwrap();
    symlink("./sub/../chain-1", bench.inside("chain-2")).unwrap();
    symlink("../chain-2", bench.inside("sub/chain-3")).unwrap();
    let absolute = outside.display().to_string();
    for path in [
        "dir/secret",
        "dir/d/secret",
        "absolute-dir/secret",
        &*format!("root{absolute}/secret"),
        &*format!("proc-root{absolute}/secret"),
        "proc-cwd/outside/secret",
        "up/outside/secret",
        "sub/up/outside/secret",
        "chain-1/secret",
        "chain-2/secret",
        "sub/chain-3/secret",
        // What is not there gets the same answer.
        "dir/nothing",
        "sub/chain-3/d/nothing",
        // A way out and back in again is a way out.
        "up/ws/mine",
    ] {
        refused(&bench, path);
    }
    assert_nothing_changed(&bench);
}

#[test]
fn blt_1_a_link_to_a_file_outside_is_neither_read_nor_written_through() {
    let bench = bench();
    symlink("../outside/secret", bench.inside("file")).unwrap();
    symlink("../outside/new", bench.inside("dangling")).unwrap();
    symlink(bench.home.path().join("outside/secret"), bench.inside("absolute")).unwrap();
    symlink("file", bench.inside("chain")).unwrap();
    symlink("loop-b", bench.inside("loop-a")).unwrap();
    symlink("loop-a", bench.inside("loop-b")).unwrap();
    for path in ["file", "dangling", "absolute", "chain", "loop-a"] {
        for (tool, arguments) in uses(path).into_iter().filter(|(tool, _)| tool.starts_with(['r', 'w'])) {
            let outcome = bench.approved(tool, arguments.clone()).error();
            assert_eq!(outcome["code"], "INVALID_PATH", "{tool} {arguments}: {outcome}");
        }
    }
    // Deleting and moving mean the link itself.
    bench.done_approved("delete_file", json!({ "path": "file" }));
    bench.done("move_file", json!({ "from": "absolute", "to": "moved" }));
    assert!(bench.inside("moved").is_symlink());
    // And what replaces a link replaces nothing behind it.
    bench.put("other", "other");
    bench.done_approved("move_file", json!({ "from": "other", "to": "moved", "overwrite": true }));
    assert_eq!(bench.read("moved"), "other");
    assert_nothing_changed(&bench);
}

#[test]
fn blt_1_links_within_the_workspace_work() {
    let bench = bench();
    symlink("mine", bench.inside("file")).unwrap();
    symlink("sub", bench.inside("dir")).unwrap();
    symlink("../dir/file", bench.inside("sub/back")).unwrap();
    assert_eq!(bench.done("read_file", json!({ "path": "file" }))["content"], "mine");
    assert_eq!(bench.done("read_file", json!({ "path": "sub/back" }))["content"], "sub");
    assert_eq!(bench.code("write_file", json!({ "path": "file", "content": "new" })), "APPROVAL_REQUIRED");
    bench.done("write_file", json!({ "path": "dir/new", "content": "new" }));
    assert_eq!(bench.read("sub/new"), "new");
    bench.done_approved("write_file", json!({ "path": "file", "content": "new" }));
    assert!(bench.inside("file").is_symlink(), "the link stays a link");
    assert_eq!(bench.read("mine"), "new");
}

#[test]
fn blt_1_a_directory_with_links_to_outside_is_listed_and_deleted_without_following_them() {
    let bench = bench();
    fs::create_dir(bench.inside("tree")).unwrap();
    symlink("../../outside", bench.inside("tree/out")).unwrap();
    symlink("/", bench.inside("tree/root")).unwrap();
    let listing = bench.done("list_directory", json!({ "path": ".", "recursive": true }));
    let names: Vec<_> = listing["entries"].as_array().unwrap().iter().map(|e| e["name"].clone()).collect();
    assert_eq!(names, ["mine", "sub", "sub/file", "tree", "tree/out", "tree/root"]);
    let deleted = bench.done_approved("delete_file", json!({ "path": "tree", "recursive": true }));
    assert_eq!(deleted["deleted"], json!(["tree", "tree/out", "tree/root"]));
    assert_nothing_changed(&bench);
    assert_eq!(bench.home.read("outside/secret"), SECRET);
}
