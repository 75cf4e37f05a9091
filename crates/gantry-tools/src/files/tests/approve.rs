//! When a person is asked, what they are told, and what their yes is worth later.

use super::*;

#[test]
fn each_tool_asks_exactly_when_it_should() {
    let bench = Bench::new();
    bench.put("a.txt", "hello world\n");
    bench.put("b.txt", "b");
    bench.put("full/x/y", "");
    fs::create_dir(bench.ws("empty")).unwrap();
    bench.link("a.txt", "l");
    let asked = |tool: &str, arguments: Value| match bench.judge(tool, &arguments).unwrap() {
        Verdict::Allow(_) => "no".to_owned(),
        Verdict::Ask(question) => question.reason(),
        Verdict::Deny(refusal) => panic!("{refusal:?}"),
    };
    assert_eq!(asked("list_directory", json!({ "path": "." })), "no");
    assert_eq!(asked("read_file", json!({ "path": "a.txt" })), "no");
    assert_eq!(asked("write_file", json!({ "path": "new", "content": "" })), "no");
    assert_eq!(asked("write_file", json!({ "path": "n/e/w", "content": "", "createDirs": true })), "no");
    assert_eq!(
        asked("write_file", json!({ "path": "a.txt", "content": "" })),
        "a.txt exists (12 bytes, sha256 a94890…) and would be overwritten"
    );
    assert_eq!(
        asked("delete_file", json!({ "path": "a.txt" })),
        "the file a.txt (12 bytes) would be deleted"
    );
    assert_eq!(
        asked("delete_file", json!({ "path": "full/", "recursive": true })),
        "the directory full and the 2 entries in it would be deleted"
    );
    assert_eq!(
        asked("delete_file", json!({ "path": "empty" })),
        "the empty directory empty would be deleted"
    );
    assert_eq!(
        asked("delete_file", json!({ "path": "l" })),
        "the symbolic link l would be deleted; what it points at stays"
    );
    assert_eq!(asked("move_file", json!({ "from": "a.txt", "to": "c.txt" })), "no");
    assert_eq!(asked("move_file", json!({ "from": "a.txt", "to": "c.txt", "overwrite": true })), "no");
    assert_eq!(asked("move_file", json!({ "from": "a.txt", "to": "b.txt" })), "no");
    assert_eq!(
        asked("move_file", json!({ "from": "a.txt", "to": "b.txt", "overwrite": true })),
        "b.txt exists (1 byte, sha256 3e23e8…) and would be replaced by a.txt"
    );
}

#[test]
fn no_approval_is_asked_for_a_call_that_cannot_work() {
    let bench = Bench::new();
    bench.put("full/x", "");
    bench.put("a.txt", "a");
    for (tool, arguments, code) in [
        ("write_file", json!({ "path": "a.txt", "content": "?", "encoding": "base64" }), "INVALID_ARGUMENTS"),
        ("write_file", json!({ "path": "a.txt", "content": "x", "encoding": "latin1" }), "INVALID_ARGUMENTS"),
        ("write_file", json!({ "path": "full", "content": "" }), "EXECUTION_ERROR"),
        ("write_file", json!({ "path": "none/a", "content": "" }), "FILE_NOT_FOUND"),
        ("write_file", json!({ "path": "a.txt/b", "content": "" }), "FILE_NOT_FOUND"),
        ("write_file", json!({ "path": "no/../a", "content": "", "createDirs": true }), "INVALID_PATH"),
        ("delete_file", json!({ "path": "none" }), "FILE_NOT_FOUND"),
        ("delete_file", json!({ "path": "full" }), "EXECUTION_ERROR"),
        ("move_file", json!({ "from": "none", "to": "a.txt", "overwrite": true }), "FILE_NOT_FOUND"),
        ("move_file", json!({ "from": "a.txt", "to": "none/b" }), "FILE_NOT_FOUND"),
        ("move_file", json!({ "from": "a.txt", "to": "full", "overwrite": true }), "EXECUTION_ERROR"),
        ("move_file", json!({ "from": "full", "to": "a.txt", "overwrite": true }), "EXECUTION_ERROR"),
        ("move_file", json!({ "from": "a.txt", "to": "./a.txt", "overwrite": true }), "EXECUTION_ERROR"),
    ] {
        assert_eq!(bench.call(tool, arguments.clone()).code(), code, "{tool} {arguments}");
    }
    let hint = bench.call("write_file", json!({ "path": "none/a", "content": "" })).error().message;
    assert!(hint.contains("createDirs: true"), "{hint}");
    let hint = bench.call("delete_file", json!({ "path": "full" })).error().message;
    assert!(hint.contains("recursive: true"), "{hint}");
}

#[test]
fn a_yes_to_overwrite_is_for_the_content_that_was_there() {
    let bench = Bench::new();
    bench.put("a.txt", "seen");
    bench.put("from", "moved");
    let write = bench.permit("write_file", &json!({ "path": "a.txt", "content": "new" })).unwrap();
    let moving = json!({ "from": "from", "to": "a.txt", "overwrite": true });
    let moving = bench.permit("move_file", &moving).unwrap();
    for other in [Some("changed"), None] {
        match other {
            Some(content) => bench.put("a.txt", content),
            None => fs::remove_file(bench.ws("a.txt")).unwrap(),
        }
        for permit in [&write, &moving] {
            let error = bench.run(permit).error();
            assert_eq!(error.code.as_str(), "APPROVAL_REQUIRED");
            assert!(error.message.contains("has changed since"), "{}", error.message);
        }
        assert_eq!(fs::read_to_string(bench.ws("a.txt")).ok().as_deref(), other);
        assert_eq!(bench.read("from"), "moved");
    }
    bench.put("a.txt", "seen");
    bench.run(&write).done();
    assert_eq!(bench.read("a.txt"), "new");
    let left: Vec<_> = fs::read_dir(bench.ws("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "temporary files are left: {left:?}");
}

#[test]
fn a_file_that_appears_after_judging_is_not_overwritten() {
    let bench = Bench::new();
    bench.put("from", "moved");
    let write = bench.permit("write_file", &json!({ "path": "a.txt", "content": "new" })).unwrap();
    let moving = json!({ "from": "from", "to": "a.txt", "overwrite": true });
    let moving = bench.permit("move_file", &moving).unwrap();
    bench.put("a.txt", "appeared");
    for permit in [&write, &moving] {
        let error = bench.run(permit).error();
        assert_eq!(error.code.as_str(), "APPROVAL_REQUIRED");
        assert!(error.message.contains("since the call was judged"), "{}", error.message);
    }
    assert_eq!((bench.read("a.txt"), bench.read("from")), ("appeared".into(), "moved".into()));
}

#[test]
fn a_file_too_large_to_hash_is_recognised_by_its_times() {
    let bench = Bench::new();
    let file = fs::File::create(bench.ws("big")).unwrap();
    file.set_len(1 << 40).unwrap();
    let permit = bench.permit("write_file", &json!({ "path": "big", "content": "small" })).unwrap();
    assert!(permit.precondition().unwrap().starts_with("unchanged:stat-"));
    file.set_len((1 << 40) + 1).unwrap();
    assert_eq!(bench.run(&permit).code(), "APPROVAL_REQUIRED");
    bench.approved("write_file", json!({ "path": "big", "content": "small" })).done();
    assert_eq!(bench.read("big"), "small");
}

#[test]
fn a_job_without_the_precondition_of_its_tool_changes_nothing() {
    let bench = Bench::new();
    bench.put("a.txt", "a");
    let root = &bench.root;
    let faults = [
        WriteFile::run(root, &unjudged(json!({ "path": "b", "content": "" }))).unwrap_err(),
        MoveFile::run(root, &unjudged(json!({ "from": "a.txt", "to": "b", "overwrite": true }))).unwrap_err(),
        DeleteFile::run(root, &unjudged(json!({ "path": "a.txt" }))).unwrap_err(),
    ];
    for fault in faults {
        assert_eq!((fault.error.code.as_str(), fault.effect), ("INTERNAL_ERROR", EffectState::None));
    }
    assert!(bench.ws("a.txt").exists() && !bench.ws("b").exists());
}

/// Something that happens between the question and the yes.
type Change = (&'static str, fn(&Bench));

#[test]
fn a_yes_to_delete_is_for_what_was_there() {
    let changes: [Change; 5] = [
        ("d/sub/f has another content", |bench| bench.put("d/sub/f", "other")),
        ("something is new", |bench| bench.put("d/sub/new", "")),
        ("something was moved in", |bench| fs::rename(bench.ws("kept"), bench.ws("d/kept")).unwrap()),
        ("something of the same size has its place", |bench| {
            fs::rename(bench.ws("kept"), bench.ws("d/sub/f")).unwrap();
        }),
        ("all of it is another", |bench| {
            fs::rename(bench.ws("d"), bench.ws("e")).unwrap();
            bench.put("d/sub/f", "seen");
        }),
    ];
    for (what, change) in changes {
        let bench = Bench::new();
        bench.put("d/sub/f", "seen");
        bench.put("kept", "kept");
        let arguments = json!({ "path": "d", "recursive": true });
        let permit = bench.permit("delete_file", &arguments).unwrap();
        change(&bench);
        let before = bench.tree("ws");
        let error = bench.run(&permit).error();
        assert_eq!(error.code.as_str(), "APPROVAL_REQUIRED", "{what}");
        assert!(error.message.contains("nothing was deleted"), "{what}: {}", error.message);
        assert_eq!(bench.tree("ws"), before, "{what}");
        bench.approved("delete_file", arguments).done();
        assert!(!bench.ws("d").exists());
    }
    let bench = Bench::new();
    bench.put("a", "seen");
    let permit = bench.permit("delete_file", &json!({ "path": "a" })).unwrap();
    bench.put("a", "kept");
    assert_eq!(bench.run(&permit).code(), "APPROVAL_REQUIRED");
    assert_eq!(bench.read("a"), "kept");
}

#[test]
fn a_yes_to_replace_a_file_is_for_the_one_that_was_to_replace_it() {
    let bench = Bench::new();
    bench.put("from", "seen");
    bench.put("to", "old");
    let permit =
        bench.permit("move_file", &json!({ "from": "from", "to": "to", "overwrite": true })).unwrap();
    fs::remove_file(bench.ws("from")).unwrap();
    bench.put("from", "evil");
    assert_eq!(bench.run(&permit).code(), "APPROVAL_REQUIRED");
    assert_eq!((bench.read("from"), bench.read("to")), ("evil".into(), "old".into()));
}
