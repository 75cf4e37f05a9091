//! What no tool of Gantry's touches in a workspace: what configures Gantry, and what Gantry keeps.
//!
//! A workspace may be the folder of another Gantry, or become one. So what Gantry would read and keep if it were started
//! there is protected in every workspace, and not only beside the configuration that holds.

use super::Loaded;
use super::find::{DATA, DOTENV, NAMES};
use gantry_tools::workspace::ProtectedPaths;
use std::path::{Path, PathBuf};

impl Loaded {
    /// What is protected in every workspace. `ledger` is the one that is open: a change of `store` names another one,
    /// which is used from the next start on.
    pub fn protected_paths(&self, ledger: &Path) -> ProtectedPaths {
        let mut hidden = vec![self.data.clone()];
        let ledgers = [ledger, &self.config.store].into_iter().flat_map(ledger_files);
        hidden.extend(ledgers.filter(|file| !file.starts_with(&self.data)));
        let (mut read_only, mut definition_dirs) = (self.config_files.clone(), self.definition_roots.clone());
        for (_, project) in self.config.all() {
            let workspace = &project.workspace;
            hidden.push(workspace.join(DATA));
            // The files that pin tools are read-only in every catalogue.
            read_only.extend(NAMES.iter().chain([&DOTENV]).map(|name| workspace.join(name)));
            definition_dirs.push(workspace.clone());
        }
        for list in [&mut hidden, &mut read_only, &mut definition_dirs] {
            list.sort();
            list.dedup();
        }
        ProtectedPaths { hidden, read_only, definition_dirs }
    }
}

/// The database and what SQLite keeps beside it.
fn ledger_files(database: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "-wal", "-shm", "-journal"].into_iter().map(|suffix| {
        let mut file = database.as_os_str().to_owned();
        file.push(suffix);
        file.into()
    })
}
