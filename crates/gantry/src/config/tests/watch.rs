//! A stamp changes when anything that configures Gantry does.

use std::fs;
use std::time::{Duration, SystemTime};

use super::Folder;

#[test]
fn a_change_of_any_file_changes_the_stamp() {
    let folder = Folder::with(&[
        ("gantry.yaml", "projects: { p: { workspace: . } }"),
        ("agents/a.md", "---\n---\n"),
        ("unrelated.txt", ""),
    ]);
    let loaded = folder.load();
    let mut before = loaded.snapshot();
    assert_eq!(before, loaded.snapshot(), "nothing has changed");
    folder.write("unrelated.txt", "x");
    folder.write("unrelated/agents/a.md", "x");
    assert_eq!(before, loaded.snapshot(), "nothing that counts has changed");
    let mut changed = |what: &str| {
        let now = loaded.snapshot();
        assert_ne!(before, now, "{what}");
        before = now;
    };
    for name in [
        "gantry.yaml",
        ".env",
        "gantry.lock",
        "gantry.p.lock",
        "agents/a.md",
        "agents/b.md",
        "agents/c/agent.json",
        "tools/t/tool.json",
        "projects/p/agents/a.md",
        "projects/p/tools/t/tool.json",
    ] {
        folder.write(name, "something longer than before");
        changed(name);
    }
    folder.write("tools/t/tool.json", "something else");
    changed("a file is written again");
    fs::rename(folder.path("agents/b.md"), folder.path("agents/d.md")).unwrap();
    changed("a file is renamed");
    fs::remove_dir_all(folder.path("projects/p/tools")).unwrap();
    changed("a folder is gone");
    // A file that an editor puts in the place of another has the same name and perhaps the same size.
    folder.write("new", "something longer than before");
    fs::rename(folder.path("new"), folder.path("agents/a.md")).unwrap();
    changed("a file is replaced");
}

#[test]
fn files_are_settled_once_they_are_as_before_and_not_fresh() {
    let folder = Folder::with(&[("gantry.yaml", "{}")]);
    let loaded = folder.load();
    let (before, hour) = (loaded.snapshot(), Duration::from_secs(3600));
    assert!(before.is_settled(&before, Duration::ZERO, |_| true));
    assert!(!before.is_settled(&before, hour, |_| true), "it was written just now");
    folder.write("gantry.yaml", "workspace: .");
    let now = loaded.snapshot();
    assert!(!now.is_settled(&before, Duration::ZERO, |_| true), "it has changed");
    assert!(now.is_settled(&before, hour, |file| file.ends_with("agents")), "what does not count has not");
    let file = fs::File::options().append(true).open(folder.path("gantry.yaml")).unwrap();
    file.set_modified(SystemTime::now() + hour).unwrap();
    let ahead = loaded.snapshot();
    assert!(
        ahead.is_settled(&ahead, hour, |file| file.ends_with("gantry.yaml")),
        "a clock that is ahead says nothing"
    );
}
