//! Tools in the words of model interfaces: shapes that these take, and names that can all be called.

use super::{Site, faulty, path, real, with};
use crate::results::mcp_tools;
use gantry_testkit::TestDir;
use gantry_testkit::faulty::LONG_NAME;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Names that no model interface takes, and two that it would.
const UNUSUAL: [&str; 10] = [
    "with.dots",
    "with/slash",
    "with space",
    "grüße",
    "工具",
    "@scoped/name",
    "with-dash",
    "plain_odd",
    "a_bare_name_that_is_longer_than_what_models_take_by_a_few_characters",
    LONG_NAME,
];

/// A server with unusual names that shows them as they are, the same one prefixed, one that others wrote, and two agents.
fn site() -> Site {
    let home = TestDir::new();
    let (_, everything) = real(&home, "everything");
    let args: Vec<&str> = UNUSUAL[..9].iter().flat_map(|name| ["--tool", *name]).collect();
    // A blank cannot be written in a list of tools.
    let only = json!({ "toolsAllowed": UNUSUAL.map(|name| name.replace(' ', "?")) });
    let config = json!({
        "mcpServers": {
            "bare": with(with(faulty(&args), &only), &json!({ "prefix": false })),
            "prefixed": with(faulty(&args), &only),
            "everything": everything,
        },
        "agents": {
            "odd": { "tools": { "use": ["bare", "prefixed"], "aliases": { "short": "with/slash", "also-short": "@prefixed/工具" } } },
            "theirs": { "tools": { "use": ["everything", "workspace"], "aliases": { "say": "@everything/echo" } } },
        },
    });
    Site::at(home.config(&config.to_string()))
}

/// What an agent is listed in a format: over HTTP, which has to be the same by the command line.
#[track_caller]
fn listed(site: &Site, agent: &str, format: &str) -> Vec<Value> {
    let over_http = site.server.get(&format!("/api/v1/tools?agent={agent}&format={format}")).json();
    let by_cli = site.home.run(["tools", "--agent", agent, "--format", format]);
    assert_eq!(by_cli.json(), over_http["items"], "{agent} {format}");
    let Value::Array(items) = over_http["items"].clone() else { panic!("no list: {over_http}") };
    assert!(!items.is_empty(), "{agent} {format}");
    items
}

/// That an object has just these members.
#[track_caller]
fn members<'a>(value: &'a Value, keys: &[&str]) -> &'a Map<String, Value> {
    let object = value.as_object().unwrap_or_else(|| panic!("no object: {value}"));
    let found: BTreeSet<&str> = object.keys().map(String::as_str).collect();
    assert_eq!(found, keys.iter().copied().collect(), "{value}");
    object
}

/// That a name is one that every model interface takes.
#[track_caller]
fn legal(name: &Value) -> String {
    let name = name.as_str().expect("a name");
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    assert!((1..=64).contains(&name.len()) && name.chars().all(is_legal), "{name}");
    name.to_owned()
}

/// That a schema is one that every model interface takes for a function's parameters.
#[track_caller]
fn parameters(schema: &Value) {
    assert_eq!(schema["type"], "object", "{schema}");
    assert!(schema["properties"].is_object(), "{schema}");
    for refused in ["$schema", "oneOf", "anyOf", "allOf", "not", "enum"] {
        assert!(schema.get(refused).is_none(), "{refused}: {schema}");
    }
    if let Some(required) = schema.get("required") {
        let required = required.as_array().expect("a list");
        assert!(
            required.iter().all(|key| schema["properties"].get(key.as_str().unwrap_or_default()).is_some())
        );
    }
}

/// The name of a function, after everything about it was checked.
#[track_caller]
fn openai(tool: &Value) -> String {
    let outer = members(tool, &["type", "function"]);
    assert_eq!(outer["type"], "function");
    let function = members(&outer["function"], &["name", "description", "parameters"]);
    assert!(function["description"].as_str().is_some_and(|text| text.len() <= 1024), "{tool}");
    parameters(&function["parameters"]);
    legal(&function["name"])
}

#[track_caller]
fn anthropic(tool: &Value) -> String {
    let tool = members(tool, &["name", "description", "input_schema"]);
    assert!(tool["description"].is_string());
    parameters(&tool["input_schema"]);
    legal(&tool["name"])
}

#[track_caller]
fn mcp(tool: &Value) -> String {
    assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
    tool["name"].as_str().expect("a name").to_owned()
}

/// The names of an agent's tools in a format.
#[track_caller]
fn names(site: &Site, agent: &str, format: &str) -> Vec<String> {
    let check = match format {
        "openai" => openai,
        "anthropic" => anthropic,
        _ => mcp,
    };
    let names: Vec<String> = listed(site, agent, format).iter().map(check).collect();
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "{format}: {names:?}");
    names
}

const FORMATS: [&str; 4] = ["mcp", "openai", "anthropic", "json"];

#[test]
fn srv_4_definitions_have_the_shapes_that_model_interfaces_take() {
    let site = site();
    for agent in ["odd", "theirs"] {
        let expected = names(&site, agent, "mcp");
        assert_eq!(
            mcp_tools(&site.server, &path(agent)),
            expected,
            "{agent}: as MCP clients are listed them"
        );
        for format in FORMATS {
            assert_eq!(names(&site, agent, format).len(), expected.len(), "{agent} {format}");
        }
        assert_eq!(names(&site, agent, "openai"), names(&site, agent, "anthropic"), "{agent}");
    }
    // One without an agent is listed everything in every format.
    let n_listed = |format: &str| {
        let items = site.server.get(&format!("/api/v1/tools?format={format}")).json();
        items["items"].as_array().expect("a list").len()
    };
    for format in FORMATS {
        assert_eq!(n_listed(format), n_listed("json"), "{format}");
    }
}

#[test]
fn srv_4_every_name_that_is_listed_can_be_called() {
    let site = site();
    // A tool that has no work of its own answers the name that its server has for it.
    let mut expected: Vec<&str> =
        UNUSUAL.iter().chain(&UNUSUAL).copied().chain(["with/slash", "工具"]).collect();
    expected.sort_unstable();
    for format in FORMATS {
        let mut answered = Vec::new();
        for name in names(&site, "odd", format) {
            let ran = site.home.run(["call", &name, "{}", "--agent", "odd", "--json"]);
            assert_eq!(ran.code, 0, "{format} {name}: {ran:?}");
            answered.push(ran.json()["result"].as_str().expect("a name").to_owned());
        }
        answered.sort_unstable();
        assert_eq!(answered, expected, "{format}: each is another tool, and all are there");
    }
}

#[test]
fn srv_4_every_name_that_is_listed_can_be_called_over_http_and_mcp() {
    let site = site();
    for format in FORMATS {
        for name in names(&site, "odd", format) {
            let over_http = site.result("odd", &name, &json!({}));
            let mut client = crate::passthrough::Talk::legacy(crate::passthrough::Door::Ws(
                &site.server,
                "/ws/default/agents/odd",
            ));
            assert_eq!(over_http, client.call(&name, &json!({})), "{format} {name}");
        }
    }
}

#[test]
fn srv_4_aliases_are_listed_in_every_format_and_can_be_called() {
    let site = site();
    for format in FORMATS {
        let found = names(&site, "odd", format);
        for (alias, answer) in [("short", "with/slash"), ("also-short", "工具")] {
            assert!(found.contains(&alias.to_owned()), "{format}: {found:?}");
            assert_eq!(site.result("odd", alias, &json!({})), answer, "{format}");
        }
        assert!(names(&site, "theirs", format).contains(&"say".to_owned()), "{format}");
    }
    assert_eq!(site.result("theirs", "say", &json!({ "message": "hi" })), "Echo: hi");
}

#[test]
fn srv_4_the_definitions_of_a_real_server_keep_what_they_say() {
    let site = site();
    let own = listed(&site, "theirs", "mcp");
    for (n, tool) in listed(&site, "theirs", "anthropic").iter().enumerate() {
        assert_eq!((&tool["name"], &tool["description"]), (&own[n]["name"], &own[n]["description"]));
        let (given, schema) = (&tool["input_schema"], &own[n]["inputSchema"]);
        assert_eq!(given["properties"], *schema.get("properties").unwrap_or(&json!({})), "{tool}");
        assert_eq!(given.get("required"), schema.get("required"), "{tool}");
    }
}

#[test]
fn srv_4_what_cannot_be_called_is_in_no_list_for_models() {
    let home =
        TestDir::with_test_tools().config("agents: { a: { tools: [test__bad_schema, test__echo] } }\n");
    let site = Site::at(home);
    for format in ["mcp", "openai", "anthropic"] {
        assert_eq!(names(&site, "a", format), ["test__echo"], "{format}");
    }
    assert_eq!(names(&site, "a", "json"), ["test__bad_schema", "test__echo"]);
}

#[test]
fn srv_4_the_table_is_for_people_and_a_format_that_is_none_is_refused() {
    let site = site();
    let table = site.home.run(["tools", "--agent", "theirs", "--format", "table"]);
    assert_eq!(table.stdout, site.home.run(["tools", "--agent", "theirs"]).stdout);
    assert!(
        table.stdout.starts_with("NAME ") && table.stdout.contains("say → everything__echo "),
        "{table:?}"
    );
    let wrong = site.home.run(["tools", "--format", "gemini"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("openai"), "{wrong:?}");
    let wrong = site.server.get("/api/v1/tools?format=gemini");
    assert_eq!(wrong.status, 400, "{wrong:?}");
    let message = wrong.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(FORMATS.iter().all(|format| message.contains(format)), "{message}");
}

#[test]
fn srv_4_an_agent_that_is_not_there_gets_no_list_in_any_format() {
    let site = site();
    for format in FORMATS {
        assert_eq!(site.server.get(&format!("/api/v1/tools?agent=nobody&format={format}")).status, 403);
        assert_eq!(site.home.run(["tools", "--agent", "nobody", "--format", format]).code, 2);
    }
}
