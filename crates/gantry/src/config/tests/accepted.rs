//! What is accepted, and what it means.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::{load, values, yaml};
use crate::config::reference::inner;
use crate::config::table::{AGENT_JSON, FRONT_MATTER, Key, ROOT};
use crate::config::tree::Format;
use crate::config::{Config, Decide, EXAMPLE, Gated, reference};

#[test]
fn an_empty_file_is_all_defaults() {
    let config = yaml("");
    assert_eq!(config.main.workspace, Path::new("/home/project"));
    assert_eq!(config.server.bind, SocketAddr::from(([127, 0, 0, 1], 7420)));
    assert_eq!(config.main.defaults.tool_timeout, Duration::from_secs(60));
    assert_eq!(config.main.defaults.tool_response_max_bytes, 100_000);
    assert_eq!(config.main.defaults.max_depth, 2);
    assert_eq!(config.main.defaults.context_budget_tokens, None);
    assert_eq!(config.main.defaults.output_retention, Duration::from_secs(3600));
    assert_eq!(config.main.defaults.max_concurrent_calls, 1024);
    assert!(config.queues.is_empty() && config.main.agents.is_empty() && config.main.policies.is_empty());
    assert!(config.main.tools.workspace.enabled);
    assert_eq!(config.main.tools.workspace.allowed, None);
    assert_eq!(config.main.tools.workspace.cache, None);
    assert_eq!(config.main.tools.workspace.request_timeout, None);
    assert_eq!(config.main.approvals.requires, Gated::None);
    assert_eq!(config.store.path, Path::new("/home/project/.gantry/gantry.db"));
    for (format, text) in
        [(Format::Json, "{}"), (Format::Toml, ""), (Format::Yaml, "# only a comment\n---\n")]
    {
        assert_eq!(load(format, text).unwrap(), config, "{text}");
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
        assert_eq!(config.server.allowed_hosts, ["gantry.example.com"]);
        assert_eq!(config.server.allowed_origins, ["https://app.example.com:8443"]);
        assert_eq!((config.queues["disk"].concurrent, config.queues["disk"].max_waiting), (4, 1000));
        let tools = &config.main.tools.workspace;
        assert_eq!(tools.queue.as_deref(), Some("disk"));
        assert_eq!(tools.tools_queue["read_file"].value, None);
        assert_eq!(tools.tools_queue["write_file"].value.as_deref(), Some("disk"));
        assert_eq!(tools.tools_cache["a"].value, None);
        assert_eq!(tools.tools_cache["b"].value, Some(Duration::from_millis(5)));
        assert_eq!(values(&config.main.agents["reader"].uses), ["read_*"]);
        let policy = &config.main.policies[0];
        assert_eq!((policy.name.as_str(), policy.decide), ("p", Decide::Ask));
        let arguments = serde_json::to_string(&policy.examples.ask[0].value).unwrap();
        assert!(arguments.contains(r#""n":2"#) && arguments.contains(r#""s":"é\n""#), "{arguments}");
        assert!(arguments.contains(r#""f":1.5"#), "{arguments}");
    }
}

#[test]
fn values_keep_their_lines_in_every_format() {
    let yaml = "queues:\n  q:\n    concurrent: 1\nagents:\n  a:\n    tools:\n      - x\n      - y\n";
    let json = "{\n\"queues\":\n{\"q\": {\n\"concurrent\": 1}},\n\"agents\": {\"a\": {\"tools\": [\n\"x\",\n\"y\"\n]}}}";
    let toml = "[queues.q]\nconcurrent = 1\n\n[agents.a]\ntools = [\n  'x',\n  'y',\n]\n";
    for (format, text, queue, tools) in
        [(Format::Yaml, yaml, 3, [7, 8]), (Format::Json, json, 3, [6, 7]), (Format::Toml, toml, 1, [6, 7])]
    {
        let config = load(format, text).unwrap();
        assert_eq!(config.queues["q"].at.line, queue, "{text}");
        let lines: Vec<usize> = config.main.agents["a"].uses.iter().map(|tool| tool.at.line).collect();
        assert_eq!(lines, tools, "{text}");
    }
}

#[test]
fn later_checks_report_in_the_same_form() {
    let config = yaml("policies:\n  - name: p\n    tools: ['*']\n    decide: deny\n    when: args.(\n");
    let when = config.main.policies[0].when.clone().unwrap();
    let error = crate::config::Error::at(&when.at, "policies[0].when: unexpected (");
    assert_eq!(error.to_string(), "gantry.yaml:5: policies[0].when: unexpected (");
}

#[test]
fn zero_is_the_default_and_never_endless() {
    let config = yaml(
        "defaults: { toolTimeout: 0, toolResponseMaxBytes: 0, maxDepth: 0, outputRetentionMs: 0, maxConcurrentCalls: 0 }\n\
         queues: { q: { concurrent: 1, maxWaiting: 0 } }\n\
         tools: { workspace: { requestTimeoutMs: 0, cache: 0, toolsTimeout: { a: 0, b: 7 } } }\n",
    );
    assert_eq!(config.main.defaults, yaml("").main.defaults);
    assert_eq!(config.queues["q"].max_waiting, 1000);
    let tools = &config.main.tools.workspace;
    assert_eq!((tools.request_timeout, tools.cache), (None, None));
    assert_eq!(tools.tools_timeout.keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn an_agent_without_a_list_has_all_tools_and_one_with_an_empty_list_none() {
    let config = yaml("agents:\n  all:\n  none: { tools: [] }\n  also: {}\n");
    assert_eq!(values(&config.main.agents["all"].uses), ["*"]);
    assert_eq!(values(&config.main.agents["also"].uses), ["*"]);
    assert!(config.main.agents["none"].uses.is_empty());
    assert_eq!(config.main.agents["all"].at.line, 2);
}

#[test]
fn approvals_are_all_or_none_or_a_list() {
    let gated =
        |text: &str| yaml(&format!("approvals: {{ requiresApprovalTools: {text} }}")).main.approvals.requires;
    assert_eq!(gated("all"), Gated::All);
    assert_eq!(gated("none"), Gated::None);
    let Gated::Tools(tools) = gated("['write_*', '@db/drop']") else { panic!("not a list") };
    assert_eq!(values(&tools), ["write_*", "@db/drop"]);
}

#[test]
fn variables_reach_texts_numbers_and_flags_but_not_keys() {
    let config = yaml(
        "defaults: { toolTimeout: '${MS}' }\n\
         queues: { disk: { concurrent: '${N:-3}' } }\n\
         tools: { workspace: { enabled: '${NO:-false}', queue: '${QUEUE}', toolsDenied: ['${SECRET}_*', '$${X}'] } }\n\
         policies: [{ name: p, tools: [a], decide: deny, examples: { deny: [{ '${MS}': ['${MS}'] }] } }]\n",
    );
    assert_eq!(config.main.defaults.tool_timeout, Duration::from_millis(250));
    assert_eq!(config.queues["disk"].concurrent, 3);
    assert!(!config.main.tools.workspace.enabled);
    assert_eq!(values(&config.main.tools.workspace.denied), ["hunter2_*", "${X}"]);
    let arguments = serde_json::to_string(&config.main.policies[0].examples.deny[0].value).unwrap();
    assert_eq!(arguments, r#"{"${MS}":["250"]}"#);
}

#[test]
fn yaml_words_that_readers_disagree_about_are_text() {
    let config = yaml("policies: [{ name: p, tools: [a], decide: deny, examples: { deny: [[]] } }]".replace(
        "[[]]",
        "[{ a: no, b: on, c: 012, d: 4_3, e: 1:30, f: .inf, g: 0x1F, h: -7, i: ~, j: True, k: 1e3, l: 2001-01-01 }]",
    ).as_str());
    let arguments = serde_json::to_string(&config.main.policies[0].examples.deny[0].value).unwrap();
    assert_eq!(
        arguments,
        r#"{"a":"no","b":"on","c":"012","d":"4_3","e":"1:30","f":".inf","g":31,"h":-7,"i":null,"j":true,"k":1000.0,"l":"2001-01-01"}"#
    );
}

#[test]
fn toml_numbers_are_read_in_all_their_forms() {
    let text = "[defaults]\ntoolTimeout = 1_000\nmaxDepth = 0x3\nmaxConcurrentCalls = +7\n";
    let config = load(Format::Toml, text).unwrap();
    assert_eq!(config.main.defaults.tool_timeout, Duration::from_secs(1));
    assert_eq!((config.main.defaults.max_depth, config.main.defaults.max_concurrent_calls), (3, 7));
}

#[test]
fn anchors_and_aliases_work() {
    let config = yaml("queues: { a: &q { concurrent: 2 }, b: *q }\n");
    assert_eq!(config.queues["b"].concurrent, 2);
}

#[test]
fn the_store_follows_the_data_folder() {
    let store = |url: &str, data: &str| {
        let base = crate::config::build::Base { folder: "/p".into(), data: data.into() };
        let env = super::env();
        let variables = crate::config::Variables::new(&env);
        let text = format!("store: {{ url: '{url}' }}");
        let name = Path::new("gantry.yaml");
        crate::config::parse(&text, Format::Yaml, name, &base, &variables).unwrap().config.store.path
    };
    assert_eq!(store("sqlite://.gantry/gantry.db", "/p/.gantry"), Path::new("/p/.gantry/gantry.db"));
    assert_eq!(store("sqlite://.gantry/gantry.db", "/var/data"), Path::new("/var/data/gantry.db"));
    assert_eq!(store("sqlite://other/g.db", "/p/.gantry"), Path::new("/p/other/g.db"));
    assert_eq!(store("sqlite:///srv/g.db", "/p/.gantry"), Path::new("/srv/g.db"));
}

#[test]
fn the_complete_example_loads_and_has_every_key() {
    let config: Config = yaml(EXAMPLE);
    assert_eq!(config.main.policies[0].name, "no-private-keys");
    every_key(ROOT, &mut |key| {
        let line = format!("{}:", key.name);
        assert!(EXAMPLE.contains(&line), "the example lacks {line}");
    });
}

#[test]
fn every_example_of_the_table_is_of_its_type() {
    every_key(ROOT, &mut |key| {
        if key.example.is_empty() {
            return;
        }
        let text = format!("queues: {{ disk: {{ concurrent: 1 }} }}\nexample: {}", key.example);
        let mut root = Format::Yaml.parse(&text).unwrap_or_else(|error| panic!("{}: {error:?}", key.name));
        let problems = crate::config::check::example(&mut root, key);
        assert_eq!(problems, None, "{}", key.name);
    });
}

#[test]
fn the_reference_names_every_key_and_shows_the_example() {
    let page = reference();
    every_key(ROOT, &mut |key| assert!(page.contains(&format!("| `{}` |", key.name)), "{}", key.name));
    assert!(page.contains("| `toolTimeout` | a whole number of milliseconds, at most 86400000 | `60000` |"));
    assert!(page.contains("- `models`\n") && page.contains("## `approvals.webhook`"));
    assert!(page.contains("## `queues.<name>`") && page.contains("## `projects.<name>`"));
    assert_eq!(page.matches("| `replicas` |").count(), 2, "projects repeat nothing");
    for keys in [AGENT_JSON, FRONT_MATTER] {
        every_key(keys, &mut |key| assert!(page.contains(&format!("| `{}` |", key.name)), "{}", key.name));
    }
    assert!(page.contains("- `agents.<name>.guardrails`\n") && page.contains("- `region` in `agent.json`\n"));
    assert!(page.contains(EXAMPLE));
}

fn every_key(keys: &'static [Key], visit: &mut impl FnMut(&'static Key)) {
    for key in keys.iter().filter(|key| key.is_offered()) {
        visit(key);
        inner(&key.kind).into_iter().for_each(|(_, keys)| every_key(keys, visit));
    }
}
