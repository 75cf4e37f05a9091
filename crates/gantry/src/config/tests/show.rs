//! What `gantry config show` says, and what it never shows.

use super::Folder;
use crate::config::settings;
use expect_test::{Expect, expect};

/// The settings that stand in the files.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "an expectation is written at the call")]
fn check(files: &[(&str, &str)], expected: Expect) {
    let loaded = Folder::with(files).load();
    let written = settings(&loaded).into_iter().filter(|setting| setting.from.is_some());
    let lines: Vec<String> = written.map(|setting| format!("{} {}", setting.path, setting.value)).collect();
    let lines = lines.join("\n");
    assert!(!lines.contains("hunter2"), "{lines}");
    expected.assert_eq(&lines);
}

#[test]
fn what_the_schema_does_not_offer_is_masked() {
    check(
        &[(
            "gantry.json",
            r#"{ "inputs": [{ "id": "hunter2" }],
              "mcpServers": {
                "a": { "serverUrl": "https://a/?k=hunter2" }, "b": { "httpUrl": "https://a/?k=hunter2" },
                "c": { "endpoint": "https://a/?k=hunter2", "oauth": { "clientSecret": "hunter2", "list": [{ "x": "hunter2" }], "args": ["hunter2"] } },
                "d": { "command": "x", "healthCheck": { "path": "hunter2" }, "disabledTools": ["y"] } } }"#,
        )],
        expect![[r#"
            inputs[0].id "[secret]"
            mcpServers.a.serverUrl "[secret]"
            mcpServers.b.httpUrl "[secret]"
            mcpServers.c.endpoint "[secret]"
            mcpServers.c.oauth.clientSecret "[secret]"
            mcpServers.c.oauth.list[0].x "[secret]"
            mcpServers.c.oauth.args ["[secret]"]
            mcpServers.d.command "x"
            mcpServers.d.healthCheck.path "[secret]"
            mcpServers.d.disabledTools ["[secret]"]"#]],
    );
    check(
        &[(
            "gantry.yaml",
            "servers: { a: { url: 'https://a/?k=hunter2', env: {}, headers: { A: hunter2 } } }",
        )],
        expect![[r#"
            servers.a.url "[secret]"
            servers.a.env {}
            servers.a.headers.A "[secret]""#]],
    );
    check(
        &[(
            "gantry.yaml",
            "tools:\n  a: { kind: '${K:-mcp}', url: 'https://a/?k=hunter2' }\n  b: { kind: mcp, url: 'https://a/?k=hunter2', prefix: false }",
        )],
        expect![[r#"
            tools.a.kind "${K}"
            tools.a.url "[secret]"
            tools.b.kind "mcp"
            tools.b.url "[secret]"
            tools.b.prefix false"#]],
    );
}

#[test]
fn addresses_are_masked_and_what_a_model_reads_is_shown() {
    check(
        &[(
            "gantry.yaml",
            "approvals: { webhook: { url: 'https://a/hunter2', secret: '0123456789abcdef' } }\n\
             openapiSpecs: { p: { spec: 'https://a/?k=hunter2' } }\n\
             restTools:\n  w:\n    description: D\n    url: 'https://a/?k=hunter2'\n    bodyTemplate: { k: hunter2 }\n    \
             parametersSchema: { type: object, properties: { a: { type: string } }, required: [a] }\n",
        )],
        expect![[r#"
            approvals.webhook.url "[secret]"
            approvals.webhook.secret "[secret]"
            openapiSpecs.p.spec "[secret]"
            restTools.w.description "D"
            restTools.w.url "[secret]"
            restTools.w.bodyTemplate.k "[secret]"
            restTools.w.parametersSchema.type "object"
            restTools.w.parametersSchema.properties.a.type "string"
            restTools.w.parametersSchema.required ["a"]"#]],
    );
}

#[test]
fn an_argument_is_shown_unless_it_may_be_a_secret() {
    check(
        &[(
            "gantry.yaml",
            "mcpServers:\n  a: { command: npx, args: ['-y', '@modelcontextprotocol/server-filesystem', /srv/data] }\n  \
             b: { command: npx, args: [pkg, --api-key, hunter2, '--token=hunter2', -H, 'X: hunter2', 'postgres://u:hunter2@h/d'] }\n  \
             c: { command: npx, args: ['${A:-hunter2}', 'x${B:-hunter2}', sk-hunter2-0123456789abc, 'Bearer token hunter2', --key, hunter2] }\n",
        )],
        expect![[r#"
            mcpServers.a.command "npx"
            mcpServers.a.args ["-y","@modelcontextprotocol/server-filesystem","/srv/data"]
            mcpServers.b.command "npx"
            mcpServers.b.args ["pkg","[secret]","[secret]","[secret]","[secret]","[secret]","[secret]"]
            mcpServers.c.command "npx"
            mcpServers.c.args ["${A}","[secret]","[secret]","[secret]","[secret]","[secret]"]"#]],
    );
}

#[test]
fn a_project_shows_the_limits_that_it_inherits() {
    check(
        &[(
            "gantry.yaml",
            "defaults: { toolTimeout: 5 }\nprojects: { a: { workspace: ., defaults: { toolTimeout: 0, maxDepth: 3 } }, b: { workspace: . } }\n",
        )],
        expect![[r#"
            defaults.toolTimeout 5
            projects.a.workspace "."
            projects.a.defaults.maxDepth 3
            projects.a.defaults.toolTimeout 5
            projects.b.workspace "."
            projects.b.defaults.toolTimeout 5"#]],
    );
}

#[test]
fn agents_are_shown_from_their_files() {
    check(
        &[
            ("gantry.yaml", "{}"),
            ("agents/a.md", "---\nname: a\ntools: [x]\n---\nhi\n"),
            ("agents/b/agent.json", r#"{ "tools": { "use": ["x"] }, "guardrails": { "k": "hunter2" } }"#),
        ],
        expect![[r#"
            agents.a.name "a"
            agents.a.tools ["x"]
            agents.b.tools.use ["x"]
            agents.b.guardrails.k "[secret]""#]],
    );
}
