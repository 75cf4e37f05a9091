//! `cargo xtask lines`: how many lines each crate of the product has, as a table.
//!
//! Blank lines and comments count: they are read too. Tests do not count: files and folders of tests, modules that are
//! declared `#[cfg(test)]`, and items with `#[cfg(test)]` inside other files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::source::{self, Source};

/// Crates that build and test the product are listed, and not part of the total.
const TOOLS: [&str; 2] = ["gantry-testkit", "xtask"];

pub(crate) fn run(root: &Path) -> Result<()> {
    print!("{}", table(&source::read_all(root)?));
    Ok(())
}

fn table(sources: &[Source]) -> String {
    // The lines of each file and its path, by crate.
    let mut crates: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test) {
        if let Some((name, path)) = place(&source.path) {
            crates.entry(name).or_default().push((source.product_lines(), path));
        }
    }
    let row = |name: &str, files: &[(usize, &str)]| {
        let n_lines: usize = files.iter().map(|(n, _)| n).sum();
        let (n_largest, largest) = files.iter().max().copied().unwrap_or_default();
        format!("| {name} | {n_lines} | {} | {n_largest} {largest} |\n", files.len())
    };
    let mut text = "| crate | lines | files | largest file |\n|---|---:|---:|---|\n".to_owned();
    let (tools, product): (BTreeMap<_, _>, BTreeMap<_, _>) =
        crates.into_iter().partition(|(name, _)| TOOLS.contains(name));
    text.extend(product.iter().map(|(name, files)| row(name, files)));
    text.push_str(&row("total", &product.into_values().flatten().collect::<Vec<_>>()));
    text.extend(tools.iter().map(|(name, files)| row(&format!("{name} (not in the total)"), files)));
    text
}

/// The crate of a source file, and where the file is below the crate's `src`.
fn place(path: &str) -> Option<(&str, &str)> {
    let (name, rest) = path.strip_prefix("crates/").unwrap_or(path).split_once('/')?;
    Some((name, rest.strip_prefix("src/")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_adds_up_and_leaves_the_tools_out_of_the_total() {
        let sources = [
            ("crates/a/src/lib.rs", "fn short() {}\n"),
            ("crates/a/src/b/c.rs", "fn long() {\n    1\n}\n"),
            ("crates/a/tests/it/main.rs", "fn t() {}\n"),
            ("crates/b/src/lib.rs", "\n\n"),
            ("crates/b/build.rs", "fn main() {}\n"),
            ("xtask/src/main.rs", "fn main() {}\n"),
        ]
        .map(|(path, text)| Source::new(path, text.to_owned()));
        let expected = "\
| crate | lines | files | largest file |
|---|---:|---:|---|
| a | 4 | 2 | 3 b/c.rs |
| b | 2 | 1 | 2 lib.rs |
| total | 6 | 3 | 3 b/c.rs |
| xtask (not in the total) | 1 | 1 | 1 main.rs |
";
        assert_eq!(table(&sources), expected);
    }
}
