//! `cargo xtask reference`: the reference pages that are generated from the program itself.
//!
//! The pages are committed, so that they can be read without a build, and a changed interface shows in review.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::shell::{Program, build_programs, target_dir};

/// The generator's name for a page, and its path.
const PAGES: [(&str, &str); 5] = [
    ("config", "docs/reference/config.md"),
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
        if only_check {
            stale.extend(difference(&file, path, &text));
        } else {
            fs::write(file, text).with_context(|| format!("cannot write {path}"))?;
            eprintln!("wrote {path}");
        }
    }
    ensure!(stale.is_empty(), "{}\nrun `cargo xtask reference` and commit the result", stale.join("\n"));
    Ok(())
}

/// The first difference of a page, as `path:line: …`.
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
