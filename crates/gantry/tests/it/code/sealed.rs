//! What Gantry has loaded lies in the workspace, as it does unless configured otherwise, and code cannot change it.

use super::site::{eventually, homes};
use gantry_testkit::{Server, TestDir, process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// A home that is the workspace itself, with a repository, an agent and a configuration in it.
pub(super) fn prepare(home: TestDir) -> TestDir {
    let home = home.config("agents: { a: { tools: [read_file] } }\n");
    home.write("agents/b/agent.json", r#"{ "tools": ["read_file"] }"#);
    home.write("agents/c.md", "---\ntools: [read_file]\n---\n");
    home.write("tools/t/tool.json", r#"{ "kind": "builtin", "builtinPolicy": { "name": "fs_read" } }"#);
    home.write("tools/t/other.txt", "other\n");
    home.write(".env", "TOKEN=hidden\n");
    home.write("readme.txt", "hello\n");
    let init = std::process::Command::new("git").args(["init", "-q"]).current_dir(home.path()).status();
    assert!(init.expect("git is installed").success());
    // As the first job would make them.
    for folder in ["modules", "worktrees"] {
        std::fs::create_dir(home.path().join(".git").join(folder)).expect("a folder");
    }
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

/// What Gantry has loaded, and what makes git run programs. Folders are tried to be exchanged, too.
const GOVERNS: [&str; 9] = [
    "gantry.yaml",
    ".env",
    "agents/b/agent.json",
    "agents/c.md",
    "tools/t/tool.json",
    ".git/hooks",
    ".git/config",
    ".git/hooks/pre-commit",
    ".git/modules",
];
/// The folders around it.
const AROUND: [&str; 5] = ["agents", "agents/b", "tools", "tools/t", ".git"];

#[test]
fn blt_2_what_gantry_has_loaded_can_not_be_changed() {
    for home in homes() {
        let home = prepare(home);
        let server = home.serve();
        run(&server, "bash", ":");
        let before = tree(home.path());
        let arguments: Vec<String> = GOVERNS.iter().map(|path| format!("/workspace/{path}")).collect();
        let call = json!({ "language": "python", "code": CHANGE, "args": arguments });
        let reply = server.call("run_code", &call).json();
        assert_eq!(reply["result"]["exitCode"], 0, "{reply}");
        assert_eq!(reply["result"]["stdout"], "[]\n", "{reply}");
        assert_eq!(tree(home.path()), before);
        // No folder around it is exchanged, nor is one put in its place.
        let around: Vec<String> = AROUND.iter().map(|path| format!("/workspace/{path}")).collect();
        let code = "import os, sys, json, ctypes\ndone = []\nfor path in sys.argv[1:]:\n    os.path.isdir('other') or os.mkdir('other')\n    \
                    for name, what in (('away', lambda: os.rename(path, '/workspace/moved')), ('onto', lambda: os.rename('other', path)), ('rmdir', lambda: os.rmdir(path))):\n        \
                    try:\n            what(); done.append([name, path])\n        except OSError: pass\n    \
                    if ctypes.CDLL(None).renameat2(-100, path.encode(), -100, b'other', 2) == 0: done.append(['exchange', path])\n\
                    os.rmdir('other')\nprint(json.dumps(done))";
        let call = json!({ "language": "python", "code": code, "args": around });
        let reply = server.call("run_code", &call).json();
        assert_eq!(reply["result"]["stdout"], "[]\n", "{reply}");
        assert_eq!(tree(home.path()), before);
        // What holds no secret can be read, and the rest of the workspace can be worked on.
        let code = "cat agents/b/agent.json; echo more >> readme.txt; cat readme.txt; echo new > tools/t/other.txt; \
                    mkdir tools/new && echo '{}' > tools/new/tool.json && echo x > agents/new.md && echo x > gantry.toml";
        let result = run(&server, "bash", code);
        let said = result["stdout"].as_str().expect("a text");
        assert!(said.contains("read_file") && said.ends_with("hello\nmore\n"), "{result}");
        assert_eq!(result["exitCode"], 0, "{result}");
        assert_eq!(
            (home.read("tools/t/other.txt"), home.read("agents/new.md")),
            ("new\n".into(), "x\n".into())
        );
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
            mkdir -p .git/info; echo '* filter=x diff=x merge=x' > .git/info/attributes
            printf '#!/bin/sh\\ntouch pwned' > .git/hooks/post-commit";
        let result = run(&server, "bash", code);
        assert_eq!(result["stdout"], "1\n", "{result}");
        let config = home.read(".git/config");
        assert!(!config.contains("pwned"), "{config}");
        assert!(!home.path().join(".git/hooks/post-commit").exists());
        // Ways to another configuration that do not exist: a job that takes one ends, and it is taken away.
        for (path, code) in [
            (".git/commondir", "echo ../elsewhere > .git/commondir; sleep 600"),
            (
                ".git/config.worktree",
                "printf '[core]\\n\\tfsmonitor = touch /workspace/pwned\\n' > .git/config.worktree",
            ),
        ] {
            let call = json!({ "language": "bash", "code": code, "timeout": 50 });
            let reply = server.call("run_code", &call).json();
            let said = reply["error"]["message"].as_str().unwrap_or_default();
            assert!(said.contains(&format!("{path} (it was removed)")), "{reply}");
            eventually("the run is over", || process::descendants(server.pid()).is_empty());
            assert!(home.path().join(path).symlink_metadata().is_err(), "{path} was made");
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
fn blt_2_a_killed_gantry_leaves_nothing_in_the_workspace() {
    for home in homes() {
        let home = prepare(home);
        let server = home.serve();
        run(&server, "bash", ":");
        let before = tree(home.path());
        let call = json!({ "tool": "run_code", "arguments": { "language": "bash", "code": "touch begun; sleep 600", "timeout": 600 } });
        crate::queues::defer(&server, &call);
        eventually("it runs", || home.path().join("begun").exists());
        std::fs::remove_file(home.path().join("begun")).expect("it is there");
        assert_eq!(tree(home.path()), before);
        server.kill();
        assert_eq!(tree(home.path()), before);
    }
}

#[test]
fn blt_2_an_ordinary_repository_is_worked_in_as_it_is() {
    for home in homes() {
        for file in [
            "projects/README.md",
            "projects/a/x.txt",
            "tools/build.sh",
            "tools/t/x",
            "agents/notes.txt",
            ".env",
        ] {
            home.write(file, file);
        }
        home.write("pyproject.toml", "[project]\nname = \"x\"\n");
        home.write(".gitignore", "__pycache__\n.pytest_cache\n");
        home.write("test_it.py", "import unittest\nclass T(unittest.TestCase):\n    def test_env(self):\n        assert open('.env').read() == '.env'\n");
        git(&home, "init -q && git add --all && git commit -q -m one");
        let server = home.serve();
        // Every kind of tool works in it.
        for path in [
            "projects/README.md",
            "projects/agents/x.md",
            "tools/new/tool.json",
            "agents/new.md",
            "gantry.toml",
        ] {
            let arguments = json!({ "path": path, "content": "new", "createDirs": true });
            assert_eq!(approved(&server, "write_file", &arguments)["ok"], true, "{path}");
        }
        let moved = approved(&server, "move_file", &json!({ "from": "projects", "to": "moved" }));
        assert_eq!(moved["ok"], true, "{moved}");
        let moved = approved(&server, "move_file", &json!({ "from": "moved", "to": "projects" }));
        assert_eq!(moved["ok"], true, "{moved}");
        for path in ["gantry.toml", "tools/new", "agents/new.md", "projects/agents"] {
            let deleted = approved(&server, "delete_file", &json!({ "path": path, "recursive": true }));
            assert_eq!(deleted["ok"], true, "{path}: {deleted}");
        }
        let read = server.call("read_file", &json!({ "path": ".env" })).json();
        assert_eq!(read["result"]["content"], ".env", "{read}");
        run(&server, "bash", ":");
        // During a job, the folder is what it is outside, but for Gantry's own.
        let outside = listing(home.path());
        let result = run(&server, "bash", "find . -mindepth 1 ! -path './.gantry*' -printf '%P %y %s\\n'");
        let mut inside: Vec<&str> = result["stdout"].as_str().expect("a text").lines().collect();
        inside.sort_unstable();
        assert_eq!(inside, outside, "{result}");
        let code = "cat .env; for f in projects tools agents; do echo x > $f/made && mkdir $f/d && rm -r $f/d || exit 1; done; echo y >> .env";
        let result = run(&server, "bash", code);
        assert_eq!((&result["stdout"], &result["exitCode"]), (&json!(".env"), &json!(0)), "{result}");
        assert_eq!(home.read(".env"), ".envy\n");
        home.write(".env", ".env");
        let tests = approved(&server, "run_tests", &json!({}));
        assert_eq!(tests["result"]["passed"], 1, "{tests}");
        let status = server.call("git_status", &json!({})).json();
        let changed: Vec<_> = files(&status["result"]["files"]);
        assert_eq!(changed, ["agents/made", "projects/README.md", "projects/made", "tools/made"], "{status}");
        let committed = approved(&server, "git_commit", &json!({ "message": "two", "all": true }));
        assert_eq!(files(&committed["result"]["files"]), changed, "{committed}");
        assert_eq!(server.call("git_status", &json!({})).json()["result"]["clean"], true);
    }
}

/// A repository with a configuration, committed and changed, and with secrets in each file that may have some.
fn with_secrets(home: TestDir) -> TestDir {
    let home = home.config("agents: { a: { tools: [read_file] } } # the canary\n");
    home.write(".env", "TOKEN=canary\n");
    home.write("readme.txt", "one\n");
    git(&home, "init -q && git add gantry.yaml readme.txt && git commit -q -m one");
    home.write("gantry.yaml", "agents: { a: { tools: [read_file] } } # another canary\n");
    home.write("readme.txt", "two\n");
    home.write("agents/b.md", "---\ntools: [read_file]\n---\nBe kind.\n");
    home.write(
        "tools/t/tool.json",
        r#"{ "kind": "builtin", "builtinPolicy": { "name": "fs_read" }, "description": "canary" }"#,
    );
    home.write("tools/t/other.txt", "other");
    home
}

#[test]
fn blt_2_what_gantry_reads_secrets_from_is_hidden_from_every_tool_and_job() {
    for home in homes() {
        let home = with_secrets(home);
        let server = home.serve();
        let hidden = ["gantry.yaml", ".env", "tools/t/tool.json"];
        for path in hidden {
            for (tool, arguments) in [
                ("read_file", json!({ "path": path })),
                ("write_file", json!({ "path": path, "content": "x" })),
                ("delete_file", json!({ "path": path })),
                ("move_file", json!({ "from": path, "to": "stolen" })),
            ] {
                let reply = approved(&server, tool, &arguments);
                assert_eq!(reply["error"]["code"], "PERMISSION_DENIED", "{tool} {path}: {reply}");
            }
        }
        let listed = server
            .call("list_directory", &json!({ "path": ".", "recursive": true, "includeHidden": true }))
            .json();
        let found = server.call("search_code", &json!({ "query": "canary" })).json();
        let status = server.call("git_status", &json!({})).json();
        let diff = server.call("git_diff", &json!({})).json();
        let named =
            server.call("git_diff", &json!({ "files": ["gantry.yaml", ".env", "readme.txt"] })).json();
        let shown =
            run(&server, "bash", "cat gantry.yaml .env tools/t/tool.json; grep -r canary . ; ls gantry.yaml");
        for reply in [&listed, &found, &status, &diff, &named, &shown] {
            assert!(
                !reply.to_string().contains("canary\\n") && !reply.to_string().contains("the canary"),
                "{reply}"
            );
        }
        assert_eq!(found["result"]["matches"], json!([]), "{found}");
        for path in hidden {
            assert!(!format!("{listed}{status}{diff}{named}").contains(&format!("\"{path}\"")), "{path}");
        }
        assert_eq!(
            files(&status["result"]["files"]),
            ["agents/b.md", "readme.txt", "tools/t/other.txt"],
            "{status}"
        );
        assert_eq!(files(&named["result"]["files"]), ["readme.txt"], "{named}");
        // What is loaded and holds no secret can be read, and what is beside it changed.
        assert_eq!(server.call("read_file", &json!({ "path": "agents/b.md" })).json()["ok"], true);
        let reply = approved(&server, "write_file", &json!({ "path": "agents/b.md", "content": "x" }));
        assert_eq!(reply["error"]["code"], "PERMISSION_DENIED", "{reply}");
        assert_eq!(
            approved(&server, "write_file", &json!({ "path": "tools/t/other.txt", "content": "x" }))["ok"],
            true
        );
        // A job may stage the covers; a commit leaves these files as they are.
        run(&server, "bash", "git add readme.txt; git add --all; git add -f .env gantry.yaml");
        let committed = approved(&server, "git_commit", &json!({ "message": "two", "all": true }));
        assert_eq!(
            files(&committed["result"]["files"]),
            ["agents/b.md", "readme.txt", "tools/t/other.txt"],
            "{committed}"
        );
        home.write("readme.txt", "three\n");
        run(&server, "bash", "git add readme.txt; git add --all; git add -f .env gantry.yaml");
        let committed = approved(&server, "git_commit", &json!({ "message": "three" }));
        assert_eq!(files(&committed["result"]["files"]), ["readme.txt"], "{committed}");
        let refused =
            approved(&server, "git_commit", &json!({ "message": "four", "files": ["gantry.yaml", ".env"] }));
        assert_eq!(refused["ok"], false, "{refused}");
        let kept = git(&home, "show HEAD:gantry.yaml; git ls-tree -r --name-only HEAD");
        let tracked = "agents/b.md\ngantry.yaml\nreadme.txt\ntools/t/other.txt\n";
        assert_eq!(kept, format!("agents: {{ a: {{ tools: [read_file] }} }} # the canary\n{tracked}"));
        assert!(home.read("gantry.yaml").contains("another canary"));
    }
}

/// What git says in a home, outside of every sandbox.
fn git(home: &TestDir, commands: &str) -> String {
    let ran = std::process::Command::new("sh")
        .args(["-c", &format!("git {commands}")])
        .env("GIT_CONFIG_COUNT", "3")
        .envs([("GIT_CONFIG_KEY_0", "safe.directory"), ("GIT_CONFIG_VALUE_0", "*")])
        .envs([("GIT_CONFIG_KEY_1", "user.name"), ("GIT_CONFIG_VALUE_1", "a")])
        .envs([("GIT_CONFIG_KEY_2", "user.email"), ("GIT_CONFIG_VALUE_2", "a@b")])
        .current_dir(home.path())
        .output()
        .expect("git is installed");
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// The paths in a list of files, sorted.
fn files(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut paths: Vec<_> = list.iter().filter_map(|file| file["path"].as_str()).map(str::to_owned).collect();
    paths.sort();
    paths
}

/// What a call with the approval of the person comes to: its reply.
fn approved(server: &Server, tool: &str, arguments: &Value) -> Value {
    let body = json!({ "tool": tool, "arguments": arguments, "approve": true }).to_string();
    let headers = [("content-type", "application/json")];
    gantry_testkit::server::send(&server.admin(), http::Method::POST, "/api/v1/calls", &headers, &body).json()
}

/// What `find` prints of a folder, sorted, but for Gantry's own data.
fn listing(folder: &Path) -> Vec<String> {
    let ran = std::process::Command::new("find")
        .args([".", "-mindepth", "1", "!", "-path", "./.gantry*", "-printf", "%P %y %s\\n"])
        .current_dir(folder)
        .output()
        .expect("find");
    let mut lines: Vec<_> = String::from_utf8_lossy(&ran.stdout).lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}
