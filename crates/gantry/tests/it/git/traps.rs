//! Repositories that would have programs run: all of them run in the jail, if at all, and change nothing that was approved.

use super::Repo;
use serde_json::json;

#[test]
fn blt_5_git_commit_is_taken_back_if_a_hook_changes_what_was_approved() {
    let repo = Repo::new();
    let head = repo.head();
    repo.hook("pre-commit", "echo evil >evil.txt; git add evil.txt; echo fixed it");
    repo.home.write("b.txt", "b\n");
    let (code, message) = repo.fails("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert_eq!(code, "EXECUTION_ERROR");
    assert!(
        message.contains("a hook of the repository changed") && message.contains("fixed it"),
        "{message}"
    );
    assert_eq!(repo.head(), head);
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "");

    let first = Repo::empty();
    first.hook("pre-commit", "echo evil >evil.txt; git add evil.txt");
    first.home.write("b.txt", "b\n");
    first.fails("git_commit", &json!({ "message": "x", "files": ["b.txt"] }));
    assert_eq!(first.git(&["for-each-ref"]), "", "not even the first commit stays");
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
fn blt_5_git_settings_of_a_repository_run_no_program_while_looking() {
    let repo = Repo::new();
    repo.home.write(
        "trap.sh",
        "#!/bin/sh\necho TRAPPED; echo TRAPPED >&2; touch trapped 2>/dev/null; cat 2>/dev/null\n",
    );
    let trap = repo.home.path().join("trap.sh");
    std::fs::set_permissions(&trap, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    repo.home.write(".gitattributes", "*.txt diff=trap\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=Traps"]);
    repo.home.write("a.txt", "changed\n");
    for (key, value) in [
        ("core.fsmonitor", "/workspace/trap.sh"),
        ("core.pager", "/workspace/trap.sh"),
        ("pager.log", "/workspace/trap.sh"),
        ("core.editor", "/workspace/trap.sh"),
        ("core.askPass", "/workspace/trap.sh"),
        ("core.sshCommand", "/workspace/trap.sh"),
        ("diff.external", "/workspace/trap.sh"),
        ("diff.trap.command", "/workspace/trap.sh"),
        ("diff.trap.textconv", "/workspace/trap.sh"),
        ("gpg.program", "/workspace/trap.sh"),
        ("log.showSignature", "true"),
        ("commit.gpgSign", "true"),
        ("alias.status", "!/workspace/trap.sh"),
        ("alias.log", "!/workspace/trap.sh"),
        ("alias.commit", "!/workspace/trap.sh"),
        ("credential.helper", "/workspace/trap.sh"),
        ("format.pretty", "TRAPPED"),
        ("diff.noprefix", "true"),
        ("color.ui", "always"),
        ("status.showUntrackedFiles", "no"),
    ] {
        repo.git(&["config", key, value]);
    }
    repo.home.write("new.txt", "n\n");
    let log = repo.done("git_log", &json!({}));
    let diff = repo.done("git_diff", &json!({}));
    let state = repo.done("git_status", &json!({}));
    let made = repo.done("git_commit", &json!({ "message": "x", "files": ["a.txt", "new.txt"] }));
    for result in [&log, &diff, &state, &made] {
        assert!(
            !result.to_string().contains("TRAPPED") && !result.to_string().contains("\\u001b"),
            "{result}"
        );
    }
    assert!(diff["diff"].as_str().unwrap().contains("--- a/a.txt\n+++ b/a.txt\n"), "{diff}");
    assert!(state["files"].to_string().contains("new.txt"), "{state}");
    assert!(!repo.home.path().join("trapped").exists());
}

#[test]
fn blt_5_git_filters_work_on_what_is_committed_and_on_nothing_else() {
    let repo = Repo::new();
    let outside = tempfile::tempdir().expect("a folder");
    let mark = outside.path().join("mark");
    repo.git(&[
        "config",
        "filter.up.clean",
        &format!("tr a-z A-Z; echo x >{} 2>/dev/null; true", mark.display()),
    ]);
    repo.home.write(".gitattributes", "*.up filter=up\n");
    repo.home.write("x.up", "quiet\n");
    let made = repo.done("git_commit", &json!({ "message": "x", "files": ["x.up", ".gitattributes"] }));
    assert_eq!(made["insertions"], 2);
    assert_eq!(repo.git(&["show", "HEAD:x.up"]), "QUIET");
    assert!(!mark.exists());

    // One that answers differently each time can never be approved.
    repo.git(&["config", "filter.up.clean", "cat /proc/sys/kernel/random/uuid"]);
    repo.home.write("x.up", "other\n");
    let head = repo.head();
    let (code, message) = repo.fails("git_commit", &json!({ "message": "x", "files": ["x.up"] }));
    assert!(code == "APPROVAL_REQUIRED" || code == "EXECUTION_ERROR", "{code} {message}");
    assert_eq!(repo.head(), head);
}

#[test]
fn blt_5_git_paths_are_names_and_nothing_else() {
    let repo = Repo::new();
    repo.home.write(":(top)x", "x\n");
    repo.home.write("y.txt", "y\n");
    let made = repo.done("git_commit", &json!({ "message": "x", "files": [":(top)x"] }));
    assert_eq!((&made["files"][0]["path"], made["files"].as_array().unwrap().len()), (&json!(":(top)x"), 1));
    for file in ["*", ":/", ":!a.txt", "--all", "../../etc/passwd", "/etc/passwd"] {
        let (code, _) = repo.fails("git_commit", &json!({ "message": "x", "files": [file] }));
        assert!(code == "FILE_NOT_FOUND" || code == "INVALID_PATH", "{file}: {code}");
    }
    std::os::unix::fs::symlink("/etc", repo.home.path().join("link")).expect("a link");
    let (code, _) = repo.fails("git_commit", &json!({ "message": "x", "files": ["link/passwd"] }));
    assert!(code == "INVALID_PATH" || code == "FILE_NOT_FOUND", "{code}");
}

#[test]
fn blt_5_git_a_repository_that_points_elsewhere_gets_nothing() {
    let repo = Repo::new();
    repo.git(&["config", "core.worktree", "/etc"]);
    for tool in ["git_status", "git_diff"] {
        let (code, message) = repo.fails(tool, &json!({}));
        assert!(code == "EXECUTION_ERROR" && !message.contains("passwd"), "{code} {message}");
    }
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
    repo.hook("post-commit", ": >.git/index.lock");
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
