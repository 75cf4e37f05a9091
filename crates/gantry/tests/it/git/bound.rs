//! What a yes is bound to. Tools can write most of what is in `.git`, and none of it may show a person something else than what
//! is then committed or pushed.

use super::push::LOOPBACK;
use super::{Repo, git_in, held};
use serde_json::{Value, json};
use std::process::Command;

/// A commit with these files that is on no branch.
fn aside(repo: &Repo, message: &str, files: &[(&str, &str)]) -> String {
    repo.git(&["checkout", "--quiet", "--detach"]);
    for (name, content) in files {
        repo.home.write(name, content);
        repo.git(&["add", name]);
    }
    repo.git(&["commit", "--quiet", "--allow-empty", &format!("--message={message}")]);
    let made = repo.head();
    repo.git(&["checkout", "--quiet", "main"]);
    made
}

#[test]
fn blt_5_git_commit_takes_no_merge_for_the_rest_of_what_was_approved() {
    let repo = Repo::new();
    let side = aside(&repo, "Side", &[]);
    let tree = |content: &str| {
        repo.home.write("a.txt", content);
        repo.git(&["add", "a.txt"]);
        repo.git(&["write-tree"])
    };
    let (evil, good) = (tree("evil\n"), tree("good\n"));
    let head = repo.head();
    // Joined by blanks, this merge with the good tree by Ann, and a merge of the side with the evil tree by "<good> Ann",
    // would be the same words.
    repo.git(&["config", "user.name", "Ann"]);
    for forged in [
        format!("{side}\n {evil}"),
        format!("{side} {evil}\n"),
        format!("{side},{evil}\n"),
        "main\n".to_owned(),
        format!("{evil}\n"),
        "\n".to_owned(),
    ] {
        repo.home.write(".git/MERGE_HEAD", &forged);
        let reply = repo.home.call("git_commit", &json!({ "message": "x" }));
        assert_eq!(reply["error"]["code"], "EXECUTION_ERROR", "{forged:?}: {reply}");
        assert!(reply["error"]["message"].as_str().unwrap().contains("MERGE_HEAD"), "{forged:?}: {reply}");
    }

    // And a yes to an honest merge is none to the other.
    repo.home.write(".git/MERGE_HEAD", &format!("{side}\n"));
    let server = repo.home.serve();
    let asked = held(&server, "git_commit", &json!({ "message": "Merge" }));
    assert!(asked.reason.contains(&format!("as a merge with {}", side.split_at(10).0)), "{}", asked.reason);
    repo.git(&["config", "user.name", &format!("{good} Ann")]);
    tree("evil\n");
    let again = asked.approve_too_late(&server);
    assert!(again.reason.contains(&good), "{}", again.reason);
    assert_eq!(repo.head(), head);
    assert_eq!(again.approve(&server)["ok"], true);
    assert_eq!(
        repo.git(&["log", "-1", "--format=%T %P %an"]),
        format!("{evil} {head} {side} {good} Ann"),
        "what was seen last"
    );
}

#[test]
fn blt_5_git_shows_commits_as_they_are_despite_replacements() {
    let repo = Repo::with(LOOPBACK).started();
    repo.git(&["remote", "add", "origin", "http://127.0.0.1:9/x.git"]);
    let first = repo.head();
    repo.git(&["commit", "--quiet", "--allow-empty", "--message=Backdoor"]);
    let second = repo.head();
    repo.git(&["commit", "--quiet", "--allow-empty", "--message=Cover"]);
    let cover = repo.head();
    let server = repo.home.serve();
    // A call that was answered is not asked about again, so that each is another one.
    let honest = |place: &str, arguments: Value| {
        let asked = held(&server, "git_push", &arguments);
        assert!(
            asked.reason.contains("3 commits") && asked.reason.contains("Backdoor"),
            "{place}: {}",
            asked.reason
        );
        let log = server.call("git_log", &json!({})).json();
        assert_eq!(log["result"]["commits"][1]["subject"], "Backdoor", "{place}: {log}");
    };
    let harmless = repo.git(&["commit-tree", "-p", &first, "-m", "Harmless", "HEAD^{tree}"]);
    repo.git(&["replace", &second, &harmless]);
    assert!(repo.git(&["log", "--format=%s"]).contains("Harmless"), "git itself is misled");
    honest("a replacement", json!({ "remote": "origin" }));
    repo.git(&["replace", "--delete", &second]);

    repo.home.write(".git/info/grafts", &format!("{cover} {first}\n"));
    assert!(!repo.git(&["log", "--format=%s"]).contains("Backdoor"), "git itself is misled");
    honest("a graft", json!({ "branch": "main" }));
    std::fs::remove_file(repo.home.path().join(".git/info/grafts")).expect("it is there");

    // The same for what a commit is compared with.
    let fake = aside(&repo, "Fake", &[("a.txt", "evil\n")]);
    repo.git(&["replace", &cover, &fake]);
    repo.home.write("a.txt", "evil\n");
    repo.home.write("b.txt", "b\n");
    let asked = held(&server, "git_commit", &json!({ "message": "x", "all": true }));
    assert!(asked.reason.contains("a.txt (modified, +1 -2)"), "{}", asked.reason);
}

#[test]
fn blt_5_git_push_says_what_its_list_of_commits_rests_on() {
    let repo = Repo::with(LOOPBACK).started();
    repo.git(&["remote", "add", "origin", "http://127.0.0.1:9/x.git"]);
    let server = repo.home.serve();
    let asked = held(&server, "git_push", &json!({}));
    let words = "1 commit that it does not have according to refs/remotes/origin/*, which tools can change: ";
    assert!(asked.reason.contains(words), "{}", asked.reason);
    repo.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    // A tag of the same name is not the branch.
    repo.git(&["tag", "main"]);
    let asked = held(&server, "git_push", &json!({ "remote": "origin" }));
    let words = "branch main would be moved";
    assert!(asked.reason.contains(words), "{}", asked.reason);
    let words =
        "0 commits that it does not have according to refs/remotes/origin/main, which tools can change";
    assert!(asked.reason.ends_with(words), "{}", asked.reason);
}

#[test]
fn blt_5_git_shows_submodules_that_the_repository_says_to_ignore() {
    let repo = Repo::new();
    let inner = |message: &str| {
        repo.git(&["-C", "sub", "commit", "--quiet", "--allow-empty", &format!("--message={message}")]);
        repo.git(&["-C", "sub", "rev-parse", "HEAD"])
    };
    repo.git(&["init", "--quiet", "sub"]);
    inner("One");
    repo.home.write(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = all\n");
    repo.git(&["add", ".gitmodules", "sub"]);
    repo.git(&["commit", "--quiet", "--message=Sub"]);
    let evil = inner("Evil");
    repo.home.write("b.txt", "b\n");
    assert_eq!(repo.dirty(), "?? b.txt", "git itself hides it");

    let state = repo.done("git_status", &json!({}));
    assert_eq!(state["files"][0]["path"], "sub", "{state}");
    let diff = repo.done("git_diff", &json!({}));
    assert!(diff["diff"].as_str().unwrap().contains(&evil), "{diff}");
    let server = repo.home.serve();
    let asked = held(&server, "git_commit", &json!({ "message": "x", "all": true }));
    assert!(
        asked.reason.starts_with("2 files") && asked.reason.contains("sub (modified"),
        "{}",
        asked.reason
    );
    let reply = asked.approve(&server);
    assert_eq!(reply["result"]["files"].as_array().map(Vec::len), Some(2), "{reply}");
    assert_eq!(repo.git(&["rev-parse", "HEAD:sub"]), evil);
}

#[test]
fn blt_5_git_commit_concludes_a_cherry_pick_by_whom_the_question_names() {
    let repo = Repo::new();
    repo.git(&["checkout", "--quiet", "-b", "topic"]);
    for text in ["topic\n", "topic\nmore\n"] {
        repo.home.write("a.txt", text);
        repo.git(&["commit", "--quiet", "--all", "--message=Picked", "--author=Olga <olga@example.com>"]);
    }
    repo.git(&["checkout", "--quiet", "main"]);
    repo.home.write("a.txt", "main\n");
    repo.git(&["commit", "--quiet", "--all", "--message=Main"]);
    let head = repo.head();
    let conflicts = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]).args(args);
        let output = git.current_dir(repo.home.path()).env("GIT_CONFIG_GLOBAL", "/dev/null").output();
        assert!(!output.expect("git").status.success(), "there is a conflict");
    };
    conflicts(&["cherry-pick", "main..topic"]);
    for text in ["both\n", "both and more\n"] {
        repo.home.write("a.txt", text);
        let made = repo.done("git_commit", &json!({ "message": "Pick", "files": ["a.txt"] }));
        assert!(made.get("warning").is_none(), "{made}");
        assert_eq!(made["hash"], repo.head());
        assert!(repo.done("git_status", &json!({})).get("operation").is_none());
        if text == "both\n" {
            assert!(repo.home.path().join(".git/sequencer").exists(), "one is left to pick");
            conflicts(&["cherry-pick", "--continue"]);
        }
    }
    assert!(!repo.home.path().join(".git/sequencer").exists(), "all are picked");
    assert_eq!(repo.git(&["log", "--format=%an %s", &format!("{head}..")]), "Gantry Pick\nGantry Pick");
    assert_eq!(repo.dirty(), "");
}

#[test]
fn blt_5_git_commit_is_in_utf_8_despite_the_repositorys_settings() {
    let repo = Repo::new();
    repo.git(&["config", "i18n.commitEncoding", "ISO-8859-1"]);
    repo.git(&["config", "user.name", "Zoë"]);
    repo.home.write("b.txt", "b\n");
    let made = repo.done("git_commit", &json!({ "message": "Grüße\n\n\n\nтекст  \n\n", "files": ["b.txt"] }));
    assert_eq!(made["subject"], "Grüße");
    let raw = repo.git(&["cat-file", "commit", "HEAD"]);
    assert!(!raw.contains("\nencoding ") && raw.contains("author Zoë <"), "{raw}");
    assert!(raw.ends_with("\n\nGrüße\n\nтекст"), "cleaned as git does it: {raw}");
    assert_eq!(repo.done("git_log", &json!({}))["commits"][0]["subject"], "Grüße");
}

#[test]
fn blt_5_git_commit_merges_only_what_the_branch_does_not_have() {
    let repo = Repo::new();
    let first = repo.head();
    repo.git(&["commit", "--quiet", "--allow-empty", "--message=Second"]);
    let second = repo.head();
    repo.home.write(".git/MERGE_HEAD", &format!("{first}\n"));
    repo.home.write("b.txt", "b\n");
    let made = repo.done("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert!(made.get("warning").is_none(), "{made}");
    assert_eq!(repo.git(&["log", "-1", "--format=%P"]), second);
    assert!(!repo.home.path().join(".git/MERGE_HEAD").exists());

    let side = aside(&repo, "Side", &[]);
    let other = aside(&repo, "Other", &[]);
    let head = repo.head();
    repo.home.write(".git/MERGE_HEAD", &format!("{side}\n{first}\n{other}"));
    repo.done("git_commit", &json!({ "message": "Octopus" }));
    assert_eq!(repo.git(&["log", "-1", "--format=%P"]), format!("{head} {side} {other}"));
}

#[test]
fn blt_5_git_commit_names_only_people_whom_the_question_names() {
    let repo = Repo::new();
    for (key, value) in [
        ("committer.name", "Mallory"),
        ("committer.email", "mallory@example.com"),
        ("author.name", "Ann Author"),
        ("user.email", "user@example.com"),
    ] {
        repo.git(&["config", key, value]);
    }
    let server = repo.home.serve();
    repo.home.write("b.txt", "b\n");
    let asked = held(&server, "git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert!(asked.reason.contains("by Ann Author <user@example.com>: "), "{}", asked.reason);
    assert_eq!(asked.approve(&server)["ok"], true);
    assert_eq!(
        repo.git(&["log", "-1", "--format=%an <%ae> %cn <%ce>"]),
        "Ann Author <user@example.com> Ann Author <user@example.com>"
    );
    // Who wrote it counts more than whose repository it is, and a missing author is none.
    for (key, value) in
        [("user.name", "Uma User"), ("author.email", "author@example.com"), ("author.name", "")]
    {
        repo.git(&["config", key, value]);
    }
    repo.home.write("b.txt", "bb\n");
    repo.done("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert_eq!(
        repo.git(&["log", "-1", "--format=%an <%ae> %cn <%ce>"]),
        "Uma User <author@example.com> Uma User <author@example.com>"
    );
}

#[test]
fn blt_5_git_commit_works_in_a_linked_worktree_and_without_a_branch() {
    let repo = Repo::new();
    let git = |args: &[&str]| git_in(&repo.home.path().join("lib/wt"), args);
    std::fs::create_dir_all(repo.home.path().join("lib/inner")).expect("a folder");
    let inner = repo.home.path().join("lib/inner");
    git_in(&inner, &["init", "--quiet"]);
    git_in(&inner, &["commit", "--quiet", "--allow-empty", "--message=First"]);
    git_in(&inner, &["worktree", "add", "--quiet", "-b", "linked", "../wt"]);
    // As git writes it with relative links.
    repo.home.write("lib/wt/.git", "gitdir: ../inner/.git/worktrees/wt\n");
    let head = git_in(&inner, &["rev-parse", "HEAD"]);
    repo.home.write("lib/wt/b.txt", "b\n");
    let arguments = json!({ "message": "x", "path": "lib/wt", "files": ["lib/wt/b.txt"] });
    let made = repo.done("git_commit", &arguments);
    assert_eq!((&made["branch"], &made["files"][0]["path"]), (&json!("linked"), &json!("lib/wt/b.txt")));
    assert!(made.get("warning").is_none(), "{made}");
    assert_eq!(
        (git_in(&inner, &["rev-parse", "HEAD"]), git(&["rev-parse", "linked^"])),
        (head.clone(), head)
    );
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert!(git(&["reflog", "-1"]).contains("commit: x"));

    git(&["checkout", "--quiet", "--detach"]);
    repo.home.write("lib/wt/b.txt", "bb\n");
    let made = repo.done("git_commit", &arguments);
    assert!(made.get("branch").is_none(), "{made}");
    assert_eq!(git(&["rev-parse", "HEAD^"]), git(&["rev-parse", "linked"]));
}

#[test]
fn blt_5_git_commit_says_so_if_the_place_of_a_worktree_is_protected() {
    let repo = Repo::new();
    repo.git(&["worktree", "add", "--quiet", "-b", "linked", "wt"]);
    repo.home.write("wt/.git", "gitdir: ../.git/worktrees/wt\n");
    repo.hook("pre-commit", "touch hooked");
    repo.home.write("wt/b.txt", "b\n");
    let arguments = json!({ "message": "x", "path": "wt", "files": ["wt/b.txt"] });
    let (code, message) = repo.fails("git_commit", &arguments);
    assert!(code == "PERMISSION_DENIED" && message.contains("is protected"), "{code} {message}");
    assert_eq!(repo.git(&["rev-parse", "linked"]), repo.head());
    assert!(!repo.home.path().join("wt/hooked").exists(), "it is known before hooks run");
}
