//! Repositories that would have programs run: all of them run in the jail, if at all, and change nothing that was approved.

use super::Repo;
use serde_json::json;

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
