//! What is accepted, and what it means.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::{load, uses, values, yaml};
use crate::config::document::Format;
use crate::config::{Config, EXAMPLE, json_schema};
use gantry_core::policy::Decide;
use serde_json::Value;

#[test]
fn a_file_that_sets_nothing_is_all_defaults() {
    let config = yaml("{}");
    assert_eq!(config.main().workspace, Path::new("/home/project"));
    assert_eq!(config.server.bind, SocketAddr::from(([127, 0, 0, 1], 7420)));
    assert_eq!(config.main().limits.tool_timeout.get(), Duration::from_secs(60));
    assert_eq!(config.main().limits.tool_response_max_bytes.get(), 100_000);
    assert_eq!(config.main().limits.max_depth.get(), 2);
    assert_eq!(config.main().limits.context_budget_tokens, None);
    assert_eq!(config.main().limits.output_retention.get(), Duration::from_secs(3600));
    assert_eq!(config.main().limits.max_concurrent_calls.get(), 1024);
    assert!(config.queues.is_empty() && config.main().agents.is_empty() && config.main().policies.is_empty());
    assert!(config.main().tools.workspace.options.enabled);
    assert_eq!(config.main().tools.workspace.options.allowed, None);
    assert_eq!(config.main().tools.workspace.options.cache.some(), None);
    assert_eq!(config.main().tools.workspace.options.timeout.some(), None);
    assert!(config.main().approvals.rules.requires_approval.is_empty());
    assert_eq!(config.store, Path::new("/home/project/.gantry/gantry.db"));
    for (format, text) in
        [(Format::Json, "{}"), (Format::Toml, "workspace = '.'"), (Format::Yaml, "# {}\n{}")]
    {
        assert_eq!(load(format, text).unwrap(), config, "{text}");
    }
    // One that was cut short may look like these.
    for (format, text) in [
        (Format::Json, "null"),
        (Format::Toml, "# a = 1"),
        (Format::Yaml, "# only a comment {}\n---\n"),
        (Format::Yaml, ""),
    ] {
        let refused = load(format, text).unwrap_err().to_string();
        assert!(refused.contains("there is nothing in this file"), "{text}: {refused}");
    }
}

#[test]
fn the_three_formats_read_alike() {
    let yaml = r#"
server: { bind: "0.0.0.0:80", allowedHosts: [Gantry.Example.com], allowedOrigins: ["https://App.example.com:8443"] }
queues: { disk: { concurrent: 4 } }
tools: { workspace: { queue: disk, toolsQueue: { read_file: false, write_file: disk }, toolsCache: { a: 0, b: 5 } } }
agents: { reader: { tools: ["read_*"] } }
policies: [{ name: p, tools: ["*"], decide: ask, when: "args.n > 1", examples: { ask: [{ n: 2, s: "é\n", f: 1.5 }] } }]
"#;
    let json = r#"{
	"server": { "bind": "0.0.0.0:80", "allowedHosts": ["Gantry.Example.com"],
		"allowedOrigins": ["https:\/\/App.example.com:8443"] },
	"queues": { "disk": { "concurrent": 4 } },
	"tools": { "workspace": { "queue": "disk", "toolsQueue": { "read_file": false, "write_file": "disk" },
		"toolsCache": { "a": 0, "b": 5 } } },
	"agents": { "reader": { "tools": ["read_*"] } },
	"policies": [{ "name": "p", "tools": ["*"], "decide": "ask", "when": "args.n > 1",
		"examples": { "ask": [{ "n": 2, "s": "\u00e9\n", "f": 1.5 }] } }]
}"#;
    let toml = r#"
[server]
bind = "0.0.0.0:80"
allowedHosts = ["Gantry.Example.com"]
allowedOrigins = ["https://App.example.com:8443"]
[queues.disk]
concurrent = 4
[tools.workspace]
queue = "disk"
toolsQueue = { read_file = false, write_file = "disk" }
toolsCache = { a = 0, b = 5 }
[agents.reader]
tools = ["read_*"]
[[policies]]
name = "p"
tools = ["*"]
decide = "ask"
when = "args.n > 1"
examples.ask = [{ n = 2, s = "é\n", f = 1.5 }]
"#;
    for (format, text) in [(Format::Yaml, yaml), (Format::Json, json), (Format::Toml, toml)] {
        let config = load(format, text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(config.server.bind, "0.0.0.0:80".parse().unwrap());
        assert_eq!(config.server.allowed_hosts, ["Gantry.Example.com"]);
        assert_eq!(config.server.allowed_origins, ["https://App.example.com:8443"]);
        assert_eq!((config.queues[0].concurrent, config.queues[0].max_waiting), (4, 1000));
        let tools = &config.main().tools.workspace.options;
        assert_eq!(tools.queue.as_deref(), Some("disk"));
        assert_eq!(tools.tools_queue["read_file"].0, None);
        assert_eq!(tools.tools_queue["write_file"].0.as_deref(), Some("disk"));
        assert_eq!(tools.tools_cache["a"].some(), None);
        assert_eq!(tools.tools_cache["b"].some(), Some(Duration::from_millis(5)));
        assert_eq!(uses(&config.main().agents["reader"].selection), ["read_*"]);
        let policy = &config.main().policies[0];
        assert_eq!((policy.name.as_str(), policy.decide), ("p", Decide::Ask));
        let arguments = serde_json::to_string(&policy.examples.ask[0]).unwrap();
        assert!(arguments.contains(r#""n":2"#) && arguments.contains(r#""s":"é\n""#), "{arguments}");
        assert!(arguments.contains(r#""f":1.5"#), "{arguments}");
    }
}

#[test]
fn zero_is_the_default_and_never_endless() {
    let config = yaml(
        "defaults: { toolTimeout: 0, toolResponseMaxBytes: 0, maxDepth: 0, outputRetentionMs: 0, maxConcurrentCalls: 0 }\n\
         queues: { q: { concurrent: 1, maxWaiting: 0 } }\n\
         tools: { workspace: { requestTimeoutMs: 0, cache: 0, toolsTimeout: { a: 0, b: 7 } } }\n",
    );
    assert_eq!(config.main().limits, yaml("{}").main().limits);
    assert_eq!(config.queues[0].max_waiting, 1000);
    let tools = &config.main().tools.workspace.options;
    assert_eq!((tools.timeout.some(), tools.cache.some()), (None, None));
    assert_eq!(
        (tools.tools_timeout["a"].some(), tools.tools_timeout["b"].some()),
        (None, Some(Duration::from_millis(7)))
    );
}

#[test]
fn an_agent_without_a_list_has_all_tools_and_one_with_an_empty_list_none() {
    let config = yaml("agents:\n  all:\n  none: { tools: [] }\n  also: {}\n");
    assert_eq!(uses(&config.main().agents["all"].selection), ["*"]);
    assert_eq!(uses(&config.main().agents["also"].selection), ["*"]);
    assert!(uses(&config.main().agents["none"].selection).is_empty());
}

#[test]
fn approvals_are_all_or_none_or_a_list() {
    let required = |text: &str| {
        let config = yaml(&format!("approvals: {{ requiresApprovalTools: {text} }}"));
        values(&config.main().approvals.rules.requires_approval).join(" ")
    };
    assert_eq!(required("all"), "*");
    assert_eq!(required("none"), "");
    assert_eq!(required("['write_*', '@db/drop']"), "write_* @db/drop");
}

#[test]
fn variables_reach_texts_numbers_and_flags_but_not_keys() {
    let config = yaml(
        "defaults: { toolTimeout: '${MS}' }\n\
         queues: { disk: { concurrent: '${N:-3}' } }\n\
         tools: { workspace: { enabled: '${NO:-false}', queue: '${QUEUE}', toolsDenied: ['${SECRET}_*', '$${X}'] } }\n\
         policies: [{ name: p, tools: [a], decide: deny, examples: { deny: [{ '${MS}': ['${MS}'] }] } }]\n",
    );
    assert_eq!(config.main().limits.tool_timeout.get(), Duration::from_millis(250));
    assert_eq!(config.queues[0].concurrent, 3);
    assert!(!config.main().tools.workspace.options.enabled);
    assert_eq!(values(&config.main().tools.workspace.options.denied), ["hunter2_*", "${X}"]);
    let arguments = serde_json::to_string(&config.main().policies[0].examples.deny[0]).unwrap();
    assert_eq!(arguments, r#"{"${MS}":["250"]}"#);
}

#[test]
fn yaml_words_that_readers_disagree_about_are_text() {
    let config = yaml("policies: [{ name: p, tools: [a], decide: deny, examples: { deny: [[]] } }]".replace(
        "[[]]",
        "[{ a: no, b: on, c: 012, d: 4_3, e: 1:30, f: .inf, g: 0x1F, h: -7, i: ~, j: True, k: 1e3, l: 2001-01-01 }]",
    ).as_str());
    let arguments = serde_json::to_string(&config.main().policies[0].examples.deny[0]).unwrap();
    assert_eq!(
        arguments,
        r#"{"a":"no","b":"on","c":"012","d":"4_3","e":"1:30","f":".inf","g":31,"h":-7,"i":null,"j":true,"k":1000.0,"l":"2001-01-01"}"#
    );
}

#[test]
fn toml_numbers_are_read_in_all_their_forms() {
    let text = "[defaults]\ntoolTimeout = 1_000\nmaxDepth = 0x3\nmaxConcurrentCalls = +7\n";
    let config = load(Format::Toml, text).unwrap();
    assert_eq!(config.main().limits.tool_timeout.get(), Duration::from_secs(1));
    assert_eq!(
        (config.main().limits.max_depth.get(), config.main().limits.max_concurrent_calls.get()),
        (3, 7)
    );
}

#[test]
fn anchors_and_aliases_work() {
    let config = yaml("queues: { a: &q { concurrent: 2 }, b: *q }\n");
    assert_eq!(config.queues[1].concurrent, 2);
}

#[test]
fn the_store_follows_the_data_folder() {
    let store = |url: &str, data: &str| {
        let base = crate::config::resolve::Base { folder: "/p".into(), data: data.into(), accepted: None };
        let env = super::env();
        let variables = crate::config::dotenv::Variables::new(&env);
        let text = format!("store: {{ url: '{url}' }}");
        let name = Path::new("gantry.yaml");
        crate::config::load::parse(&text, Format::Yaml, name, &base, &variables).unwrap().config.store
    };
    assert_eq!(store("sqlite://.gantry/gantry.db", "/p/.gantry"), Path::new("/p/.gantry/gantry.db"));
    assert_eq!(store("sqlite://.gantry/gantry.db", "/var/data"), Path::new("/var/data/gantry.db"));
    assert_eq!(store("sqlite://other/g.db", "/p/.gantry"), Path::new("/p/other/g.db"));
    assert_eq!(store("sqlite:///srv/g.db", "/p/.gantry"), Path::new("/srv/g.db"));
}

#[test]
fn the_complete_example_loads_and_has_every_key() {
    let config: Config = yaml(EXAMPLE);
    assert_eq!(config.main().policies[0].name, "no-private-keys");
    let (schema, mut keys) = (json_schema(), Vec::new());
    offered_keys(&schema, &mut keys);
    for key in keys {
        // The schema of a file is for editors, and the other spelling of a key is not shown.
        if !["$schema", "path", "const"].contains(&key.as_str()) {
            assert!(EXAMPLE.contains(&format!("{key}:")), "the example lacks {key}");
        }
    }
}

fn offered_keys(schema: &Value, keys: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            let properties = members.get("properties").and_then(Value::as_object).into_iter().flatten();
            let offered = properties.filter(|(_, property)| property.get("deprecated").is_none());
            keys.extend(offered.map(|(key, _)| key.clone()));
            members.values().for_each(|member| offered_keys(member, keys));
        }
        Value::Array(items) => items.iter().for_each(|item| offered_keys(item, keys)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_key_has_a_description_and_secrets_are_marked() {
    let schema = json_schema();
    let text = schema.to_string();
    assert!(text.contains("\"writeOnly\":true") && !text.contains("\"secs\""));
    assert_eq!(schema.pointer("/$defs/Limits/properties/toolTimeout/default").unwrap(), 60_000);
    let server =
        schema.pointer("/properties/mcpServers/additionalProperties/$ref").unwrap().as_str().unwrap();
    let server = schema.pointer(server.trim_start_matches('#')).unwrap();
    assert_eq!(server.pointer("/properties/startupTimeoutMs/default").unwrap(), 15_000);
    assert_eq!(server.pointer("/additionalProperties").unwrap(), false);
}
