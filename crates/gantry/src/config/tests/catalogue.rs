//! The catalogue of tools: MCP servers in another spelling, and Gantry's tools on parts of the workspace.

use std::path::Path;
use std::time::Duration;

use expect_test::{Expect, expect};
use gantry_provider::options::Secret;
use gantry_upstream::options::{DisabledReason, ServerOptions};

use super::{Folder, load, values, yaml};
use crate::config::document::Format;
use crate::config::{Builtin, McpServer};
use gantry_tools::options::{BuiltinPolicy, ShellPolicy};

#[track_caller]
fn server(entry: &str) -> McpServer {
    let text = format!("queues: {{ disk: {{ concurrent: 1 }} }}\ntools: {{ x: {{ kind: mcp, {entry} }} }}");
    yaml(&text).main().mcp_servers["x"].clone()
}

#[track_caller]
fn builtin(entry: &str) -> Builtin {
    let text =
        format!("queues: {{ disk: {{ concurrent: 1 }} }}\ntools: {{ x: {{ kind: builtin, {entry} }} }}");
    yaml(&text).main().builtin["x"].clone()
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "an expectation is written at the call")]
fn refused(text: &str, expected: Expect) {
    match load(Format::Yaml, text) {
        Ok(config) => panic!("{text}\nis accepted: {config:?}"),
        Err(error) => expected.assert_eq(&error.to_string()),
    }
}

/// Where file tools work.
pub(super) fn paths(builtin: &Builtin) -> &[std::path::PathBuf] {
    match &builtin.policy {
        BuiltinPolicy::FsRead(policy) | BuiltinPolicy::FsWrite(policy) => &policy.allowed_paths,
        BuiltinPolicy::ShellExec(_) => panic!("no file tools: {builtin:?}"),
    }
}

#[test]
fn an_entry_of_kind_mcp_is_one_more_server() {
    let found = server(
        "id: x, displayName: X, description: d, transport: process, command: node, args: ['./s/x.js', -v, '../y'], cwd: sub, \
         env: { A: '${SECRET}' }, timeouts: { startupMs: 9, requestMs: 7 }, exposedTools: ['a*'], queue: disk, cache: 5, \
         healthCheck: { kind: jsonrpc, intervalMs: 11, timeoutMs: 13 }, prefix: false",
    );
    let ServerOptions { command, args, env, cwd, replicas, .. } = &found.options;
    assert_eq!((command.as_deref(), replicas.get(), env["A"].expose()), (Some("node"), 1, "hunter2"));
    assert_eq!(args, &["/home/project/s/x.js", "-v", "../y"].map(Secret::from));
    assert_eq!(cwd.as_deref(), Some(Path::new("/home/project/sub")));
    assert_eq!(found.options.startup_timeout.get(), Duration::from_millis(9));
    assert_eq!(found.tools.timeout.some(), Some(Duration::from_millis(7)));
    assert_eq!(values(found.tools.allowed.as_deref().unwrap()), ["a*"]);
    assert_eq!(found.tools.queue.as_deref(), Some("disk"));
    assert_eq!(found.options.health_check.interval.get(), Duration::from_millis(11));
    assert!(!found.options.prefix && found.off().is_none());
}

#[test]
fn an_entry_means_what_the_same_server_means() {
    let one = server("command: x, toolsAllowed: [a], requestTimeoutMs: 5");
    let other = yaml("\nmcpServers: { x: { command: x, toolsAllowed: [a], requestTimeoutMs: 5 } }");
    assert_eq!(one, other.main().mcp_servers["x"]);
}

#[test]
fn every_transport_is_known() {
    for (entry, kind) in [
        ("command: x", "stdio"),
        ("transport: stdio, command: x", "stdio"),
        ("transport: process, command: x", "stdio"),
        ("transport: ws, endpoint: 'ws://a/'", "websocket"),
        ("transport: websocket, endpoint: 'wss://a/'", "websocket"),
        ("transport: tcp, endpoint: 'a:1'", "tcp"),
        ("transport: sse, endpoint: 'http://a/sse'", "sse"),
        ("transport: http, endpoint: 'http://a/mcp'", "http"),
        ("transport: streamable-http, endpoint: 'http://a/mcp'", "http"),
        ("endpoint: 'https://a/mcp', headers: { A: b }", "http"),
        ("endpoint: 'ws://a/'", "websocket"),
    ] {
        assert_eq!(server(entry).options.transport().as_str(), kind, "{entry}");
    }
}

#[test]
fn an_entry_of_kind_builtin_is_tools_on_a_part_of_the_workspace() {
    let found = builtin(
        "builtinPolicy: { name: fs_write, allowedPaths: [./docs, notes/a.txt, /home/project/abs, .] }, \
         exposedTools: ['read_*'], timeouts: { requestMs: 7 }, queue: disk, cache: 5, toolsDenied: [d]",
    );
    assert!(matches!(found.policy, BuiltinPolicy::FsWrite(_)));
    let paths = ["/home/project/docs", "/home/project/notes/a.txt", "/home/project/abs", "/home/project"];
    assert_eq!(super::catalogue::paths(&found), paths.map(std::path::PathBuf::from));
    assert_eq!(values(found.options.allowed.as_deref().unwrap()), ["read_*"]);
    assert_eq!(found.options.timeout.some(), Some(Duration::from_millis(7)));
    assert_eq!((found.options.queue.as_deref(), found.options.enabled), (Some("disk"), true));
    let bare = builtin("builtinPolicy: { name: fs_read }");
    assert_eq!(super::catalogue::paths(&bare), [Path::new("/home/project")]);
    assert_eq!(bare.options.allowed, None);
}

#[test]
fn what_a_policy_and_permissions_of_other_programs_say_holds() {
    let found =
        builtin("builtinPolicy: { name: fs_read, timeout: 7 }, permissions: { allowedPaths: [docs] }");
    assert_eq!(found.options.timeout.some(), Some(Duration::from_millis(7)));
    assert_eq!(paths(&found), [Path::new("/home/project/docs")]);
    let same = "builtinPolicy: { name: fs_read, allowedPaths: [a, b] }, permissions: { filesystem: true, network: false, \
                allowedPaths: [b, a] }";
    assert_eq!(paths(&builtin(same)).len(), 2);
    refused(
        "tools:\n  a: { kind: builtin, builtinPolicy: { name: fs_read }, permissions: { filesystem: none } }\n  \
         b: { kind: builtin, builtinPolicy: { name: fs_read }, permissions: { filesystem: false, read: x } }\n  \
         c: { kind: builtin, builtinPolicy: { name: fs_read, allowedPaths: [a] }, permissions: { allowedPaths: [b] } }\n  \
         d: { kind: builtin, builtinPolicy: { name: fs_read }, permissions: { allowedPaths: [../b] } }\n  \
         e: { kind: builtin, builtinPolicy: { name: fs_read, timeout: 1 }, requestTimeoutMs: 1, timeouts: { requestMs: 1 } }\n  \
         f: { kind: builtin, builtinPolicy: { name: fs_read }, permissions: none }\n",
        expect![[r#"
            gantry.yaml:2: tools.a.permissions.filesystem takes nothing away from these tools unless it is true; write what they may touch into "allowedPaths", "fs_read" into "builtinPolicy.name" if they shall only read, or switch them off with "enabled"
            gantry.yaml:3: unknown key "read" in tools.b.permissions; known keys are allowedPaths, filesystem
            gantry.yaml:3: tools.b.permissions.filesystem takes nothing away from these tools unless it is true; write what they may touch into "allowedPaths", "fs_read" into "builtinPolicy.name" if they shall only read, or switch them off with "enabled"
            gantry.yaml:4: tools.c has "builtinPolicy.allowedPaths" and another "permissions.allowedPaths"; keep one
            gantry.yaml:5: tools.d.permissions.allowedPaths[0]: "../b" is outside of the workspace /home/project; name a path in it, without ".."
            gantry.yaml:6: tools.e has "timeouts.requestMs" and "builtinPolicy.timeout"; keep one
            gantry.yaml:7: tools.f.permissions must be a group of keys, found text"#]],
    );
}

#[test]
fn a_shell_has_commands_and_the_others_have_paths() {
    let folder = Folder::with(&[
        (
            "gantry.yaml",
            "tools:\n  shell: { kind: builtin, builtinPolicy: { name: shell_exec, allowedCommands: [ls, /bin/cat], timeout: 5 } }\n\
             agents: { a: { tools: { use: [shell] } } }\n",
        ),
        (
            "tools/sh/tool.json",
            r#"{ "id": "sh", "kind": "builtin", "builtinPolicy": { "name": "shell_exec", "allowedCommands": ["git"] } }"#,
        ),
    ]);
    let loaded = folder.load();
    let policies: Vec<_> = loaded.config.main().builtin.values().map(|it| it.policy.clone()).collect();
    let shell = |commands: &[&str], timeout: u64| {
        let allowed_commands = commands.iter().map(ToString::to_string).collect();
        BuiltinPolicy::ShellExec(ShellPolicy {
            allowed_commands,
            timeout: Duration::from_millis(timeout).into(),
        })
    };
    assert_eq!(policies, [shell(&["git"], 0), shell(&["ls", "/bin/cat"], 5)]);
    refused(
        "tools:\n  a: { kind: builtin, builtinPolicy: { name: shell_exec } }\n  \
         b: { kind: builtin, builtinPolicy: { name: shell_exec, allowedCommands: [ls], allowedPaths: [a] } }\n  \
         c: { kind: builtin, builtinPolicy: { name: fs_read, allowedCommands: [ls] } }\n  \
         d: { kind: builtin, builtinPolicy: { name: shell_exec, allowedCommands: [] } }\n",
        expect![[r#"
            gantry.yaml:2: tools.a.builtinPolicy needs the key "allowedCommands"
            gantry.yaml:3: unknown key "allowedPaths" in tools.b.builtinPolicy; known keys are allowedCommands, timeout
            gantry.yaml:4: unknown key "allowedCommands" in tools.c.builtinPolicy; known keys are allowedPaths, timeout
            gantry.yaml:5: tools.d.builtinPolicy.allowedCommands needs at least one item; an empty list has no meaning here"#]],
    );
}

#[test]
fn the_ids_of_gantrys_own_tools_are_taken() {
    refused(
        "mcpServers:\n  outputs: { command: x }\n  workspace: { command: x }\ntools:\n  outputs: { kind: mcp, command: x }\n",
        expect![[r#"
            gantry.yaml:2: "outputs" in mcpServers is a name of Gantry's own; choose another
            gantry.yaml:3: "workspace" in mcpServers is a name of Gantry's own; choose another
            gantry.yaml:5: "outputs" in tools is a name of Gantry's own; choose another
            gantry.yaml:5: the id "outputs" is already taken at gantry.yaml:2, in mcpServers; choose another"#]],
    );
    let tool = ("tools/outputs/tool.json", r#"{ "kind": "mcp", "command": "x" }"#);
    let refused = Folder::with(&[("gantry.yaml", "{}"), tool]).refused();
    assert!(refused.contains("\"outputs\" is a name of Gantry's own"), "{refused}");
}

#[test]
fn allowed_paths_start_at_the_workspace_and_stay_in_it() {
    let config = yaml(
        "tools: { x: { kind: builtin, builtinPolicy: { name: fs_read, allowedPaths: [a, /home/other/b] } } }\nworkspace: ../other\n",
    );
    let paths = paths(&config.main().builtin["x"]);
    assert_eq!(
        paths,
        &["/home/project/../other/a", "/home/project/../other/b"].map(std::path::PathBuf::from)
    );
    refused(
        "tools:\n  x:\n    kind: builtin\n    builtinPolicy:\n      name: fs_read\n      allowedPaths:\n        - ../y\n        \
         - a/../b\n        - /etc\n        - '${SECRET}/..'\n        - ''\nprojects:\n  p:\n    workspace: /srv/p\n    \
         tools: { y: { kind: builtin, builtinPolicy: { name: fs_read, allowedPaths: [/home/project] } } }\n  \
         q: { workspace: ., tools: { y: { kind: builtin, builtinPolicy: { name: fs_read, allowedPaths: [] } } } }\n",
        expect![[r#"
            gantry.yaml:7: tools.x.builtinPolicy.allowedPaths[0]: "../y" is outside of the workspace /home/project; name a path in it, without ".."
            gantry.yaml:8: tools.x.builtinPolicy.allowedPaths[1]: "a/../b" is outside of the workspace /home/project; name a path in it, without ".."
            gantry.yaml:9: tools.x.builtinPolicy.allowedPaths[2]: "/etc" is outside of the workspace /home/project; name a path in it, without ".."
            gantry.yaml:10: tools.x.builtinPolicy.allowedPaths[3]: "${SECRET}/.." is outside of the workspace /home/project; name a path in it, without ".."
            gantry.yaml:11: tools.x.builtinPolicy.allowedPaths[4] must be a path, found ""
            gantry.yaml:15: projects.p.tools.y.builtinPolicy.allowedPaths[0]: "/home/project" is outside of the workspace /srv/p; name a path in it, without ".."
            gantry.yaml:16: projects.q.tools.y.builtinPolicy.allowedPaths needs at least one item; an empty list has no meaning here"#]],
    );
}

#[test]
fn a_bad_entry_is_refused_in_the_words_it_was_written_in() {
    refused(
        "tools:\n  none: {}\n  empty:\n  odd: { kind: rest }\n  unset: { kind: '${NONE}' }\n  \
         noway: { kind: mcp }\n  both: { kind: mcp, command: x, endpoint: 'http://a/' }\n  \
         bad: { kind: mcp, transport: ws, endpoint: 'http://hunter2/' }\n  lone: { kind: mcp, transport: tcp }\n  \
         typ: { kind: mcp, transport: grpc, endpoint: x }\n  named: { kind: mcp, id: other, command: x }\n  \
         old: { kind: mcp, type: http, url: 'http://a/' }\n  \
         twice: { kind: mcp, command: x, exposedTools: [a], toolsAllowed: [a], timeouts: { requestMs: 1, startupMs: 1 }, requestTimeoutMs: 1, startupTimeoutMs: 1 }\n  \
         mixed: { kind: mcp, command: x, builtinPolicy: { name: fs_read } }\n  \
         mixed2: { kind: builtin, command: x, builtinPolicy: { name: fs_read } }\n  nopolicy: { kind: builtin }\n  \
         shell: { kind: builtin, builtinPolicy: { name: fs_exec, allowedCommands: [ls] } }\n  \
         agent: { kind: mcp, command: x }\n  'a!': { kind: mcp, command: x }\n  \
         near: { kind: mcp, comand: x, command: y, timeouts: { requestMs: -1 }, queue: disc }\n  text: x\n  workspace: { kind: mcp }\n",
        expect![[r#"
            gantry.yaml:2: tools.none needs the key "kind": mcp or builtin
            gantry.yaml:3: tools.empty needs the key "kind": mcp or builtin
            gantry.yaml:4: tools.odd.kind must be mcp or builtin, found "rest"
            gantry.yaml:5: tools.unset.kind: ${NONE} is not set; set it in the environment or in .env, or write ${NONE:-default}
            gantry.yaml:6: tools.noway needs "command", the program to start, or "url", where it listens
            gantry.yaml:7: tools.both has both a command and an address; keep one, or make it two servers
            gantry.yaml:8: tools.bad.endpoint must be a ws:// or wss:// address without user and password, such as wss://mcp.example.com/ws
            gantry.yaml:9: tools.lone needs the key "url"
            gantry.yaml:10: tools.typ.transport must be process or stdio or http or streamable-http or streamableHttp or sse or websocket or ws or tcp, found "grpc"
            gantry.yaml:11: tools.named.id must be "named", found "other"
            gantry.yaml:13: tools.twice has "toolsAllowed" in two spellings; keep one
            gantry.yaml:13: tools.twice has "timeouts.requestMs" and "requestTimeoutMs"; keep one
            gantry.yaml:13: tools.twice has "timeouts.startupMs" and "startupTimeoutMs"; keep one
            gantry.yaml:14: unknown key "builtinPolicy" in tools.mixed; known keys are description, type, command, args, env, cwd, replicas, url, urls, address, headers, disabled, startupTimeoutMs, healthCheck, protocol, prefix, traceMCP, elicitation, sampling, roots, enabled, toolsAllowed, toolsDenied, queue, cache, requestTimeoutMs, toolsCache, toolsQueue, toolsTimeout, id, …
            gantry.yaml:15: unknown key "command" in tools.mixed2; known keys are enabled, toolsAllowed, toolsDenied, queue, cache, requestTimeoutMs, toolsCache, toolsQueue, toolsTimeout, id, displayName, description, builtinPolicy, timeouts, permissions
            gantry.yaml:16: tools.nopolicy needs the key "builtinPolicy"
            gantry.yaml:17: tools.shell.builtinPolicy.name must be fs_read or fs_write or shell_exec, found "fs_exec"
            gantry.yaml:18: "agent" in tools is a name of Gantry's own; choose another
            gantry.yaml:19: "a!" in tools must be a name of 1 to 64 letters, digits, spaces and _ - . / @
            gantry.yaml:20: tools.near.timeouts.requestMs must be a whole number of milliseconds, found -1
            gantry.yaml:20: unknown key "comand" in tools.near; did you mean "command"?
            gantry.yaml:20: tools.near.queue: unknown queue "disc"; no queue is configured; add it under "queues"
            gantry.yaml:21: tools.text must be a group of keys, found text
            gantry.yaml:22: tools.workspace.kind must be builtin, found "mcp""#]],
    );
}

#[test]
fn a_builtin_entry_is_not_started() {
    let text =
        "tools: { x: { kind: builtin, timeouts: { startupMs: 5 }, builtinPolicy: { name: fs_read } } }";
    let loaded = Folder::with(&[("gantry.yaml", text)]).load();
    expect!["gantry.yaml:1: tools.x.timeouts.startupMs has no effect; these tools are always there"]
        .assert_eq(&loaded.warnings.join("\n"));
}

#[test]
fn an_id_is_defined_once() {
    let folder = Folder::with(&[
        (
            "gantry.yaml",
            "mcpServers: { a: { command: x } }\n\
             tools:\n  a: { kind: mcp, command: x }\n  b: { kind: builtin, builtinPolicy: { name: fs_read } }\n\
             projects: { p: { workspace: ., tools: { a: { kind: mcp, command: x } } } }\n",
        ),
        ("tools/a/tool.json", r#"{ "kind": "mcp", "command": "x" }"#),
        ("tools/b/tool.json", r#"{ "kind": "mcp", "command": "x" }"#),
        ("tools/workspace/tool.json", r#"{ "kind": "mcp", "command": "x" }"#),
        ("projects/p/tools/b/tool.json", r#"{ "kind": "mcp", "command": "x" }"#),
    ]);
    expect![[r#"
        gantry.yaml:3: the id "a" is already taken at gantry.yaml:1, in mcpServers; choose another
        tools/a/tool.json:1: the id "a" is already taken at gantry.yaml:1, in mcpServers; choose another
        tools/b/tool.json:1: the id "b" is already taken at gantry.yaml:4, in tools; choose another
        tools/workspace/tool.json:1: "workspace" is a name of Gantry's own; rename its folder; Gantry's own tools are set up under "tools" in the configuration"#]].assert_eq(&folder.refused());
}

#[test]
fn a_variable_that_is_not_set_switches_off_its_server_only() {
    let config =
        yaml("tools: { x: { kind: mcp, command: x, env: { A: '${NONE}' } }, y: { kind: mcp, command: x } }");
    let Some(DisabledReason::Unusable(reason)) = &config.main().mcp_servers["x"].off() else {
        panic!("it is on")
    };
    assert!(reason.starts_with("gantry.yaml:1: tools.x.env.A: ${NONE} is not set"), "{reason}");
    assert!(config.main().mcp_servers["y"].off().is_none());
}

const TOOL: &str = r#"{
  "$schema": "x",
  "id": "search",
  "kind": "mcp",
  "displayName": "Search",
  "transport": "stdio",
  "command": "node",
  "args": ["./servers/search.js"],
  "env": { "TOKEN": "${NONE}" },
  "permissions": { "network": true },
  "timeouts": { "startupMs": 20000 },
  "healthCheck": { "kind": "http", "path": "/health", "intervalMs": 60000 },
  "exposedTools": ["search"]
}"#;

#[test]
fn an_entry_may_have_a_file() {
    let folder = Folder::with(&[
        ("gantry.yaml", "workspace: w\n"),
        ("w/x", ""),
        ("tools/search/tool.json", TOOL),
        (
            "tools/files/tool.json",
            r#"{ "kind": "builtin", "builtinPolicy": { "name": "fs_read", "allowedPaths": ["docs"] } }"#,
        ),
        ("tools/build/script.sh", ""),
        ("tools/a!/tool.json", "{}"),
    ]);
    let loaded = folder.load();
    let main = loaded.config.main();
    let search = &main.mcp_servers["search"];
    assert_eq!(search.options.startup_timeout.get(), Duration::from_secs(20));
    assert_eq!(search.options.args, [Secret::from(folder.path("servers/search.js").display().to_string())]);
    let Some(DisabledReason::Unusable(reason)) = &search.off() else { panic!("it is on") };
    assert!(reason.starts_with("tools/search/tool.json:9: env.TOKEN: ${NONE}"), "{reason}");
    assert_eq!(paths(&main.builtin["files"]), [folder.path("w/docs")]);
    assert_eq!((main.mcp_servers.len(), main.builtin.len()), (1, 1));
    expect![[r#"
        tools/a!/tool.json: not read, because the name of its folder is not a name of 1 to 64 letters, digits, spaces and _ - . / @; rename it
        tools/search/tool.json:10: permissions has no effect; nothing is restricted by it; a server can do what the user can who runs Gantry
        tools/search/tool.json:12: healthCheck.path has no effect; it is asked over the connection (jsonrpc)
        tools/search/tool.json:12: healthCheck.kind has no effect; it is asked over the connection (jsonrpc)"#]].assert_eq(&loaded.warnings.join("\n"));
}

#[test]
fn a_bad_file_is_refused_at_its_line() {
    let folder = Folder::with(&[
        ("gantry.yaml", "{}"),
        ("tools/a/tool.json", "{\n\"kind\": \"mcp\",\n\"comand\": \"x\"\n}"),
        ("tools/b/tool.json", "{}"),
        (
            "tools/c/tool.json",
            "{ \"kind\": \"mcp\", \"id\": \"d\",\n\"transport\": \"ws\", \"endpoint\": \"http://a/\" }",
        ),
        ("tools/d/tool.json", "{"),
        (
            "tools/e/tool.json",
            "{ \"kind\": \"builtin\",\n\"builtinPolicy\": { \"name\": \"fs_read\", \"allowedPaths\": [\"..\"] } }",
        ),
    ]);
    expect![[r#"
        tools/a/tool.json:3: unknown key "comand"; did you mean "command"?
        tools/b/tool.json:1: this tool needs the key "kind": mcp or builtin
        tools/c/tool.json:1: id must be "c", found "d"
        tools/c/tool.json:2: endpoint must be a ws:// or wss:// address without user and password, such as wss://mcp.example.com/ws
        tools/d/tool.json:1:1: not valid JSON: EOF while parsing an object
        tools/e/tool.json:2: builtinPolicy.allowedPaths[0]: ".." is outside of the workspace FOLDER; name a path in it, without "..""#]].assert_eq(&folder.refused().replace(&folder.0.path().display().to_string(), "FOLDER"));
}
