//! The keys of a project besides the file's own.

use super::{POLICY, agents, approvals, catalogue, defaults, key, later, own, refused, rest, servers};
use crate::config::table::{Fallback, Key, Kind};
use crate::config::text::Rule;

pub(super) const PROJECT: &[Key] = &[
    key(
        "workspace",
        Kind::Text(Rule::Path),
        Fallback::Required,
        "The folder that its workspace tools work in. A relative path starts at the folder of the configuration file.",
        "../other",
    ),
    key(
        "defaults",
        Kind::Section(defaults::PROJECT_DEFAULTS),
        NOTHING,
        "As `defaults`; what it leaves out or sets to 0 is as it is there. `maxConcurrentCalls` and `mcpInitConcurrency` \
         count for the whole process and are not taken here.",
        "{ toolTimeout: 30000 }",
    ),
    key(
        "tools",
        Kind::Catalogue(&catalogue::TOOLS),
        NOTHING,
        "As `tools`, for this project only.",
        "{ workspace: { enabled: false } }",
    ),
    key(
        "mcpServers",
        Kind::Servers(servers::SERVER),
        NOTHING,
        "As `mcpServers`, for this project only.",
        r#"{ memory: { command: npx, args: ["-y", "@modelcontextprotocol/server-memory"] } }"#,
    ),
    key(
        "restTools",
        Kind::Services(Rule::RestTool, rest::TOOL),
        NOTHING,
        "As `restTools`, for this project only.",
        r#"{ weather: { description: "The weather in a city", url: "https://api.example.com/weather" } }"#,
    ),
    key(
        "openapiSpecs",
        Kind::Services(Rule::Api, rest::API),
        NOTHING,
        "As `openapiSpecs`, for this project only.",
        "{ petstore: { spec: ./petstore.yaml } }",
    ),
    key(
        "agents",
        Kind::Named(agents::AGENT),
        NOTHING,
        "As `agents`, for this project only.",
        r#"{ reader: { tools: ["read_*"] } }"#,
    ),
    key(
        "approvals",
        Kind::Section(approvals::APPROVALS),
        NOTHING,
        "As `approvals`. Those at the top of the file are not inherited.",
        "{ requiresApprovalTools: all }",
    ),
    key(
        "policies",
        Kind::Items(POLICY),
        NOTHING,
        "As `policies`. Those at the top of the file are not inherited.",
        r#"[{ name: no-deletes, tools: ["delete_*"], decide: deny }]"#,
    ),
    own::CODE,
    own::WEB,
    own::GIT,
    own::SEARCH,
    refused("server", ONCE),
    refused("queues", "is set once, at the top of the file, and shared by all projects; move it there"),
    refused("store", ONCE),
    refused("projects", ONCE),
    later("models"),
    later("auth"),
];

const NOTHING: Fallback = Fallback::Absent("empty");
const ONCE: &str = "is set once, at the top of the file; move it there";
