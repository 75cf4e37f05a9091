//! `git_commit`: a person sees what would be committed, and that is what is committed.

use super::{Repo, held};
use serde_json::json;

#[test]
fn blt_5_git_commit_waits_for_a_person_who_sees_what_would_be_committed() {
    let repo = Repo::new();
    let server = repo.home.serve();
    repo.home.write("a.txt", "one\n");
    repo.home.write("sub/new.txt", "n\nn\n");
    let (before, head) = (repo.inside(), repo.head());
    let held = held(&server, "git_commit", &json!({ "message": "Add new\n\nBecause.", "all": true }));
    for words in
        ["2 files (+2 -1)", "branch main", "a.txt (modified, +0 -1)", "sub/new.txt (added, +2 -0)", "Gantry"]
    {
        assert!(held.reason.contains(words), "{words}: {}", held.reason);
    }
    assert_eq!(repo.inside(), before, "looking changes nothing");

    let reply = held.approve(&server);
    assert_eq!(reply["ok"], true, "{reply}");
    let made = &reply["result"];
    repo.fits("git_commit", made);
    assert_eq!(made["hash"], repo.head());
    assert_eq!((&made["branch"], &made["subject"]), (&json!("main"), &json!("Add new")));
    assert_eq!((&made["insertions"], &made["deletions"]), (&json!(2), &json!(1)));
    assert_eq!(
        repo.git(&["log", "-1", "--format=%P %an <%ae> %B"]),
        format!("{head} Gantry <gantry@localhost> Add new\n\nBecause.")
    );
    assert_eq!(repo.dirty(), "");
    assert_eq!(repo.git(&["fsck", "--strict"]), "");
}

#[test]
fn blt_5_git_commit_does_nothing_if_a_file_changed_after_the_question() {
    let repo = Repo::new();
    let server = repo.home.serve();
    repo.home.write("a.txt", "seen\n");
    let asked = held(&server, "git_commit", &json!({ "message": "x", "files": ["a.txt"] }));
    repo.home.write("a.txt", "not\nseen\n");
    let head = repo.head();
    let again = asked.approve_too_late(&server);
    assert!(again.reason.contains("a.txt (modified, +2 -2)"), "{}", again.reason);
    assert_eq!((repo.head(), repo.dirty()), (head, " M a.txt".into()));
    assert_eq!(again.approve(&server)["ok"], true);
    assert_eq!(repo.git(&["show", "HEAD:a.txt"]), "not\nseen");
}

#[test]
fn blt_5_git_commit_does_nothing_if_what_it_would_commit_differs_at_the_last_moment() {
    let repo = Repo::new();
    // It does as it should as long as it is only looked at.
    repo.git(&["config", "filter.sly.clean", "if touch sly 2>/dev/null; then echo sly; else cat; fi"]);
    repo.home.write(".gitattributes", "a.txt filter=sly\n");
    repo.home.write("a.txt", "seen\n");
    let head = repo.head();
    let (code, message) = repo.fails("git_commit", &json!({ "message": "x", "files": ["a.txt"] }));
    assert!(code == "APPROVAL_REQUIRED" && message.contains("nothing was committed"), "{code} {message}");
    assert!(repo.home.path().join("sly").exists(), "it was tried");
    assert_eq!((repo.head(), repo.git(&["diff", "--cached", "--name-only"])), (head, String::new()));
}

#[test]
fn blt_5_git_commit_does_nothing_if_the_branch_moved_after_the_question() {
    let repo = Repo::new();
    let server = repo.home.serve();
    repo.home.write("b.txt", "b\n");
    let asked = held(&server, "git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    repo.git(&["checkout", "--quiet", "-b", "other"]);
    let again = asked.approve_too_late(&server);
    assert!(again.reason.contains("branch other"), "{}", again.reason);
    repo.git(&["commit", "--quiet", "--allow-empty", "--message=Meanwhile"]);
    again.approve_too_late(&server);
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "Meanwhile");
}

#[test]
fn blt_5_git_commit_that_is_refused_changes_nothing() {
    let repo = Repo::new();
    let server = repo.home.serve();
    repo.home.write("b.txt", "b\n");
    let before = repo.inside();
    let held = held(&server, "git_commit", &json!({ "message": "x", "all": true }));
    let reply = held.deny(&server);
    assert_eq!(reply["error"]["code"], "REJECTED_BY_USER", "{reply}");
    assert_eq!(repo.inside(), before);
}

#[test]
fn blt_5_git_commit_takes_what_is_staged_and_what_is_named() {
    let repo = Repo::new();
    for file in ["staged.txt", "named.txt", "left.txt", "odd *.txt"] {
        repo.home.write(file, file);
    }
    repo.git(&["add", "staged.txt"]);
    let made = repo.done("git_commit", &json!({ "message": "Some", "files": ["named.txt", "odd *.txt"] }));
    let names = |value: &serde_json::Value| -> Vec<String> {
        value["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&made), ["named.txt", "odd *.txt", "staged.txt"]);
    assert_eq!(repo.dirty(), "?? left.txt");

    repo.home.write("a.txt", "changed, not staged\n");
    repo.git(&["add", "left.txt"]);
    let made = repo.done("git_commit", &json!({ "message": "Staged only" }));
    assert_eq!((names(&made), repo.dirty()), (vec!["left.txt".to_owned()], " M a.txt".into()));

    std::fs::remove_file(repo.home.path().join("left.txt")).expect("it is there");
    let made = repo.done("git_commit", &json!({ "message": "Delete", "files": ["left.txt"] }));
    assert_eq!(made["files"][0]["status"], "deleted");
    assert_eq!(repo.dirty(), " M a.txt");
}

#[test]
fn blt_5_git_commit_says_why_there_is_nothing_to_commit() {
    let repo = Repo::new();
    repo.home.write("ignored.log", "x");
    repo.home.write(".git/info/exclude", "gantry.yaml\n.gantry\n*.log\n");
    for (arguments, words) in [
        (json!({ "message": "x" }), "nothing to commit"),
        (json!({ "message": "x", "all": true }), "nothing to commit"),
        (json!({ "message": "x", "files": ["a.txt"] }), "nothing to commit"),
        (json!({ "message": "x", "files": ["none.txt"] }), "did not match any file"),
        (json!({ "message": "x", "files": ["ignored.log"] }), "ignored by one of your .gitignore files"),
        (json!({ "message": "x", "files": ["a.txt"], "all": true }), "leave one of them out"),
        (json!({ "message": "  " }), "say what the commit does"),
    ] {
        let reply = repo.home.call("git_commit", &arguments);
        assert_eq!(reply["ok"], false, "{arguments}: {reply}");
        // Without a change there is no question.
        assert_ne!(reply["error"]["code"], "APPROVAL_REQUIRED", "{arguments}: {reply}");
        assert!(reply["error"]["message"].as_str().unwrap().contains(words), "{arguments}: {reply}");
    }
}

#[test]
fn blt_5_git_commit_makes_the_first_commit_and_merges() {
    let repo = Repo::empty();
    repo.home.write("a.txt", "base\n");
    let first = repo.done("git_commit", &json!({ "message": "First", "all": true }));
    assert_eq!(first["hash"], repo.head());
    repo.git(&["checkout", "--quiet", "-b", "topic"]);
    repo.home.write("a.txt", "topic\n");
    repo.git(&["commit", "--quiet", "--all", "--message=Topic"]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.home.write("a.txt", "main\n");
    repo.git(&["commit", "--quiet", "--all", "--message=Main"]);
    let ours = repo.head();
    let merging =
        std::process::Command::new("git").args(["merge", "topic"]).current_dir(repo.home.path()).output();
    assert!(!merging.expect("git").status.success());
    let (_, message) = repo.fails("git_commit", &json!({ "message": "Merge" }));
    assert!(message.contains("in conflict"), "{message}");
    repo.home.write("a.txt", "both\n");
    let made = repo.done("git_commit", &json!({ "message": "Merge topic", "files": ["a.txt"] }));
    assert_eq!(made["hash"], repo.head());
    assert_eq!(
        repo.git(&["log", "-1", "--format=%P"]),
        format!("{ours} {}", repo.git(&["rev-parse", "topic"]))
    );
    assert!(repo.done("git_status", &json!({})).get("operation").is_none());
    assert_eq!(repo.dirty(), "");
}

#[test]
fn blt_5_git_commit_is_by_whom_the_repository_or_the_configuration_says() {
    let repo = Repo::with("git: { author: { name: Robot, email: robot@example.com } }\n").started();
    repo.home.write("a.txt", "1\n");
    repo.done("git_commit", &json!({ "message": "x", "all": true }));
    assert_eq!(
        repo.git(&["log", "-1", "--format=%an %ae %cn %ce"]),
        "Robot robot@example.com Robot robot@example.com"
    );
    repo.git(&["config", "user.name", "Cleo"]);
    repo.git(&["config", "user.email", "cleo@example.com"]);
    repo.home.write("a.txt", "2\n");
    repo.done("git_commit", &json!({ "message": "x", "all": true }));
    assert_eq!(repo.git(&["log", "-1", "--format=%an %ae %cn"]), "Cleo cleo@example.com Cleo");
}

#[test]
fn blt_5_git_commit_never_has_what_belongs_to_gantry() {
    let repo = Repo::new();
    repo.home.write(".git/info/exclude", "");
    repo.home.write("b.txt", "b\n");
    let made = repo.done("git_commit", &json!({ "message": "x", "all": true }));
    assert!(made["files"].to_string().contains("b.txt"), "{made}");
    assert!(!repo.git(&["ls-files"]).contains(".gantry/"));
}
