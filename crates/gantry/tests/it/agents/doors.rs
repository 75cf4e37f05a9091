//! A property of every agent: what is listed is exactly what can be called, by every door and at every depth.
//!
//! The agents are made up from a seed, over one pool with several servers. Nothing runs: a rule denies every call, so that
//! a call with any answer but "not found" has found its tool.

use super::{Site, faulty, path, with};
use crate::passthrough::{Door, Talk};
use gantry_testkit::{Connection, Random, TestDir};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Where the agents come from, unless `GANTRY_TEST_SEED` says otherwise.
const SEED: u64 = 20_261_115;

/// How many agents are made up, and of how many all doors are tried.
const N_AGENTS: usize = 24;
const N_AT_ALL_DOORS: usize = 12;
const N_BY_CLI: usize = 3;

/// Names that an agent does not have, for each door but the first, which gets all of them.
const N_OTHERS: usize = 25;

/// Arguments that no tool takes.
const NOTHING: &str = "{}";

/// Some of these, up to so many.
fn some<T>(random: &mut Random, most: usize, mut one: impl FnMut(&mut Random) -> T) -> Vec<T> {
    let n = random.index(most + 1);
    (0..n).map(|_| one(random)).collect()
}

/// A text that may mean a tool: how it is written, and the displayed name of the tool.
#[derive(Clone)]
struct Spelling {
    text: String,
    tool: String,
}

/// Providers, and the names of their own for some of their tools.
const PROVIDERS: [&str; 7] = ["workspace", "test", "coordination", "files", "one", "two-x", "bare"];
const UNUSUAL: [&str; 4] = ["with.dots", "with/slash", "@scoped/name", "plain_odd"];

fn configuration(agents: &Value) -> Value {
    let args: Vec<&str> = UNUSUAL.iter().flat_map(|name| ["--tool", *name]).collect();
    let policy = json!({ "name": "fs_read", "allowedPaths": ["docs"] });
    json!({
        "defaults": { "toolResponseMaxBytes": 8_000_000 },
        "mcpServers": {
            "one": with(faulty(&args), &json!({ "toolsAllowed": ["echo", "pid", "params", "a-b", "a.b", "with*", "@scoped/name"] })),
            "two-x": with(faulty(&[]), &json!({ "toolsAllowed": ["echo", "env", "e*", "a_name_of*"] })),
            "bare": with(faulty(&args), &json!({ "toolsAllowed": UNUSUAL, "prefix": false })),
        },
        "tools": { "files": { "kind": "builtin", "builtinPolicy": policy } },
        "policies": [{ "name": "nothing-runs", "tools": ["*"], "when": "tool.name != 'spawn_agents'", "decide": "deny" }],
        "agents": agents,
    })
}

/// Every tool of the pool, by the ways in which it can be written.
fn spellings(site: &Site) -> Vec<Spelling> {
    let pool = site.server.get("/api/v1/tools").json();
    let mut spellings = Vec::new();
    for tool in pool["items"].as_array().expect("tools") {
        let name = tool["name"].as_str().expect("a name");
        let namespace = tool["provider"]["namespace"].as_str().expect("a namespace");
        let shown = namespace.replace('-', "_");
        let own = name.strip_prefix(&format!("{shown}__")).unwrap_or(name);
        // A name that was cut is Gantry's, and so is the namespace before it.
        let namespace = if name.len() == 64 { &shown } else { namespace };
        let texts = [name.to_owned(), format!("@{namespace}/{own}"), format!("{namespace}__{own}")];
        let distinct: BTreeSet<String> = texts.into();
        spellings.extend(distinct.into_iter().map(|text| Spelling { text, tool: name.to_owned() }));
    }
    spellings
}

/// A name or a glob.
fn pattern(random: &mut Random, names: &[Spelling]) -> String {
    let name = &random.pick(names).text;
    let letters: Vec<char> = name.chars().collect();
    let cut = 1 + random.index(letters.len());
    match random.index(8) {
        0 => format!("{}__*", random.pick(&PROVIDERS)),
        1 => format!("@{}/*", random.pick(&PROVIDERS)),
        2 => letters[..cut].iter().chain(&['*']).collect(),
        3 => ['*'].iter().chain(&letters[cut - 1..]).collect(),
        4 => letters[..cut - 1].iter().chain(&['?']).chain(&letters[cut..]).collect(),
        _ => name.clone(),
    }
}

/// An agent, somehow.
fn agent(random: &mut Random, names: &[Spelling]) -> Value {
    if random.index(3) == 0 {
        return json!({ "tools": some(random, 8, |random| pattern(random, names)) });
    }
    let mut uses = some(random, 6, |random| pattern(random, names));
    uses.extend(some(random, 3, |random| (*random.pick(&PROVIDERS)).to_owned()));
    if random.index(4) == 0 {
        uses.push("*".into());
    }
    let aliases = some(random, 5, |random| {
        let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let taken = &random.pick(names).text;
        let alias = if random.index(4) == 0 && is_name(taken) {
            taken.clone()
        } else {
            format!("al_{}", random.index(6))
        };
        (alias, json!(random.pick(names).text))
    });
    let mut allowed = some(random, 6, |random| pattern(random, names));
    allowed.extend(aliases.iter().filter(|_| random.index(2) == 0).map(|(alias, _)| alias.clone()));
    if random.index(3) == 0 {
        allowed.push("al_*".into());
    }
    let mut tools = json!({ "use": uses, "aliases": aliases.into_iter().collect::<Map<_, _>>() });
    if random.index(3) > 0 {
        tools["allowed"] = json!(allowed);
    }
    json!({ "tools": tools })
}

/// What an agent is shown.
struct Shown {
    /// Every name that is listed, aliases among them.
    names: BTreeSet<String>,
    /// The tools that are listed under their own names.
    tools: BTreeSet<String>,
}

impl Shown {
    /// Whether a call with this text has to be found.
    fn has(&self, spelling: &Spelling) -> bool {
        // `@ns/tool` and `ns__tool` are one text, for aliases too.
        let plain = spelling.text.strip_prefix('@').and_then(|rest| rest.split_once('/'));
        let plain = plain.map(|(namespace, tool)| format!("{namespace}__{tool}"));
        self.names.contains(&spelling.text)
            || plain.is_some_and(|plain| self.names.contains(&plain))
            || self.tools.contains(&spelling.tool)
    }
}

fn texts(list: &Value) -> BTreeSet<String> {
    list.as_array().expect("a list").iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
}

/// The site, what can be called there, and where it all came from.
struct Trial {
    site: Site,
    spellings: Vec<Spelling>,
    agents: Value,
    random: Random,
    seed: u64,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let home = TestDir::with_test_tools().env("TEST_GANTRY_COORDINATION", "1");
        let fixed = json!({ "top": {}, "middle": { "tools": ["spawn_agents"] } });
        let site = Site::at(home.config(&configuration(&fixed).to_string()));
        let mut spellings = spellings(&site);
        let mut random = Random(seed);
        let mut agents = fixed;
        for n in 0..N_AGENTS {
            agents[format!("a{n}")] = agent(&mut random, &spellings);
        }
        site.reload(&configuration(&agents));
        // Aliases, of any agent, and what no agent has.
        spellings.extend((0..6).map(|n| Spelling { text: format!("al_{n}"), tool: String::new() }));
        for text in
            ["", "no_such_tool", "@one/no_such_tool", "one__ech", "*", "one__*", "@", "@/", "tool_output"]
        {
            spellings.push(Spelling { text: text.into(), tool: String::new() });
        }
        Self { site, spellings, agents, random, seed }
    }

    /// Where a reader of a failure has to look.
    fn outcome(&self, agent: &str, door: &str, text: &str) -> String {
        format!("seed {}: {text:?} by {door} for {agent} = {}", self.seed, self.agents[agent])
    }

    /// All that an agent is shown over HTTP, and the part that can be called at the moment.
    fn shown(&self, agent: &str) -> (Shown, Vec<String>) {
        let listing = self.site.listing(agent);
        let name = |tool: &Value| tool["name"].as_str().expect("a name").to_owned();
        let own = listing.iter().filter(|tool| tool.get("aliasOf").is_none());
        let shown = Shown { tools: own.map(name).collect(), names: listing.iter().map(name).collect() };
        (shown, listing.iter().filter(|tool| tool["status"] == "ready").map(name).collect())
    }

    /// What the agent has, and some of what it has not.
    fn sample(&mut self, shown: &Shown) -> Vec<Spelling> {
        let (mut own, others): (Vec<_>, Vec<_>) =
            self.spellings.iter().cloned().partition(|spelling| shown.has(spelling));
        own.extend((0..N_OTHERS).map(|_| self.random.pick(&others).clone()));
        own
    }

    fn over_http(&self, connection: &mut Connection, agent: &str, shown: &Shown) {
        for spelling in &self.spellings {
            let body = json!({ "tool": spelling.text, "arguments": {}, "agent": agent }).to_string();
            let headers = [("content-type", "application/json")];
            let answer = connection.request("POST", "/api/v1/calls", &headers, body.as_bytes());
            let reply = answer.expect("an answer").json();
            let found = reply["error"]["code"] != "TOOL_NOT_FOUND";
            assert_eq!(found, shown.has(spelling), "{} {reply}", self.outcome(agent, "HTTP", &spelling.text));
        }
    }

    fn by_mcp(
        &self,
        mut client: Talk,
        (agent, door): (&str, &str),
        shown: &Shown,
        sample: &[Spelling],
        ready: &[String],
    ) {
        assert_eq!(client.tools(), ready, "{}", self.outcome(agent, door, "tools/list"));
        let calls: Vec<u64> =
            sample.iter().map(|spelling| client.begin_call(&spelling.text, &json!({}))).collect();
        for (spelling, call) in sample.iter().zip(calls) {
            let answer = client.end(call);
            let found = !answer.contains("\"message\":\"tool not found: ");
            assert_eq!(found, shown.has(spelling), "{} {answer}", self.outcome(agent, door, &spelling.text));
        }
    }

    fn by_cli(&self, agent: &str, shown: &Shown, sample: &[Spelling]) {
        let listed = self.site.home.run(["tools", "--agent", agent, "--json"]).json();
        assert_eq!(
            listed,
            Value::Array(self.site.listing(agent)),
            "{}",
            self.outcome(agent, "gantry tools", "")
        );
        let (own, others): (Vec<_>, Vec<_>) = sample.iter().partition(|spelling| shown.has(spelling));
        for spelling in own.iter().take(4).chain(others.iter().take(4)).filter(|it| !it.text.is_empty()) {
            let ran = self.site.home.run(["call", "--agent", agent, "--json", "--", &spelling.text, NOTHING]);
            let found = ran.json()["error"]["code"] != "TOOL_NOT_FOUND";
            assert_eq!(
                found,
                shown.has(spelling),
                "{} {ran:?}",
                self.outcome(agent, "gantry call", &spelling.text)
            );
        }
    }

    /// The agent below others: at depth 1 below `top`, or at depth 2 below `middle` below that.
    fn below(&self, agent: &str, depth: usize) -> Shown {
        let tried: Vec<&Spelling> = self.spellings.iter().filter(|it| it.text != "spawn_agents").collect();
        let calls: Vec<Value> = tried.iter().map(|it| json!({ "tool": it.text, "arguments": {} })).collect();
        let mut arguments = json!({ "agent": agent, "calls": calls });
        if depth == 2 {
            let call = json!({ "tool": "spawn_agents", "arguments": arguments });
            arguments = json!({ "agent": "middle", "calls": [call] });
        }
        let outcome = self.site.result("top", "spawn_agents", &arguments);
        let outcome = if depth == 2 { &outcome["replies"][0]["result"] } else { &outcome };
        assert_eq!(outcome["depth"], depth, "{}", self.outcome(agent, "spawning", ""));
        let shown = Shown { tools: texts(&outcome["tools"]), names: texts(&outcome["names"]) };
        for (spelling, reply) in tried.iter().zip(outcome["replies"].as_array().expect("replies")) {
            let found = reply["error"]["code"] != "TOOL_NOT_FOUND";
            let words = format!("spawning at depth {depth}");
            assert_eq!(found, shown.has(spelling), "{} {reply}", self.outcome(agent, &words, &spelling.text));
        }
        shown
    }

    /// Whether an agent names a tool literally.
    fn names(&self, agent: &str, tool: &str) -> bool {
        let tools = &self.agents[agent]["tools"];
        let uses = texts(if tools.is_array() { tools } else { &tools["use"] });
        [tool.to_owned(), format!("@coordination/{tool}"), format!("coordination__{tool}")]
            .iter()
            .any(|text| uses.contains(text))
    }

    /// What is left of an agent's tools below others follows from the depth alone.
    fn at_depths(&self, agent: &str, top: &Shown) {
        let starters = ["list_available_agents", "spawn_agents"];
        for depth in [1, 2] {
            let gone = |tool: &&String| {
                starters.contains(&tool.as_str()) && (depth == 2 || !self.names(agent, tool))
            };
            let expected: BTreeSet<&String> = top.tools.iter().filter(|tool| !gone(tool)).collect();
            let below = self.below(agent, depth);
            assert_eq!(
                below.tools.iter().collect::<BTreeSet<_>>(),
                expected,
                "{}",
                self.outcome(agent, "depth", "")
            );
        }
    }
}

#[test]
fn pol_5_what_is_listed_is_exactly_what_can_be_called_by_every_door_and_at_every_depth() {
    let seed = std::env::var("GANTRY_TEST_SEED").ok().map_or(SEED, |text| text.parse().expect("a number"));
    let mut trial = Trial::new(seed);
    let mut n_shown = 0;
    for n in 0..N_AGENTS {
        let agent = format!("a{n}");
        let (shown, ready) = trial.shown(&agent);
        n_shown += shown.names.len();
        // A connection that is idle while the other doors are tried is closed.
        trial.over_http(&mut trial.site.server.connect(), &agent, &shown);
        trial.at_depths(&agent, &shown);
        if n >= N_AT_ALL_DOORS {
            continue;
        }
        let sample = trial.sample(&shown);
        let (at, socket) = (path(&agent), format!("/ws/default/agents/{agent}"));
        let (http, ws) = (Door::Http(&trial.site.server, &at), Door::Ws(&trial.site.server, &socket));
        for (door, client) in [
            ("MCP 2025-11-25", Talk::legacy(http)),
            ("MCP 2026-07-28", Talk::modern(http)),
            ("WebSocket 2025-11-25", Talk::legacy(ws)),
            ("WebSocket 2026-07-28", Talk::modern(ws)),
        ] {
            trial.by_mcp(client, (&agent, door), &shown, &sample, &ready);
        }
        if n < N_BY_CLI {
            trial.by_cli(&agent, &shown, &sample);
        }
    }
    assert!(n_shown > N_AGENTS, "seed {seed} gives agents that have next to nothing");
}
