//! The keys of an agent: in the configuration, in a file of its own, and in the front matter of a Markdown file.

use super::{NONE, inert, key};
use crate::config::table::{Fallback, Key, Kind};
use crate::config::text::Rule;

/// In the configuration.
pub(super) const AGENT: &[Key] = &[
    DESCRIPTION,
    TOOLS,
    MODEL,
    PROMPT,
    inert("guardrails"),
    inert("memory"),
    inert("limits"),
    inert("router"),
    inert("surface"),
];

/// In `agents/<name>/agent.json`.
pub(in crate::config) static AGENT_JSON: &[Key] = &[
    key(
        "name",
        Kind::Text(Rule::Title),
        NONE,
        "What people are shown. The agent's name is that of the folder.",
        "The researcher",
    ),
    DESCRIPTION,
    TOOLS,
    MODEL,
    // It is not written for Gantry, and may be about `${VAR}` without meaning it.
    key(PROMPT.name, Kind::Verbatim, NONE, PROMPT.meaning, PROMPT.example),
    inert("guardrails"),
    inert("memory"),
    inert("limits"),
    inert("router"),
    inert("surface"),
    inert("region"),
    inert("ui"),
    inert("icon"),
    inert("maxSteps"),
    inert("skills"),
    inert("prompts"),
    inert("commands"),
    inert("streaming"),
];

/// In the front matter of `agents/<name>.md`. Keys that are not listed are those of editors.
pub(in crate::config) static FRONT_MATTER: &[Key] = &[
    key(
        "name",
        Kind::Text(Rule::Title),
        Fallback::Absent("the name of the file, without `.md`"),
        "The agent's name. One that is none is what people are shown.",
        "researcher",
    ),
    DESCRIPTION,
    TOOLS,
    MODEL,
];

const DESCRIPTION: Key =
    key("description", Kind::Text(Rule::Any), NONE, "What the agent is for.", "Reads, never writes");
const TOOLS: Key = key(
    "tools",
    Kind::AgentTools(AGENT_TOOLS),
    Fallback::Absent(r#"`["*"]`"#),
    "The tools it may use: names, globs, `*` for all, `@namespace/tool`. `[]` is none. Or a group, which says more.",
    r#"["read_*", "@workspace/list_directory"]"#,
);
const MODEL: Key = key(
    "model",
    Kind::Text(Rule::Any),
    NONE,
    "The model it is meant for. This version keeps it and runs no model.",
    "main",
);
const PROMPT: Key = key(
    "prompt",
    Kind::Text(Rule::Any),
    NONE,
    "What it is told to be. This version keeps it and runs no model.",
    "You read and summarise.",
);

const AGENT_TOOLS: &[Key] = &[
    key(
        "use",
        Kind::Texts(Rule::Use, 0),
        // Programs that share this form block what is not in use, so its absence must not mean all.
        Fallback::Required,
        "The tools it has: names and globs as above, or the id of an MCP server or of an entry of the catalogue for all \
         tools of that one. `[]` is none.",
        r#"[github, "read_*"]"#,
    ),
    key(
        "allowed",
        Kind::Texts(Rule::Pattern, 0),
        Fallback::Absent("all of `use`"),
        "The only ones of them that it may call: names, globs and aliases. `[]` and `[\"*\"]` are all of `use`.",
        r#"[read, "github__search_*"]"#,
    ),
    key(
        "aliases",
        Kind::Aliases,
        NONE,
        "Other names for single tools. Both names work, and either one in `allowed` or `autoApprove` means both.",
        r#"{ read: "@workspace/read_file" }"#,
    ),
    key(
        "autoApprove",
        Kind::Texts(Rule::Pattern, 0),
        NONE,
        "Tools whose own rule need not ask a person for this agent: names, globs and aliases. `approvals` and `policies` \
         still decide.",
        r#"["read_*"]"#,
    ),
];
