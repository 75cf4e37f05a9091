//! `cargo xtask lines`: how many lines each crate of the product has, as a table.
//!
//! Blank lines and comments count: they are read too. Tests do not count: files and folders of tests, modules that are declared
//! `#[cfg(test)]`, and items with `#[cfg(test)]` inside other files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::source::{self, Source};

/// Crates that build and test the product are listed, and not part of the total.
const TOOLS: [&str; 2] = ["gantry-testkit", "xtask"];

/// The lines of one crate.
#[derive(Debug, Default)]
struct Tally {
    n_lines: usize,
    /// The lines of each file, and which file it is.
    files: Vec<(usize, String)>,
}

impl Tally {
    fn add(&mut self, path: &str, source: &Source) {
        self.n_lines += source.product_lines();
        self.files.push((source.product_lines(), path.to_owned()));
    }

    fn row(&self, name: &str) -> String {
        let largest = self.files.iter().max().map_or_else(String::new, |(n, path)| format!("{n} {path}"));
        format!("| {name} | {} | {} | {largest} |\n", self.n_lines, self.files.len())
    }
}

/// Prints the table on standard output.
pub(crate) fn run(root: &Path) -> Result<()> {
    print!("{}", table(&source::read_all(root)?));
    Ok(())
}

fn table(sources: &[Source]) -> String {
    let mut crates: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut product = Tally::default();
    for source in sources.iter().filter(|source| !source.is_test) {
        let Some((name, path)) = place(&source.path) else { continue };
        crates.entry(name).or_default().add(path, source);
        if !TOOLS.contains(&name) {
            product.add(&format!("{name}/{path}"), source);
        }
    }
    let mut text = "| crate | lines | files | largest file |\n|---|---:|---:|---|\n".to_owned();
    let (tools, of_product): (Vec<_>, Vec<_>) = crates.iter().partition(|(name, _)| TOOLS.contains(name));
    for (name, tally) in of_product {
        text.push_str(&tally.row(name));
    }
    text.push_str(&product.row("total"));
    for (name, tally) in tools {
        text.push_str(&tally.row(&format!("{name} (not in the total)")));
    }
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
| total | 6 | 3 | 3 a/b/c.rs |
| xtask (not in the total) | 1 | 1 | 1 main.rs |
";
        assert_eq!(table(&sources), expected);
    }
}
