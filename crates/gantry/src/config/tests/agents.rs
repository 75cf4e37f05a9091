//! Agents in the configuration and in `agent.json`: their tools, other names for them, and what has no effect.

use std::fs;

use expect_test::expect;

use super::{Folder, env, load, uses, values, yaml};
use crate::config::Config;
use crate::config::document::Format;
use gantry_core::toolset::ToolSelector;
use gantry_runtime::options::AgentOptions;

#[track_caller]
fn agent(entry: &str) -> AgentOptions {
    yaml(&format!("agents: {{ a: {entry} }}")).main().agents["a"].clone()
}

#[test]
fn a_list_names_tools_and_a_group_may_name_providers() {
    let list = agent("{ tools: [github, '@ns/tool'] }").selection;
    assert_eq!(uses(&list), ["github", "@ns/tool"]);
    assert!(list.include.iter().all(|entry| matches!(entry, ToolSelector::Tools(_))));
    assert!(list.allowed.is_none() && list.aliases.is_empty() && list.auto_approve.is_empty());
    let group = agent(
        "{ description: d, model: m, prompt: p, tools: { use: [GitHub remote, 'read_*'], allowed: [read], \
         aliases: { read: '@workspace/read_file' }, autoApprove: ['read*'] } }",
    );
    let selection = &group.selection;
    assert_eq!(uses(selection), ["GitHub remote", "read_*"]);
    assert!(selection.include.iter().all(|entry| matches!(entry, ToolSelector::ProviderOrTools(_))));
    assert_eq!(values(selection.allowed.as_deref().unwrap()), ["read"]);
    assert_eq!(&*selection.aliases["read"], "@workspace/read_file");
    assert_eq!(values(&selection.auto_approve), ["read*"]);
    let texts = [group.description, group.model, group.prompt].map(Option::unwrap_or_default);
    assert_eq!(texts, ["d", "m", "p"]);
}

#[test]
fn a_group_says_what_is_used_and_an_empty_list_is_none() {
    assert!(agent("{ tools: { use: [] } }").selection.include.is_empty());
    let folder = Folder::with(&[
        ("gantry.yaml", "agents:\n  a: { tools: {} }\n  b: { tools: { allowed: [x] } }\n"),
        ("agents/c/agent.json", r#"{ "tools": { "aliases": { "x": "y" } } }"#),
        ("agents/d.md", "---\nname: d\ntools: { available: [x] }\n---\n"),
    ]);
    expect![[r#"
        agents/c/agent.json:1: tools needs the key "use"
        agents/d.md:3: tools needs the key "use"
        gantry.yaml:2: agents.a.tools needs the key "use"
        gantry.yaml:3: agents.b.tools needs the key "use""#]]
    .assert_eq(&folder.refused());
}

#[test]
fn nothing_allowed_and_everything_allowed_is_all_of_use() {
    for allowed in ["", ", allowed: []", ", allowed: ['*']", ", allowed: [x, '*']"] {
        let selection = agent(&format!("{{ tools: {{ use: [x]{allowed} }} }}")).selection;
        assert_eq!(selection.allowed, None, "{allowed}");
    }
}

#[test]
fn bad_agents_are_refused_at_their_line() {
    let text = "agents:\n  a:\n    tools:\n      use: github\n      allow: [x]\n      aliases: { 'a b': x, c: 'x*', d: 5 }\n      \
                autoApprove: [1]\n  b: { tools: read_file }\n  c: { tools: { use: ['a!b c'] } }\n  d: { name: x }\n";
    let error = load(Format::Yaml, text).unwrap_err();
    expect![[r#"
        gantry.yaml:4: agents.a.tools.use must be a list, such as [a, b], or [] for none, found text
        gantry.yaml:5: unknown key "allow" in agents.a.tools; known keys are use, allowed, aliases, autoApprove
        gantry.yaml:6: "a b" in agents.a.tools.aliases must be a name of 1 to 64 letters, digits, _ and -
        gantry.yaml:6: agents.a.tools.aliases.c must be the name of a tool, found "x*"
        gantry.yaml:6: agents.a.tools.aliases.d must be the name of a tool, found 5
        gantry.yaml:7: agents.a.tools.autoApprove[0] must be the name of a tool or a glob, found 1
        gantry.yaml:8: agents.b.tools must be a list of tool names and globs, or a group with use, allowed, aliases, autoApprove, found "read_file"
        gantry.yaml:9: agents.c.tools.use[0] must be the name of a tool, a glob, or the id of a provider, found "a!b c"
        gantry.yaml:10: unknown key "name" in agents.d; known keys are description, tools, model, prompt"#]].assert_eq(&error.to_string());
}

#[test]
fn what_others_keep_about_agents_is_named_in_a_warning() {
    let text = "agents:\n  a:\n    guardrails: { maxTokens: 5 }\n    memory: { x: '${NONE}' }\n    limits: 5\n    \
                router: {}\n    surface: auto\n";
    let folder = Folder::with(&[("gantry.yaml", text)]);
    expect![[r#"
        gantry.yaml:3: agents.a.guardrails has no effect; this version of Gantry does not read it
        gantry.yaml:4: agents.a.memory has no effect; this version of Gantry does not read it
        gantry.yaml:5: agents.a.limits has no effect; this version of Gantry does not read it
        gantry.yaml:6: agents.a.router has no effect; this version of Gantry does not read it
        gantry.yaml:7: agents.a.surface has no effect; this version of Gantry does not read it"#]]
    .assert_eq(&folder.load().warnings.join("\n"));
}

const AGENT: &str = r#"{
  "$schema": "x",
  "name": "The researcher",
  "description": "${SECRET}",
  "prompt": "Read ${SECRET} and ${NONE}.",
  "model": "m",
  "region": "us-east-1",
  "ui": { "color": "red" },
  "guardrails": {},
  "tools": { "use": ["files"], "allowed": ["read"], "aliases": { "read": "@files/read_file" } }
}"#;

#[test]
fn an_agent_may_have_a_file() {
    let folder = Folder::with(&[("agents/researcher/agent.json", AGENT), ("agents/other/notes.txt", "")]);
    let loaded = Config::load(&folder.source(), &env()).unwrap();
    let agent = &loaded.config.main().agents["researcher"];
    assert_eq!(agent.description.as_deref(), Some("hunter2"), "variables are put in");
    assert_eq!(agent.prompt.as_deref(), Some("Read ${SECRET} and ${NONE}."), "but not into a prompt");
    assert_eq!(agent.model.as_deref(), Some("m"));
    assert_eq!(uses(&agent.selection), ["files"]);
    assert_eq!(
        loaded.locate("default", &["agents", "researcher", "tools", "aliases", "read"]).to_string(),
        "agents/researcher/agent.json:10"
    );
    assert_eq!(loaded.config.main().agents.len(), 1);
    expect![[r#"
        agents/researcher/agent.json:7: region has no effect; this version of Gantry does not read it
        agents/researcher/agent.json:8: ui has no effect; this version of Gantry does not read it
        agents/researcher/agent.json:9: guardrails has no effect; this version of Gantry does not read it"#]]
    .assert_eq(&loaded.warnings.join("\n"));
}

#[test]
fn the_keys_of_other_programs_are_read_as_what_they_mean() {
    let text = r#"{ "name": "R", "prompt": "P", "icon": "x", "skills": [], "prompts": {}, "commands": [], "streaming": true,
        "maxSteps": 5, "tools": { "mcpServers": ["github"], "available": ["github__x"], "autoApprove": ["*"] } }"#;
    let loaded = Folder::with(&[("gantry.yaml", "{}"), ("agents/r/agent.json", text)]).load();
    let agent = &loaded.config.main().agents["r"];
    assert_eq!(uses(&agent.selection), ["github"]);
    assert_eq!(values(agent.selection.allowed.as_deref().unwrap()), ["github__x"]);
    expect![[r#"
        agents/r/agent.json:1: icon has no effect; this version of Gantry does not read it
        agents/r/agent.json:1: skills has no effect; this version of Gantry does not read it
        agents/r/agent.json:1: prompts has no effect; this version of Gantry does not read it
        agents/r/agent.json:1: commands has no effect; this version of Gantry does not read it
        agents/r/agent.json:1: streaming has no effect; this version of Gantry does not read it
        agents/r/agent.json:2: maxSteps has no effect; this version of Gantry does not read it"#]]
    .assert_eq(&loaded.warnings.join("\n"));
    let both = r#"{ "tools": { "mcpServers": ["a"], "use": ["b"] } }"#;
    expect![[r#"agents/r/agent.json:1: tools has "use" in two spellings; keep one"#]]
        .assert_eq(&Folder::with(&[("gantry.yaml", "{}"), ("agents/r/agent.json", both)]).refused());
}

#[test]
fn without_a_configuration_what_cannot_be_used_is_left_out() {
    let files = [
        ("agents/bad/agent.json", "{\n\"tols\": [],\n\"other\": 1 }"),
        ("agents/bad.md", "---\nname: bad\ntools: Read\n---\n"),
        ("agents/broken.md", "---\nname: [\n---\n"),
        ("agents/good.md", "---\nname: good\n---\n"),
        ("agents/unset/agent.json", "{ \"description\": \"${NONE}\" }"),
        ("tools/build/tool.json", "{ \"scripts\": {} }"),
        ("tools/workspace/tool.json", "{ \"kind\": \"mcp\", \"command\": \"x\" }"),
        ("tools/good/tool.json", "{ \"kind\": \"mcp\", \"command\": \"x\" }"),
    ];
    let folder = Folder::with(&files);
    let loaded = folder.load();
    let main = loaded.config.main();
    assert_eq!(main.agents.keys().collect::<Vec<_>>(), ["bad", "good"]);
    assert_eq!(uses(&main.agents["bad"].selection), ["Read"], "the one that can be used has the name");
    assert_eq!(main.mcp_servers.keys().map(|id| &**id).collect::<Vec<_>>(), ["good"]);
    expect![[r#"
        tools/build/tool.json:1: left out: this tool needs the key "kind": mcp or builtin
        tools/workspace/tool.json:1: left out: "workspace" is a name of Gantry's own; rename its folder; Gantry's own tools are set up under "tools" in the configuration
        agents/bad/agent.json:2: left out: unknown key "tols"; did you mean "tools"? (and 1 more)
        agents/broken.md:2:7: left out: not valid YAML: unclosed bracket '['
        agents/unset/agent.json:1: left out: description: ${NONE} is not set; set it in the environment or in .env, or write ${NONE:-default}"#]].assert_eq(&loaded.warnings.join("\n"));
    folder.write("gantry.yaml", "{}");
    assert_eq!(folder.refused().lines().count(), 6, "{}", folder.refused());
}

#[test]
fn many_warnings_are_counted() {
    let folder = Folder::with(&[]);
    for n in 0..103 {
        folder.write(&format!("agents/a{n}.md"), "---\ntitle: x\n---\n");
    }
    let warnings = folder.load().warnings;
    assert_eq!(warnings.len(), 101);
    assert_eq!(warnings[100], "and 3 more warnings about the configuration");
}

#[test]
fn all_problems_of_all_files_come_together() {
    let folder = Folder::with(&[
        ("in/gantry.yaml", "nope: 1\nagents: { twice: {} }\n"),
        ("in/agents/a/agent.json", "{\n\"tols\": [],\n\"name\": \"\",\n\"tools\": 5, \"tools\": []\n}"),
        ("in/agents/b/agent.json", "{\n\"prompt\": \"${NONE}\", }"),
        ("in/agents/c/agent.json", "[]"),
        ("in/agents/d/agent.json", "{ \"model\": \"${NONE}\" }"),
        ("in/agents/e e.md", "---\nname: E e\n---\n"),
        ("in/agents/twice/agent.json", "{}"),
        ("in/agents/twice.md", "---\ntools: []\n---\n"),
        ("in/agents/large.md", &"-".repeat((1 << 20) + 1)),
        ("in/tools/t/tool.json", "{}"),
    ]);
    fs::write(folder.path("in/agents/binary.md"), b"---\n\xff").unwrap();
    let source = crate::config::Source { config: Some("in/gantry.yaml".into()), ..folder.source() };
    let error = Config::load(&source, &env()).unwrap_err();
    expect![[r#"
        in/agents/a/agent.json:2: unknown key "tols"; did you mean "tools"?
        in/agents/a/agent.json:3: name must be text of 1 to 100 characters, found ""
        in/agents/a/agent.json:4: key "tools" is already on line 4; keep one
        in/agents/a/agent.json:4: tools must be a list of tool names and globs, or a group with use, allowed, aliases, autoApprove, found 5
        in/agents/b/agent.json:2:22: not valid JSON: key must be a string
        in/agents/binary.md:2: not UTF-8 text; save the file as UTF-8
        in/agents/c/agent.json:1: this agent must be a group of keys, found a list
        in/agents/d/agent.json:1: model: ${NONE} is not set; set it in the environment or in .env, or write ${NONE:-default}
        in/agents/e e.md:2: the agent would be called "e e", which is not a name of 1 to 64 letters, digits, _ and -; rename the file, or write such a "name" into its front matter
        in/agents/large.md: the file is larger than 1 MiB, which no configuration needs
        in/agents/twice/agent.json:1: the agent "twice" is already at in/gantry.yaml:2; keep one
        in/agents/twice.md:1: the agent "twice" is already at in/gantry.yaml:2; keep one
        in/gantry.yaml:1: unknown key "nope"; known keys are server, queues, store, projects, workspace, defaults, tools, mcpServers, restTools, openapiSpecs, agents, approvals, policies, code, web, git, search
        in/tools/t/tool.json:1: this tool needs the key "kind": mcp or builtin"#]].assert_eq(&error.to_string());
}

#[test]
fn what_looks_like_an_agent_and_is_not_read_is_named() {
    let folder = Folder::with(&[
        ("agents/.hidden.md", "---\n---\n"),
        ("agents/.DS_Store", ""),
        ("agents/notes.txt", "---\n---\n"),
        ("agents/README.md", "# About the agents\n"),
        ("agents/page.md", "---\ntitle: About\nallowed-tools: Read\n---\n"),
        ("agents/empty.md", "---\n---\n"),
        ("agents/with space/agent.json", "{}"),
        ("agents/folder.md/inside", ""),
        ("agents/odd/agent.json/inside", ""),
        ("elsewhere/linked/agent.json", "{}"),
        ("elsewhere/text", "---\nname: by-link\n---\n"),
    ]);
    for (from, to) in
        [("../elsewhere/linked", "linked"), ("../elsewhere/text", "text.md"), ("gone", "gone.md")]
    {
        std::os::unix::fs::symlink(from, folder.path("agents").join(to)).unwrap();
    }
    let loaded = folder.load();
    assert_eq!(loaded.config.main().agents.keys().collect::<Vec<_>>(), ["by-link"]);
    assert!(
        loaded.protected_paths(&loaded.config.store).read_only.contains(&folder.path("agents/text.md")),
        "what it leads to is fenced off too, wherever a path is followed"
    );
    expect![[r#"
        agents/.hidden.md: not read, because hidden files are not; rename it
        agents/folder.md: not read, because this is not a file; remove it
        agents/gone.md: not read, because this is not a file; remove it
        agents/linked/agent.json: not read, because a link to a folder is not followed; put the folder there
        agents/odd/agent.json: not read, because this is not a file; remove it
        agents/with space/agent.json: not read, because the name of its folder is not a name of 1 to 64 letters, digits, _ and -; rename it
        agents/empty.md: not read, because its front matter has none of name, description and tools
        agents/page.md: not read, because its front matter has none of name, description and tools"#]].assert_eq(&loaded.warnings.join("\n"));
    let folder = Folder::with(&[("elsewhere/a.md", "---\n---\n")]);
    std::os::unix::fs::symlink("elsewhere", folder.path("agents")).unwrap();
    let loaded = folder.load();
    assert!(loaded.config.main().agents.is_empty());
    expect!["agents: not read, because a link to a folder is not followed; put the folder there"]
        .assert_eq(&loaded.warnings.join("\n"));
}

#[test]
fn too_many_files_are_refused() {
    let folder = Folder::with(&[("gantry.yaml", "{}")]);
    for n in 0..=1000 {
        folder.write(&format!("agents/a{n}.md"), "---\ntools: []\n---\n");
    }
    expect!["agents: there are more than 1000 agents here; move some away"].assert_eq(&folder.refused());
    fs::remove_file(folder.path("agents/a1000.md")).unwrap();
    assert_eq!(folder.load().config.main().agents.len(), 1000);
}

#[test]
fn loading_again_gives_the_same() {
    let folder =
        Folder::with(&[("gantry.yaml", "agents: { a: {} }"), ("agents/b.md", "---\ntools: []\n---\n")]);
    assert_eq!(folder.load(), folder.load());
}
