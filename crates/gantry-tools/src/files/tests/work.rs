//! What the tools do when nothing stands in their way, and where their limits are.

use super::move_file::by_claiming;
use super::*;
use base64::Engine as _;
use rustix::fs::{CWD, FileType, Mode};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn a_listing_is_sorted_and_says_what_things_are() {
    let bench = Bench::new();
    bench.put("b.txt", "12345");
    bench.put("a/inner", "1");
    bench.put(".hidden/x", "");
    bench.link("b.txt", "c");
    let file = fs::File::options().write(true).open(bench.ws("b.txt")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000)).unwrap();
    let listed = bench.call("list_directory", json!({ "path": "." })).done();
    let entries = listed["entries"].as_array().unwrap();
    let brief: Vec<_> =
        entries.iter().map(|e| format!("{} {} {}", e["name"], e["type"], e["size"])).collect();
    assert_eq!(brief, [r#""a" "directory" 0"#, r#""b.txt" "file" 5"#, r#""c" "symlink" 5"#]);
    assert_eq!(entries[1]["modified"], "2023-11-14T22:13:20Z");
    assert_eq!(listed.get("truncated"), None);

    let names = |arguments: Value| -> Vec<String> {
        let listed = bench.call("list_directory", arguments).done();
        listed["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(json!({ "path": "./", "recursive": true })), ["a", "a/inner", "b.txt", "c"]);
    assert_eq!(names(json!({ "path": "a/.." , "includeHidden": true })), [".hidden", "a", "b.txt", "c"]);
    assert_eq!(names(json!({ "path": "a" })), ["inner"]);
    assert_eq!(bench.call("list_directory", json!({ "path": "" })).code(), "INVALID_PATH");
    assert_eq!(bench.call("list_directory", json!({ "path": "none" })).code(), "FILE_NOT_FOUND");
    assert_eq!(bench.call("list_directory", json!({ "path": "b.txt" })).code(), "EXECUTION_ERROR");
}

#[test]
fn no_mode_hides_anything_from_a_listing() {
    let bench = Bench::new();
    bench.put("file", "content");
    bench.put("folder/inner", "1");
    bench.put("place", "");
    fs::create_dir(bench.ws("empty")).unwrap();
    for (path, mode) in [("file", 0o1644), ("folder", 0o1700), ("place", 0o1644), ("empty", 0o1700)] {
        fs::set_permissions(bench.ws(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let listed = bench.call("list_directory", json!({ "path": ".", "recursive": true })).done();
    let names: Vec<_> =
        listed["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["empty", "file", "folder", "folder/inner", "place"]);
}

#[test]
fn names_that_are_not_text_are_escaped_and_stay_distinct() {
    let bench = Bench::new();
    fs::write(bench.ws("").join(OsStr::from_bytes(b"a\xff\\b")), "").unwrap();
    fs::write(bench.ws("").join("c\\d"), "").unwrap();
    let listed = bench.call("list_directory", json!({ "path": "." })).done();
    assert_eq!(listed["entries"][0]["name"], "a\\xff\\x5cb");
    assert_eq!(listed["entries"][1]["name"], "c\\d");
}

#[test]
fn a_long_listing_is_cut_at_the_first_names_and_a_long_deletion_names_some() {
    let bench = Bench::new();
    for n in 0..list_directory::LISTED + 50 {
        bench.put(&format!("many/{n:05}"), "");
    }
    let listed = bench.call("list_directory", json!({ "path": "many" })).done();
    let entries = listed["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &listed["truncated"]), (list_directory::LISTED, &json!(true)));
    assert_eq!((&entries[0]["name"], &entries[9_999]["name"]), (&json!("00000"), &json!("09999")));
    let deleted = bench.approved("delete_file", json!({ "path": "many", "recursive": true })).done();
    let paths = deleted["deleted"].as_array().unwrap();
    assert_eq!(
        (paths.len(), &paths[0], &deleted["truncated"]),
        (delete_file::NAMED, &json!("many"), &json!(true))
    );
    assert!(!bench.ws("many").exists());
}

#[test]
fn a_deep_listing_stops_at_its_depth_and_says_so() {
    let bench = Bench::new();
    let path = |depth: usize| vec!["d"; depth].join("/");
    bench.put(&format!("{}/f", path(list_directory::DEPTH - 1)), "");
    let list = json!({ "path": ".", "recursive": true });
    assert_eq!(bench.call("list_directory", list.clone()).done().get("truncated"), None);
    fs::create_dir_all(bench.ws(&path(list_directory::DEPTH + 3))).unwrap();
    let listed = bench.call("list_directory", list).done();
    assert_eq!(listed["truncated"], true);
    let deepest =
        listed["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap().len()).max();
    assert_eq!(deepest, Some(path(list_directory::DEPTH).len()));
}

#[test]
fn files_are_read_as_text_or_base64() {
    let bench = Bench::new();
    bench.put("a.txt", "grüße");
    fs::write(bench.ws("binary"), b"\xff\x00").unwrap();
    let read = bench.call("read_file", json!({ "path": "./a.txt" })).done();
    assert_eq!((&read["content"], &read["size"]), (&json!("grüße"), &json!(7)));
    assert!(read["modified"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    let error = bench.call("read_file", json!({ "path": "binary" })).error();
    assert_eq!(error.code.as_str(), "EXECUTION_ERROR");
    assert!(error.message.contains("base64"), "{}", error.message);
    let read = bench.call("read_file", json!({ "path": "binary", "encoding": "base64" })).done();
    assert_eq!((&read["content"], &read["size"]), (&json!("/wA="), &json!(2)));
    assert_eq!(bench.call("read_file", json!({ "path": "none" })).code(), "FILE_NOT_FOUND");
    assert_eq!(bench.call("read_file", json!({ "path": "none/x" })).code(), "FILE_NOT_FOUND");
    assert_eq!(bench.call("read_file", json!({ "path": "a.txt/x" })).code(), "FILE_NOT_FOUND");
}

#[test]
fn only_regular_files_of_a_sensible_size_are_read() {
    let bench = Bench::new();
    rustix::fs::mknodat(CWD, bench.ws("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(bench.ws("socket")).unwrap();
    fs::create_dir(bench.ws("d")).unwrap();
    for path in ["fifo", "socket", "d"] {
        assert_eq!(bench.call("read_file", json!({ "path": path })).code(), "EXECUTION_ERROR", "{path}");
        let write = json!({ "path": path, "content": "" });
        assert_eq!(bench.approved("write_file", write).code(), "EXECUTION_ERROR", "{path}");
    }
    fs::File::create(bench.ws("sparse")).unwrap().set_len(1 << 40).unwrap();
    let error = bench.call("read_file", json!({ "path": "sparse" })).error();
    assert!(
        error.message.contains("1099511627776") && error.message.contains("10485760"),
        "{}",
        error.message
    );
    fs::write(bench.ws("limit"), vec![b'x'; 10 * 1024 * 1024]).unwrap();
    assert_eq!(bench.call("read_file", json!({ "path": "limit" })).done()["size"], 10 * 1024 * 1024);
    fs::write(bench.ws("limit"), vec![b'x'; 10 * 1024 * 1024 + 1]).unwrap();
    assert_eq!(bench.call("read_file", json!({ "path": "limit" })).code(), "EXECUTION_ERROR");
    // A file that says it is empty and is not.
    if let Ok(root) = WorkspaceRoot::open(Path::new("/proc"), ProtectedPaths::default()) {
        let read = ReadFile::run(&root, &unjudged(json!({ "path": "version" }))).unwrap();
        assert_ne!(json!(read)["size"], 0);
    }
}

#[test]
fn files_are_written_as_text_or_base64_with_their_directories() {
    let bench = Bench::new();
    let written =
        bench.call("write_file", json!({ "path": "./a//b.txt", "content": "grüße", "createDirs": true }));
    assert_eq!(written.done(), json!({ "path": "a/b.txt", "size": 7 }));
    assert_eq!(bench.read("a/b.txt"), "grüße");
    bench.call("write_file", json!({ "path": "x", "content": "/wA=", "encoding": "base64" })).done();
    assert_eq!(fs::read(bench.ws("x")).unwrap(), b"\xff\x00");
    let deep = format!("{}f", "d/".repeat(500));
    bench.call("write_file", json!({ "path": deep, "content": "", "createDirs": true })).done();
    assert!(bench.ws(&deep).is_file());
    let large = "x".repeat(10 * 1024 * 1024 + 1);
    let encoded = base64::prelude::BASE64_STANDARD.encode(&large);
    for arguments in [
        json!({ "path": "l", "content": large }),
        json!({ "path": "l", "content": encoded, "encoding": "base64" }),
    ] {
        let error = bench.call("write_file", arguments).error();
        assert_eq!(error.code.as_str(), "INVALID_ARGUMENTS");
        assert!(
            error.message.contains("10485761") && error.message.contains("10485760"),
            "{}",
            error.message
        );
    }
}

#[test]
fn directories_are_not_made_through_a_dangling_link() {
    let bench = Bench::new();
    bench.link("../outside/new", "out");
    bench.link("nowhere", "dangling");
    let write = |path: &str| json!({ "path": path, "content": "", "createDirs": true });
    assert_eq!(bench.call("write_file", write("out/a/f")).code(), "INVALID_PATH");
    let Answer::Failed(fault) = bench.call("write_file", write("dangling/a/f")) else { panic!() };
    assert_eq!(fault.error.code.as_str(), "FILE_NOT_FOUND");
    assert!(!bench.outside("new").exists() && !bench.ws("nowhere").exists());
}

#[test]
fn an_overwritten_file_keeps_its_mode_and_leaves_other_names_alone() {
    let bench = Bench::new();
    bench.put("a.sh", "old");
    fs::set_permissions(bench.ws("a.sh"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::hard_link(bench.outside("secret"), bench.ws("shared")).unwrap();
    bench.approved("write_file", json!({ "path": "a.sh", "content": "new" })).done();
    // The right to run as its owner does not pass on to new content.
    assert_eq!(fs::metadata(bench.ws("a.sh")).unwrap().mode() & 0o7777, 0o751);
    bench.approved("write_file", json!({ "path": "shared", "content": "mine" })).done();
    assert_eq!(
        (bench.read("shared").as_str(), fs::read_to_string(bench.outside("secret")).unwrap().as_str()),
        ("mine", "SECRET")
    );
}

#[test]
fn deleting_takes_what_was_named_and_nothing_that_links_point_at() {
    let bench = Bench::new();
    bench.put("t/a", "");
    bench.put("t/s/b", "");
    bench.link("../../outside", "t/out");
    bench.link(bench.outside("secret"), "t/s/out");
    fs::create_dir(bench.ws("empty")).unwrap();
    let before = bench.tree("outside");
    let deleted = bench.approved("delete_file", json!({ "path": "t/", "recursive": true })).done();
    assert_eq!(deleted, json!({ "deleted": ["t", "t/a", "t/out", "t/s", "t/s/b", "t/s/out"] }));
    assert_eq!(
        bench.approved("delete_file", json!({ "path": "empty" })).done(),
        json!({ "deleted": ["empty"] })
    );
    assert_eq!(bench.tree("outside"), before);
    assert_eq!(fs::read_dir(bench.ws("")).unwrap().count(), 1);
}

#[test]
fn a_directory_within_is_entered_only_if_it_is_no_link() {
    let bench = Bench::new();
    bench.put("d/f", "");
    bench.link("d", "l");
    let dir = fs::File::open(bench.ws("")).unwrap();
    assert!(crate::workspace::entry::open_dir(&dir, OsStr::new("d")).is_ok());
    assert_eq!(
        crate::workspace::entry::open_dir(&dir, OsStr::new("l")).unwrap_err(),
        rustix::io::Errno::NOTDIR
    );
}

#[test]
fn too_much_to_delete_is_refused_before_anything_is_gone() {
    let bench = Bench::new();
    fs::create_dir_all(bench.ws("many/sub")).unwrap();
    fs::write(bench.ws("file"), "").unwrap();
    // Names of one file cost less than files.
    for n in 0..delete_file::DELETED {
        if n % 20_000 == 0 {
            fs::write(bench.ws(&format!("file{}", n / 20_000)), "").unwrap();
        }
        fs::hard_link(bench.ws(&format!("file{}", n / 20_000)), bench.ws(&format!("many/sub/{n}"))).unwrap();
    }
    let error = bench.approved("delete_file", json!({ "path": "many", "recursive": true })).error();
    assert_eq!(error.code.as_str(), "EXECUTION_ERROR");
    assert!(error.message.contains("100000"), "{}", error.message);
    assert_eq!(fs::read_dir(bench.ws("many/sub")).unwrap().count(), delete_file::DELETED);
    fs::create_dir_all(bench.ws(&format!("deep/{}", "d/".repeat(delete_file::DEPTH + 1)))).unwrap();
    let error = bench.approved("delete_file", json!({ "path": "deep", "recursive": true })).error();
    assert!(error.message.contains("128 levels"), "{}", error.message);
}

#[test]
fn a_cancelled_deletion_says_how_far_it_got() {
    let bench = Bench::new();
    bench.put("t/a", "");
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let call = unjudged(json!({ "path": "t", "recursive": true }));
    let judged = DeleteFile::preflight(&bench.root, &call.args).unwrap().precondition.unwrap();
    let precondition = Some(judged.to_string());
    let call = PermittedCall::unpermitted(call.args, precondition, cancelled);
    let fault = DeleteFile::run(&bench.root, &call).unwrap_err();
    assert_eq!((fault.error.code.as_str(), fault.effect), ("CANCELED", EffectState::None));
    assert!(bench.ws("t/a").exists());
    let fault = delete_file::partly_deleted(&fault, 1, &["t/b".to_owned()]);
    assert_eq!(fault.effect, EffectState::Possible);
    assert_eq!(fault.error.details.unwrap(), json!({ "deletedCount": 1, "deleted": ["t/b"] }));
}

#[test]
fn files_and_directories_are_moved_and_nothing_is_replaced_unasked() {
    let bench = Bench::new();
    bench.put("a", "a");
    bench.put("b", "b");
    bench.put("d/f", "f");
    bench.link("none", "l");
    assert_eq!(
        bench.call("move_file", json!({ "from": "a", "to": "./d/a" })).done(),
        json!({ "from": "a", "to": "d/a" })
    );
    bench.call("move_file", json!({ "from": "d", "to": "e" })).done();
    assert_eq!((bench.read("e/a").as_str(), bench.read("e/f").as_str()), ("a", "f"));
    let error = bench.call("move_file", json!({ "from": "b", "to": "e/a" })).error();
    assert_eq!(error.code.as_str(), "EXECUTION_ERROR");
    assert!(error.message.contains("overwrite: true"), "{}", error.message);
    assert_eq!((bench.read("b").as_str(), bench.read("e/a").as_str()), ("b", "a"));
    bench.approved("move_file", json!({ "from": "b", "to": "e/a", "overwrite": true })).done();
    assert_eq!(bench.read("e/a"), "b");
    let error = bench.call("move_file", json!({ "from": "e", "to": "e/inner" })).error();
    assert!(error.message.contains("into itself"), "{}", error.message);
    assert!(bench.ws("e/f").exists() && !bench.ws("e/inner").exists());
    bench.call("move_file", json!({ "from": "l", "to": "m" })).done();
    assert!(fs::symlink_metadata(bench.ws("m")).unwrap().is_symlink());
    assert_eq!(bench.call("move_file", json!({ "from": "m", "to": "x/" })).code(), "INVALID_PATH");
    fs::hard_link(bench.ws("e/a"), bench.ws("same")).unwrap();
    let same = bench.approved("move_file", json!({ "from": "same", "to": "e/a", "overwrite": true }));
    assert_eq!(same.code(), "EXECUTION_ERROR");
}

#[test]
fn a_file_system_without_exclusive_renames_replaces_nothing_either() {
    let bench = Bench::new();
    bench.put("a", "a");
    bench.put("b", "b");
    bench.put("d/f", "f");
    bench.put("e/f", "other");
    let dir: std::os::fd::OwnedFd = fs::File::open(bench.ws("")).unwrap().into();
    let claim = |old: &str, new: &str| by_claiming((&dir, OsStr::new(old)), (&dir, OsStr::new(new)));
    let before = bench.tree("ws");
    assert_eq!(claim("a", "b"), Err(rustix::io::Errno::EXIST));
    assert_eq!(claim("a", "e"), Err(rustix::io::Errno::EXIST));
    assert_eq!(claim("d", "e"), Err(rustix::io::Errno::EXIST));
    assert_eq!(claim("d", "d/inner"), Err(rustix::io::Errno::INVAL));
    assert_eq!(bench.tree("ws"), before);
    claim("a", "c").unwrap();
    claim("d", "g").unwrap();
    assert_eq!((bench.read("c").as_str(), bench.read("g/f").as_str()), ("a", "f"));
    assert!(!bench.ws("a").exists() && !bench.ws("d").exists());
}

#[test]
fn what_the_operating_system_denies_is_denied_and_nothing_changes() {
    // Root is denied nothing.
    if rustix::process::geteuid().is_root() {
        return;
    }
    let bench = Bench::new();
    bench.put("closed/f", "");
    bench.put("fixed/f", "old");
    bench.put("secret", "");
    let mode =
        |path: &str, mode| fs::set_permissions(bench.ws(path), fs::Permissions::from_mode(mode)).unwrap();
    mode("closed", 0);
    mode("fixed", 0o500);
    mode("secret", 0);
    for (tool, arguments) in [
        ("read_file", json!({ "path": "secret" })),
        ("read_file", json!({ "path": "closed/f" })),
        ("list_directory", json!({ "path": "closed" })),
        ("write_file", json!({ "path": "fixed/new", "content": "" })),
        ("write_file", json!({ "path": "fixed/f", "content": "new" })),
        ("write_file", json!({ "path": "fixed/d/new", "content": "", "createDirs": true })),
        ("delete_file", json!({ "path": "fixed/f" })),
        ("delete_file", json!({ "path": "fixed", "recursive": true })),
        ("move_file", json!({ "from": "fixed/f", "to": "f" })),
    ] {
        let code = bench.approved(tool, arguments.clone()).code();
        assert_eq!(code, "PERMISSION_DENIED", "{tool} {arguments}");
    }
    assert_eq!(bench.read("fixed/f"), "old");
    // The directory of an unreadable file decides whether it may be replaced.
    bench.approved("write_file", json!({ "path": "secret", "content": "new" })).done();
    let listed = bench.call("list_directory", json!({ "path": ".", "recursive": true })).done();
    assert_eq!(listed["truncated"], true);
    mode("closed", 0o700);
    mode("fixed", 0o700);
}
