//! What is refused, in which words, and at which line.

use expect_test::{Expect, expect};

use super::load;
use crate::config::document::Format;

#[track_caller]
pub(super) fn check(text: &str, expected: Expect) {
    check_as(Format::Yaml, text, expected);
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "an expectation is written at the call")]
fn check_as(format: Format, text: &str, expected: Expect) {
    match load(format, text) {
        Ok(config) => panic!("{text}\nis accepted: {config:?}"),
        Err(error) => expected.assert_eq(&error.to_string()),
    }
}

#[test]
fn unknown_keys_name_the_nearest() {
    check(
        "tools:\n  workspace:\n    chache: 5\npolices: []\nserver:\n  port: 1\ndefaults: { tool_timeout: 1 }\nrestTool: {}\n",
        expect![[r#"
            gantry.yaml:3: unknown key "chache" in tools.workspace; did you mean "cache"?
            gantry.yaml:4: unknown key "polices"; did you mean "policies"?
            gantry.yaml:6: unknown key "port" in server; known keys are bind, allowedHosts, allowedOrigins
            gantry.yaml:7: unknown key "tool_timeout" in defaults; did you mean "toolTimeout"?
            gantry.yaml:8: unknown key "restTool"; did you mean "restTools"?"#]],
    );
}

#[test]
fn all_problems_come_together_in_the_order_of_lines() {
    check(
        "workspace: 5\nserver: { bind: localhost }\ndefaults:\n  toolTimeout: soon\n  maxDepth: -1\nqueues:\n  q: {}\nnope: 1\n",
        expect![[r#"
            gantry.yaml:1: workspace must be a path, found 5
            gantry.yaml:2: server.bind must be an IP address with a port, such as 127.0.0.1:7420 or [::1]:7420, found "localhost"
            gantry.yaml:4: defaults.toolTimeout must be a whole number of milliseconds, found "soon"
            gantry.yaml:5: defaults.maxDepth must be a whole number, found -1
            gantry.yaml:7: queues.q needs the key "concurrent"
            gantry.yaml:8: unknown key "nope"; known keys are server, queues, store, projects, workspace, defaults, tools, mcpServers, restTools, openapiSpecs, agents, approvals, policies, code, web, git, search"#]],
    );
}

#[test]
fn nothing_is_no_group_where_a_group_is_the_value() {
    check(
        "policies: [{ name: p, tools: ['*'], decide: ask, examples: { ask: [null, {}] } }]\n\
         restTools: { a: { description: D, url: 'https://a/', parametersSchema: } }\n",
        expect![[r#"
            gantry.yaml:1: policies[0].examples.ask[0] must be a group of keys, found nothing
            gantry.yaml:2: restTools.a.parametersSchema must be a group of keys, found nothing"#]],
    );
}

#[test]
fn keys_of_later_versions_are_refused_by_name() {
    check(
        "models: { a: { env: { T: '${UNSET}' } } }\nauth: {}\n\
         projects: { a: { workspace: a, auth: {} } }\nstore: { url: 'postgres://h/db' }\n\
         queues: { q: { concurrent: 1, scope: cluster } }\n",
        expect![[r#"
            gantry.yaml:1: models is not available in this version of Gantry; remove it
            gantry.yaml:2: auth is not available in this version of Gantry; remove it
            gantry.yaml:3: projects.a.auth is not available in this version of Gantry; remove it
            gantry.yaml:4: store.url: PostgreSQL is not available in this version of Gantry; use a URL such as sqlite://.gantry/gantry.db
            gantry.yaml:5: queues.q.scope must be node, found "cluster""#]],
    );
}

#[test]
fn types_are_not_guessed() {
    check(
        "workspace: [a]\nserver: nothing\ndefaults:\n  toolTimeout: '60000'\n  maxDepth: 1.5\n  toolResponseMaxBytes: true\n  maxConcurrentCalls:\n\
         queues: []\ntools:\n  workspace:\n    enabled: yes\n    toolsAllowed: read_file\n    toolsDenied: [1, a b, '']\n    toolsCache: 5\n\
         agents:\n  a:\n    tools:\npolicies:\napprovals:\n  requiresApprovalTools: read_file\n",
        expect![[r#"
            gantry.yaml:1: workspace must be a path, found a list
            gantry.yaml:2: server must be a group of keys, found text
            gantry.yaml:4: defaults.toolTimeout must be a whole number of milliseconds, found "60000"
            gantry.yaml:5: defaults.maxDepth must be a whole number, found 1.5
            gantry.yaml:6: defaults.toolResponseMaxBytes must be a whole number, found true
            gantry.yaml:7: defaults.maxConcurrentCalls must be a whole number, found nothing
            gantry.yaml:8: queues must be a group of keys, found a list
            gantry.yaml:11: tools.workspace.enabled must be true or false, found "yes"
            gantry.yaml:12: tools.workspace.toolsAllowed must be a list, such as [a, b], or [] for none, found text
            gantry.yaml:13: tools.workspace.toolsDenied[0] must be the name of a tool or a glob, found 1
            gantry.yaml:13: tools.workspace.toolsDenied[1] must be the name of a tool or a glob, found "a b"
            gantry.yaml:13: tools.workspace.toolsDenied[2] must be the name of a tool or a glob, found ""
            gantry.yaml:14: tools.workspace.toolsCache must be a group of keys, found a number
            gantry.yaml:17: agents.a.tools must be a list of tool names and globs, or a group with use, allowed, aliases, autoApprove, found nothing
            gantry.yaml:18: policies must be a list, such as [a, b], or [] for none, found nothing
            gantry.yaml:20: approvals.requiresApprovalTools must be "all", "none" or a list of tool names, found "read_file""#]],
    );
}

#[test]
fn numbers_have_bounds() {
    check(
        "defaults:\n  toolTimeout: 86400001\n  contextBudgetTokens: 0\n  outputRetentionMs: 99999999999999999999999\n  maxDepth: -0.0\n\
         queues:\n  q: { concurrent: 0, maxWaiting: 100001 }\n",
        expect![[r#"
            gantry.yaml:2: defaults.toolTimeout must be a whole number of milliseconds, at most 86400000, found 86400001
            gantry.yaml:3: defaults.contextBudgetTokens must be a whole number, at least 1, found 0
            gantry.yaml:4: defaults.outputRetentionMs must be a whole number of milliseconds, found 1e+23
            gantry.yaml:5: defaults.maxDepth must be a whole number, found -0.0
            gantry.yaml:7: queues.q.concurrent must be a whole number, at least 1, found 0
            gantry.yaml:7: queues.q.maxWaiting must be a whole number, at most 100000, found 100001"#]],
    );
}

#[test]
fn queues_must_exist() {
    check(
        "queues: { disk: { concurrent: 1 }, net: { concurrent: 1 } }\ntools:\n  workspace:\n    queue: dsik\n    toolsQueue:\n      a: gpu\n      b: 5\n",
        expect![[r#"
            gantry.yaml:4: tools.workspace.queue: unknown queue "dsik"; did you mean "disk"?
            gantry.yaml:6: tools.workspace.toolsQueue.a: unknown queue "gpu"; queues are disk, net
            gantry.yaml:7: tools.workspace.toolsQueue.b must be the name of a queue, or null, found 5"#]],
    );
    check(
        "tools: { workspace: { queue: disk } }",
        expect![[
            r#"gantry.yaml:1: tools.workspace.queue: unknown queue "disk"; no queue is configured; add it under "queues""#
        ]],
    );
}

#[test]
fn names_have_a_form() {
    check(
        "queues: { 'my queue': { concurrent: 1 } }\nagents:\n  a/b: {}\n  '': {}\n  ok_1-2: {}\npolicies: [{ name: 'ä', tools: [x], decide: deny }]\n",
        expect![[r#"
            gantry.yaml:1: "my queue" in queues must be a name of 1 to 64 letters, digits, _ and -
            gantry.yaml:3: "a/b" in agents must be a name of 1 to 64 letters, digits, _ and -
            gantry.yaml:4: "" in agents must be a name of 1 to 64 letters, digits, _ and -
            gantry.yaml:6: policies[0].name must be a name of 1 to 64 letters, digits, _ and -, found "ä""#]],
    );
}

#[test]
fn hosts_and_origins_are_exact() {
    check(
        "server:\n  allowedHosts: ['*', 'a:80', 'http://a', '', '[::1]', a.b]\n  allowedOrigins: ['*', 'null', 'https://a/', 'https://*.a', 'http://[::1]:80', 'https://a:99999']\n",
        expect![[r#"
            gantry.yaml:2: server.allowedHosts[0] must be a host name without scheme, port and wildcard, such as gantry.example.com, found "*"
            gantry.yaml:2: server.allowedHosts[1] must be a host name without scheme, port and wildcard, such as gantry.example.com, found "a:80"
            gantry.yaml:2: server.allowedHosts[2] must be a host name without scheme, port and wildcard, such as gantry.example.com, found "http://a"
            gantry.yaml:2: server.allowedHosts[3] must be a host name without scheme, port and wildcard, such as gantry.example.com, found ""
            gantry.yaml:3: server.allowedOrigins[0] must be an origin without path and wildcard, such as https://app.example.com, found "*"
            gantry.yaml:3: server.allowedOrigins[1] must be an origin without path and wildcard, such as https://app.example.com, found "null"
            gantry.yaml:3: server.allowedOrigins[2] must be an origin without path and wildcard, such as https://app.example.com, found "https://a/"
            gantry.yaml:3: server.allowedOrigins[3] must be an origin without path and wildcard, such as https://app.example.com, found "https://*.a"
            gantry.yaml:3: server.allowedOrigins[5] must be an origin without path and wildcard, such as https://app.example.com, found "https://a:99999""#]],
    );
}

#[test]
fn policies_are_complete_and_unique() {
    check(
        "policies:\n  - name: a\n    tools: []\n    decide: allow\n  - name: a\n    tools: [x]\n    decide: deny\n    when: ' '\n\
         \x20   examples: { deny: [1], allow: [] }\n  - {}\n  - text\n",
        expect![[r#"
            gantry.yaml:3: policies[0].tools needs at least one item; an empty list has no meaning here
            gantry.yaml:4: policies[0].decide must be deny or ask, found "allow"
            gantry.yaml:8: policies[1].when must be text that is not empty, found " "
            gantry.yaml:9: policies[1].examples.deny[0] must be a group of keys, found a number
            gantry.yaml:9: unknown key "allow" in policies[1].examples; known keys are deny, ask, pass
            gantry.yaml:10: policies[2] needs the key "name"
            gantry.yaml:10: policies[2] needs the key "tools"
            gantry.yaml:10: policies[2] needs the key "decide"
            gantry.yaml:11: policies[3] must be a group of keys, found text"#]],
    );
}

#[test]
fn duplicate_keys_are_refused() {
    let (yaml, json, toml) = (
        "server:\n  bind: 127.0.0.1:1\n  bind: 127.0.0.1:2\npolicies: [{ name: a, name: b, tools: [x], decide: deny }]\n",
        "{\n\"server\": {},\n\"server\": {}}",
        "[server]\nbind = '127.0.0.1:1'\nbind = '127.0.0.1:2'\n",
    );
    check(
        yaml,
        expect![[r#"
            gantry.yaml:3: key "bind" in server is already on line 2; keep one
            gantry.yaml:4: key "name" in policies[0] is already on line 4; keep one"#]],
    );
    check_as(Format::Json, json, expect![[r#"gantry.json:3: key "server" is already on line 2; keep one"#]]);
    check_as(Format::Toml, toml, expect!["gantry.toml:3:1: not valid TOML: duplicate key"]);
}

#[test]
fn unset_variables_say_what_to_do() {
    check(
        "server:\n  bind: ${ADDRESS}\npolicies: [{ name: p, tools: [a], decide: deny, examples: { deny: [{ x: ['${ARG}'] }] } }]\n",
        expect![[r#"
            gantry.yaml:2: server.bind: ${ADDRESS} is not set; set it in the environment or in .env, or write ${ADDRESS:-default}
            gantry.yaml:3: policies[0].examples.deny[0].x[0]: ${ARG} is not set; set it in the environment or in .env, or write ${ARG:-default}"#]],
    );
}

#[test]
fn values_of_variables_are_not_shown() {
    check(
        "server: { bind: '${SECRET}' }\ndefaults: { toolTimeout: '${SECRET}' }\ntools: { workspace: { queue: '${SECRET}', enabled: '${SECRET}' } }\n\
         policies: [{ name: '${SECRET} ', tools: [a], decide: '${SECRET}' }]\n",
        expect![[r#"
            gantry.yaml:1: server.bind must be an IP address with a port, such as 127.0.0.1:7420 or [::1]:7420, found "${SECRET}"
            gantry.yaml:2: defaults.toolTimeout must be a whole number of milliseconds, found "${SECRET}"
            gantry.yaml:3: tools.workspace.enabled must be true or false, found "${SECRET}"
            gantry.yaml:3: tools.workspace.queue: unknown queue "${SECRET}"; no queue is configured; add it under "queues"
            gantry.yaml:4: policies[0].name must be a name of 1 to 64 letters, digits, _ and -, found "${SECRET} "
            gantry.yaml:4: policies[0].decide must be deny or ask, found "${SECRET}""#]],
    );
}

#[test]
fn syntax_errors_have_line_and_column() {
    check("server:\n  bind: [1\n", expect!["gantry.yaml:2:9: not valid YAML: unclosed bracket '['"]);
    check(
        "a: b: c\n",
        expect!["gantry.yaml:1:5: not valid YAML: mapping values are not allowed in this context"],
    );
    check(
        "a:\n\t- b\n",
        expect!["gantry.yaml:2:2: not valid YAML: tabs disallowed within this context (block indentation)"],
    );
    check(
        "server: {}\n---\nserver: {}\n",
        expect!["gantry.yaml:3:1: a second document starts here; only files with one are read"],
    );
    check(
        "a: !secret x\n",
        expect!["gantry.yaml:1:12: tags are not read; remove it, or put the value in quotes if it is text"],
    );
    check("a: &a\n  <<: {}\n", expect!["gantry.yaml:2:3: merge keys (<<) are not read; write the keys out"]);
    check("? [a]\n: b\n", expect!["gantry.yaml:1:3: a key must be text, not a list, a mapping or an alias"]);
    check(
        "a: *missing\n",
        expect!["gantry.yaml:1:4: not valid YAML: while parsing node, found unknown anchor"],
    );
    check("a: &x [*x]\n", expect!["gantry.yaml:1:8: this alias is inside the value it refers to"]);
    check("just text\n", expect!["gantry.yaml:1: the configuration must be a group of keys, found text"]);
    check_as(
        Format::Json,
        "{\n  \"server\": {,}\n}",
        expect!["gantry.json:2:14: not valid JSON: key must be a string"],
    );
    check_as(Format::Json, "", expect!["gantry.json:1:1: not valid JSON: EOF while parsing a value"]);
    check_as(Format::Json, "{\"a\": 1} x", expect!["gantry.json:1:10: not valid JSON: trailing characters"]);
    check_as(
        Format::Json,
        "{\n\"a\": \"\\ud800\"}",
        expect!["gantry.json:2:6: not valid JSON: unexpected end of hex escape"],
    );
    check_as(
        Format::Json,
        "[]",
        expect!["gantry.json:1: the configuration must be a group of keys, found a list"],
    );
    check_as(
        Format::Toml,
        "[server]\nbind = \n",
        expect!["gantry.toml:2:8: not valid TOML: string values must be quoted, expected literal string"],
    );
    check_as(
        Format::Toml,
        "a = 1979-05-27\n",
        expect!["gantry.toml:1:5: dates and times have no meaning here; put it in quotes if it is text"],
    );
    check_as(
        Format::Toml,
        "a = inf\n",
        expect!["gantry.toml:1:5: number not finite; put it in quotes if it is text"],
    );
    check_as(
        Format::Toml,
        "a = 99999999999999999999\n",
        expect!["gantry.toml:1:5: number too large; put it in quotes if it is text"],
    );
}

#[test]
fn json_and_toml_point_at_the_line_of_the_key() {
    check_as(
        Format::Json,
        "{\n  \"defaults\": {\n    \"nope\":\n      1\n  },\n  \"models\": {}\n}",
        expect![[r#"
            gantry.json:3: unknown key "nope" in defaults; known keys are toolTimeout, toolResponseMaxBytes, maxDepth, contextBudgetTokens, outputRetentionMs, maxConcurrentCalls, mcpInitConcurrency, traceMCP
            gantry.json:6: models is not available in this version of Gantry; remove it"#]],
    );
    check_as(
        Format::Toml,
        "[defaults]\nnope = 1\n\n[models]\n\n[queues.q]\nmaxWaiting = 'x'\n",
        expect![[r#"
            gantry.toml:2: unknown key "nope" in defaults; known keys are toolTimeout, toolResponseMaxBytes, maxDepth, contextBudgetTokens, outputRetentionMs, maxConcurrentCalls, mcpInitConcurrency, traceMCP
            gantry.toml:4: models is not available in this version of Gantry; remove it
            gantry.toml:6: queues.q needs the key "concurrent"
            gantry.toml:7: queues.q.maxWaiting must be a whole number, found "x""#]],
    );
}

#[test]
fn what_a_variable_holds_is_not_quoted() {
    check(
        "web: { allow: ['${SECRET}/?', 'x${SECRET}://a', 'a ${SECRET}'] }\n\
         tools: { x: { kind: mcp, command: x, id: '${SECRET}' } }\n\
         policies:\n  - { name: '${SECRET}', tools: ['*'], decide: ask }\n  - { name: '${SECRET}', tools: ['*'], decide: ask }\n",
        expect![[r#"
            gantry.yaml:1: web.allow[0] must be an address whose path has neither ? nor # nor an encoded dot or slash, and * only at its end, found "${SECRET}/?"
            gantry.yaml:1: web.allow[1] must be an address with http:// or https://, or without a scheme, found "x${SECRET}://a"
            gantry.yaml:1: web.allow[2] must be an address with a host, such as example.com, *.example.com for all below it, or * for any, perhaps with :port, found "a ${SECRET}"
            gantry.yaml:2: tools.x.id must be "x", found "${SECRET}"
            gantry.yaml:5: policies[1].name: "${SECRET}" is already used on line 4; names are unique"#]],
    );
}
