//! The file tools through the built program: arguments, results and approvals, by the command line and over HTTP.

#![cfg(test)]

mod bench;
mod confine;
mod protect;
mod race;
mod traversal;

use bench::{Bench, Outcome};
use gantry_core::schema::Schema;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

/// Whether a text is a moment as ISO 8601 has it, in UTC.
fn is_moment(text: &Value) -> bool {
    let text = text.as_str().unwrap_or_default();
    let shape = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let seconds: String = text.chars().take(19).map(shape).collect();
    seconds == "0000-00-00T00:00:00" && text.ends_with('Z')
}

fn names(listing: &Value) -> Vec<&str> {
    let entries = listing["entries"].as_array().expect("entries");
    entries.iter().map(|entry| entry["name"].as_str().expect("a name")).collect()
}

#[test]
fn blt_1_list_directory_gives_name_type_size_and_time_of_each_entry() {
    Bench::through_each_door(|bench| {
        bench.put("b.txt", "four");
        bench.put("a/deep/c.txt", "");
        bench.put(".hidden", "x");
        symlink("b.txt", bench.inside("link")).unwrap();

        let listing = bench.done("list_directory", json!({ "path": "." }));
        assert_eq!(names(&listing), ["a", "b.txt", "link"]);
        let kinds: Vec<_> =
            listing["entries"].as_array().unwrap().iter().map(|e| (&e["type"], &e["size"])).collect();
        assert_eq!(
            kinds,
            [
                (&json!("directory"), &json!(0)),
                (&json!("file"), &json!(4)),
                (&json!("symlink"), &json!("b.txt".len()))
            ]
        );
        for entry in listing["entries"].as_array().unwrap() {
            assert!(is_moment(&entry["modified"]), "{entry}");
            assert_eq!(entry.as_object().unwrap().len(), 4, "{entry}");
        }

        let all = bench.done("list_directory", json!({ "path": ".", "includeHidden": true }));
        assert_eq!(names(&all), [".hidden", "a", "b.txt", "link"]);
        let deep = bench.done("list_directory", json!({ "path": "./", "recursive": true }));
        assert_eq!(names(&deep), ["a", "a/deep", "a/deep/c.txt", "b.txt", "link"]);
        assert_eq!(names(&bench.done("list_directory", json!({ "path": "a/deep" }))), ["c.txt"]);

        assert_eq!(bench.code("list_directory", json!({ "path": "nowhere" })), "FILE_NOT_FOUND");
        let error = bench.error("list_directory", json!({ "path": "b.txt" }));
        assert_eq!(error["code"], "EXECUTION_ERROR");
        assert!(error["message"].as_str().unwrap().contains("not a directory"), "{error}");
    });
}

#[test]
fn blt_1_read_file_gives_content_size_and_time_as_text_or_base64() {
    Bench::through_each_door(|bench| {
        bench.put("a.txt", "größer");
        fs::write(bench.inside("raw"), [0u8, 159, 146, 150]).unwrap();

        let text = bench.done("read_file", json!({ "path": "a.txt" }));
        assert_eq!((&text["content"], &text["size"]), (&json!("größer"), &json!(8)));
        assert!(is_moment(&text["modified"]), "{text}");
        assert_eq!(text, bench.done("read_file", json!({ "path": "./a.txt", "encoding": "utf-8" })));

        let raw = bench.done("read_file", json!({ "path": "raw", "encoding": "base64" }));
        assert_eq!((&raw["content"], &raw["size"]), (&json!("AJ+Slg=="), &json!(4)));
        let error = bench.error("read_file", json!({ "path": "raw" }));
        assert_eq!(error["code"], "EXECUTION_ERROR");
        assert!(error["message"].as_str().unwrap().contains("base64"), "it says what to do: {error}");

        assert_eq!(bench.code("read_file", json!({ "path": "none" })), "FILE_NOT_FOUND");
        assert_eq!(bench.code("read_file", json!({ "path": "a.txt/b" })), "FILE_NOT_FOUND");
        assert_eq!(bench.code("read_file", json!({ "path": "." })), "INVALID_PATH");
        let error = bench.error("read_file", json!({ "path": "a.txt/" }));
        assert!(error["message"].as_str().unwrap().contains("slash"), "{error}");
    });
}

#[test]
fn blt_1_write_file_creates_without_asking_and_overwrites_only_with_approval() {
    Bench::through_each_door(|bench| {
        let written = bench.done("write_file", json!({ "path": "a.txt", "content": "größer" }));
        assert_eq!(written, json!({ "path": "a.txt", "size": 8 }));
        let bytes =
            bench.done("write_file", json!({ "path": "raw", "content": "AJ+Slg==", "encoding": "base64" }));
        assert_eq!(bytes, json!({ "path": "raw", "size": 4 }));
        assert_eq!(fs::read(bench.inside("raw")).unwrap(), [0, 159, 146, 150]);

        let before = bench.tree();
        let error = bench.error("write_file", json!({ "path": "new/deep/b.txt", "content": "" }));
        assert_eq!(error["code"], "FILE_NOT_FOUND");
        assert!(error["message"].as_str().unwrap().contains("createDirs"), "it says what to do: {error}");
        let bad = bench.error("write_file", json!({ "path": "c", "content": "%", "encoding": "base64" }));
        assert_eq!(bad["code"], "INVALID_ARGUMENTS");
        let asked = bench.error("write_file", json!({ "path": "a.txt", "content": "new" }));
        assert_eq!(asked["code"], "APPROVAL_REQUIRED");
        assert!(asked["message"].as_str().unwrap().contains("a.txt exists"), "{asked}");
        assert_eq!(bench.tree(), before, "nothing was changed");

        let made =
            bench.done("write_file", json!({ "path": "new/deep/b.txt", "content": "", "createDirs": true }));
        assert_eq!(made, json!({ "path": "new/deep/b.txt", "size": 0 }));
        bench.done_approved("write_file", json!({ "path": "a.txt", "content": "new" }));
        assert_eq!(bench.read("a.txt"), "new");
        let directory = bench.approved("write_file", json!({ "path": "new", "content": "" })).error();
        assert_eq!(directory["code"], "EXECUTION_ERROR");
    });
}

#[test]
fn blt_1_delete_file_always_asks_and_names_what_it_deleted() {
    Bench::through_each_door(|bench| {
        bench.put("a.txt", "a");
        bench.put("d/e/f.txt", "f");
        bench.put("d/g.txt", "g");
        fs::create_dir(bench.inside("empty")).unwrap();
        symlink("d", bench.inside("link")).unwrap();

        let before = bench.tree();
        for arguments in [
            json!({ "path": "a.txt" }),
            json!({ "path": "empty" }),
            json!({ "path": "d", "recursive": true }),
            json!({ "path": "link" }),
        ] {
            assert_eq!(bench.code("delete_file", arguments), "APPROVAL_REQUIRED");
        }
        let full = bench.approved("delete_file", json!({ "path": "d" })).error();
        assert_eq!(full["code"], "EXECUTION_ERROR");
        assert!(full["message"].as_str().unwrap().contains("recursive: true"), "{full}");
        assert_eq!(bench.approved("delete_file", json!({ "path": "none" })).code(), "FILE_NOT_FOUND");
        assert_eq!(bench.approved("delete_file", json!({ "path": "." })).code(), "INVALID_PATH");
        assert_eq!(bench.tree(), before, "nothing was changed");

        let deleted = |arguments: Value| bench.done_approved("delete_file", arguments)["deleted"].clone();
        assert_eq!(deleted(json!({ "path": "link" })), json!(["link"]));
        assert_eq!(bench.read("d/g.txt"), "g", "what a link points at stays");
        assert_eq!(deleted(json!({ "path": "a.txt" })), json!(["a.txt"]));
        assert_eq!(deleted(json!({ "path": "empty" })), json!(["empty"]));
        assert_eq!(
            deleted(json!({ "path": "d/", "recursive": true })),
            json!(["d", "d/e", "d/e/f.txt", "d/g.txt"])
        );
        assert_eq!(fs::read_dir(bench.inside(".")).unwrap().count(), 0);
    });
}

#[test]
fn blt_1_move_file_moves_to_a_free_name_and_replaces_only_with_overwrite_and_approval() {
    Bench::through_each_door(|bench| {
        bench.put("a.txt", "a");
        bench.put("b.txt", "b");
        bench.put("d/c.txt", "c");

        let moved = bench.done("move_file", json!({ "from": "a.txt", "to": "d/a.txt" }));
        assert_eq!(moved, json!({ "from": "a.txt", "to": "d/a.txt" }));
        bench.done("move_file", json!({ "from": "d", "to": "e" }));
        assert_eq!(bench.read("e/a.txt"), "a");

        let before = bench.tree();
        let taken = bench.error("move_file", json!({ "from": "b.txt", "to": "e/a.txt" }));
        assert_eq!(taken["code"], "EXECUTION_ERROR");
        assert!(taken["message"].as_str().unwrap().contains("overwrite: true"), "{taken}");
        // Approval does not stand in for the argument.
        let taken = bench.approved("move_file", json!({ "from": "b.txt", "to": "e/a.txt" }));
        assert_eq!(taken.code(), "EXECUTION_ERROR");
        let over = json!({ "from": "b.txt", "to": "e/a.txt", "overwrite": true });
        let asked = bench.error("move_file", over.clone());
        assert_eq!(asked["code"], "APPROVAL_REQUIRED");
        assert!(asked["message"].as_str().unwrap().contains("replaced by b.txt"), "{asked}");
        assert_eq!(bench.code("move_file", json!({ "from": "none", "to": "x" })), "FILE_NOT_FOUND");
        assert_eq!(bench.code("move_file", json!({ "from": "b.txt", "to": "no/x" })), "FILE_NOT_FOUND");
        assert_eq!(bench.code("move_file", json!({ "from": "e", "to": "e/f" })), "EXECUTION_ERROR");
        assert_eq!(bench.tree(), before, "nothing was changed");

        bench.done_approved("move_file", over);
        assert_eq!(bench.read("e/a.txt"), "b");
        assert!(!bench.inside("b.txt").exists());
        bench.done("move_file", json!({ "from": "e/a.txt", "to": "b.txt", "overwrite": true }));
        assert_eq!(bench.read("b.txt"), "b", "overwrite asks only where something is replaced");
    });
}

#[test]
fn blt_1_arguments_that_do_not_fit_are_refused_with_every_field_named() {
    Bench::through_each_door(|bench| {
        bench.put("a.txt", "a");
        let before = bench.tree();
        let error = bench.error("read_file", json!({ "pth": "a.txt", "encoding": "latin-1" }));
        assert_eq!(error["code"], "INVALID_ARGUMENTS");
        let message = error["message"].as_str().unwrap();
        for part in ["path", "pth", "encoding"] {
            assert!(message.contains(part), "{part} is not in {message}");
        }
        for (tool, arguments) in [
            ("list_directory", json!({ "path": ".", "recursive": "yes" })),
            ("read_file", json!({ "path": 1 })),
            ("write_file", json!({ "path": "b.txt" })),
            ("write_file", json!({ "path": "b.txt", "content": null })),
            ("delete_file", json!({ "paths": ["a.txt"] })),
            ("move_file", json!({ "from": "a.txt" })),
        ] {
            assert_eq!(bench.approved(tool, arguments).code(), "INVALID_ARGUMENTS", "{tool}");
        }
        assert_eq!(bench.tree(), before);
    });
}

#[test]
fn blt_1_over_http_only_the_key_of_the_data_folder_approves() {
    let bench = Bench::over_http();
    bench.put("a.txt", "old");
    let call = json!({
        "tool": "write_file", "arguments": { "path": "a.txt", "content": "new" }, "approve": true,
    });
    let answer = bench.server().post("/api/v1/calls", &call.to_string());
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (403, &json!("PERMISSION_DENIED")));
    assert_eq!(bench.read("a.txt"), "old");

    let asked = bench.server().call("write_file", &json!({ "path": "a.txt", "content": "new" }));
    assert_eq!(asked.status, 202);
    let asked = asked.json();
    assert_eq!(asked["ok"], false);
    assert_eq!(asked["extras"]["effect"], "none");
    assert_eq!(bench.read("a.txt"), "old");

    bench.done_approved("write_file", json!({ "path": "a.txt", "content": "new" }));
    assert_eq!(bench.read("a.txt"), "new");
    let audit = bench.server().get_as_admin("/api/v1/audit?tool=write_file&state=COMPLETED_SUCCESS").json();
    assert_eq!(audit["items"][0]["decision"], "approved by person");
}

/// The arguments and results that the specification gives each tool.
const SPECIFIED: [(&str, &[&str], &[&str]); 5] = [
    ("list_directory", &["includeHidden", "path", "recursive"], &["entries"]),
    ("read_file", &["encoding", "path"], &["content", "modified", "size"]),
    ("write_file", &["content", "createDirs", "encoding", "path"], &["path", "size"]),
    ("delete_file", &["path", "recursive"], &["deleted"]),
    ("move_file", &["from", "overwrite", "to"], &["from", "to"]),
];

#[test]
fn blt_6_every_built_in_tool_has_schemas_that_compile_and_give_the_specified_fields() {
    let bench = Bench::by_command_line();
    let listing = bench.home.run(["tools", "--json"]).json();
    let tools = listing.as_array().unwrap();
    for tool in tools {
        for schema in ["inputSchema", "outputSchema"] {
            Schema::compile(&tool[schema]).unwrap_or_else(|error| panic!("{}: {error}", tool["name"]));
        }
    }
    for (name, arguments, results) in SPECIFIED {
        let tool = tools.iter().find(|tool| tool["name"] == name).expect("the tool");
        let fields = |schema: &str, only: &[&str]| {
            let properties = tool[schema]["properties"].as_object().unwrap();
            let mut names: Vec<_> = properties.keys().map(String::as_str).collect();
            names.retain(|name| only.is_empty() || only.contains(name));
            names.sort_unstable();
            names.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(fields("inputSchema", &[]), arguments, "{name}");
        assert_eq!(fields("outputSchema", results), results, "{name}");
        assert_eq!(tool["outputSchema"]["required"].as_array().unwrap().len(), results.len(), "{name}");
    }
}

#[test]
fn blt_6_unusual_but_legal_results_fit_the_output_schemas_too() {
    // Every success in this module is checked against its tool's schema; these are the corners.
    Bench::through_each_door(|bench| {
        use std::os::unix::ffi::OsStrExt as _;
        bench.put("empty", "");
        bench.put("line\nbreak \"quoted\" \u{202e}", "x");
        fs::write(bench.inside("x").with_file_name(std::ffi::OsStr::from_bytes(b"not-utf8-\xff")), "")
            .unwrap();
        // The start of the epoch, and before it.
        let file = fs::File::options().write(true).open(bench.inside("empty")).unwrap();
        let before_epoch = std::time::UNIX_EPOCH - std::time::Duration::from_secs(3600);
        file.set_modified(before_epoch).unwrap();

        let listing = bench.done("list_directory", json!({ "path": ".", "recursive": true }));
        assert_eq!(names(&listing), ["empty", "line\nbreak \"quoted\" \u{202e}", "not-utf8-\\xff"]);
        assert_eq!(listing["entries"][0]["modified"], "1969-12-31T23:00:00Z");
        bench.done("read_file", json!({ "path": "line\nbreak \"quoted\" \u{202e}" }));
        bench.done("read_file", json!({ "path": "empty", "encoding": "base64" }));
        fs::create_dir(bench.inside("nothing")).unwrap();
        let nothing = bench.done("list_directory", json!({ "path": "nothing" }));
        assert_eq!(nothing, json!({ "entries": [] }));
    });
}

#[test]
fn blt_1_a_file_that_is_too_large_or_no_regular_file_is_refused_and_nothing_hangs() {
    let bench = Bench::over_http();
    let large = fs::File::create(bench.inside("large")).unwrap();
    large.set_len(10 * 1024 * 1024 + 1).unwrap();
    let error = bench.error("read_file", json!({ "path": "large" }));
    assert_eq!(error["code"], "EXECUTION_ERROR");
    assert!(error["message"].as_str().unwrap().contains("10485760"), "it names the limit: {error}");

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, bench.inside("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    // A pipe without a writer would block a process that opens it.
    assert_eq!(bench.code("read_file", json!({ "path": "pipe" })), "EXECUTION_ERROR");
    let write = bench.approved("write_file", json!({ "path": "pipe", "content": "x" }));
    assert_eq!(write.code(), "EXECUTION_ERROR");
    assert!(matches!(bench.reply("list_directory", json!({ "path": "." })), Outcome::Done(_)));
}
