//! Agents as editors keep them: Markdown with front matter.

use expect_test::expect;

use super::{Folder, uses, values};
use crate::config::Loaded;
use gantry_runtime::options::AgentOptions;

#[track_caller]
fn load(text: &str) -> Loaded {
    Folder::with(&[("agents/reviewer.md", text)]).load()
}

#[track_caller]
fn agent(text: &str) -> AgentOptions {
    load(text).config.main().agents["reviewer"].clone()
}

#[track_caller]
fn refused(text: &str) -> String {
    Folder::with(&[("gantry.yaml", "{}"), ("agents/reviewer.md", text)]).refused()
}

#[test]
fn the_front_matter_says_who_it_is_and_the_text_is_the_prompt() {
    let text = "---\nname: reviewer\ndescription: Reviews ${CODE}\ntools: Read, mcp__github__search_code\nmodel: sonnet\n---\n\n\
                You review ${CODE}.\n\n---\nMore.\n";
    for text in [text.to_owned(), text.replace('\n', "\r\n"), format!("\u{feff}{text}")] {
        let agent = agent(&text);
        assert_eq!(agent.description.as_deref(), Some("Reviews ${CODE}"), "nothing is put in");
        assert_eq!(uses(&agent.selection), ["Read", "github__search_code"]);
        assert_eq!(agent.model.as_deref(), Some("sonnet"));
        let prompt = agent.prompt.unwrap().replace('\r', "");
        assert_eq!(prompt, "You review ${CODE}.\n\n---\nMore.");
    }
}

#[test]
fn the_name_is_that_of_the_file_or_the_one_it_says() {
    let loaded = load("---\nname: other\n---\n");
    assert_eq!(loaded.config.main().agents.keys().collect::<Vec<_>>(), ["other"]);
    let bare = agent("---\ndescription: x\n---");
    assert_eq!((uses(&bare.selection), bare.prompt), (vec!["*"], None));
    let shown = agent("---\nname: Code Reviewer\n---\n");
    assert_eq!(shown.description.as_deref(), Some("Code Reviewer"), "what is no name is for people");
    let twice = Folder::with(&[("agents/x.agent.md", "---\ntools: []\n---\n")]).load();
    assert_eq!(twice.config.main().agents.keys().collect::<Vec<_>>(), ["x"]);
}

#[test]
fn of_several_models_the_first_counts() {
    assert_eq!(agent("---\nname: x x\nmodel: [a, b]\n---\n").model.as_deref(), Some("a"));
}

#[test]
fn a_key_that_may_be_about_tools_is_refused() {
    let keys =
        ["allowed-tools", "Tools", "tool", "bannedTools", "deniedTools", "disallowedTools", "toolPolicies"];
    let more = ["tols", "permission", "permissions", "PERMISSION"];
    let refused = |key: &str| refused(&format!("---\nname: x\n{key}: {{ a: b }}\n---\n"));
    expect![[r#"
        agents/reviewer.md:3: "allowed-tools" is not read by Gantry; write the tools that it may use into "tools"
        agents/reviewer.md:3: unknown key "Tools"; did you mean "tools"?
        agents/reviewer.md:3: unknown key "tool"; did you mean "tools"?
        agents/reviewer.md:3: "bannedTools" is not read by Gantry; write the tools that it may use into "tools"
        agents/reviewer.md:3: "deniedTools" is not read by Gantry; write the tools that it may use into "tools"
        agents/reviewer.md:3: "disallowedTools" is not read by Gantry; write the tools that it may use into "tools"
        agents/reviewer.md:3: "toolPolicies" is not read by Gantry; write the tools that it may use into "tools"
        agents/reviewer.md:3: unknown key "tols"; did you mean "tools"?
        agents/reviewer.md:3: "permission" is not read by Gantry; write the tools that it may use into "tools"
        agents/reviewer.md:3: "permissions" is not read by Gantry; write the tools that it may use into "tools"
        agents/reviewer.md:3: "PERMISSION" is not read by Gantry; write the tools that it may use into "tools""#]]
        .assert_eq(&keys.iter().chain(&more).map(|key| refused(key)).collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_names_of_editors_are_those_of_gantry() {
    for (tools, expected) in [
        ("mcp__github", &["github__*"][..]),
        ("mcp__github__*", &["github__*"]),
        ("[Read, mcp__github__get_issue]", &["Read", "github__get_issue"]),
        ("\n  - a\n  - mcp__b__c", &["a", "b__c"]),
        ("'*'", &["*"]),
        ("a,,b , ", &["a", "b"]),
        ("[]", &[]),
        ("''", &[]),
        ("['github/*', 'github/search']", &["github__*", "github__search"]),
        ("['@github/x', a/b/c, /x, x/, 'a/@b']", &["@github/x", "a/b/c", "/x", "x/", "a/@b"]),
    ] {
        assert_eq!(uses(&agent(&format!("---\ntools: {tools}\n---\n")).selection), expected, "{tools}");
    }
    let group = agent(
        "---\ntools: { use: [mcp__github], allowed: [mcp__github__x], aliases: { y: mcp__github__x } }\n---\n",
    );
    assert_eq!(uses(&group.selection), ["github__*"]);
    assert_eq!(values(group.selection.allowed.as_deref().unwrap()), ["github__x"]);
    assert_eq!(&*group.selection.aliases["y"], "github__x");
}

#[test]
fn the_names_of_servers_that_there_are_stay() {
    let page = ("agents/a.md", "---\ntools: { use: [mcp__search, a/b, c/d] }\n---\n");
    let used = |files: &[(&str, &str)]| {
        uses(&Folder::with(files).load().config.main().agents["a"].selection).join(" ")
    };
    assert_eq!(used(&[page]), "search__* a__b c__d");
    let servers = ("gantry.yaml", "mcpServers: { mcp: { command: x }, a/b: { command: x } }");
    assert_eq!(used(&[page, servers]), "mcp__search a/b c__d");
    let tool = ("tools/mcp/tool.json", r#"{ "kind": "mcp", "command": "x" }"#);
    assert_eq!(used(&[page, tool]), "mcp__search a__b c__d");
}

#[test]
fn what_editors_add_is_named_in_a_warning() {
    let loaded = load(
        "---\ndescription: x\ncolor: red\npermissionMode: plan\ntools: Read, Bash(git diff:*)\nhooks: { a: [b] }\n---\n",
    );
    assert_eq!(uses(&loaded.config.main().agents["reviewer"].selection), ["Read"]);
    expect![[r#"
        agents/reviewer.md:5: tools: "Bash(git diff:*)" names no tool of Gantry's; it is left out
        agents/reviewer.md:3: color has no effect; it is for editors
        agents/reviewer.md:4: permissionMode has no effect; nothing is restricted by it
        agents/reviewer.md:6: hooks has no effect; it is for editors"#]]
    .assert_eq(&loaded.warnings.join("\n"));
}

#[test]
fn a_description_with_a_colon_is_taken_as_editors_take_it() {
    let text = "---\ndescription: Use it when: <example>Context: \"a\" # b</example>\ntools: Read\n---\n";
    assert_eq!(
        agent(text).description.as_deref(),
        Some("Use it when: <example>Context: \"a\" # b</example>")
    );
}

#[test]
fn a_text_without_front_matter_is_no_agent() {
    for text in ["", "# Reviewer\n", "\n---\nname: x\n---\n", "----\n", "text\n---\n---\n"] {
        let loaded = load(text);
        assert!(loaded.config.main().agents.is_empty() && loaded.warnings.is_empty(), "{text:?}");
    }
}

#[test]
fn wrong_front_matter_is_refused_at_its_line() {
    let all = [
        "---\nname: x\n",
        "---\nname: ''\n---\n",
        "---\ndescription: Use when: x\ntools: [a\n---\n",
        "---\nname: x\nmodel: 'a\ndescription: fine\n---\n",
        "---\nname: x\ntools:\n---\n",
        "---\ndescription: a\ntools: [a\n---\n",
        "---\njust text\n---\n",
        "---\ntools: { write: false }\n---\n",
        "---\ntools: Read\ndisallowedTools: Write\n---\n",
        "---\nname: x\nname: y\n---\n",
        "---\ndescription: 5\n---\n",
    ];
    expect![[r#"
        agents/reviewer.md:1:1: the front matter that begins here does not end; end it with a line ---
        agents/reviewer.md:2: name must be text of 1 to 100 characters, found ""
        agents/reviewer.md:3:8: not valid YAML: unclosed bracket '['
        agents/reviewer.md:4:1: not valid YAML: invalid indentation in multiline quoted scalar
        agents/reviewer.md:3: tools must be a list of tool names and globs, or a group with use, allowed, aliases, autoApprove, found nothing
        agents/reviewer.md:3:8: not valid YAML: unclosed bracket '['
        agents/reviewer.md:2: this agent must be a group of keys, found text
        agents/reviewer.md:2: tools needs the key "use"
        agents/reviewer.md:2: unknown key "write" in tools; known keys are use, allowed, aliases, autoApprove
        agents/reviewer.md:3: "disallowedTools" is not read by Gantry; write the tools that it may use into "tools"
        agents/reviewer.md:3: key "name" is already on line 2; keep one
        agents/reviewer.md:2: description must be text, found 5"#]].assert_eq(&all.map(refused).join("\n"));
}
