//! The keys of an entry of the catalogue of tools, in the configuration or in `tools/<id>/tool.json`.

use super::{
    CACHE, DAY, NONE, PROVIDER_QUEUE, REQUEST_TIMEOUT, SECOND, TOOLS_ALLOWED, TOOLS_CACHE, TOOLS_DENIED,
    TOOLS_QUEUE, TOOLS_TIMEOUT, granted, inert, key, number, refused, section, servers, without_effect,
};
use crate::config::table::{Catalogue, Fallback, Key, Kind, Unit, Zero};
use crate::config::text::Rule;

/// What the catalogue holds.
pub(in crate::config) static TOOLS: Catalogue = Catalogue { own: OWN, builtin: BUILTIN, mcp: MCP };

const OWN: &[Key] = &[
    key(
        "kind",
        Kind::Choice(&["builtin"], &[]),
        Fallback::Text("builtin"),
        "What provides the tools.",
        "builtin",
    ),
    ENABLED,
    TOOLS_ALLOWED,
    TOOLS_DENIED,
    PROVIDER_QUEUE,
    CACHE,
    REQUEST_TIMEOUT,
    TOOLS_CACHE,
    TOOLS_QUEUE,
    TOOLS_TIMEOUT,
    refused("builtinPolicy", "is for other ids; the own tools have the whole workspace"),
];

const BUILTIN: &[Key] = &[
    KIND,
    ID,
    DISPLAY_NAME,
    servers::DESCRIPTION,
    key(
        "builtinPolicy",
        Kind::Section(POLICY),
        Fallback::Required,
        "What the tools do, and where.",
        "{ name: fs_read, allowedPaths: [./docs] }",
    ),
    ENABLED,
    EXPOSED_TOOLS,
    TOOLS_ALLOWED,
    TOOLS_DENIED,
    PROVIDER_QUEUE,
    CACHE,
    REQUEST_TIMEOUT,
    section("timeouts", Kind::Section(&[REQUEST, inert("startupMs")]), "How long things may take."),
    TOOLS_CACHE,
    TOOLS_QUEUE,
    TOOLS_TIMEOUT,
    section("permissions", Kind::Section(PERMISSIONS), "What the tools may do, as other programs write it."),
    inert("healthCheck"),
];

const MCP: &[Key] = &[
    KIND,
    ID,
    DISPLAY_NAME,
    servers::DESCRIPTION,
    key(
        "transport",
        Kind::Choice(
            &[
                "stdio",
                "process",
                "http",
                "streamable-http",
                "streamableHttp",
                "sse",
                "ws",
                "websocket",
                "tcp",
            ],
            &[],
        ),
        Fallback::Absent("`stdio` with `command`, `http` with `endpoint`"),
        "How it is reached, as `type` of `mcpServers`; `process` is `stdio`.",
        "stdio",
    ),
    servers::COMMAND,
    key(
        "args",
        Kind::Texts(Rule::Any, 0),
        NONE,
        "Its arguments. One that begins with `./` is a path from the folder of the configuration.",
        r#"["./servers/search.js"]"#,
    ),
    servers::ENV,
    servers::CWD,
    servers::REPLICAS,
    key(
        "endpoint",
        Kind::Text(Rule::NotEmpty),
        NONE,
        "Where it listens, as `url` of `mcpServers`.",
        "ws://127.0.0.1:9000/mcp",
    ),
    servers::HEADERS,
    servers::ENABLED,
    servers::DISABLED,
    EXPOSED_TOOLS,
    TOOLS_ALLOWED,
    TOOLS_DENIED,
    PROVIDER_QUEUE,
    CACHE,
    section("timeouts", Kind::Section(&[STARTUP, REQUEST]), "How long things may take."),
    REQUEST_TIMEOUT,
    servers::STARTUP_TIMEOUT,
    TOOLS_CACHE,
    TOOLS_QUEUE,
    TOOLS_TIMEOUT,
    section("healthCheck", Kind::Section(HEALTH_CHECK), "How it is watched."),
    servers::PROTOCOL,
    servers::PREFIX,
    servers::TRACE,
    servers::ELICITATION,
    servers::SAMPLING,
    servers::ROOTS,
    without_effect(
        "permissions",
        "has no effect: nothing is restricted by it; a server can do what the user can who runs Gantry",
    ),
    refused("type", "is called \"transport\" here; rename it"),
    refused("url", "is called \"endpoint\" here; rename it"),
];

const KIND: Key = key(
    "kind",
    Kind::Choice(&["mcp", "builtin"], &[]),
    Fallback::Required,
    "What provides the tools: an MCP server, or Gantry.",
    "mcp",
);
const ID: Key = key(
    "id",
    Kind::Text(Rule::ServerId),
    Fallback::Absent("the key, or the name of the folder"),
    "Its id, which it has already; another one is an error.",
    "search",
);
const DISPLAY_NAME: Key = key("displayName", Kind::Text(Rule::Any), NONE, "A note for people.", "Search");
const ENABLED: Key =
    key("enabled", Kind::Flag, Fallback::Flag(true), "Whether these tools exist at all.", "false");
const EXPOSED_TOOLS: Key = key(
    "exposedTools",
    Kind::Texts(Rule::Pattern, 0),
    Fallback::Absent("all"),
    "Another spelling of `toolsAllowed`.",
    r#"["search_*"]"#,
);
const STARTUP: Key = key(
    "startupMs",
    number(Unit::Milliseconds, Zero::Default, 3600 * SECOND),
    Fallback::Absent("`startupTimeoutMs`"),
    "Another spelling of `startupTimeoutMs`.",
    "30000",
);
const REQUEST: Key = key(
    "requestMs",
    number(Unit::Milliseconds, Zero::Default, DAY),
    Fallback::Absent("`requestTimeoutMs`"),
    "Another spelling of `requestTimeoutMs`.",
    "20000",
);

const POLICY: &[Key] = &[
    key(
        "name",
        Kind::Choice(&["fs_read", "fs_write", "shell_exec"], &[]),
        Fallback::Required,
        "Which tools: those that read files, those that write them, or the one that runs commands.",
        "fs_read",
    ),
    ALLOWED_PATHS,
    key(
        "timeout",
        number(Unit::Milliseconds, Zero::Default, DAY),
        Fallback::Absent("`requestTimeoutMs`"),
        "Another spelling of `requestTimeoutMs`.",
        "5000",
    ),
    key(
        "allowedCommands",
        Kind::Texts(Rule::NotEmpty, 1),
        Fallback::Absent("`shell_exec` needs it"),
        "The only commands that `shell_exec` runs: names of the system's programs, or absolute paths.",
        "[git, ls, /usr/bin/make]",
    ),
];

const PERMISSIONS: &[Key] = &[
    ALLOWED_PATHS,
    granted(
        "filesystem",
        "takes nothing away from these tools; write what they may touch into \"allowedPaths\", \"fs_read\" into \
         \"builtinPolicy.name\" if they shall only read, or switch them off with \"enabled\"",
    ),
    without_effect("network", "has no effect; tools on files use no network"),
];

const ALLOWED_PATHS: Key = key(
    "allowedPaths",
    Kind::Texts(Rule::Inside, 1),
    Fallback::Absent("the whole workspace"),
    "The only folders and files they touch. A relative path starts at the workspace, and none leaves it.",
    "[./docs, ./notes]",
);

const HEALTH_CHECK: &[Key] = &[
    key(
        "kind",
        Kind::Choice(&["jsonrpc", "http", "command"], &[]),
        Fallback::Text("jsonrpc"),
        "How it is asked. Gantry asks over the connection itself, which is `jsonrpc`, whatever this says.",
        "jsonrpc",
    ),
    inert("path"),
    servers::INTERVAL,
    servers::PATIENCE,
];
