//! How changed files are found, and what a check returns.

use super::snapshot::Bounds;
use super::*;
use crate::command::toolchains::Toolchains;
use crate::dev::project_command;
use crate::workspace::ProtectedPaths;
use crate::workspace::root::WorkspaceRoot;
use gantry_core::EffectState;
use gantry_sandbox::jail::{Captured, ExitReason};
use serde_json::json;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn project(dir: &Path, path: &str) -> ProjectDir {
    ProjectDir::open(&WorkspaceRoot::open(dir, ProtectedPaths::default()).unwrap(), path).unwrap()
}

fn put(dir: &Path, path: &str, content: &str) {
    fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
    fs::write(dir.join(path), content).unwrap();
}

/// A formatter of Rust in a folder.
fn rust_in(folder: &str) -> Formatter {
    Formatter { name: "x", run: project_command("x"), folder: folder.into(), extensions: &["rs"] }
}

/// A run that failed.
fn ran(said: &str) -> JobOutput {
    JobOutput {
        stdout: Captured { total: said.len() as u64, bytes: said.into() },
        stderr: Captured::default(),
        end: ExitReason::Exited(1),
        duration: WALL,
    }
}

#[test]
fn changed_files_are_recognised_by_their_content() {
    let dir = TempDir::new().unwrap();
    for path in ["p/a.rs", "p/b.rs", "p/sub/c.rs", "p/notes.txt", "p/target/x.rs", "p/.git/y.rs"] {
        put(dir.path(), path, "old");
    }
    std::os::unix::fs::symlink("a.rs", dir.path().join("p/link.rs")).unwrap();
    let project = project(dir.path(), "p");
    let before = Snapshot::take(&project, &rust_in("p"), BOUNDS);
    assert_eq!((before.digests.len(), before.is_partial), (3, false));
    for path in ["p/a.rs", "p/sub/c.rs", "p/notes.txt", "p/target/x.rs"] {
        put(dir.path(), path, "new");
    }
    fs::remove_file(dir.path().join("p/b.rs")).unwrap();
    assert_eq!(before.changed(&project), ["p/a.rs", "p/b.rs", "p/sub/c.rs"]);
}

#[test]
fn looking_for_files_ends_after_so_many_entries_of_any_kind() {
    let dir = TempDir::new().unwrap();
    for number in 0..10 {
        put(dir.path(), &format!("p/sub{number}/notes.txt"), "");
    }
    put(dir.path(), "p/z/a.rs", "");
    let project = project(dir.path(), "p");
    let take = |entries, levels| {
        let bounds = Bounds { entries, levels, ..BOUNDS };
        let taken = Snapshot::take(&project, &rust_in("p"), bounds);
        (taken.digests.len(), taken.is_partial)
    };
    // Eleven folders, ten files of another kind, and the one that is looked for.
    assert_eq!(take(22, 1), (1, false));
    assert!(take(21, 1).1);
    assert_eq!(take(10, 1), (0, true));
    assert_eq!(take(22, 0), (0, true));
}

#[test]
fn what_tools_may_not_see_is_not_looked_through() {
    let dir = TempDir::new().unwrap();
    put(dir.path(), ".gantry/store/a.rs", "");
    put(dir.path(), "b.rs", "");
    let hidden = ProtectedPaths { hidden: vec![dir.path().join(".gantry")], ..ProtectedPaths::default() };
    let project = ProjectDir::open(&WorkspaceRoot::open(dir.path(), hidden).unwrap(), ".").unwrap();
    assert_eq!(Snapshot::take(&project, &rust_in(""), BOUNDS).digests.len(), 1);
}

#[test]
fn a_folder_of_a_package_of_rust_stands_for_the_whole_package() {
    let dir = TempDir::new().unwrap();
    put(dir.path(), "p/Cargo.toml", "[package]\nname = \"p\"\n");
    put(dir.path(), "p/src/deep/a.rs", "");
    put(dir.path(), "p/tests/b.rs", "");
    let toolchains = Toolchains::find(&[], &[]);
    assert!(toolchains.program("cargo").is_some(), "cargo runs this test");
    let project = project(dir.path(), "p/src/deep");
    let formatter = Formatter::choose(&project, Some(Ecosystem::Cargo), &toolchains, false).unwrap();
    assert_eq!(formatter.folder, Path::new("p"));
    assert_eq!(Snapshot::take(&project, &formatter, BOUNDS).digests.len(), 2);
}

#[test]
fn a_formatter_that_failed_changed_nothing_only_if_all_files_were_compared() {
    let dir = TempDir::new().unwrap();
    put(dir.path(), "p/a.rs", "");
    put(dir.path(), "p/sub/b.rs", "");
    let (project, formatter) = (project(dir.path(), "p"), rust_in("p"));
    for (levels, effect, words) in [
        (1, EffectState::None, "and changed nothing"),
        (0, EffectState::Possible, "not all files were compared, so it may have changed some"),
    ] {
        let before = Snapshot::take(&project, &formatter, Bounds { levels, ..BOUNDS });
        let fault = unformatted(report(&project, &formatter, Some(&before), &ran("")));
        assert_eq!(fault.effect, effect);
        assert!(fault.error.message.contains(words), "{}", fault.error.message);
    }
}

#[test]
fn more_files_than_a_result_has_are_still_counted() {
    let dir = TempDir::new().unwrap();
    put(dir.path(), "p/.venv/bin/ruff", "");
    put(dir.path(), "p/same.py", "same");
    let names: Vec<String> = (0..PATHS + 10).map(|number| format!("{number:05}.py")).collect();
    for name in &names {
        put(dir.path(), &format!("p/{name}"), "old");
    }
    let project = project(dir.path(), "p");
    let formatter =
        Formatter::choose(&project, Some(Ecosystem::Python), &Toolchains::default(), false).unwrap();
    let before = Snapshot::take(&project, &formatter, BOUNDS);
    for name in &names {
        put(dir.path(), &format!("p/{name}"), "new");
    }
    let said = "--- 00000.py\n+++ 00000.py\n";
    let ran = ran(said);
    let formatted = json!(report(&project, &formatter, Some(&before), &ran));
    assert_eq!((&formatted["unchanged"], &formatted["truncated"]), (&json!(1), &json!(true)));
    assert_eq!(formatted["changed"].as_array().unwrap().len(), PATHS);
    // What a check says is not read, only returned.
    let checked = json!(report(&project, &formatter, None, &ran));
    let expected =
        json!({ "formatter": "ruff", "changed": [], "checked": true, "exitCode": 1, "output": said });
    assert_eq!(checked, expected);
}
