//! Hooks of a repository around `git_commit`: they may refuse, and they work on what they like, but what was approved is what
//! is committed.

use super::{Repo, held};
use serde_json::json;

#[test]
fn blt_5_git_commit_is_not_made_if_a_hook_changes_what_was_approved() {
    let repo = Repo::new();
    let head = repo.head();
    repo.hook("pre-commit", "echo evil >evil.txt; git add evil.txt; echo fixed it");
    repo.home.write("b.txt", "b\n");
    let (code, message) = repo.fails("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert_eq!(code, "EXECUTION_ERROR");
    for words in ["a hook of the repository changed", "nothing was committed", "fixed it", "evil.txt"] {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert_eq!(repo.head(), head);
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "");
    assert_eq!(repo.git(&["reflog"]).lines().count(), 1, "it was never there");

    let first = Repo::empty();
    first.hook("pre-commit", "echo evil >evil.txt; git add evil.txt");
    first.home.write("b.txt", "b\n");
    first.fails("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert_eq!(first.git(&["for-each-ref"]), "", "not even a first commit");
}

#[test]
fn blt_5_git_commit_has_the_message_and_the_author_that_were_approved_or_is_not_made() {
    for hook in ["prepare-commit-msg", "commit-msg"] {
        let repo = Repo::new();
        let head = repo.head();
        repo.hook(hook, "printf '\\nReviewed-by: somebody\\n' >>\"$1\"");
        repo.home.write("b.txt", "b\n");
        let (code, message) = repo.fails("git_commit", &json!({ "message": "honest", "files": ["b.txt"] }));
        assert!(
            code == "EXECUTION_ERROR" && message.contains("a hook of the repository changed"),
            "{message}"
        );
        assert!(message.contains("honest") && message.contains("Reviewed-by: somebody"), "{message}");
        assert_eq!(repo.head(), head);
    }

    let repo = Repo::new();
    let head = repo.head();
    repo.home.write("b.txt", "b\n");
    let server = repo.home.serve();
    let asked = held(&server, "git_commit", &json!({ "message": "honest", "files": ["b.txt"] }));
    repo.git(&["config", "user.name", "Mallory"]);
    let again = asked.approve_too_late(&server);
    assert!(again.reason.contains("Mallory"), "{}", again.reason);
    assert_eq!(repo.head(), head);
}

#[test]
fn blt_5_git_commit_respects_hooks_that_refuse_and_lets_others_work() {
    let repo = Repo::new();
    let head = repo.head();
    repo.hook("commit-msg", "grep -q '^Fix' \"$1\" || { echo 'say Fix' >&2; exit 1; }");
    repo.hook("post-commit", "git log -1 --format=%s >seen-by-hook");
    repo.home.write("b.txt", "b\n");
    let (code, message) = repo.fails("git_commit", &json!({ "message": "Add b", "files": ["b.txt"] }));
    assert!(code == "EXECUTION_ERROR" && message.contains("say Fix"), "{message}");
    assert_eq!((repo.head(), repo.dirty()), (head, "?? b.txt".into()));
    repo.done("git_commit", &json!({ "message": "Fix b", "files": ["b.txt"] }));
    assert_eq!(repo.home.read("seen-by-hook"), "Fix b\n");

    // What is no program is no hook.
    let path = repo.home.path().join(".git/hooks/commit-msg");
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("its mode");
    repo.home.write("b.txt", "bb\n");
    repo.done("git_commit", &json!({ "message": "Change b", "files": ["b.txt"] }));
}

#[test]
fn blt_5_git_commit_commits_nothing_and_says_so_if_the_branch_moves_meanwhile() {
    // Each of them commits on its own before the commit that was approved; one says no after that.
    let sneak =
        "unset GIT_INDEX_FILE; echo s >s.txt; git add s.txt; git commit --quiet --no-verify --message=Sneaky";
    for (hook, end) in [("pre-commit", "exit 0"), ("pre-commit", "exit 1"), ("commit-msg", "exit 0")] {
        let repo = Repo::new();
        let head = repo.head();
        repo.hook(hook, &format!("{sneak}\ngit rev-parse HEAD >sneaky\n{end}"));
        repo.home.write("b.txt", "b\n");
        let (code, message) = repo.fails("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
        let sneaky = repo.home.read("sneaky");
        assert_ne!(sneaky.trim(), head, "it did commit");
        for words in ["was not committed", "it stays moved", &head, sneaky.trim()] {
            assert!(code == "EXECUTION_ERROR" && message.contains(words), "{hook} {end}: {words}: {message}");
        }
        // It could have been a person's, so it stays.
        assert_eq!(repo.head(), sneaky.trim(), "{hook} {end}");
    }

    let first = Repo::empty();
    first.hook("pre-commit", sneak);
    first.home.write("b.txt", "b\n");
    let (_, message) = first.fails("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert!(message.contains("it stays moved") && message.contains("no commit"), "{message}");
    assert_eq!(first.git(&["log", "--format=%s"]), "Sneaky");

    let repo = Repo::new();
    repo.hook("pre-commit", "git checkout --quiet -b elsewhere");
    repo.home.write("b.txt", "b\n");
    let head = repo.head();
    let (_, message) = repo.fails("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert!(message.contains("nothing was committed") && message.contains("another branch"), "{message}");
    assert_eq!(repo.git(&["for-each-ref", "--format=%(objectname)"]), format!("{head}\n{head}"));
}

#[test]
fn blt_5_git_commit_is_what_was_approved_even_if_a_hook_commits_after_it() {
    let repo = Repo::new();
    let head = repo.head();
    repo.hook(
        "post-commit",
        "[ -e again ] && exit; touch again; git commit --quiet --allow-empty --message=Again; exit 1",
    );
    repo.home.write("b.txt", "b\n");
    let made = repo.done("git_commit", &json!({ "message": "Approved", "files": ["b.txt"] }));
    assert_eq!(made["hash"], repo.git(&["rev-parse", "HEAD^"]));
    assert_eq!(repo.git(&["log", "--format=%s %P", "-1", "HEAD^"]), format!("Approved {head}"));
    let warning = made["warning"].as_str().expect("a warning");
    assert!(warning.contains(&repo.head()) && warning.contains("not approved"), "{warning}");
    assert!(warning.contains("post-commit failed"), "{warning}");
}

#[test]
fn blt_5_git_commit_that_git_refuses_at_the_end_is_not_made() {
    let repo = Repo::new();
    let head = repo.head();
    repo.hook("reference-transaction", "[ $1 != prepared ] || { echo 'main is closed' >&2; exit 1; }");
    repo.home.write("b.txt", "b\n");
    let (code, message) = repo.fails("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert!(code == "EXECUTION_ERROR" && message.contains("nothing was committed"), "{message}");
    assert!(message.contains("main is closed"), "{message}");
    assert_eq!((repo.head(), repo.dirty()), (head, "?? b.txt".into()));
}

#[test]
fn blt_5_git_hooks_run_where_and_as_git_runs_them() {
    let repo = Repo::new();
    repo.git(&["config", "core.hooksPath", "own hooks"]);
    let show = "echo \"$0 $#\" $2 \"$PWD $GIT_PREFIX $GIT_EDITOR $GIT_AUTHOR_NAME\" >>ran";
    for hook in ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"] {
        repo.hook(hook, &format!("{show}\ngit ls-files ':(glob)**/*.new' >>ran; cat >>ran"));
    }
    std::fs::rename(repo.home.path().join(".git/hooks"), repo.home.path().join("own hooks")).expect("moved");
    repo.home.write("sub/b.new", "b\n");
    repo.done("git_commit", &json!({ "message": "x", "path": "sub", "files": ["sub/b.new"] }));
    let line =
        |hook: &str, args: &str| format!("own hooks/{hook} {args} /workspace sub/ : Gantry\nsub/b.new\n");
    let expected = [
        line("pre-commit", "0"),
        line("prepare-commit-msg", "2 message"),
        line("commit-msg", "1"),
        line("post-commit", "0"),
    ];
    assert_eq!(repo.home.read("ran"), expected.concat());
}

#[test]
fn blt_5_git_hooks_see_neither_the_machine_nor_a_network() {
    let repo = Repo::new();
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret"), "SECRET").expect("a file");
    let reach = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = reach.local_addr().expect("an address").port();
    let folder = outside.path().display();
    repo.hook(
        "pre-commit",
        &format!(
            "cat {folder}/secret >seen 2>&1; echo x >{folder}/written 2>/dev/null; env >env; \
             cat .gantry/admin.key >key 2>&1; (bash -c 'echo hi >/dev/tcp/127.0.0.1/{port}') 2>/dev/null && echo out >net; true"
        ),
    );
    repo.home.write("b.txt", "b\n");
    repo.done("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert!(!repo.home.read("seen").contains("SECRET"));
    assert!(!outside.path().join("written").exists() && !repo.home.path().join("net").exists());
    assert!(!repo.home.read("key").contains("gk_"), "{}", repo.home.read("key"));
    let env = repo.home.read("env");
    assert!(
        env.contains("HOME=/home/gantry") && !env.contains(&repo.home.path().display().to_string()),
        "{env}"
    );
}

#[test]
fn blt_5_git_commit_leaves_what_others_stage_meanwhile_as_they_staged_it() {
    let repo = Repo::new();
    repo.hook("pre-commit", "unset GIT_INDEX_FILE; echo o >other.txt; git add other.txt");
    repo.home.write("b.txt", "b\n");
    let made = repo.done("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert!(made.get("warning").is_none(), "{made}");
    assert_eq!(repo.git(&["show", "--name-only", "--format=", "HEAD"]), "b.txt");
    assert_eq!(repo.dirty(), "A  other.txt");
}

#[test]
fn blt_5_git_commit_says_so_if_another_git_holds_the_index() {
    let repo = Repo::new();
    repo.hook("pre-commit", ": >.git/index.lock");
    repo.home.write("b.txt", "b\n");
    let made = repo.done("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert!(made["warning"].as_str().unwrap().contains("git reset"), "{made}");
    assert_eq!(made["hash"], repo.head());
}

#[test]
fn blt_5_git_commit_that_takes_too_long_leaves_a_repository_that_works() {
    let repo = Repo::new();
    let head = repo.head();
    repo.hook("pre-commit", "touch started; sleep 3600");
    repo.home.write("b.txt", "b\n");
    let arguments = json!({ "message": "x", "files": ["b.txt"] });
    let call = ["call", "git_commit", &arguments.to_string(), "--json", "--yes", "--timeout", "5000"];
    let reply = repo.home.run(call).json();
    assert_eq!(
        (&reply["error"]["code"], &reply["extras"]["effect"]),
        (&json!("TIMEOUT"), &json!("possible")),
        "{reply}"
    );
    assert_eq!((repo.head(), repo.dirty()), (head, "?? b.txt\n?? started".into()));
    repo.hook("pre-commit", "exit 0");
    repo.done("git_commit", &arguments);
}
