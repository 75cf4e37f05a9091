//! `shell_exec` of the catalogue: which commands, how they are found, and that they are confined like any code.

use super::site::{Site, eventually, says, text};
use gantry_testkit::{TestDir, process};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};

const TOOL: &str = "files__shell_exec";

fn config(policy: &str) -> String {
    format!("tools:\n  files: {{ kind: builtin, builtinPolicy: {{ name: shell_exec, {policy} }} }}\n")
}

#[track_caller]
fn exec(site: &Site, command: &str, args: &[&str]) -> Value {
    let mut reply = site.call(TOOL, &json!({ "command": command, "args": args }));
    assert_eq!(reply["ok"], true, "{reply}");
    reply["result"].take()
}

#[track_caller]
fn refused(site: &Site, arguments: &Value) -> Value {
    let mut reply = site.call(TOOL, arguments);
    assert_eq!(
        (&reply["ok"], &reply["error"]["code"]),
        (&json!(false), &json!("PERMISSION_DENIED")),
        "{arguments}: {reply}"
    );
    assert_eq!(reply["extras"]["effect"], "none", "{reply}");
    reply["error"].take()
}

/// A program in the workspace that leaves a trace if it is run.
fn plant(site: &Site, path: &str) {
    site.put(path, "#!/bin/sh\ntouch /workspace/pwned\n");
    std::fs::set_permissions(site.inside(path), PermissionsExt::from_mode(0o755)).expect("a mode");
}

#[test]
fn blt_4_an_entry_gives_its_tool_under_its_id_and_runs_what_it_allows() {
    Site::each(&config("allowedCommands: [echo, cat, git]"), |site| {
        let listed = site.home.run(["tools", "--format", "json"]).json();
        let mut all = listed.as_array().into_iter().flatten();
        let tool = all.find(|tool| tool["name"] == TOOL).expect("the tool");
        assert!(tool["description"].as_str().is_some_and(|text| text.contains("echo, cat, git")), "{tool}");
        let result = exec(site, "echo", &["a b", "$HOME", "; id", "*", "`id`"]);
        assert_eq!((&result["stdout"], &result["exitCode"]), (&json!("a b $HOME ; id * `id`\n"), &json!(0)));
        assert!(["native", "bubblewrap"].iter().any(|level| result["sandbox"] == *level), "{result}");
        let reply = site.call(TOOL, &json!({ "command": "cat", "stdin": "through\n" }));
        assert_eq!(reply["result"]["stdout"], "through\n", "{reply}");
        let failed = exec(site, "cat", &["nothing"]);
        assert_eq!(failed["exitCode"], 1);
        assert!(failed["stderr"].as_str().is_some_and(|text| text.contains("No such file")), "{failed}");
        for command in ["bash", "sh", "rm", "python3", "env", "no_such_program"] {
            says(
                &refused(site, &json!({ "command": command, "args": ["-c", "touch pwned"] })),
                &["Allowed are: echo, cat, git"],
            );
        }
        site.has_files(&[]);
    });
}

#[test]
fn blt_4_a_command_is_one_word_and_never_a_line_for_a_shell() {
    let site = Site::one(&config("allowedCommands: [git, echo]"));
    for line in [
        "git status; rm -rf /",
        "git status",
        "echo hi && touch pwned",
        "echo|touch pwned",
        "git\nstatus",
        " git",
        "git ",
        "$(git)",
        "`git`",
        "git;",
        "GIT_DIR=/x git",
        "-c",
        "",
        ".",
        "/",
        "git\u{0}",
        "GIT",
    ] {
        let error = refused(&site, &json!({ "command": line, "args": [] }));
        if line.contains(char::is_whitespace) {
            says(&error, &["args", "no shell"]);
        }
    }
    site.has_files(&[]);
    site.settled();
}

#[test]
fn blt_4_a_program_in_the_workspace_does_not_replace_one_that_is_allowed() {
    Site::each(&config("allowedCommands: [git, echo]"), |site| {
        for path in ["git", "echo", "bin/git", ".venv/bin/git"] {
            plant(site, path);
        }
        let result = exec(site, "git", &["--version"]);
        assert!(result["stdout"].as_str().is_some_and(|text| text.starts_with("git version")), "{result}");
        for command in [
            "./git",
            "git/",
            "bin/git",
            "/workspace/git",
            "/workspace/bin/git",
            "../workspace/git",
            "/usr/bin/../../workspace/git",
        ] {
            refused(site, &json!({ "command": command }));
        }
        refused(site, &json!({ "command": text(&site.inside("git")) }));
        let reply = site.call(TOOL, &json!({ "command": "git", "args": ["--version"], "cwd": "bin" }));
        assert!(
            reply["result"]["stdout"].as_str().is_some_and(|text| text.starts_with("git version")),
            "{reply}"
        );
        // Code finds the same one.
        let result = site.code("bash", "git --version; type -P git");
        assert!(result["stdout"].as_str().is_some_and(|text| !text.contains("/workspace")), "{result}");
        assert!(!site.inside("pwned").exists());
    });
}

#[test]
fn blt_4_a_path_allows_that_program_and_a_name_the_one_that_is_found() {
    let site = Site::one(&config("allowedCommands: [/usr/bin/env, echo]"));
    assert_eq!(exec(&site, "/usr/bin/env", &["echo", "by path"])["stdout"], "by path\n");
    assert_eq!(exec(&site, "env", &["echo", "by name"])["stdout"], "by name\n", "it is the same program");
    let echo = site.code("bash", "type -P echo")["stdout"].as_str().expect("a path").trim().to_owned();
    assert_eq!(exec(&site, &echo, &["whole"])["stdout"], "whole\n");
    refused(&site, &json!({ "command": "/usr/bin/id" }));
    refused(&site, &json!({ "command": "/usr/bin/../bin/id" }));
    site.settled();
}

#[test]
fn blt_4_another_name_of_the_same_file_is_another_program() {
    // `awk` leads to a file that other names lead to as well, and which program that is depends on the name.
    let aliases = |allowed: &str| {
        let target = std::fs::canonicalize(format!("/usr/bin/{allowed}")).expect("a program");
        let entries = std::fs::read_dir("/usr/bin").expect("a folder").flatten();
        let same = entries
            .map(|entry| entry.path())
            .filter(|path| std::fs::canonicalize(path).is_ok_and(|to| to == target));
        let names = same.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        names.filter(|name| name != allowed).collect::<Vec<_>>()
    };
    // Every system has one of these, by which a shell or an interpreter is called in several ways.
    let (allowed, others) = ["python3", "sh", "awk", "vi", "gcc"]
        .into_iter()
        .filter(|name| std::path::Path::new("/usr/bin").join(name).exists())
        .map(|name| (name, aliases(name)))
        .find(|(_, others)| !others.is_empty())
        .expect("a program with two names");
    let site = Site::one(&config(&format!("allowedCommands: [/usr/bin/{allowed}]")));
    for other in others {
        refused(&site, &json!({ "command": format!("/usr/bin/{other}"), "args": ["--version"] }));
    }
    // Nor is a link in the workspace to a program that is allowed.
    symlink(format!("/usr/bin/{allowed}"), site.inside(allowed)).expect("a link");
    refused(&site, &json!({ "command": format!("/workspace/{allowed}") }));
    refused(&site, &json!({ "command": text(&site.inside(allowed)) }));
    site.settled();
}

#[test]
fn blt_4_what_an_allowed_command_can_be_talked_into_stays_in_the_sandbox() {
    Site::each(&config("allowedCommands: [git, find, tar, env]"), |site| {
        exec(site, "git", &["init", "-q", "repo"]);
        let steal = format!(
            "id -u; cat /etc/shadow {}/outside/secret; ls {}; touch /usr/pwned /etc/pwned; echo end",
            text(site.home.path()),
            text(site.home.path())
        );
        for args in [
            vec!["-c".to_owned(), format!("alias.x=!{steal}"), "x".to_owned()],
            vec!["-c".into(), format!("core.fsmonitor={steal}"), "-C".into(), "repo".into(), "status".into()],
            vec![
                "-c".into(),
                "protocol.ext.allow=always".into(),
                "clone".into(),
                format!("ext::sh -c {}", steal.replace(' ', "% ")),
                "x".into(),
            ],
            vec!["clone".into(), format!("--upload-pack={steal}; false"), "repo".into(), "y".into()],
        ] {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let result = exec(site, "git", &args);
            let said = result.to_string();
            assert!(!said.contains("root:") && !said.contains("outside/secret\n"), "{args:?}: {said}");
        }
        let result = exec(site, "git", &["-c", &format!("alias.x=!{steal}"), "x"]);
        assert!(
            result["stdout"]
                .as_str()
                .is_some_and(|text| text.starts_with("1000\n") && text.ends_with("end\n")),
            "{result}"
        );
        assert_eq!(
            exec(site, "find", &["/workspace", "-maxdepth", "0", "-exec", "id", "-u", ";"])["stdout"],
            "1000\n"
        );
        assert_eq!(
            exec(site, "env", &["-i", "LD_PRELOAD=/workspace/x.so", "/usr/bin/id", "-u"])["stdout"],
            "1000\n"
        );
        let result = exec(
            site,
            "tar",
            &[
                "cf",
                "/dev/null",
                "--checkpoint=1",
                "--checkpoint-action=exec=cat /etc/shadow",
                "/usr/bin/env",
            ],
        );
        assert!(!result.to_string().contains("root:"), "{result}");
        std::fs::remove_dir_all(site.inside("repo")).expect("the repository");
        site.has_files(&[]);
    });
}

#[test]
fn blt_4_the_folder_of_a_command_is_in_the_workspace() {
    Site::each(&config("allowedCommands: [pwd]"), |site| {
        site.put("a/b/c.txt", "");
        symlink("/", site.inside("root")).expect("a link");
        symlink("a/b", site.inside("b")).expect("a link");
        let pwd = |cwd: &str| site.call(TOOL, &json!({ "command": "pwd", "args": ["-P"], "cwd": cwd }));
        for (cwd, at) in
            [("", "/workspace"), (".", "/workspace"), ("a/b", "/workspace/a/b"), ("a/b/", "/workspace/a/b")]
        {
            assert_eq!(pwd(cwd)["result"]["stdout"], format!("{at}\n"), "{cwd}: {}", pwd(cwd));
        }
        for cwd in [
            "..",
            "../..",
            "/",
            "/etc",
            "a/../..",
            "root",
            "root/etc",
            "nowhere",
            "a/b/c.txt",
            "/proc/self/cwd",
            "a\u{0}b",
        ] {
            let reply = pwd(cwd);
            assert_eq!(reply["ok"], false, "{cwd}: {reply}");
            assert_eq!(reply["extras"]["effect"], "none", "{cwd}: {reply}");
            let expected = if cwd.contains('\0') { "EXECUTION_ERROR" } else { "INVALID_PATH" };
            assert_eq!(reply["error"]["code"], expected, "{reply}");
        }
        for (cwd, cause) in [
            ("..", "it leads outside of the workspace"),
            ("nowhere", "it does not exist"),
            ("a/b/c.txt", "it is not a folder"),
        ] {
            let message = pwd(cwd)["error"]["message"].take();
            assert!(message.as_str().is_some_and(|message| message.contains(cause)), "{message}");
        }
        for link in ["root", "b"] {
            std::fs::remove_file(site.inside(link)).expect("the link");
        }
    });
}

#[test]
fn blt_4_the_time_limit_of_the_policy_ends_a_command_with_all_that_it_started() {
    Site::each(&config("allowedCommands: [bash, sleep], timeout: 1000"), |site| {
        let script = format!("echo begun {}; trap '' TERM; sleep 600 & sleep 600", site.mark);
        let reply = site.call(TOOL, &json!({ "command": "bash", "args": ["-c", script], "timeout": 600 }));
        assert_eq!(reply["error"]["code"], "TIMEOUT", "{reply}");
        says(&reply["error"], &["bash ran longer than 1 s"]);
        assert!(
            reply["error"]["details"]["stdout"].as_str().is_some_and(|text| text.starts_with("begun")),
            "{reply}"
        );
        site.nothing_runs();
        eventually("nothing runs", || process::descendants(site.server().pid()).is_empty());
        // A call may ask for less.
        assert_eq!(site.call(TOOL, &json!({ "command": "sleep", "args": ["0"], "timeout": 1 }))["ok"], true);
    });
}

#[test]
fn blt_4_a_command_that_takes_too_much_is_ended_like_any_code() {
    Site::each(&(config("allowedCommands: [python3, yes]") + "code: { memoryMb: 128 }\n"), |site| {
        let reply = site.call(
            TOOL,
            &json!({ "command": "python3", "args": ["-c", "x = bytearray(400 << 20); input()"] }),
        );
        assert_eq!(reply["error"]["code"], "EXECUTION_ERROR", "{reply}");
        says(&reply["error"], &["python3 used more than 128 MiB"]);
        let reply = site.call(TOOL, &json!({ "command": "yes", "timeout": 1 }));
        assert_eq!(reply["error"]["code"], "TIMEOUT");
    });
}

#[test]
fn blt_4_arguments_that_do_not_fit_are_refused() {
    let site = Site::one(&config("allowedCommands: [echo]"));
    for arguments in [
        json!({}),
        json!({ "command": ["echo"] }),
        json!({ "command": "echo", "args": "hi" }),
        json!({ "command": "echo", "args": [1] }),
        json!({ "command": "echo", "env": { "A": "b" } }),
        json!({ "command": "echo", "shell": true }),
        json!({ "command": "echo", "timeout": 0 }),
        json!({ "command": "echo", "args": vec!["x"; 1001] }),
    ] {
        let reply = site.call(TOOL, &arguments);
        assert_eq!(reply["error"]["code"], "INVALID_ARGUMENTS", "{arguments}: {reply}");
    }
    site.settled();
}

#[test]
fn blt_4_entries_for_files_and_for_commands_stand_beside_each_other() {
    let home = TestDir::new();
    home.write("docs/in.txt", "inside\n");
    let home = home.config(
        r"
tools:
  docs: { kind: builtin, builtinPolicy: { name: fs_read, allowedPaths: [docs] } }
  notes: { kind: builtin, builtinPolicy: { name: fs_write, allowedPaths: [notes] } }
  sh: { kind: builtin, builtinPolicy: { name: shell_exec, allowedCommands: [cat] } }
agents:
  a: { tools: { use: [docs, notes, sh] } }
",
    );
    let listed = home.run(["tools", "--agent", "a", "--json"]).json();
    let names: Vec<&str> =
        listed.as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
    let expected = [
        "docs__list_directory",
        "docs__read_file",
        "notes__delete_file",
        "notes__move_file",
        "notes__write_file",
        "sh__shell_exec",
    ];
    assert_eq!(names, expected);
    let call = |tool: &str, arguments: Value| {
        home.run(["call", tool, &arguments.to_string(), "--agent", "a", "--json"]).json()
    };
    assert_eq!(call("docs__read_file", json!({ "path": "docs/in.txt" }))["result"]["content"], "inside\n");
    assert_eq!(
        call("docs__read_file", json!({ "path": "gantry.yaml" }))["error"]["code"],
        "PERMISSION_DENIED"
    );
    let made =
        call("notes__write_file", json!({ "path": "notes/a.txt", "content": "a", "createDirs": true }));
    assert_eq!(made["ok"], true, "{made}");
    let cat = call("@sh/shell_exec", json!({ "command": "cat", "args": ["docs/in.txt", "notes/a.txt"] }));
    assert_eq!(cat["result"]["stdout"], "inside\na", "{cat}");
    assert_eq!(
        call("run_code", json!({ "language": "bash", "code": "id" }))["error"]["code"],
        "TOOL_NOT_FOUND"
    );
}
