//! `cargo xtask reference`: the reference pages that are generated from the program itself.
//!
//! The pages are committed, so that they can be read without building and a change of the surface shows up in review.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::build;
use crate::shell::{Program, target_dir};

/// What the generator calls a page, and where the page is.
const PAGES: [(&str, &str); 7] = [
    ("config", "docs/reference/config.md"),
    ("schema", "docs/reference/gantry.schema.json"),
    ("troubleshooting", "docs/troubleshooting.md"),
    ("errors", "docs/reference/errors.md"),
    ("cli", "docs/reference/cli.md"),
    ("tools", "docs/reference/tools.md"),
    ("openapi", "docs/reference/openapi.json"),
];

/// Writes every page.
pub(crate) fn write(root: &Path) -> Result<()> {
    fs::create_dir_all(root.join("docs/reference")).context("cannot create docs/reference")?;
    for (path, text) in generate(root)? {
        fs::write(root.join(path), text).with_context(|| format!("cannot write {path}"))?;
        eprintln!("wrote {path}");
    }
    Ok(())
}

/// Fails when a committed page differs from what the program says today.
pub(crate) fn check(root: &Path) -> Result<()> {
    let pages = generate(root)?;
    let stale: Vec<String> =
        pages.iter().filter_map(|(path, text)| difference(&root.join(path), path, text)).collect();
    if !stale.is_empty() {
        bail!("{}\nrun `cargo xtask reference` and commit the result", stale.join("\n"));
    }
    Ok(())
}

fn generate(root: &Path) -> Result<Vec<(&'static str, String)>> {
    build::programs(root)?;
    let generator = target_dir(root).join("debug").join("reference");
    PAGES
        .iter()
        .map(|(page, path)| {
            let text = Program::new(&generator, root).args([page]).output()?;
            if text.trim().is_empty() {
                bail!("the generator printed nothing for the page `{page}`");
            }
            Ok((*path, text))
        })
        .collect()
}

/// Says where a page differs first, as `path:line: …`.
fn difference(file: &Path, path: &str, wanted: &str) -> Option<String> {
    let Ok(found) = fs::read_to_string(file) else {
        return Some(format!("{path}:1: this page is missing"));
    };
    if found == wanted {
        return None;
    }
    let same = found.lines().zip(wanted.lines()).take_while(|(found, wanted)| found == wanted).count();
    Some(format!("{path}:{}: this page is out of date", same + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_difference(found: Option<&str>, wanted: &str, expected: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.md");
        if let Some(found) = found {
            fs::write(&file, found).unwrap();
        }
        assert_eq!(difference(&file, "page.md", wanted).as_deref(), expected);
    }

    #[test]
    fn a_fresh_page_has_no_difference() {
        check_difference(Some("a\nb\n"), "a\nb\n", None);
    }

    #[test]
    fn a_stale_page_is_named_with_its_first_changed_line() {
        check_difference(Some("a\nold\n"), "a\nnew\n", Some("page.md:2: this page is out of date"));
        check_difference(Some("a\n"), "a\nb\n", Some("page.md:2: this page is out of date"));
    }

    #[test]
    fn a_missing_page_is_named() {
        check_difference(None, "a\n", Some("page.md:1: this page is missing"));
    }
}
