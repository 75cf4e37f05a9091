//! What governs Gantry lies in the workspace, as it does unless configured otherwise, and code can neither change nor make it.

use super::site::{eventually, homes};
use gantry_testkit::{Server, TestDir, process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// A home that is the workspace itself, with a repository, an agent and a configuration in it.
pub(super) fn prepare(home: TestDir) -> TestDir {
    let home = home.config("agents: { a: { tools: [read_file] } }\n");
    home.write("agents/b/agent.json", r#"{ "tools": ["read_file"] }"#);
    home.write("readme.txt", "hello\n");
    let init = std::process::Command::new("git").args(["init", "-q"]).current_dir(home.path()).status();
    assert!(init.expect("git is installed").success());
    home
}

fn run(server: &Server, language: &str, code: &str) -> Value {
    let mut reply =
        server.call("run_code", &json!({ "language": language, "code": code, "timeout": 50 })).json();
    assert_eq!(reply["ok"], true, "{reply}");
    reply["result"].take()
}

/// Every path in a folder with its content, but for Gantry's own data.
pub(super) fn tree(folder: &Path) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = path.symlink_metadata().expect("it is there");
        let name = path.strip_prefix(folder).expect("below it").display().to_string();
        if name == ".gantry" {
            continue;
        }
        let content = if metadata.is_dir() {
            open.extend(
                std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()),
            );
            "/".to_owned()
        } else if metadata.is_file() {
            String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned()
        } else {
            format!("{:?}", metadata.file_type())
        };
        found.insert((name, content));
    }
    found
}

/// Tries to change, to make, to move and to replace each argument.
const CHANGE: &str = r"
import json, os, shutil, sys
changed = []
def tries(name, what):
    try:
        what(); changed.append(name)
    except OSError:
        pass
def write(path, mode):
    with open(path, mode) as file:
        file.write('spoilt')
for path in sys.argv[1:]:
    tries('append to ' + path, lambda: write(path, 'a'))
    tries('write ' + path, lambda: write(path, 'w'))
    tries('make ' + path, lambda: write(path, 'x'))
    tries('make the folder ' + path, lambda: os.makedirs(path))
    tries('write in ' + path, lambda: write(path + '/new.json', 'w'))
    tries('make a folder in ' + path, lambda: os.makedirs(path + '/new'))
    tries('link ' + path, lambda: os.symlink('/workspace/readme.txt', path))
    tries('move away ' + path, lambda: os.rename(path, '/workspace/moved'))
    tries('remove ' + path, lambda: os.unlink(path))
    tries('remove the folder ' + path, lambda: os.rmdir(path))
    tries('chmod ' + path, lambda: os.chmod(path, 0o777))
    tries('truncate ' + path, lambda: os.truncate(path, 0))
    tries('hard link ' + path, lambda: os.link(path, '/workspace/second'))
    os.path.lexists('/workspace/replacement') or write('/workspace/replacement', 'w')
    tries('replace ' + path, lambda: os.rename('/workspace/replacement', path))
    os.path.isdir('/workspace/folder') or os.mkdir('/workspace/folder')
    tries('replace by a folder ' + path, lambda: os.rename('/workspace/folder', path))
for path in ('/workspace/replacement',):
    os.path.lexists(path) and os.unlink(path)
os.path.isdir('/workspace/folder') and os.rmdir('/workspace/folder')
print(json.dumps(changed))
";

/// What exists, and what does not yet.
const GOVERNS: [&str; 14] = [
    "gantry.yaml",
    "gantry.yml",
    "gantry.toml",
    "gantry.json",
    ".env",
    "gantry.lock",
    "agents",
    "agents/b/agent.json",
    "tools",
    "projects",
    ".git/hooks",
    ".git/config",
    ".git/hooks/pre-commit",
    ".git/modules",
];

#[test]
fn blt_2_what_governs_gantry_can_be_read_and_neither_changed_nor_made() {
    for home in homes() {
        let home = prepare(home);
        let server = home.serve();
        let before = tree(home.path());
        let arguments: Vec<String> = GOVERNS.iter().map(|path| format!("/workspace/{path}")).collect();
        let call = json!({ "language": "python", "code": CHANGE, "args": arguments });
        let reply = server.call("run_code", &call).json();
        assert_eq!(reply["result"]["exitCode"], 0, "{reply}");
        assert_eq!(reply["result"]["stdout"], "[]\n", "{reply}");
        eventually("no placeholder is left", || process::descendants(server.pid()).is_empty());
        assert_eq!(tree(home.path()), before);
        // They can be read, and the rest of the workspace can be worked on.
        let result = run(
            &server,
            "bash",
            "cat gantry.yaml agents/b/agent.json; echo more >> readme.txt; cat readme.txt",
        );
        let said = result["stdout"].as_str().expect("a text");
        assert!(said.contains("agents:") && said.ends_with("hello\nmore\n"), "{result}");
        assert_eq!(server.get("/readyz").status, 200);
    }
}

#[test]
fn blt_2_the_data_folder_in_the_workspace_cannot_be_seen() {
    for home in homes() {
        let home = prepare(home);
        let server = home.serve();
        assert!(home.path().join(".gantry/admin.key").exists());
        let code = "ls -A .gantry; cat .gantry/admin.key .gantry/gantry.db; echo x > .gantry/new; rm -rf .gantry; mv .gantry g; \
                    ln .gantry/admin.key key; find / -name admin.key -o -name gantry.db -o -name 'gantry.db-*' 2>/dev/null; :";
        let result = run(&server, "bash", code);
        assert_eq!(result["stdout"], "", "{result}");
        assert!(!result.to_string().contains(server.key.trim()), "{result}");
        for path in [".gantry/admin.key", ".gantry/gantry.db"] {
            assert!(home.path().join(path).exists(), "{path}");
        }
        assert!(!home.path().join(".gantry/new").exists() && !home.path().join("key").exists());
        assert_eq!(server.get("/readyz").status, 200);
    }
}

#[test]
fn blt_2_git_works_in_the_sandbox_while_its_hooks_and_settings_are_sealed() {
    for home in homes() {
        let home = prepare(home);
        let server = home.serve();
        let code = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
            git add readme.txt && git commit -q -m one && git branch other && git status --short | grep -v '^??'; git log --oneline | wc -l
            git config core.pager 'touch /workspace/pwned'; git config alias.x '!touch pwned'
            printf '#!/bin/sh\\ntouch pwned' > .git/hooks/post-commit";
        let result = run(&server, "bash", code);
        assert_eq!(result["stdout"], "1\n", "{result}");
        let config = home.read(".git/config");
        assert!(!config.contains("pwned"), "{config}");
        assert!(!home.path().join(".git/hooks/post-commit").exists());
        // Ways to another configuration that do not exist yet.
        let code = "echo ../elsewhere > .git/commondir; printf '[core]\\n\\tfsmonitor = touch /workspace/pwned\\n' > .git/config.worktree; \
                    mkdir -p .git/info; echo '* filter=x' > .git/info/attributes; :";
        run(&server, "bash", code);
        eventually("the run is over", || process::descendants(server.pid()).is_empty());
        for path in [".git/commondir", ".git/config.worktree", ".git/info/attributes"] {
            assert!(!home.path().join(path).exists(), "{path} was made");
        }
        let status = std::process::Command::new("git")
            .args(["-c", "safe.directory=*", "status", "--short"])
            .current_dir(home.path())
            .output()
            .expect("git");
        assert!(status.status.success(), "{status:?}");
        assert!(!home.path().join("pwned").exists());
    }
}

#[test]
fn blt_2_placeholders_that_a_killed_gantry_left_are_taken_away_by_the_next_run() {
    for home in homes() {
        let home = prepare(home);
        let server = home.serve();
        let before = tree(home.path());
        let call = json!({ "tool": "run_code", "arguments": { "language": "bash", "code": "sleep 600", "timeout": 600 } });
        crate::queues::defer(&server, &call);
        eventually("placeholders are there", || tree(home.path()) != before);
        server.kill();
        let server = home.serve();
        run(&server, "bash", ":");
        eventually("they are gone", || tree(home.path()) == before);
        // They were never taken for the real thing.
        assert_eq!(home.run(["tools"]).code, 0);
    }
}

#[test]
fn blt_2_while_something_runs_no_program_reads_the_placeholders_as_configuration() {
    let home = TestDir::new();
    let server = home.serve();
    let call = json!({ "tool": "run_code", "arguments": { "language": "bash", "code": "touch begun; sleep 600", "timeout": 600 } });
    let id = crate::queues::defer(&server, &call);
    eventually("it runs", || home.path().join("begun").exists());
    let checked = home.run(["tools", "--json"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let listed = server.call("list_directory", &json!({ "path": ".", "includeHidden": true })).json();
    let entries = listed["result"]["entries"].as_array().expect("entries");
    let names: Vec<&str> = entries.iter().filter_map(|entry| entry["name"].as_str()).collect();
    assert_eq!(names, ["begun"], "{listed}");
    crate::queues::cancel(&server, &id);
    eventually("it ends", || std::fs::read_dir(home.path()).expect("the home").count() == 2);
}
