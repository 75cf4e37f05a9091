//! The keys themselves, section by section.

mod servers;

use super::{Fallback, Key, Kind, Number, Unit, Zero};
use crate::config::text::Rule;

const SECOND: u64 = 1000;
const DAY: u64 = 24 * 3600 * SECOND;

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
    section("defaults", Kind::Section(DEFAULTS), "Limits for every call that nothing more specific decides."),
    section("queues", Kind::Named(QUEUE), "Named queues that bound how many calls run at once."),
    section(
        "tools",
        Kind::Catalogue(TOOLS),
        "The catalogue of tools. This version knows the id `workspace`: Gantry's own workspace tools.",
    ),
    section(
        "mcpServers",
        Kind::Servers(servers::SERVER),
        "MCP servers, by id, in the shape that editors use. The id is the namespace of their tools: `github__search_code`.",
    ),
    section("agents", Kind::Named(AGENT), "Agents and the tools each may use."),
    section("approvals", Kind::Section(APPROVALS), "Which calls wait for a person."),
    section("policies", Kind::Items(POLICY), "Rules that refuse calls or ask a person about them."),
    section("store", Kind::Section(STORE), "Where Gantry keeps its records."),
    later("restTools"),
    later("openapiSpecs"),
    later("models"),
    later("code"),
    later("web"),
    later("auth"),
    later("projects"),
];

static SERVER: &[Key] = &[
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
        Fallback::Absent("none"),
        "Host names, without port, that requests may be addressed to, besides the bound address and `localhost`.",
        "[gantry.example.com]",
    ),
    key(
        "allowedOrigins",
        Kind::Texts(Rule::Origin, 0),
        Fallback::Absent("none"),
        "Origins of web pages that may call Gantry from a browser, besides its own page.",
        r#"["https://app.example.com"]"#,
    ),
];

static DEFAULTS: &[Key] = &[
    key(
        "toolTimeout",
        number(Unit::Milliseconds, Zero::Default, DAY),
        Fallback::Number(60_000),
        "How long a tool may run before its call fails.",
        "30000",
    ),
    key(
        "toolResponseMaxBytes",
        number(Unit::Bytes, Zero::Default, 100_000_000),
        Fallback::Number(100_000),
        "The largest result that is passed on whole; a larger one is stored and a handle takes its place.",
        "50000",
    ),
    key(
        "maxDepth",
        number(Unit::Plain, Zero::Default, 16),
        Fallback::Number(2),
        "How deep agents may call agents.",
        "3",
    ),
    key(
        "contextBudgetTokens",
        number(Unit::Tokens, Zero::Refused, 1_000_000_000),
        Fallback::Absent("no budget"),
        "How many tokens of tool results one session may receive. Each process counts for itself.",
        "200000",
    ),
    key(
        "outputRetentionMs",
        number(Unit::Milliseconds, Zero::Default, 365 * DAY),
        Fallback::Number(3_600_000),
        "How long stored results stay readable after their session has ended.",
        "86400000",
    ),
    key(
        "maxConcurrentCalls",
        number(Unit::Plain, Zero::Default, 65_536),
        Fallback::Number(1024),
        "Calls in flight in the whole process; more are refused with QUEUE_FULL.",
        "256",
    ),
    key(
        "mcpInitConcurrency",
        number(Unit::Plain, Zero::Default, 64),
        Fallback::Number(8),
        "How many MCP servers start at once.",
        "4",
    ),
    key(
        "traceMCP",
        Kind::Flag,
        Fallback::Flag(false),
        "Log every message to and from every MCP server, with secrets masked.",
        "true",
    ),
];

static QUEUE: &[Key] = &[
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

static TOOLS: &[Key] = &[section("workspace", Kind::Section(SOURCE), "Gantry's own workspace tools.")];

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
    Fallback::Absent("none"),
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

static SOURCE: &[Key] = &[
    key(
        "kind",
        Kind::Choice(&["builtin"], &["mcp"]),
        Fallback::Text("builtin"),
        "What provides the tools.",
        "builtin",
    ),
    key("enabled", Kind::Flag, Fallback::Flag(true), "Whether these tools exist at all.", "false"),
    TOOLS_ALLOWED,
    TOOLS_DENIED,
    PROVIDER_QUEUE,
    CACHE,
    REQUEST_TIMEOUT,
    TOOLS_CACHE,
    TOOLS_QUEUE,
    TOOLS_TIMEOUT,
    later("builtinPolicy"),
];

static AGENT: &[Key] = &[
    key(
        "description",
        Kind::Text(Rule::Any),
        Fallback::Absent("none"),
        "What the agent is for.",
        "Reads, never writes",
    ),
    key(
        "tools",
        Kind::Texts(Rule::Pattern, 0),
        Fallback::Absent(r#"`["*"]`"#),
        "The tools it may use: names, globs, `*` for all, `@namespace/tool`. `[]` is none.",
        r#"["read_*", "@workspace/list_directory"]"#,
    ),
    later("model"),
    later("prompt"),
    later("router"),
    later("surface"),
    later("memory"),
    later("limits"),
    later("guardrails"),
];

static APPROVALS: &[Key] = &[
    key(
        "requiresApprovalTools",
        Kind::Gated,
        Fallback::Text("none"),
        "The tools whose calls wait for a person: `all`, `none`, or a list of names and globs.",
        r#"["write_file", "delete_*"]"#,
    ),
    later("approvalTimeoutMs"),
    later("autoRejectOnTimeout"),
    later("defaultDelayMs"),
    later("toolSpecificDelays"),
    later("delivery"),
];

static POLICY: &[Key] = &[
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
        "A condition in CEL over `args`, the arguments of the call.",
        r#""args.path.endsWith('.pem')""#,
    ),
    key(
        "decide",
        Kind::Choice(&["deny", "ask"], &[]),
        Fallback::Required,
        "Refuse the call, or ask a person.",
        "deny",
    ),
    key(
        "reason",
        Kind::Text(Rule::Any),
        Fallback::Absent("none"),
        "What the caller is told.",
        "Keys stay private",
    ),
    section(
        "examples",
        Kind::Section(EXAMPLES),
        "Arguments and what the rule must say to them; checked whenever the configuration is loaded.",
    ),
];

static EXAMPLES: &[Key] = &[
    key(
        "deny",
        Kind::Arguments,
        Fallback::Absent("none"),
        "Calls that must be refused.",
        "[{ path: a.pem }]",
    ),
    key("ask", Kind::Arguments, Fallback::Absent("none"), "Calls that a person must be asked about.", "[]"),
    key(
        "pass",
        Kind::Arguments,
        Fallback::Absent("none"),
        "Calls that the rule must leave alone.",
        "[{ path: a.txt }]",
    ),
];

static STORE: &[Key] = &[key(
    "url",
    Kind::Text(Rule::StoreUrl),
    Fallback::Text("sqlite://.gantry/gantry.db"),
    "The database. `.gantry/` at the start of the path stands for the data folder, wherever that is; another relative \
     path starts at the folder that holds the data folder.",
    "sqlite:///var/lib/gantry/gantry.db",
)];
