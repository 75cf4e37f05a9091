//! The `clients` step: MCP clients that others wrote, in their own languages, for the end-to-end tests,
//! and what drives a browser.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Outcome, install};
use crate::shell::target_dir;

const CLIENTS: &str = "crates/gantry-testkit/clients";

/// Where the clients are: `py` is a virtual environment, `node` has the scripts beside their `node_modules`.
pub(super) fn folder(root: &Path) -> PathBuf {
    target_dir(root).join("clients")
}

pub(super) fn ensure(root: &Path) -> Result<Outcome> {
    install::pip(&root.join(CLIENTS).join("requirements.txt"), &folder(root).join("py"), root)?;
    install::npm(&root.join(CLIENTS), &folder(root).join("node"), root)?;
    Ok(Outcome::Done)
}
