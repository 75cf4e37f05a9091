//! MCP servers: what entries mean, what is refused, what only one server suffers from, and what is never shown.

use std::path::Path;
use std::time::Duration;

use expect_test::{Expect, expect};
use gantry_core::options::ServerId;
use gantry_provider::options::Secret;
use gantry_upstream::options::{DisabledReason, OfferedCapabilities, Protocol, ServerOptions};

use super::{env, load, yaml};
use crate::config::McpServer;
use crate::config::document::Format;
use crate::config::dotenv::Variables;
use crate::config::load::parse;
use crate::config::resolve::Base;

#[track_caller]
fn server(entry: &str) -> McpServer {
    yaml(&format!("queues: {{ disk: {{ concurrent: 1 }} }}\nmcpServers: {{ x: {entry} }}")).main().mcp_servers
        ["x"]
        .clone()
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "an expectation is written at the call")]
fn refused(text: &str, expected: Expect) {
    match load(Format::Yaml, text) {
        Ok(config) => panic!("{text}\nis accepted: {config:?}"),
        Err(error) => expected.assert_eq(&error.to_string()),
    }
}

/// The servers of a file and its warnings.
fn with_warnings(format: Format, text: &str) -> (Vec<String>, Vec<String>) {
    let base = Base { folder: "/home/project".into(), data: "/home/project/.gantry".into(), accepted: None };
    let parsed = parse(text, format, Path::new(".mcp.json"), &base, &Variables::new(&env()))
        .unwrap_or_else(|error| panic!("{text}\nis refused:\n{error}"));
    let shown = |(id, server): (&ServerId, &McpServer)| {
        format!("{} {} {:?}", &**id, server.options.transport().as_str(), server.off())
    };
    let servers = parsed.config.main().mcp_servers.iter().map(shown);
    (servers.collect(), parsed.warnings)
}

#[test]
fn an_entry_has_the_defaults_of_the_reference() {
    let found = server("{ command: npx }");
    let ServerOptions { command, args, env, cwd, replicas, .. } = &found.options;
    assert_eq!((command.as_deref(), args.len(), env.len(), replicas.get()), (Some("npx"), 0, 0, 1));
    assert_eq!(cwd.as_deref(), None);
    assert_eq!(found.options.protocol, Protocol::Auto);
    assert_eq!(
        found.options.declared(),
        OfferedCapabilities { elicitation: true, sampling: true, roots: false }
    );
    assert_eq!(found.options.startup_timeout.get(), Duration::from_secs(15));
    let health = found.options.health_check;
    assert_eq!(
        (health.interval.get(), health.timeout.get()),
        (Duration::from_secs(30), Duration::from_secs(5))
    );
    let has_defaults = found.options.prefix && found.options.trace.is_none();
    assert!(has_defaults && found.tools.enabled && found.off().is_none());
    let defaults = yaml("{}").main().limits.clone();
    assert_eq!((defaults.mcp_init_concurrency.get(), defaults.trace_mcp), (8, false));
}

#[test]
fn every_key_of_a_process_is_read() {
    let found = server(
        "{ type: stdio, command: npx, args: ['-y', '${SECRET}'], env: { A: '${SECRET}', B: '' }, cwd: sub, replicas: 3, \
         toolsAllowed: ['a*'], toolsDenied: [ab], queue: disk, cache: 5, requestTimeoutMs: 7, startupTimeoutMs: 9, \
         healthCheck: { intervalMs: 11, timeoutMs: 13 }, protocol: legacy, prefix: false, traceMCP: true, \
         elicitation: false, sampling: false, roots: true, description: d }",
    );
    let ServerOptions { args, env, cwd, replicas, .. } = &found.options;
    assert_eq!(args, &["-y", "hunter2"].map(Secret::from));
    assert_eq!(
        env.iter().map(|(k, v)| (k.as_str(), v.expose())).collect::<Vec<_>>(),
        [("A", "hunter2"), ("B", "")]
    );
    assert_eq!((cwd.as_deref(), replicas.get()), (Some(Path::new("/home/project/sub")), 3));
    assert_eq!(found.tools.queue.as_deref(), Some("disk"));
    assert_eq!(found.tools.timeout.some(), Some(Duration::from_millis(7)));
    let options = &found.options;
    assert_eq!(options.health_check.interval.get(), Duration::from_millis(11));
    assert_eq!((options.protocol, options.trace), (Protocol::Legacy, Some(true)));
    assert_eq!(options.declared(), OfferedCapabilities { elicitation: false, sampling: false, roots: true });
    assert!(!options.prefix);
}

#[test]
fn the_type_follows_from_what_an_entry_has() {
    for (entry, kind) in [
        ("{ command: x }", "stdio"),
        ("{ url: 'https://a/mcp' }", "http"),
        ("{ type: streamable-http, url: 'http://a/mcp' }", "http"),
        ("{ type: streamableHttp, url: 'http://a/mcp' }", "http"),
        ("{ urls: ['http://a/', 'http://b/'] }", "http"),
        ("{ type: sse, url: 'http://a/sse' }", "sse"),
        ("{ type: ws, url: 'ws://a/' }", "websocket"),
        ("{ type: websocket, urls: ['wss://a/'] }", "websocket"),
        ("{ url: 'wss://a/' }", "websocket"),
        ("{ url: 'tcp://a:1' }", "tcp"),
        ("{ type: tcp, url: 'a:1' }", "tcp"),
        ("{ address: '[::1]:9' }", "tcp"),
    ] {
        assert_eq!(server(entry).options.transport().as_str(), kind, "{entry}");
    }
    assert_eq!(server("{ type: tcp, urls: ['tcp://a:1', 'b:2'] }").options.addresses(), ["a:1", "b:2"]);
    let found = server("{ url: 'http://a/', headers: { Authorization: 'Bearer ${SECRET}' } }").options;
    assert_eq!(found.addresses(), ["http://a/"]);
    assert_eq!(found.headers["Authorization"].expose(), "Bearer hunter2");
}

#[test]
fn a_server_has_addresses_in_the_form_of_its_type() {
    refused(
        "mcpServers:\n  none: { urls: [] }\n  slash: { address: 'a:9000/' }\n  user: { url: 'https://u@a/@b' }\n",
        expect![[r#"
            gantry.yaml:2: mcpServers.none.urls needs at least one item; an empty list has no meaning here
            gantry.yaml:3: mcpServers.slash.address must be a host and a port, such as tcp://127.0.0.1:9000
            gantry.yaml:4: mcpServers.user.url must be an http:// or https:// address without user and password, such as https://mcp.example.com/mcp"#]],
    );
    for url in ["https://server.smithery.ai/@owner/name/mcp", "HTTPS://a/mcp"] {
        assert_eq!(server(&format!("{{ url: '{url}' }}")).options.transport().as_str(), "http");
    }
    assert_eq!(server("{ url: 'WSS://a/' }").options.transport().as_str(), "websocket");
}

#[test]
fn a_bad_entry_is_refused_at_its_line() {
    refused(
        "mcpServers:\n  none: {}\n  empty:\n  both: { command: x, url: 'http://a/' }\n  odd: { type: http, command: x }\n  \
         lone: { type: stdio }\n  two: { url: 'http://a/', urls: ['http://b/'] }\n  bad: { url: 'localhost:hunter2' }\n  \
         user: { url: 'http://me:hunter2@a/' }\n  ws: { type: ws, urls: ['http://a/'] }\n  tcp: { type: tcp, url: hunter2 }\n  \
         addr: { type: http, address: 'a:1' }\n  typ: { type: grpc, url: x }\n  agent: { command: x }\n  workspace: { command: x }\n  \
         'a!': { command: x }\n  text: hunter\n  near: { comand: x, command: y, queue: disc }\n",
        expect![[r#"
            gantry.yaml:2: mcpServers.none needs "command", the program to start, or "url", where it listens
            gantry.yaml:3: mcpServers.empty needs "command", the program to start, or "url", where it listens
            gantry.yaml:4: mcpServers.both has both a command and an address; keep one, or make it two servers
            gantry.yaml:5: mcpServers.odd.command is for type stdio, and this is http; keep one of the two
            gantry.yaml:6: mcpServers.lone needs the key "command"
            gantry.yaml:7: mcpServers.two has "url" and "urls"; keep one
            gantry.yaml:8: mcpServers.bad.url must be an http:// or https:// address without user and password, such as https://mcp.example.com/mcp
            gantry.yaml:9: mcpServers.user.url must be an http:// or https:// address without user and password, such as https://mcp.example.com/mcp
            gantry.yaml:10: mcpServers.ws.urls must be a ws:// or wss:// address without user and password, such as wss://mcp.example.com/ws
            gantry.yaml:11: mcpServers.tcp.url must be a host and a port, such as tcp://127.0.0.1:9000
            gantry.yaml:12: mcpServers.addr.address is for type tcp; use "url"
            gantry.yaml:13: mcpServers.typ.type must be process or stdio or http or streamable-http or streamableHttp or sse or websocket or ws or tcp, found "grpc"
            gantry.yaml:14: "agent" in mcpServers is a name of Gantry's own; choose another
            gantry.yaml:15: "workspace" in mcpServers is a name of Gantry's own; choose another
            gantry.yaml:16: "a!" in mcpServers must be a name of 1 to 64 letters, digits, spaces and _ - . / @
            gantry.yaml:17: mcpServers.text must be a group of keys, found text
            gantry.yaml:18: unknown key "comand" in mcpServers.near; did you mean "command"?
            gantry.yaml:18: mcpServers.near.queue: unknown queue "disc"; no queue is configured; add it under "queues""#]],
    );
}

#[test]
fn secrets_are_not_shown_in_errors() {
    refused(
        "mcpServers:\n  a: { command: x, env: hunter2 }\n  b: { command: x, env: [hunter2] }\n  \
         c: { command: x, env: { A: 5, '': hunter2, 'B=': hunter2, C: [hunter2], D: \"hunter2\\0\" } }\n  \
         d: { url: 'http://a/', headers: { 'a b': hunter2, X: \"hunter2\\n\", Y: true } }\n",
        expect![[r#"
            gantry.yaml:2: mcpServers.a.env must be a group of keys, found text
            gantry.yaml:3: mcpServers.b.env must be a group of keys, found a list
            gantry.yaml:4: mcpServers.c.env.A must be text; put it in quotes
            gantry.yaml:4: "" in mcpServers.c.env must be the name of a variable
            gantry.yaml:4: "B=" in mcpServers.c.env must be the name of a variable
            gantry.yaml:4: mcpServers.c.env.C must be text; put it in quotes
            gantry.yaml:4: mcpServers.c.env.D must be text; put it in quotes
            gantry.yaml:5: "a b" in mcpServers.d.headers must be the name of a header
            gantry.yaml:5: mcpServers.d.headers.X must be text on one line; put it in quotes
            gantry.yaml:5: mcpServers.d.headers.Y must be text on one line; put it in quotes"#]],
    );
}

#[test]
fn debug_shows_no_secret() {
    let text = "mcpServers:\n  a: { command: x, args: ['${SECRET}'], env: { A: '${SECRET}' } }\n  \
                b: { url: 'http://a/?k=${SECRET}', headers: { A: '${SECRET}' } }\n";
    let shown = format!("{:?}", yaml(text));
    assert!(shown.contains("McpServer") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn an_unset_variable_switches_off_its_server_only() {
    let config = yaml(
        "mcpServers:\n  good: { command: x }\n  bad: { command: x, env: { A: '${NONE}', B: '${SECRET}' }, args: ['${NADA}'] }\n  \
         url: { url: 'http://${HOST_OF_IT}/' }\n  typ: { type: '${KIND}', url: 'http://a/' }\n  \
         off: { command: '${NONE}', enabled: false }\n  on: { command: x, enabled: '${NONE}' }\n  \
         ask: { command: x, env: { A: '${input:key}', B: '${env:SECRET}' } }\n",
    );
    let off = |id: &str| config.main().mcp_servers[id].off();
    assert_eq!(off("good"), None);
    let Some(DisabledReason::Unusable(reason)) = off("bad") else { panic!("{:?}", off("bad")) };
    let advice = |name: &str| {
        format!("${{{name}}} is not set; set it in the environment or in .env, or write ${{{name}:-default}}")
    };
    assert_eq!(
        reason,
        format!(
            "gantry.yaml:3: mcpServers.bad.env.A: {}; gantry.yaml:3: mcpServers.bad.args[0]: {}",
            advice("NONE"),
            advice("NADA")
        )
    );
    for id in ["url", "typ", "on", "ask"] {
        assert!(matches!(off(id), Some(DisabledReason::Unusable(_))), "{id}: {:?}", off(id));
    }
    assert_eq!(off("off"), Some(DisabledReason::Disabled));
    // What is wrong with the text itself is wrong with the file.
    refused(
        "mcpServers:\n  a: { command: '${NONE:-${OTHER}}' }\n  b: { command: '${NONE}', nope: 1 }\nworkspace: '${NONE}'\n",
        expect![[r#"
            gantry.yaml:2: mcpServers.a.command: the default of ${NONE} holds another variable; a default is plain text
            gantry.yaml:3: unknown key "nope" in mcpServers.b; known keys are description, type, command, args, env, cwd, replicas, url, urls, address, headers, disabled, startupTimeoutMs, healthCheck, protocol, prefix, traceMCP, elicitation, sampling, roots, enabled, toolsAllowed, toolsDenied, queue, cache, requestTimeoutMs, toolsCache, toolsQueue, toolsTimeout
            gantry.yaml:4: workspace: ${NONE} is not set; set it in the environment or in .env, or write ${NONE:-default}"#]],
    );
}

#[test]
fn what_needs_no_variable_is_checked_although_one_is_not_set() {
    refused(
        "mcpServers:\n  both: { command: '${NONE}', url: 'http://a/' }\n  other: { command: x, url: '${NONE}' }\n  \
         none: { headers: { A: '${NONE}' } }\n  bad: { url: 'localhost:hunter2', headers: { A: '${NONE}' } }\n  \
         two: { url: '${NONE}', urls: ['${NONE}'] }\n  odd: { type: '${NONE}', command: x, url: 'a:1' }\n  \
         fine: { type: '${NONE}', url: 'a:1' }\n  good: { urls: ['${NONE}', 'ws://a/'] }\n  ws: { type: ws, url: '${NONE}' }\n  \
         tcp: { address: '${NONE}' }\n  serverUrl: { serverUrl: '${NONE}' }\n",
        expect![[r#"
            gantry.yaml:2: mcpServers.both has both a command and an address; keep one, or make it two servers
            gantry.yaml:3: mcpServers.other has both a command and an address; keep one, or make it two servers
            gantry.yaml:4: mcpServers.none needs "command", the program to start, or "url", where it listens
            gantry.yaml:5: mcpServers.bad.url must be an http:// or https:// address without user and password, such as https://mcp.example.com/mcp
            gantry.yaml:6: mcpServers.two has "url" and "urls"; keep one
            gantry.yaml:7: mcpServers.odd has both a command and an address; keep one, or make it two servers"#]],
    );
    refused(
        "servers: { none: { env: { A: '${NONE}' } }, url: { url: '${NONE}' } }",
        expect![[
            r#"gantry.yaml:1: servers.none needs "command", the program to start, or "url", where it listens"#
        ]],
    );
}

#[test]
fn a_server_is_disabled_in_either_spelling() {
    for entry in
        ["enabled: false", "disabled: true", "enabled: true, disabled: true", "enabled: '${NO:-false}'"]
    {
        assert_eq!(
            server(&format!("{{ command: x, {entry} }}")).off(),
            Some(DisabledReason::Disabled),
            "{entry}"
        );
    }
    assert_eq!(server("{ command: x, disabled: false }").off(), None);
}

#[test]
fn how_other_programs_check_a_server_has_no_effect() {
    let text = "mcpServers: { x: { command: x, healthCheck: { kind: http, path: '${UNSET}/health' } } }";
    let (servers, warnings) = with_warnings(Format::Yaml, text);
    assert_eq!(servers, ["x stdio None"]);
    expect![[r#"
        .mcp.json:1: mcpServers.x.healthCheck.path has no effect; it is asked over the connection (jsonrpc)
        .mcp.json:1: mcpServers.x.healthCheck.kind has no effect; it is asked over the connection (jsonrpc)"#]].assert_eq(&warnings.join("\n"));
}

#[test]
fn the_files_of_editors_are_configurations() {
    let claude = r#"{ "mcpServers": {
      "memory": { "command": "npx", "args": ["-y", "m"], "env": {}, "disabled": false, "autoApprove": ["*"],
                  "alwaysAllow": [], "timeout": 60, "description": "remembers", "headers": {} },
      "web": { "type": "http", "serverUrl": "https://a/mcp", "env": {}, "disabledTools": ["rm"] } } }"#;
    let (servers, warnings) = with_warnings(Format::Json, claude);
    assert_eq!(servers.len(), 2);
    expect![[r#"
        .mcp.json:2: mcpServers.memory.autoApprove has no effect; "approvals" and "policies" decide which calls wait
        .mcp.json:3: mcpServers.memory.alwaysAllow has no effect; "approvals" and "policies" decide which calls wait
        .mcp.json:3: mcpServers.memory.timeout has no effect; its unit differs between editors; write "requestTimeoutMs""#]].assert_eq(&warnings.join("\n"));
    let code = r#"{
      "$schema": "x", "inputs": [{ "id": "key", "type": "promptString" }],
      "servers": {
        "io.github.github/github-mcp-server": { "type": "stdio", "command": "npx", "args": [],
            "env": { "T": "${env:SECRET}" }, "envFile": ".env", "gallery": true, "version": "1" },
        "GitHub remote": { "type": "http", "url": "https://a/mcp", "headers": { "A": "${input:key}" }, "cwd": "x" } } }"#;
    let (servers, warnings) = with_warnings(Format::Json, code);
    expect![[r#"
        GitHub remote http Some(Unusable(".mcp.json:6: servers.\"GitHub remote\".headers.A: an editor asks for ${input:key} and Gantry cannot; write ${VAR} instead and set VAR"))
        io.github.github/github-mcp-server stdio None"#]].assert_eq(&servers.join("\n"));
    expect![[r#"
        .mcp.json:2: inputs has no effect; Gantry does not ask for them; write ${VAR} where ${input:…} stands and set VAR
        .mcp.json:5: servers."io.github.github/github-mcp-server".envFile has no effect; write the variables into "env", as ${VAR}, and their values into .env beside the configuration
        .mcp.json:5: servers."io.github.github/github-mcp-server".gallery has no effect; it is for editors
        .mcp.json:5: servers."io.github.github/github-mcp-server".version has no effect; it is for editors"#]].assert_eq(&warnings.join("\n"));
}
