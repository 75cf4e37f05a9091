//! Keys that editors write into the entries of their MCP servers and that mean nothing here. Each doc comment is what the
//! warning says.
//!
//! Keys of editors that mean the same as one of Gantry's are aliases of its field.

use super::compose::Ignored;
use schemars::JsonSchema;
use serde::Deserialize;

/// Keys of editors without effect.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EditorServerKeys {
    /// "approvals" and "policies" decide which calls wait
    always_allow: Ignored,
    /// "approvals" and "policies" decide which calls wait
    auto_approve: Ignored,
    /// "approvals" and "policies" decide which calls wait
    trust: Ignored,
    /// its unit differs between editors; write "requestTimeoutMs"
    timeout: Ignored,
    /// write the variables into "env", as ${VAR}, and their values into .env beside the configuration
    env_file: Ignored,
    /// write the token into "headers", as ${VAR}
    oauth: Ignored,
    /// it is for editors
    dev: Ignored,
    /// it is for editors
    gallery: Ignored,
    /// the id is its name
    name: Ignored,
    /// it is for editors
    version: Ignored,
}
