//! The keys themselves, section by section.

mod agents;
mod approvals;
mod catalogue;
mod defaults;
mod own;
mod projects;
mod rest;
mod servers;

pub(in crate::config) use agents::{AGENT_JSON, FRONT_MATTER};
pub(in crate::config) use catalogue::TOOLS;

use super::{Fallback, Key, Kind, Number, Unit, Zero};
use crate::config::text::Rule;

const SECOND: u64 = 1000;
const DAY: u64 = 24 * 3600 * SECOND;
const NONE: Fallback = Fallback::Absent("none");

const fn key(
    name: &'static str,
    kind: Kind,
    default: Fallback,
    meaning: &'static str,
    example: &'static str,
) -> Key {
    Key { name, kind, default, meaning, example }
}

const fn section(name: &'static str, kind: Kind, meaning: &'static str) -> Key {
    key(name, kind, Fallback::Absent("empty"), meaning, "")
}

const fn inert(name: &'static str) -> Key {
    without_effect(name, "has no effect in this version")
}

const fn without_effect(name: &'static str, words: &'static str) -> Key {
    key(name, Kind::Inert(words), Fallback::Absent(""), "", "")
}

const fn refused(name: &'static str, why: &'static str) -> Key {
    key(name, Kind::Refused(why), Fallback::Absent(""), "", "")
}

const fn granted(name: &'static str, advice: &'static str) -> Key {
    key(name, Kind::Granted(advice), Fallback::Absent(""), "", "")
}

const fn later(name: &'static str) -> Key {
    key(name, Kind::Later, Fallback::Absent(""), "", "")
}

const fn number(unit: Unit, zero: Zero, max: u64) -> Kind {
    Kind::Number(Number { unit, zero, max })
}

/// The keys at the top of a file.
pub(in crate::config) static ROOT: &[Key] = &[
    key(
        "workspace",
        Kind::Text(Rule::Path),
        Fallback::Text("."),
        "The folder that the workspace tools work in. A relative path starts at the folder of the configuration file.",
        "./work",
    ),
    section("server", Kind::Section(SERVER), "Where Gantry listens and whom it answers."),
    section(
        "defaults",
        Kind::Section(defaults::DEFAULTS),
        "Limits for every call that nothing more specific decides.",
    ),
    section("queues", Kind::Named(QUEUE), "Named queues that bound how many calls run at once."),
    section(
        "tools",
        Kind::Catalogue(&TOOLS),
        "The catalogue of tools, by id: Gantry's own workspace tools under `workspace`, MCP servers, and tools on some \
         folders of the workspace. Each may also be a file, `tools/<id>/tool.json`.",
    ),
    section(
        "mcpServers",
        Kind::Servers(servers::SERVER),
        "MCP servers, by id, in the shape that editors use. The id is the namespace of their tools: `github__search_code`.",
    ),
    section(
        "restTools",
        Kind::Services(Rule::RestTool, rest::TOOL),
        "Tools that are one HTTP request each, by name. They are in the namespace `rest`: `rest__weather`.",
    ),
    section(
        "openapiSpecs",
        Kind::Services(Rule::Api, rest::API),
        "APIs that an OpenAPI document (2.0, 3.0, 3.1; JSON or YAML) describes, by id. Each operation becomes a tool: \
         `rest__petstore_list_pets`. `gantry openapi inspect` shows what would become of a document.",
    ),
    section(
        "agents",
        Kind::Named(agents::AGENT),
        "Agents and the tools each may use. Each may also be a file, `agents/<name>/agent.json` or `agents/<name>.md`.",
    ),
    section(
        "approvals",
        Kind::Section(approvals::APPROVALS),
        "Which calls wait for a person or for their time, who may decide, and how a person hears of them.",
    ),
    section("policies", Kind::Items(POLICY), "Rules that refuse calls or ask a person about them."),
    own::CODE,
    own::WEB,
    own::GIT,
    own::SEARCH,
    section("store", Kind::Section(STORE), "Where Gantry keeps its records."),
    section(
        "projects",
        Kind::Projects(projects::PROJECT),
        "More projects, each with its own workspace, servers, agents, rules and data. The file itself is the project \
         `default`.",
    ),
    later("models"),
    later("auth"),
];

const SERVER: &[Key] = &[
    key(
        "bind",
        Kind::Text(Rule::Bind),
        Fallback::Text("127.0.0.1:7420"),
        "The address and port to listen on. Any address but loopback makes every request need a key.",
        "127.0.0.1:7420",
    ),
    key(
        "allowedHosts",
        Kind::Texts(Rule::Host, 0),
        NONE,
        "Host names, without port, that requests may be addressed to, besides the bound address and `localhost`.",
        "[gantry.example.com]",
    ),
    key(
        "allowedOrigins",
        Kind::Texts(Rule::Origin, 0),
        NONE,
        "Origins of web pages that may call Gantry from a browser, besides its own page.",
        r#"["https://app.example.com"]"#,
    ),
];

const QUEUE: &[Key] = &[
    key(
        "concurrent",
        number(Unit::Plain, Zero::Refused, 65_536),
        Fallback::Required,
        "How many calls of this queue run at once.",
        "3",
    ),
    key(
        "maxWaiting",
        number(Unit::Plain, Zero::Default, 100_000),
        Fallback::Number(1000),
        "How many calls may wait; more are refused with QUEUE_FULL.",
        "100",
    ),
    key(
        "scope",
        Kind::Choice(&["node"], &["cluster"]),
        Fallback::Text("node"),
        "Where the bound counts: `node` is this process.",
        "node",
    ),
];

// What is said alike of the tools of every provider.
const TOOLS_ALLOWED: Key = key(
    "toolsAllowed",
    Kind::Texts(Rule::Pattern, 0),
    Fallback::Absent("all"),
    "The only tools to offer: names or globs. `[]` offers none.",
    r#"["read_*", list_directory]"#,
);
const TOOLS_DENIED: Key = key(
    "toolsDenied",
    Kind::Texts(Rule::Pattern, 0),
    NONE,
    "Tools to leave out: names or globs. It wins over `toolsAllowed`.",
    r#"["delete_*"]"#,
);
const PROVIDER_QUEUE: Key = key(
    "queue",
    Kind::Queue,
    Fallback::Absent("no queue"),
    "The queue that calls of these tools go through.",
    "disk",
);
const CACHE: Key = key(
    "cache",
    number(Unit::Milliseconds, Zero::Off, 30 * DAY),
    Fallback::Number(0),
    "How long a successful result of a tool that says it only reads answers the same call again. `toolsCache` names others.",
    "300000",
);
const REQUEST_TIMEOUT: Key = key(
    "requestTimeoutMs",
    number(Unit::Milliseconds, Zero::Default, DAY),
    Fallback::Absent("`defaults.toolTimeout`"),
    "How long one of these tools may run.",
    "20000",
);
const TOOLS_CACHE: Key = key(
    "toolsCache",
    Kind::PerTool(&number(Unit::Milliseconds, Zero::Off, 30 * DAY)),
    Fallback::Absent("`cache` for every tool"),
    "`cache` for single tools.",
    "{ read_file: 0, list_directory: 5000 }",
);
const TOOLS_QUEUE: Key = key(
    "toolsQueue",
    Kind::PerTool(&Kind::QueueOrNone),
    Fallback::Absent("`queue` for every tool"),
    "`queue` for single tools; null (in TOML: false) is no queue.",
    "{ delete_file: disk, read_file: null }",
);
const TOOLS_TIMEOUT: Key = key(
    "toolsTimeout",
    Kind::PerTool(&number(Unit::Milliseconds, Zero::Default, DAY)),
    Fallback::Absent("`requestTimeoutMs` for every tool"),
    "`requestTimeoutMs` for single tools.",
    "{ delete_file: 120000 }",
);

const POLICY: &[Key] = &[
    key(
        "name",
        Kind::Text(Rule::Name),
        Fallback::Required,
        "What logs and refusals call the rule.",
        "no-secrets",
    ),
    key(
        "tools",
        Kind::Texts(Rule::Pattern, 1),
        Fallback::Required,
        "The tools it is about: names or globs, at least one.",
        r#"["read_file", "*_file"]"#,
    ),
    key(
        "when",
        Kind::Text(Rule::NotEmpty),
        Fallback::Absent("always"),
        "A condition in CEL over `args`, the arguments of the call, and `tool`, `agent`, `principal`, `project`, `role`.",
        r#""args.path.endsWith('.pem')""#,
    ),
    key(
        "decide",
        Kind::Choice(&["deny", "ask"], &[]),
        Fallback::Required,
        "Refuse the call, or ask a person.",
        "deny",
    ),
    key("reason", Kind::Text(Rule::Any), NONE, "What the caller is told.", "Keys stay private"),
    key(
        "approvers",
        Kind::Texts(Rule::Approver, 1),
        Fallback::Absent("those of the tool under `approvals`"),
        "Of a rule that asks: who may decide, by the names of their keys, or `person` for who has the data folder.",
        "[ann, person]",
    ),
    section(
        "examples",
        Kind::Section(EXAMPLES),
        "Arguments and what the rule must say to them; checked whenever the configuration is loaded.",
    ),
];

const EXAMPLES: &[Key] = &[
    key("deny", Kind::Arguments, NONE, "Calls that must be refused.", "[{ path: a.pem }]"),
    key("ask", Kind::Arguments, NONE, "Calls that a person must be asked about.", "[]"),
    key("pass", Kind::Arguments, NONE, "Calls that the rule must leave alone.", "[{ path: a.txt }]"),
];

const STORE: &[Key] = &[key(
    "url",
    Kind::Text(Rule::StoreUrl),
    Fallback::Text("sqlite://.gantry/gantry.db"),
    "The database. `.gantry/` at the start of the path stands for the data folder, wherever that is; another relative \
     path starts at the folder that holds the data folder.",
    "sqlite:///var/lib/gantry/gantry.db",
)];
