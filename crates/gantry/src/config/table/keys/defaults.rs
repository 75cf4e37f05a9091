//! The limits for calls, of a file and of a project.

use super::{DAY, key, number, refused};
use crate::config::table::{Fallback, Key, Kind, Unit, Zero};

pub(super) const DEFAULTS: &[Key] =
    &[TOOL_TIMEOUT, RESPONSE_MAX, MAX_DEPTH, CONTEXT_BUDGET, RETENTION, MAX_CALLS, INIT_CONCURRENCY, TRACE];

/// Those of a project. What bounds the process as a whole is not a project's to say.
pub(super) const PROJECT_DEFAULTS: &[Key] = &[
    TOOL_TIMEOUT,
    RESPONSE_MAX,
    MAX_DEPTH,
    CONTEXT_BUDGET,
    RETENTION,
    refused("maxConcurrentCalls", WHOLE_PROCESS),
    refused("mcpInitConcurrency", WHOLE_PROCESS),
    TRACE,
];

const WHOLE_PROCESS: &str = "counts for the whole process; set it under \"defaults\" at the top of the file";

const TOOL_TIMEOUT: Key = key(
    "toolTimeout",
    number(Unit::Milliseconds, Zero::Default, DAY),
    Fallback::Number(60_000),
    "How long a tool may run before its call fails.",
    "30000",
);
const RESPONSE_MAX: Key = key(
    "toolResponseMaxBytes",
    number(Unit::Bytes, Zero::Default, 100_000_000),
    Fallback::Number(100_000),
    "The largest result that is passed on whole; a larger one is stored and a handle takes its place.",
    "50000",
);
const MAX_DEPTH: Key = key(
    "maxDepth",
    number(Unit::Plain, Zero::Default, 16),
    Fallback::Number(2),
    "How deep agents may call agents.",
    "3",
);
const CONTEXT_BUDGET: Key = key(
    "contextBudgetTokens",
    number(Unit::Tokens, Zero::Refused, 1_000_000_000),
    Fallback::Absent("no budget"),
    "How many tokens of tool results one session may receive. Each process counts for itself.",
    "200000",
);
const RETENTION: Key = key(
    "outputRetentionMs",
    number(Unit::Milliseconds, Zero::Default, 365 * DAY),
    Fallback::Number(3_600_000),
    "How long stored results stay readable after their session has ended.",
    "86400000",
);
const MAX_CALLS: Key = key(
    "maxConcurrentCalls",
    number(Unit::Plain, Zero::Default, 65_536),
    Fallback::Number(1024),
    "Calls in flight in the whole process; more are refused with QUEUE_FULL.",
    "256",
);
const INIT_CONCURRENCY: Key = key(
    "mcpInitConcurrency",
    number(Unit::Plain, Zero::Default, 64),
    Fallback::Number(8),
    "How many MCP servers start at once.",
    "4",
);
const TRACE: Key = key(
    "traceMCP",
    Kind::Flag,
    Fallback::Flag(false),
    "Log every message to and from every MCP server, with secrets masked.",
    "true",
);
