//! `cargo xtask reference`: the reference pages that are generated from the program itself.
//!
//! The pages are committed, so that they can be read without a build, and a changed interface shows in review.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::shell::{Program, build_programs, target_dir};

/// The generator's name for a page, and its path.
const PAGES: [(&str, &str); 7] = [
    ("config", "docs/reference/config.md"),
    ("schema", "docs/reference/gantry.schema.json"),
    ("troubleshooting", "docs/troubleshooting.md"),
    ("errors", "docs/reference/errors.md"),
    ("cli", "docs/reference/cli.md"),
    ("tools", "docs/reference/tools.md"),
    ("openapi", "docs/reference/openapi.json"),
];

/// Writes every page, or fails if a committed page differs from what the program prints.
pub(crate) fn run(root: &Path, only_check: bool) -> Result<()> {
    build_programs(root)?;
    let generator = target_dir(root).join("debug").join("reference");
    let mut stale = Vec::new();
    for (page, path) in PAGES {
        let text = Program::new(&generator, root).args([page]).output()?;
        ensure!(!text.trim().is_empty(), "the generator printed nothing for the page `{page}`");
        let file = root.join(path);
        if !only_check {
            fs::write(file, text).with_context(|| format!("cannot write {path}"))?;
            eprintln!("wrote {path}");
        } else if fs::read_to_string(file).ok() != Some(text) {
            stale.push(path);
        }
    }
    ensure!(
        stale.is_empty(),
        "out of date: {}; run `cargo xtask reference` and commit the result",
        stale.join(", ")
    );
    Ok(())
}
