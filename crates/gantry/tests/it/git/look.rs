//! `git_status`, `git_diff` and `git_log`: what a repository says about itself.

use super::{Repo, git_in};
use serde_json::{Value, json};

fn paths(list: &Value) -> Vec<(&str, &str)> {
    let items = list.as_array().expect("a list").iter();
    items
        .map(|item| (item["path"].as_str().expect("a path"), item["status"].as_str().expect("a word")))
        .collect()
}

#[test]
fn blt_5_git_status_names_every_file_that_is_not_as_committed() {
    let repo = Repo::new();
    let clean = repo.done("git_status", &json!({}));
    assert_eq!(
        (&clean["clean"], &clean["branch"], &clean["head"]),
        (&json!(true), &json!("main"), &json!(repo.head()))
    );
    assert_eq!(clean["files"], json!([]));

    for (file, text) in
        [("gone.txt", "g\n"), ("old name.txt", "some text that stays the same\n"), ("b.txt", "b\n")]
    {
        repo.home.write(file, text);
    }
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=Second"]);
    repo.git(&["mv", "old name.txt", "new\nname.txt"]);
    std::fs::remove_file(repo.home.path().join("gone.txt")).expect("it is there");
    repo.home.write("a.txt", "one\n");
    repo.home.write("b.txt", "staged\n");
    repo.git(&["add", "b.txt"]);
    repo.home.write("b.txt", "and changed again\n");
    repo.home.write("sub/untracked.txt", "u\n");
    let state = repo.done("git_status", &json!({ "path": "." }));
    assert_eq!(state["clean"], false);
    let mut files = paths(&state["files"]);
    files.sort_unstable();
    assert_eq!(
        files,
        [
            ("a.txt", "modified"),
            ("b.txt", "modified"),
            ("gone.txt", "deleted"),
            ("new\nname.txt", "renamed"),
            ("sub/untracked.txt", "untracked"),
        ]
    );
    let of = |path: &str| {
        state["files"].as_array().unwrap().iter().find(|file| file["path"] == path).unwrap().clone()
    };
    assert_eq!((&of("b.txt")["index"], &of("b.txt")["worktree"]), (&json!("M"), &json!("M")));
    assert_eq!(of("new\nname.txt")["from"], "old name.txt");
}

#[test]
fn blt_5_git_status_tells_the_distance_to_the_upstream_and_what_is_under_way() {
    let repo = Repo::new();
    repo.git(&["branch", "other"]);
    repo.home.write("a.txt", "mine\n");
    repo.git(&["commit", "--quiet", "--all", "--message=Mine"]);
    repo.git(&["branch", "--set-upstream-to=other"]);
    let ahead = repo.done("git_status", &json!({}));
    assert_eq!(
        (&ahead["upstream"], &ahead["ahead"], &ahead["behind"]),
        (&json!("other"), &json!(1), &json!(0))
    );

    repo.git(&["checkout", "--quiet", "other"]);
    repo.home.write("a.txt", "theirs\n");
    repo.git(&["commit", "--quiet", "--all", "--message=Theirs"]);
    repo.git(&["checkout", "--quiet", "--detach", "main"]);
    let merging = std::process::Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@x", "merge", "other"])
        .current_dir(repo.home.path())
        .output()
        .expect("git");
    assert!(!merging.status.success());
    let state = repo.done("git_status", &json!({}));
    assert_eq!(state["operation"], "merge");
    assert!(state.get("branch").is_none(), "{state}");
    assert_eq!(paths(&state["files"]), [("a.txt", "conflicted")]);
    let diff = repo.done("git_diff", &json!({}));
    assert_eq!(paths(&diff["files"]), [("a.txt", "conflicted")]);
}

#[test]
fn blt_5_git_diff_compares_files_index_and_revisions() {
    let repo = Repo::new();
    repo.home.write("a.txt", "one\n2\n");
    repo.home.write("b.bin", "\0\u{1}");
    repo.git(&["add", "b.bin"]);

    let files = repo.done("git_diff", &json!({}));
    assert!(files["diff"].as_str().unwrap().contains("-two\n+2\n"), "{files}");
    assert_eq!(
        files["files"],
        json!([{ "path": "a.txt", "status": "modified", "added": 1, "deleted": 1, "binary": false }])
    );
    assert!(files.get("truncated").is_none());

    let staged = repo.done("git_diff", &json!({ "staged": true }));
    assert_eq!(
        staged["files"][0],
        json!({ "path": "b.bin", "status": "added", "added": 0, "deleted": 0, "binary": true })
    );

    repo.git(&["commit", "--quiet", "--all", "--message=Second"]);
    let both = repo.done("git_diff", &json!({ "from": "HEAD~1", "to": "HEAD" }));
    assert_eq!(paths(&both["files"]), [("a.txt", "modified"), ("b.bin", "added")]);
    let one =
        repo.done("git_diff", &json!({ "from": "HEAD~1", "to": "main", "files": ["a.txt"], "context": 0 }));
    assert_eq!(paths(&one["files"]), [("a.txt", "modified")]);
    assert!(!one["diff"].as_str().unwrap().contains("\n one\n"), "{one}");
    assert_eq!(repo.done("git_diff", &json!({ "from": "HEAD" }))["diff"], "");

    for (arguments, code, words) in [
        (json!({ "from": "nowhere" }), "INVALID_ARGUMENTS", "nowhere is not a revision"),
        (json!({ "from": "--output=x" }), "INVALID_ARGUMENTS", "from"),
        (json!({ "to": "HEAD" }), "INVALID_ARGUMENTS", "to"),
        (json!({ "files": ["../x"] }), "INVALID_PATH", "outside"),
        (json!({ "context": 21 }), "INVALID_ARGUMENTS", "context"),
    ] {
        let (found, message) = repo.fails("git_diff", &arguments);
        assert!(found == code && message.contains(words), "{arguments}: {found} {message}");
    }
    assert!(!repo.home.path().join("x").exists());
}

#[test]
fn blt_5_git_diff_of_very_much_is_cut_and_says_so() {
    let repo = Repo::with("defaults: { toolResponseMaxBytes: 4000000 }\n").started();
    repo.home.write("a.txt", &"0123456789 0123456789\n".repeat(100_000));
    let diff = repo.done("git_diff", &json!({}));
    assert_eq!((&diff["truncated"], &diff["files"][0]["added"]), (&json!(true), &json!(100_000)));
    let text = diff["diff"].as_str().unwrap();
    assert!(
        text.len() > 1_000_000 && text.len() <= 1 << 20 && text.ends_with("0123456789\n"),
        "{}",
        text.len()
    );
}

#[test]
fn blt_5_git_log_lists_commits_and_narrows_them() {
    let repo = Repo::new();
    repo.home.write("b.txt", "b\n");
    repo.git(&["add", "b.txt"]);
    repo.git(&[
        "commit",
        "--quiet",
        "--author=Bob <bob@example.org>",
        "--message=Add [b].*",
        "--message=Because\n\n- of this",
    ]);
    repo.git(&["tag", "v1"]);
    repo.git(&["checkout", "--quiet", "-b", "topic"]);
    repo.home.write("c.txt", "c\n");
    repo.git(&["add", "c.txt"]);
    repo.git(&["commit", "--quiet", "--message=Third"]);

    let log = repo.done("git_log", &json!({}));
    let subjects = |log: &Value| -> Vec<String> {
        log["commits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|commit| commit["subject"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(subjects(&log), ["Third", "Add [b].*", "First"]);
    let second = &log["commits"][1];
    assert_eq!(second["author"], json!({ "name": "Bob", "email": "bob@example.org" }));
    assert_eq!(second["body"], "Because\n\n- of this");
    assert_eq!(second["refs"], json!(["tag: v1", "main"]));
    assert_eq!(second["parents"], json!([log["commits"][2]["hash"]]));
    assert_eq!(log["commits"][0]["hash"], repo.head());
    assert!(second["date"].as_str().unwrap().contains('T'));
    assert!(log.get("truncated").is_none());

    for (arguments, expected) in [
        (json!({ "maxCount": 1 }), vec!["Third"]),
        (json!({ "maxCount": 1, "skip": 1 }), vec!["Add [b].*"]),
        (json!({ "author": "BOB" }), vec!["Add [b].*"]),
        (json!({ "grep": "[b].*" }), vec!["Add [b].*"]),
        (json!({ "grep": "no such words" }), vec![]),
        (json!({ "files": ["a.txt", "c.txt"] }), vec!["Third", "First"]),
        (json!({ "rev": "v1..topic" }), vec!["Third"]),
        (json!({ "rev": "main", "maxCount": 500 }), vec!["Add [b].*", "First"]),
        (json!({ "until": "2001-01-01" }), vec![]),
        (json!({ "since": "2001-01-01", "maxCount": 3 }), vec!["Third", "Add [b].*", "First"]),
    ] {
        assert_eq!(subjects(&repo.done("git_log", &arguments)), expected, "{arguments}");
    }
    assert_eq!(repo.done("git_log", &json!({ "maxCount": 2 }))["truncated"], true);
    for rev in ["nowhere", "main..nowhere", "--all", "a b"] {
        assert_eq!(repo.fails("git_log", &json!({ "rev": rev })).0, "INVALID_ARGUMENTS", "{rev}");
    }
}

#[test]
fn blt_5_git_a_repository_without_a_commit_is_one_too() {
    let repo = Repo::empty();
    repo.home.write("a.txt", "a\n");
    let state = repo.done("git_status", &json!({}));
    assert_eq!((&state["branch"], state.get("head")), (&json!("main"), None));
    assert_eq!(paths(&state["files"]), [("a.txt", "untracked")]);
    assert_eq!(repo.done("git_log", &json!({}))["commits"], json!([]));
    assert_eq!(repo.done("git_diff", &json!({}))["files"], json!([]));
}

#[test]
fn blt_5_git_works_in_the_repository_that_a_folder_is_in() {
    let repo = Repo::new();
    let inner = repo.home.path().join("lib/inner");
    std::fs::create_dir_all(inner.join("src")).expect("folders");
    git_in(&inner, &["init", "--quiet"]);
    repo.home.write("lib/inner/src/x.rs", "x\n");
    let state = repo.done("git_status", &json!({ "path": "lib/inner/src" }));
    assert_eq!(paths(&state["files"]), [("lib/inner/src/x.rs", "untracked")]);
    let made = repo.done(
        "git_commit",
        &json!({ "path": "lib/inner", "message": "Inner", "files": ["lib/inner/src/x.rs"] }),
    );
    assert_eq!(paths(&made["files"]), [("lib/inner/src/x.rs", "added")]);
    assert_eq!(git_in(&inner, &["log", "--format=%s"]), "Inner");
    assert_eq!(repo.git(&["log", "--format=%s"]), "First");
}

#[test]
fn blt_5_git_says_what_to_do_where_there_is_no_repository() {
    let home = gantry_testkit::TestDir::new();
    let repo = Repo { home };
    for tool in ["git_status", "git_diff", "git_log", "git_push"] {
        let (code, message) = repo.fails(tool, &json!({}));
        assert!(
            code == "EXECUTION_ERROR"
                && message.contains("not a git repository")
                && message.contains("git init"),
            "{tool}: {message}"
        );
    }
    let (_, message) = repo.fails("git_commit", &json!({ "message": "x", "all": true }));
    assert!(message.contains("not a git repository"), "{message}");

    repo.home.write("linked/.git", "gitdir: /srv/elsewhere/.git/worktrees/linked\n");
    let (_, message) = repo.fails("git_status", &json!({ "path": "linked" }));
    assert!(message.contains("kept outside of the workspace"), "{message}");
    repo.git(&["init", "--quiet", "--bare", "bare"]);
    let (_, message) = repo.fails("git_status", &json!({ "path": "bare" }));
    assert!(message.contains("must be run in a work tree"), "{message}");
    for path in ["nowhere", "..", "/etc"] {
        let (code, message) = repo.fails("git_status", &json!({ "path": path }));
        assert_eq!(code, "INVALID_PATH", "{path}: {message}");
    }
}
