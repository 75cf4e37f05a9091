//! The keys of one MCP server.

use super::{
    CACHE, DAY, PROVIDER_QUEUE, REQUEST_TIMEOUT, SECOND, TOOLS_ALLOWED, TOOLS_CACHE, TOOLS_DENIED,
    TOOLS_QUEUE, TOOLS_TIMEOUT, key, number, section,
};
use crate::config::table::{Fallback, Key, Kind, Unit, Zero};
use crate::config::text::Rule;

const NONE: Fallback = Fallback::Absent("none");

pub(super) static SERVER: &[Key] = &[
    key("description", Kind::Text(Rule::Any), NONE, "A note for people.", "Issues and code"),
    key(
        "type",
        // The spellings after `tcp` are those of editors.
        Kind::Choice(
            &["stdio", "http", "sse", "websocket", "tcp", "ws", "streamable-http", "streamableHttp"],
            &[],
        ),
        Fallback::Absent("`stdio` with `command`, `http` with `url`"),
        "How it is reached. `http` is streamable HTTP, `sse` the older HTTP+SSE, `tcp` a JSON message per line.",
        "http",
    ),
    key(
        "command",
        Kind::Text(Rule::NotEmpty),
        NONE,
        "The program to start, found by PATH; no shell reads it.",
        "npx",
    ),
    key(
        "args",
        Kind::Texts(Rule::Any, 0),
        NONE,
        "Its arguments.",
        r#"["-y", "@modelcontextprotocol/server-memory"]"#,
    ),
    key(
        "env",
        Kind::Secrets(Rule::Variable),
        NONE,
        "Its environment. Of Gantry's own it gets PATH, HOME, LANG and TMPDIR, and nothing else.",
        r#"{ LOG_LEVEL: "${LOG_LEVEL:-info}" }"#,
    ),
    key(
        "cwd",
        Kind::Text(Rule::Path),
        Fallback::Absent("the folder of the configuration"),
        "The folder it works in.",
        "./servers",
    ),
    key(
        "replicas",
        number(Unit::Plain, Zero::Default, 64),
        Fallback::Number(1),
        "How many of it run; a call goes to the one with the least to do. For `stdio`.",
        "2",
    ),
    key(
        "url",
        Kind::Text(Rule::NotEmpty),
        NONE,
        "Where it listens: `http(s)://` for `http` and `sse`, `ws(s)://` for `websocket`, `tcp://host:port` for `tcp`.",
        "https://mcp.example.com/mcp",
    ),
    key(
        "urls",
        Kind::Texts(Rule::NotEmpty, 1),
        NONE,
        "The same server at several addresses, instead of `url`; a call goes to the one with the least to do.",
        r#"["http://10.0.0.1:8000/mcp", "http://10.0.0.2:8000/mcp"]"#,
    ),
    key(
        "address",
        Kind::Text(Rule::NotEmpty),
        NONE,
        "`host:port`, instead of `url`, for `tcp`.",
        "127.0.0.1:9000",
    ),
    key(
        "headers",
        Kind::Secrets(Rule::Header),
        NONE,
        "Sent with every request.",
        r#"{ Authorization: "Bearer ${MCP_TOKEN:-none}" }"#,
    ),
    key("enabled", Kind::Flag, Fallback::Flag(true), "Whether it is started at all.", "false"),
    key(
        "disabled",
        Kind::Flag,
        Fallback::Flag(false),
        "The opposite of `enabled`, as editors write it.",
        "true",
    ),
    TOOLS_ALLOWED,
    TOOLS_DENIED,
    PROVIDER_QUEUE,
    CACHE,
    REQUEST_TIMEOUT,
    TOOLS_CACHE,
    TOOLS_QUEUE,
    TOOLS_TIMEOUT,
    key(
        "startupTimeoutMs",
        number(Unit::Milliseconds, Zero::Default, 3600 * SECOND),
        Fallback::Number(15_000),
        "How long one try to start it may take. It is tried again in the background.",
        "60000",
    ),
    section("healthCheck", Kind::Section(HEALTH_CHECK), "How it is watched."),
    key(
        "protocol",
        Kind::Choice(&["auto", "legacy", "modern"], &[]),
        Fallback::Text("auto"),
        "The protocol to speak with it: `legacy` is 2024-11-05 to 2025-11-25, `modern` 2026-07-28, `auto` finds out.",
        "legacy",
    ),
    key(
        "prefix",
        Kind::Flag,
        Fallback::Flag(true),
        "Whether its names and URIs are shown under its id. Without, a tool whose name belongs to somebody else is left out.",
        "false",
    ),
    key(
        "traceMCP",
        Kind::Flag,
        Fallback::Absent("`defaults.traceMCP`"),
        "Log every message to and from it, with secrets masked.",
        "true",
    ),
    key(
        "elicitation",
        Kind::Flag,
        Fallback::Flag(true),
        "Whether it may have people asked, where the client can ask them.",
        "false",
    ),
    key(
        "sampling",
        Kind::Flag,
        Fallback::Flag(true),
        "Whether it may have the client's model asked, where the client allows it.",
        "false",
    ),
    key(
        "roots",
        Kind::Flag,
        Fallback::Flag(false),
        "Whether it is told the client's roots. Off, because some servers replace the folders they were allowed to \
         touch by whatever roots a client names.",
        "true",
    ),
];

static HEALTH_CHECK: &[Key] = &[
    key(
        "intervalMs",
        number(Unit::Milliseconds, Zero::Default, DAY),
        Fallback::Number(30_000),
        "How often it is asked whether it is there.",
        "10000",
    ),
    key(
        "timeoutMs",
        number(Unit::Milliseconds, Zero::Default, 3600 * SECOND),
        Fallback::Number(5000),
        "How long it may take to answer.",
        "2000",
    ),
];
