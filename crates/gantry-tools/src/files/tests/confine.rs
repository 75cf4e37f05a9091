//! Nothing outside of the workspace is read, written, or told about.

use super::*;
use proptest::prelude::*;

/// Tries every tool on a path that must be refused as one that leaves.
#[track_caller]
fn refused(bench: &Bench, path: &str) {
    bench.put("mover", "MOVER");
    let (outside, inside) = (bench.tree("outside"), bench.tree("ws"));
    for (tool, arguments) in every_tool(path) {
        let error = bench.approved(tool, arguments).error();
        assert_eq!(error.code.as_str(), "INVALID_PATH", "{tool} {path:?}: {error:?}");
        assert!(!error.message.contains("SECRET"), "{error:?}");
    }
    assert_eq!(bench.tree("outside"), outside, "{path:?}");
    assert_eq!(bench.tree("ws"), inside, "{path:?}");
}

#[test]
fn paths_that_leave_by_their_spelling_are_refused() {
    let bench = Bench::new();
    fs::create_dir(bench.ws("a")).unwrap();
    let absolute = bench.outside("secret");
    let paths = ["../outside/secret", "../../etc/passwd", "/etc/passwd", "/", "..", "a/../../outside/secret"];
    for path in
        paths.into_iter().chain(["./../x", "a/./../../x", "a/b/../../../x", absolute.to_str().unwrap()])
    {
        refused(&bench, path);
    }
}

#[test]
fn paths_that_leave_by_a_link_are_refused() {
    let bench = Bench::new();
    fs::create_dir(bench.ws("d")).unwrap();
    bench.link(bench.outside(""), "absolute");
    bench.link("../outside", "relative");
    bench.link("../../outside", "d/deeper");
    bench.link("/proc/self/root", "magic");
    bench.link("relative", "chain");
    let paths = ["absolute/secret", "relative/secret", "relative/sub/secret", "d/deeper/secret"];
    for path in
        paths.into_iter().chain(["chain/secret", "magic/etc/passwd", "relative/none", "d/../relative/secret"])
    {
        refused(&bench, path);
    }
}

#[test]
fn a_link_that_leaves_is_not_followed_but_can_be_moved_and_deleted() {
    let bench = Bench::new();
    let before = bench.tree("outside");
    for target in [bench.outside("secret"), "../outside/secret".into(), "../outside/none".into(), "..".into()]
    {
        bench.link(&target, "l");
        for (tool, arguments) in [
            ("read_file", json!({ "path": "l" })),
            ("write_file", json!({ "path": "l", "content": "x" })),
            ("write_file", json!({ "path": "l", "content": "x", "createDirs": true })),
            ("list_directory", json!({ "path": "l/" })),
        ] {
            assert_eq!(bench.call(tool, arguments).code(), "INVALID_PATH", "{tool} {target:?}");
        }
        bench.call("move_file", json!({ "from": "l", "to": "m" })).done();
        let deleted = bench.approved("delete_file", json!({ "path": "m", "recursive": true })).done();
        assert_eq!(deleted, json!({ "deleted": ["m"] }));
        assert_eq!(bench.tree("outside"), before);
    }
}

#[test]
fn a_refusal_does_not_tell_what_exists_outside() {
    let bench = Bench::new();
    bench.link("../outside", "l");
    let message =
        |path: &str| bench.call("read_file", json!({ "path": path })).error().message.replace(path, "P");
    assert_eq!(message("l/secret"), message("l/none"));
    assert_eq!(message("../outside/secret"), message("../outside/none"));
    assert_eq!(message("../outside/secret"), message("/none"));
    assert_eq!(message("l/sub"), message("l/sub/none"));
}

#[test]
fn an_escape_and_a_missing_permission_are_different_errors() {
    let denied = std::io::Error::from_raw_os_error(rustix::io::Errno::ACCESS.raw_os_error());
    assert_eq!(failure::io_error("opening", "p", &denied).error.code.as_str(), "PERMISSION_DENIED");
    let bench = Bench::new();
    let escape = bench.root.resolve_directory(Path::new("../outside"), None, "p").unwrap_err();
    assert_eq!(escape.error.code.as_str(), "INVALID_PATH");
}

#[test]
fn malformed_paths_are_refused() {
    let bench = Bench::new();
    bench.put("ok", "");
    let long = "x".repeat(300);
    let longer = "x/".repeat(2500);
    for path in ["", "ok\0.txt", "\0", &long, &longer] {
        refused(&bench, path);
    }
    // The root is a directory and nothing else.
    for (tool, arguments) in every_tool(".").into_iter().skip(1) {
        assert_eq!(bench.approved(tool, arguments).code(), "INVALID_PATH", "{tool}");
    }
    for path in ["ok/", "ok/.", "./"] {
        assert_eq!(bench.call("read_file", json!({ "path": path })).code(), "INVALID_PATH", "{path}");
        let write = json!({ "path": path, "content": "" });
        assert_eq!(bench.call("write_file", write).code(), "INVALID_PATH", "{path}");
    }
    // Only a directory can be meant by a link that ends in a slash, so that none makes a file.
    bench.link("new/", "to_slash");
    let write = json!({ "path": "to_slash", "content": "" });
    assert_eq!(bench.call("write_file", write).code(), "FILE_NOT_FOUND");
    assert!(!bench.ws("new").exists());
    fs::create_dir(bench.ws("full")).unwrap();
    let delete = json!({ "path": "full/.", "recursive": true });
    assert_eq!(bench.approved("delete_file", delete).code(), "INVALID_PATH");
    bench.link("loop2", "loop1");
    bench.link("loop1", "loop2");
    assert_eq!(bench.call("read_file", json!({ "path": "loop1" })).code(), "INVALID_PATH");
    assert_eq!(bench.call("read_file", json!({ "path": "loop1/x" })).code(), "INVALID_PATH");
}

#[test]
fn unusual_names_are_only_names() {
    let bench = Bench::new();
    let names =
        ["%2e%2e%2fetc", "..\\..\\x", "..∕x", "..／x", "a\u{202e}b", "~", "$HOME", "...", "a\nb\u{1b}[31m"];
    for name in names.into_iter().chain(["e\u{301}", "\u{e9}", "E\u{301}"]) {
        assert_eq!(bench.call("read_file", json!({ "path": name })).code(), "FILE_NOT_FOUND", "{name:?}");
        bench.call("write_file", json!({ "path": name, "content": name })).done();
        assert_eq!(bench.read(name), name);
        assert_eq!(bench.call("read_file", json!({ "path": name })).done()["content"], name);
    }
    let listed = bench.call("list_directory", json!({ "path": ".", "includeHidden": true })).done();
    assert_eq!(listed["entries"].as_array().unwrap().len(), 12);
}

#[test]
fn what_cannot_be_seen_is_shown_escaped() {
    let bench = Bench::new();
    bench.put("a\u{202e}\n\u{200b}b.txt", "old");
    let reason =
        bench.call("write_file", json!({ "path": "a\u{202e}\n\u{200b}b.txt", "content": "" })).asked();
    assert!(reason.starts_with("a\\u{202e}\\n\\u{200b}b.txt exists (3 bytes"), "{reason}");
}

#[test]
fn links_inside_the_workspace_work() {
    let bench = Bench::new();
    bench.put("real/deep/f", "content");
    bench.link("real/deep", "d");
    bench.link("../d/f", "real/l");
    bench.link("real//./new", "dangling");
    bench.link("real/deep/", "slash");
    bench.link("no//where//f", "deeper");
    assert_eq!(bench.call("read_file", json!({ "path": "d/f" })).done()["content"], "content");
    assert_eq!(bench.call("read_file", json!({ "path": "real/l" })).done()["content"], "content");
    assert_eq!(bench.call("read_file", json!({ "path": "d/../l" })).done()["content"], "content");
    assert_eq!(bench.call("list_directory", json!({ "path": "d" })).done()["entries"][0]["name"], "f");
    bench.approved("write_file", json!({ "path": "real/l", "content": "changed" })).done();
    assert_eq!(bench.read("real/deep/f"), "changed");
    assert!(fs::symlink_metadata(bench.ws("real/l")).unwrap().is_symlink());
    bench.call("write_file", json!({ "path": "dangling", "content": "new" })).done();
    assert_eq!(bench.read("real/new"), "new");
    assert_eq!(bench.call("read_file", json!({ "path": "slash" })).code(), "EXECUTION_ERROR");
    assert_eq!(bench.call("read_file", json!({ "path": "deeper" })).code(), "FILE_NOT_FOUND");
    bench.call("write_file", json!({ "path": "deeper", "content": "new", "createDirs": true })).done();
    assert_eq!(bench.read("no/where/f"), "new");
}

#[test]
fn the_workspace_stays_the_folder_that_was_opened() {
    let bench = Bench::new();
    bench.put("a.txt", "mine");
    fs::rename(bench.ws(""), bench.dir.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(bench.outside(""), bench.dir.path().join("ws")).unwrap();
    let before = bench.tree("outside");
    assert_eq!(bench.call("read_file", json!({ "path": "a.txt" })).done()["content"], "mine");
    assert_eq!(bench.call("read_file", json!({ "path": "secret" })).code(), "FILE_NOT_FOUND");
    bench.call("write_file", json!({ "path": "b.txt", "content": "new" })).done();
    assert_eq!(fs::read_to_string(bench.dir.path().join("elsewhere/b.txt")).unwrap(), "new");
    assert_eq!(bench.tree("outside"), before);
}

fn part() -> impl Strategy<Value = String> {
    let parts = [
        "..", ".", "", "a", "d", "abs", "rel", "up", "self", "secret", "sub", ".gantry", "etc", "..\\",
        "%2e%2e",
    ];
    prop_oneof![
        8 => prop::sample::select(parts.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,4}",
        1 => any::<String>().prop_map(|text| text.chars().take(6).collect()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_path_whatsoever_reaches_outside(
        parts in prop::collection::vec(part(), 0..7),
        lead in prop::sample::select(vec!["", "", "", "/", "//", "./", "../"]),
    ) {
        let bench = Bench::new();
        bench.put("a/f", "inside");
        bench.put("d/a/f", "inside");
        bench.put("mover", "MOVER");
        bench.link(bench.outside(""), "abs");
        bench.link("../outside", "rel");
        bench.link("..", "up");
        bench.link(".", "self");
        bench.link("../../outside", "d/rel");
        bench.link("../.gantry", "d/self");
        let before = (bench.tree("outside"), bench.tree("ws/.gantry"), fs::read_dir(bench.dir.path()).unwrap().count());
        let path = format!("{lead}{}", parts.join("/"));
        for (tool, arguments) in every_tool(&path) {
            let answer = format!("{:?}", bench.approved(tool, arguments));
            prop_assert!(!answer.contains("SECRET"), "{tool} {path:?}: {answer}");
        }
        let after = (bench.tree("outside"), bench.tree("ws/.gantry"), fs::read_dir(bench.dir.path()).unwrap().count());
        prop_assert_eq!(before, after, "{:?}", path);
    }
}
