//! What is refused, in which words, and at which line.

use expect_test::{Expect, expect};

use super::load;
use crate::config::tree::Format;

#[track_caller]
fn check(text: &str, expected: Expect) {
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
        "tools:\n  workspace:\n    chache: 5\npolices: []\nserver:\n  port: 1\ndefaults: { tool_timeout: 1 }\nmcpServer: {}\n",
        expect![[""]],
    );
}

#[test]
fn all_problems_come_together_in_the_order_of_lines() {
    check(
        "workspace: 5\nserver: { bind: localhost }\ndefaults:\n  toolTimeout: soon\n  maxDepth: -1\nqueues:\n  q: {}\nnope: 1\n",
        expect![[""]],
    );
}

#[test]
fn keys_of_later_versions_are_refused_by_name() {
    check(
        "mcpServers: { github: { env: { T: '${UNSET}' } } }\nrestTools: {}\nopenapiSpecs: {}\nmodels: {}\ncode: {}\nweb: {}\nauth: {}\nprojects: {}\n\
         approvals: { approvalTimeoutMs: 1, delivery: auto }\ndefaults: { mcpInitConcurrency: 8, traceMCP: true }\n\
         tools: { files: { kind: builtin }, workspace: { builtinPolicy: {}, kind: mcp } }\n\
         agents: { a: { model: main, prompt: x, surface: auto, router: {} } }\nstore: { url: 'postgres://h/db' }\n\
         queues: { q: { concurrent: 1, scope: cluster } }\n",
        expect![[""]],
    );
}

#[test]
fn types_are_not_guessed() {
    check(
        "workspace: [a]\nserver: nothing\ndefaults:\n  toolTimeout: '60000'\n  maxDepth: 1.5\n  toolResponseMaxBytes: true\n  maxConcurrentCalls:\n\
         queues: []\ntools:\n  workspace:\n    enabled: yes\n    toolsAllowed: read_file\n    toolsDenied: [1, a b, '']\n    toolsCache: 5\n\
         agents:\n  a:\n    tools:\npolicies:\napprovals:\n  requiresApprovalTools: read_file\n",
        expect![[""]],
    );
}

#[test]
fn numbers_have_bounds() {
    check(
        "defaults:\n  toolTimeout: 86400001\n  contextBudgetTokens: 0\n  outputRetentionMs: 99999999999999999999999\n  maxDepth: -0.0\n\
         queues:\n  q: { concurrent: 0, maxWaiting: 100001 }\n",
        expect![[""]],
    );
}

#[test]
fn queues_must_exist() {
    check(
        "queues: { disk: { concurrent: 1 }, net: { concurrent: 1 } }\ntools:\n  workspace:\n    queue: dsik\n    toolsQueue:\n      a: gpu\n      b: 5\n",
        expect![[""]],
    );
    check("tools: { workspace: { queue: disk } }", expect![[""]]);
}

#[test]
fn names_have_a_form() {
    check(
        "queues: { 'my queue': { concurrent: 1 } }\nagents:\n  a/b: {}\n  '': {}\n  ok_1-2: {}\npolicies: [{ name: 'ä', tools: [x], decide: deny }]\n",
        expect![[""]],
    );
}

#[test]
fn hosts_and_origins_are_exact() {
    check(
        "server:\n  allowedHosts: ['*', 'a:80', 'http://a', '', '[::1]', a.b]\n  allowedOrigins: ['*', 'null', 'https://a/', 'https://*.a', 'http://[::1]:80', 'https://a:99999']\n",
        expect![[""]],
    );
}

#[test]
fn policies_are_complete_and_unique() {
    check(
        "policies:\n  - name: a\n    tools: []\n    decide: allow\n  - name: a\n    tools: [x]\n    decide: deny\n    when: ' '\n\
         \x20   examples: { deny: [1], allow: [] }\n  - {}\n  - text\n",
        expect![[""]],
    );
}

#[test]
fn duplicate_keys_are_refused() {
    let (yaml, json, toml) = (
        "server:\n  bind: 127.0.0.1:1\n  bind: 127.0.0.1:2\npolicies: [{ name: a, name: b, tools: [x], decide: deny }]\n",
        "{\n\"server\": {},\n\"server\": {}}",
        "[server]\nbind = '127.0.0.1:1'\nbind = '127.0.0.1:2'\n",
    );
    check(yaml, expect![[""]]);
    check_as(Format::Json, json, expect![[""]]);
    check_as(Format::Toml, toml, expect![[""]]);
}

#[test]
fn unset_variables_say_what_to_do() {
    check(
        "server:\n  bind: ${ADDRESS}\npolicies: [{ name: p, tools: [a], decide: deny, examples: { deny: [{ x: ['${ARG}'] }] } }]\n",
        expect![[""]],
    );
}

#[test]
fn values_of_variables_are_not_shown() {
    check(
        "server: { bind: '${SECRET}' }\ndefaults: { toolTimeout: '${SECRET}' }\ntools: { workspace: { queue: '${SECRET}', enabled: '${SECRET}' } }\n\
         policies: [{ name: '${SECRET} ', tools: [a], decide: '${SECRET}' }]\n",
        expect![[""]],
    );
}

#[test]
fn syntax_errors_have_line_and_column() {
    check("server:\n  bind: [1\n", expect![[""]]);
    check("a: b: c\n", expect![[""]]);
    check("a:\n\t- b\n", expect![[""]]);
    check("server: {}\n---\nserver: {}\n", expect![[""]]);
    check("a: !secret x\n", expect![[""]]);
    check("a: &a\n  <<: {}\n", expect![[""]]);
    check("? [a]\n: b\n", expect![[""]]);
    check("a: *missing\n", expect![[""]]);
    check("a: &x [*x]\n", expect![[""]]);
    check("just text\n", expect![[""]]);
    check_as(Format::Json, "{\n  \"server\": {,}\n}", expect![[""]]);
    check_as(Format::Json, "", expect![[""]]);
    check_as(Format::Json, "{\"a\": 1} x", expect![[""]]);
    check_as(Format::Json, "{\n\"a\": \"\\ud800\"}", expect![[""]]);
    check_as(Format::Json, "[]", expect![[""]]);
    check_as(Format::Toml, "[server]\nbind = \n", expect![[""]]);
    check_as(Format::Toml, "a = 1979-05-27\n", expect![[""]]);
    check_as(Format::Toml, "a = inf\n", expect![[""]]);
    check_as(Format::Toml, "a = 99999999999999999999\n", expect![[""]]);
}

#[test]
fn json_and_toml_point_at_the_line_of_the_key() {
    check_as(
        Format::Json,
        "{\n  \"defaults\": {\n    \"nope\":\n      1\n  },\n  \"models\": {}\n}",
        expect![[""]],
    );
    check_as(
        Format::Toml,
        "[defaults]\nnope = 1\n\n[models]\n\n[queues.q]\nmaxWaiting = 'x'\n",
        expect![[""]],
    );
}
