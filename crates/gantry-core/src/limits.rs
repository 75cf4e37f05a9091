//! Every limit that has one value for the whole program, with the reason for the number.

/// Nesting that JSON from outside may have; serde_json stops at the same depth.
pub const JSON_DEPTH: usize = 128;
/// Nesting of JSON that is only split into its members: a bound for the scanner's stack, which takes 48 bytes a level.
pub(crate) const JSON_SKIPPED_DEPTH: usize = 10_000;
/// A displayed tool name: what model interfaces commonly take.
pub const TOOL_NAME_CHARS: usize = 64;
/// A name pattern. Longer ones are typing accidents or attacks.
pub const PATTERN_BYTES: usize = 512;
/// Wildcards in one pattern; matching costs at most this many passes over a name.
pub(crate) const PATTERN_WILDCARDS: usize = 16;
/// A tool's schema as text. Larger ones are quarantined before they are parsed.
pub const SCHEMA_BYTES: usize = 256 * 1024;
/// Schema nodes after following every `$ref`: what a validation may cost at most per value.
pub const SCHEMA_EXPANDED_NODES: u64 = 10_000;
/// Depth of a schema after following every `$ref`.
pub const SCHEMA_DEPTH: usize = 64;
/// The compiled size of one `pattern` in a schema: it compiles in a few milliseconds, and `^.{1,255}$` fits.
pub const SCHEMA_REGEX_BYTES: usize = 512 * 1024;
/// Different patterns of one schema that are enforced.
pub const SCHEMA_PATTERNS: usize = 128;
/// Failing fields that one error names; the rest is counted.
pub const VALIDATION_ERRORS: usize = 20;
/// Tools that one provider may bring.
pub const TOOLS_PER_PROVIDER: usize = 25_000;
/// Arguments of one call.
pub const ARGUMENT_BYTES: usize = 16 * 1024 * 1024;
/// An idempotency key.
pub(crate) const IDEMPOTENCY_KEY_BYTES: usize = 256;
/// Closest names that a "tool not found" offers.
pub(crate) const SUGGESTIONS: usize = 3;
/// Aliases of one agent; each is looked at whenever its tools are put together.
pub(crate) const ALIASES_PER_AGENT: usize = 1000;
/// Entries of an allow-list that an explanation quotes; the rest is counted.
pub(crate) const ENTRIES_SHOWN: usize = 5;
/// A function's description: OpenAI's interface refuses the whole request for a longer one.
pub(crate) const FUNCTION_DESCRIPTION_BYTES: usize = 1024;
/// Source text of one policy condition.
pub(crate) const CONDITION_BYTES: usize = 4096;
/// Arguments as the ledger and the log keep them; longer ones are cut.
pub const RECORDED_ARGUMENT_BYTES: usize = 4096;
