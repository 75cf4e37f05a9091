//! The keys of one MCP server.

use super::{
    CACHE, DAY, NONE, PROVIDER_QUEUE, REQUEST_TIMEOUT, SECOND, TOOLS_ALLOWED, TOOLS_CACHE, TOOLS_DENIED,
    TOOLS_QUEUE, TOOLS_TIMEOUT, key, number, section,
};
use crate::config::table::{Fallback, Key, Kind, Unit, Zero};
use crate::config::text::Rule;

pub(super) const SERVER: &[Key] = &[
    DESCRIPTION,
    TYPE,
    COMMAND,
    ARGS,
    ENV,
    CWD,
    REPLICAS,
    URL,
    URLS,
    ADDRESS,
    HEADERS,
    ENABLED,
    DISABLED,
    TOOLS_ALLOWED,
    TOOLS_DENIED,
    PROVIDER_QUEUE,
    CACHE,
    REQUEST_TIMEOUT,
    TOOLS_CACHE,
    TOOLS_QUEUE,
    TOOLS_TIMEOUT,
    STARTUP_TIMEOUT,
    HEALTH,
    PROTOCOL,
    PREFIX,
    TRACE,
    ELICITATION,
    SAMPLING,
    ROOTS,
];

pub(super) const DESCRIPTION: Key =
    key("description", Kind::Text(Rule::Any), NONE, "A note for people.", "Issues and code");
const TYPE: Key = key(
    "type",
    // The spellings after `tcp` are those of editors.
    Kind::Choice(
        &["stdio", "http", "sse", "websocket", "tcp", "ws", "streamable-http", "streamableHttp"],
        &[],
    ),
    Fallback::Absent("`stdio` with `command`, `http` with `url`"),
    "How it is reached. `http` is streamable HTTP, `sse` the older HTTP+SSE, `tcp` a JSON message per line.",
    "http",
);
pub(super) const COMMAND: Key = key(
    "command",
    Kind::Text(Rule::NotEmpty),
    NONE,
    "The program to start, found by PATH; no shell reads it.",
    "npx",
);
pub(super) const ARGS: Key = key(
    "args",
    Kind::Texts(Rule::Any, 0),
    NONE,
    "Its arguments.",
    r#"["-y", "@modelcontextprotocol/server-memory"]"#,
);
pub(super) const ENV: Key = key(
    "env",
    Kind::Secrets(Rule::Variable),
    NONE,
    "Its environment. Of Gantry's own it gets PATH, HOME, LANG and TMPDIR, and nothing else.",
    r#"{ LOG_LEVEL: "${LOG_LEVEL:-info}" }"#,
);
pub(super) const CWD: Key = key(
    "cwd",
    Kind::Text(Rule::Path),
    Fallback::Absent("the folder of the configuration"),
    "The folder it works in.",
    "./servers",
);
pub(super) const REPLICAS: Key = key(
    "replicas",
    number(Unit::Plain, Zero::Default, 64),
    Fallback::Number(1),
    "How many of it run; a call goes to the one with the least to do. For `stdio`.",
    "2",
);
const URL: Key = key(
    "url",
    Kind::Text(Rule::NotEmpty),
    NONE,
    "Where it listens: `http(s)://` for `http` and `sse`, `ws(s)://` for `websocket`, `tcp://host:port` for `tcp`.",
    "https://mcp.example.com/mcp",
);
const URLS: Key = key(
    "urls",
    Kind::Texts(Rule::NotEmpty, 1),
    NONE,
    "The same server at several addresses, instead of `url`; a call goes to the one with the least to do.",
    r#"["http://10.0.0.1:8000/mcp", "http://10.0.0.2:8000/mcp"]"#,
);
const ADDRESS: Key = key(
    "address",
    Kind::Text(Rule::NotEmpty),
    NONE,
    "`host:port`, instead of `url`, for `tcp`.",
    "127.0.0.1:9000",
);
pub(super) const HEADERS: Key = key(
    "headers",
    Kind::Secrets(Rule::Header),
    NONE,
    "Sent with every request.",
    r#"{ Authorization: "Bearer ${MCP_TOKEN:-none}" }"#,
);
pub(super) const ENABLED: Key =
    key("enabled", Kind::Flag, Fallback::Flag(true), "Whether it is started at all.", "false");
pub(super) const DISABLED: Key = key(
    "disabled",
    Kind::Flag,
    Fallback::Flag(false),
    "The opposite of `enabled`, as editors write it.",
    "true",
);
pub(super) const STARTUP_TIMEOUT: Key = key(
    "startupTimeoutMs",
    number(Unit::Milliseconds, Zero::Default, 3600 * SECOND),
    Fallback::Number(15_000),
    "How long one try to start it may take. It is tried again in the background.",
    "60000",
);
const HEALTH: Key = section("healthCheck", Kind::Section(HEALTH_CHECK), "How it is watched.");
pub(super) const PROTOCOL: Key = key(
    "protocol",
    Kind::Choice(&["auto", "legacy", "modern"], &[]),
    Fallback::Text("auto"),
    "The protocol to speak with it: `legacy` is 2024-11-05 to 2025-11-25, `modern` 2026-07-28, `auto` finds out.",
    "legacy",
);
pub(super) const PREFIX: Key = key(
    "prefix",
    Kind::Flag,
    Fallback::Flag(true),
    "Whether its names and URIs are shown under its id. Without, a tool whose name belongs to somebody else is left out.",
    "false",
);
pub(super) const TRACE: Key = key(
    "traceMCP",
    Kind::Flag,
    Fallback::Absent("`defaults.traceMCP`"),
    "Log every message to and from it, with secrets masked.",
    "true",
);
pub(super) const ELICITATION: Key = key(
    "elicitation",
    Kind::Flag,
    Fallback::Flag(true),
    "Whether it may have people asked, where the client can ask them.",
    "false",
);
pub(super) const SAMPLING: Key = key(
    "sampling",
    Kind::Flag,
    Fallback::Flag(true),
    "Whether it may have the client's model asked, where the client allows it.",
    "false",
);
pub(super) const ROOTS: Key = key(
    "roots",
    Kind::Flag,
    Fallback::Flag(false),
    "Whether it is told the client's roots. Off, because some servers replace the folders they were allowed to \
     touch by whatever roots a client names.",
    "true",
);

const HEALTH_CHECK: &[Key] = &[INTERVAL, PATIENCE];

pub(super) const INTERVAL: Key = key(
    "intervalMs",
    number(Unit::Milliseconds, Zero::Default, DAY),
    Fallback::Number(30_000),
    "How often it is asked whether it is there.",
    "10000",
);
pub(super) const PATIENCE: Key = key(
    "timeoutMs",
    number(Unit::Milliseconds, Zero::Default, 3600 * SECOND),
    Fallback::Number(5000),
    "How long it may take to answer.",
    "2000",
);
