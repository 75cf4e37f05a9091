//! Mistakes about agents and tools, each with its file and its line. One in the configuration itself stops everything; a
//! file that defines one agent or one tool is left out, and the rest works.

use super::{Site, path};
use crate::results::mcp_tools;
use gantry_testkit::{CommandOutput, TestDir};
use serde_json::json;

/// A home with these files.
fn home(files: &[(&str, &str)]) -> TestDir {
    let home = TestDir::new();
    for (name, content) in files {
        home.write(name, content);
    }
    home
}

/// That nothing runs with this configuration, and that it is said why.
#[track_caller]
fn refused(home: &TestDir, expected: &str) {
    let held = |ran: &CommandOutput, args: &[&str]| {
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{args:?}: {expected}\n{}", ran.stderr);
    };
    for args in [
        &["tools"][..],
        &["call", "read_file", "{}"],
        &["agents"],
        &["serve", "--bind", "127.0.0.1:0"],
        &["mcp"],
    ] {
        held(&home.run(args), args);
    }
    let doctor = home.run(["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains(expected), "{doctor:?}");
}

/// That a file is left out, that this is said wherever a person looks, and that an agent beside it works.
#[track_caller]
fn left_out(home: TestDir, place: &str, why: &str) -> Site {
    home.write("agents/beside.md", "---\ntools: list_directory\n---\n");
    let site = Site::at(home);
    let is_said = |text: &str| text.lines().any(|line| line.contains(place) && line.contains(why));
    assert!(is_said(&site.server.stderr()), "{place} {why}: {}", site.server.stderr());
    let (tools, doctor) = (site.home.run(["tools"]), site.home.run(["doctor"]));
    assert!(tools.code == 0 && is_said(&tools.stderr), "{place} {why}: {tools:?}");
    assert!(is_said(&doctor.stdout), "{place} {why}: {doctor:?}");
    assert_eq!(site.tools("beside"), ["list_directory"]);
    site.result("beside", "list_directory", &json!({ "path": "." }));
    site
}

/// That there is no such agent, by any door.
#[track_caller]
fn no_agent(site: &Site, agent: &str) {
    let call = site.post(agent, "list_directory", &json!({ "path": "." }));
    assert_eq!((call.status, &call.json()["error"]["code"]), (403, &json!("PERMISSION_DENIED")), "{call:?}");
    assert_eq!(site.server.get(&format!("/api/v1/tools?agent={agent}")).status, 403);
    assert_eq!(mcp_tools(&site.server, &path(agent)), [""; 0]);
    assert_eq!(site.home.run(["tools", "--agent", agent]).code, 2);
}

#[test]
fn pol_6_a_mistake_about_an_agent_in_the_configuration_is_refused_at_its_line() {
    for (content, expected) in [
        (
            "agents:\n  a:\n    tools:\n      use: [read_file]\n      allow: [read_file]\n",
            "gantry.yaml:5: unknown key \"allow\" in agents.a.tools; known keys are use, allowed, aliases, autoApprove",
        ),
        (
            "agents:\n  a: { tols: [] }\n",
            "gantry.yaml:2: unknown key \"tols\" in agents.a; did you mean \"tools\"?",
        ),
        (
            "agents:\n  a: { tools: { use: [\"*\"], aliases: { read: \"read_*\" } } }\n",
            "gantry.yaml:2: agents.a.tools.aliases.read must be the name of a tool, found \"read_*\"",
        ),
        (
            "tools:\n  files: { command: x }\n",
            "gantry.yaml:2: tools.files needs the key \"kind\": mcp or builtin",
        ),
    ] {
        refused(&home(&[("gantry.yaml", content)]), expected);
    }
}

#[test]
fn pol_6_a_mistake_in_an_agents_file_leaves_that_agent_out_and_names_its_line() {
    for (file, content, (line, why)) in [
        (
            "agents/a/agent.json",
            "{\n  \"prompt\": \"x\",\n  \"tols\": { \"use\": [] }\n}\n",
            (3, "unknown key \"tols\"; did you mean \"tools\"?"),
        ),
        (
            "agents/a/agent.json",
            "{\n  \"tools\": { \"use\": [\"*\"], \"aliases\": {\n    \"read\": \"read_*\" } } }\n",
            (3, "tools.aliases.read must be the name of a tool, found \"read_*\""),
        ),
        ("agents/a/agent.json", "{\n  \"tools\": [,] }\n", (2, "not valid JSON")),
        (
            "agents/a.md",
            "---\nname: a\ntools: { write: false }\n---\n",
            (3, "tools needs the key \"use\" (and 1 more)"),
        ),
        ("agents/a.md", "---\nname: a\n", (1, "the front matter that begins here does not end")),
        (
            "agents/a.md",
            "---\ntools: Read\ndisallowedTools: Write\n---\n",
            (3, "\"disallowedTools\" is not read by Gantry"),
        ),
        (
            "agents/a.md",
            "---\nname: a\ntols: Read\n---\n",
            (3, "unknown key \"tols\"; did you mean \"tools\"?"),
        ),
    ] {
        let site = left_out(home(&[(file, content)]), &format!("{file}:{line}:"), why);
        no_agent(&site, "a");
    }
}

#[test]
fn pol_6_a_mistake_in_a_tools_file_leaves_that_tool_out_and_names_its_line() {
    for (content, (line, why)) in [
        (
            "{ \"kind\": \"builtin\",\n  \"builtinPolicy\": { \"name\": \"fs_read\",\n  \"allowedPaths\": [\"../elsewhere\"] } }",
            (3, "builtinPolicy.allowedPaths[0]: \"../elsewhere\" is outside of the workspace"),
        ),
        ("{ \"command\": \"x\" }", (1, "this tool needs the key \"kind\": mcp or builtin")),
        (
            "{ \"kind\": \"mcp\",\n  \"id\": \"other\", \"command\": \"x\" }",
            (2, "id must be \"files\", found \"other\""),
        ),
        (
            "{ \"kind\": \"mcp\", \"command\": \"x\",\n  \"builtinPolicy\": { \"name\": \"fs_read\" } }",
            (2, "unknown key \"builtinPolicy\""),
        ),
        (
            "{ \"kind\": \"builtin\", \"builtinPolicy\": { \"name\": \"shell_exec\" } }",
            (1, "builtinPolicy needs the key \"allowedCommands\""),
        ),
    ] {
        let home = home(&[
            ("tools/files/tool.json", content),
            ("agents/a.md", "---\ntools: { use: [files, read_file] }\n---\n"),
        ]);
        let site = left_out(home, &format!("tools/files/tool.json:{line}:"), why);
        assert_eq!(site.tools("a"), ["read_file"], "who uses it has the rest");
        site.not_found("a", "files__read_file", &json!({ "path": "a" }));
    }
}

#[test]
fn pol_6_an_agent_in_the_configuration_and_in_a_file_is_refused_and_both_places_are_named() {
    let yaml = "agents:\n  a: {}\n";
    for (file, content, line) in
        [("agents/a/agent.json", "{}", 1), ("agents/other.md", "---\nname: a\n---\n", 2)]
    {
        let expected = format!("{file}:{line}: the agent \"a\" is already at gantry.yaml:2; keep one");
        refused(&home(&[("gantry.yaml", yaml), (file, content)]), &expected);
    }
}

#[test]
fn pol_6_an_agent_in_two_files_is_the_first_one_and_both_places_are_named() {
    let files = home(&[
        ("agents/a/agent.json", "{ \"tools\": [\"read_file\"] }"),
        ("agents/a.md", "---\nname: a\ntools: write_file\n---\n"),
    ]);
    let site =
        left_out(files, "agents/a.md:2:", "the agent \"a\" is already at agents/a/agent.json:1; keep one");
    assert_eq!(site.tools("a"), ["read_file"], "never what both have together");
    site.not_found("a", "write_file", &json!({ "path": "x", "content": "" }));
}

#[test]
fn pol_6_the_same_tool_id_twice_is_refused_and_both_places_are_named() {
    let tool = r#"{ "kind": "mcp", "command": "x" }"#;
    refused(
        &home(&[("gantry.yaml", "mcpServers: { a: { command: x } }\n"), ("tools/a/tool.json", tool)]),
        "tools/a/tool.json:1: the id \"a\" is already taken at gantry.yaml:1, in mcpServers; choose another",
    );
}

#[test]
fn pol_6_every_mistake_of_every_file_is_reported_at_once() {
    let home = home(&[
        ("gantry.yaml", "agents: { a: { tols: [] } }\n"),
        ("agents/b/agent.json", "{ \"tols\": [] }"),
        ("agents/c.md", "---\ntools: 5\n---\n"),
        ("tools/d/tool.json", "{}"),
    ]);
    let ran = home.run(["tools"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    for place in ["gantry.yaml:1: ", "agents/b/agent.json:1: ", "agents/c.md:2: ", "tools/d/tool.json:1: "] {
        assert!(ran.stderr.contains(place), "{place}: {ran:?}");
    }
}
