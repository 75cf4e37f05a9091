//! The `servers` step: MCP servers that others wrote, for the end-to-end tests to connect to.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Outcome, install};
use crate::shell::target_dir;

const SERVERS: &str = "crates/gantry-testkit/servers";

/// The virtual environments, each with its requirements. The second SDK breaks a server that was written for the first.
const ENVIRONMENTS: [(&str, &str); 2] = [("py", "requirements.txt"), ("py-mcp1", "requirements-mcp1.txt")];

/// Where the servers are: `node` has the `node_modules`, the others are virtual environments.
pub(super) fn folder(root: &Path) -> PathBuf {
    target_dir(root).join("servers")
}

pub(super) fn ensure(root: &Path) -> Result<Outcome> {
    let servers = root.join(SERVERS);
    for (name, requirements) in ENVIRONMENTS {
        install::pip(&servers.join(requirements), &folder(root).join(name), root)?;
    }
    install::npm(&servers, &folder(root).join("node"), root)?;
    Ok(Outcome::Done)
}
