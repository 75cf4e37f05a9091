//! Where the ledger is, and where it must not be.

use super::documents::Documents;
use super::error::Problem;
use super::schema::{Config, MAIN_PROJECT};
use std::path::{Path, PathBuf};

/// The database and what SQLite keeps beside it.
pub(super) fn files(database: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "-wal", "-shm", "-journal"].into_iter().map(|suffix| {
        let mut file = database.as_os_str().to_owned();
        file.push(suffix);
        file.into()
    })
}

/// Refuses a database in a workspace, unless it is in the data folder, which is hidden as a whole: a tool could make a file
/// beside it from which SQLite would change it.
pub(super) fn problem(config: &Config, data: &Path, documents: &Documents) -> Option<Problem> {
    let (store, data) = (real(&config.store), real(data));
    let is_in_workspace = config.all().any(|(_, project)| store.starts_with(real(&project.workspace)));
    (is_in_workspace && !store.starts_with(data)).then(|| {
        let message = format!(
            "store.url: {} is in a workspace, where tools could make files that SQLite takes for its own; put it into the data \
             folder (sqlite://.gantry/…), or outside of every workspace",
            config.store.display()
        );
        Problem::at(&documents.locate(MAIN_PROJECT, &["store", "url"]).0, message)
    })
}

/// The path without links, as far as that can be known.
fn real(path: &Path) -> PathBuf {
    let below = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(below).unwrap_or_else(|| path.to_owned())
}
