//! The catalogue of tools: `tools` in the configuration, and files `tools/<id>/tool.json`.

use crate::config::compose::{Ignored, Refused};
use gantry_core::options::{DAY, HOUR, Millis, OneOrMore, PathText, ServerId, read_as};
use gantry_runtime::options::ProviderOptions;
use gantry_tools::options::BuiltinPolicy;
use gantry_upstream::options::ServerOptions;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

// The text of the reference is that of the key.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
pub struct Tools {
    /// Gantry's own workspace tools.
    #[serde(default)]
    pub workspace: WorkspaceTools,
    #[serde(rename = "..others")]
    #[schemars(flatten)]
    pub(in crate::config) entries: BTreeMap<ServerId, CatalogueEntry>,
}

// Gantry's own workspace tools.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceTools {
    #[serde(rename = "..options")]
    #[schemars(flatten)]
    pub options: ProviderOptions,
    /// What provides the tools.
    kind: Option<Kind>,
    /// is for other ids; the own tools have the whole workspace
    builtin_policy: Option<Refused>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Kind {
    Builtin,
}

/// An entry of the catalogue of tools: an MCP server (`kind: mcp`), or Gantry's tools on a part of the workspace
/// (`kind: builtin`).
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename = "$tag:kind", rename_all = "lowercase")]
#[schemars(rename = "CatalogueEntry", tag = "kind")]
pub(in crate::config) enum CatalogueEntry {
    Mcp(Box<CatalogueServer>),
    Builtin(Box<Builtin>),
}

// An MCP server of the catalogue.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::config) struct CatalogueServer {
    #[serde(rename = "..server")]
    #[schemars(flatten)]
    pub(in crate::config) options: ServerOptions,
    #[serde(rename = "..tools")]
    #[schemars(flatten)]
    pub(in crate::config) tools: ProviderOptions,
    /// The id of the entry. It must be the same as its key or its folder.
    pub(in crate::config) id: Option<String>,
    /// A note for people.
    display_name: Option<String>,
    /// Time limits, in the form that other programs use.
    pub(in crate::config) timeouts: Timeouts,
    /// nothing is restricted by it; a server can do what the user can who runs Gantry
    permissions: Ignored,
    #[serde(rename = "..missing")]
    #[schemars(skip)]
    pub(in crate::config) missing: String,
}

/// Gantry's tools on a part of the workspace.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Builtin {
    #[serde(rename = "..options")]
    #[schemars(flatten)]
    pub options: ProviderOptions,
    /// The id of the entry. It must be the same as its key or its folder.
    pub(in crate::config) id: Option<String>,
    /// A note for people.
    display_name: Option<String>,
    /// A note for people.
    description: Option<String>,
    /// What the tools do, and where.
    #[serde(rename = "builtinPolicy")]
    pub policy: BuiltinPolicy,
    /// Time limits, in the form that other programs use.
    #[serde(default)]
    pub(in crate::config) timeouts: Timeouts,
    /// Limits of the tools, in the form that other programs use.
    #[serde(default)]
    pub(in crate::config) permissions: Permissions,
    /// these tools are always there
    #[serde(default)]
    health_check: Ignored,
}

/// Other spellings of two timeouts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::config) struct Timeouts {
    /// Another spelling of `startupTimeoutMs`. Only for `kind: mcp`.
    pub(in crate::config) startup_ms: Millis<0, HOUR>,
    /// Another spelling of `requestTimeoutMs`.
    pub(in crate::config) request_ms: Millis<0, DAY>,
}

/// Limits of the tools, in the form that other programs use.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::config) struct Permissions {
    /// The only folders and files that the tools touch. A relative path starts at the workspace, and no path leaves
    /// it.
    #[serde(deserialize_with = "read_as::<OneOrMore<PathText>, _, _>")]
    #[schemars(with = "OneOrMore<PathText>")]
    pub(in crate::config) allowed_paths: Vec<PathBuf>,
    /// Only `true`, which restricts nothing.
    pub(in crate::config) filesystem: Option<Value>,
    /// tools on files use no network
    network: Ignored,
}
