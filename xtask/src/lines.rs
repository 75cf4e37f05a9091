//! `cargo xtask lines`: how many lines each crate of the product has, as a table.
//!
//! Blanks and comments count: they are read too. Tests do not: files and folders of tests, modules that are declared
//! `#[cfg(test)]`, and items with `#[cfg(test)]` inside other files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::tidy;
use crate::tidy::source::Source;

/// What is built to make and test the product is counted, and is not part of its sum.
const TOOLS: [&str; 2] = ["gantry-testkit", "xtask"];
const PERCENTILE: usize = 90;

/// The lines of one crate.
#[derive(Debug, Default)]
struct Tally {
    n_lines: usize,
    /// The lines of each file, and which file it is.
    files: Vec<(usize, String)>,
    longest_function: (usize, String),
}

impl Tally {
    fn add(&mut self, path: &str, source: &Source) {
        let n_lines = source.product_lines();
        self.n_lines += n_lines;
        self.files.push((n_lines, path.to_owned()));
        for function in &source.functions {
            let candidate = (function.n_lines, function.name.clone());
            self.longest_function = candidate.max(std::mem::take(&mut self.longest_function));
        }
    }

    fn row(&self, name: &str) -> String {
        let largest = self.files.iter().max().map_or_else(String::new, |(n, path)| format!("{n} {path}"));
        let (n, function) = &self.longest_function;
        format!(
            "| {name} | {} | {} | {} | {largest} | {n} {function} |\n",
            self.n_lines,
            self.files.len(),
            percentile(self.files.iter().map(|(n, _)| *n).collect()),
        )
    }
}

/// Prints the table on standard output.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut findings = Vec::new();
    let sources = tidy::read_sources(root, &mut findings)?;
    // A count that leaves a file out would look like progress.
    ensure!(
        findings.is_empty(),
        "{}",
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    );
    print!("{}", table(&sources));
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
    let mut text = "| crate | lines | files | p90 of files | largest file | longest function |\n\
                    |---|---:|---:|---:|---|---|\n"
        .to_owned();
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

/// The length that nine of ten files do not pass.
fn percentile(mut lengths: Vec<usize>) -> usize {
    lengths.sort_unstable();
    let place = (lengths.len() * PERCENTILE).div_ceil(100);
    place.checked_sub(1).and_then(|place| lengths.get(place)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source;

    fn parse(files: &[(&str, &str)]) -> Vec<Source> {
        let mut sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::parse(path, (*text).to_owned()).unwrap()).collect();
        source::mark_declared_tests(&mut sources);
        sources
    }

    #[track_caller]
    fn check(text: &str, expected: usize) {
        assert_eq!(parse(&[("crates/a/src/b.rs", text)])[0].product_lines(), expected);
    }

    #[test]
    fn blanks_and_comments_count() {
        check("//! One.\n\n// Three.\nfn four() {}\n", 4);
    }

    #[test]
    fn a_test_module_does_not_count_wherever_it_is() {
        check("fn one() {}\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\nfn six() {}\n", 2);
        check("mod a {\n    #[cfg(test)]\n    mod tests {}\n}\n", 2);
    }

    #[test]
    fn items_for_tests_do_not_count() {
        check("/// For tests.\n#[cfg(test)]\nuse a::{\n    b,\n};\nuse c;\n", 1);
        check("#[cfg(test)]\nconst A: u32 =\n    1;\nstatic B: u32 = 1;\n", 1);
        check("#[cfg(test)]\nstruct A {\n    b: u32,\n}\n#[cfg(test)]\nstruct B(u32);\nstruct C;\n", 1);
        check("#[cfg(test)]\nenum A {\n    B,\n}\n#[cfg(test)]\ntype C = u32;\n", 0);
        check("#[cfg(test)]\ntrait A {}\n#[cfg(test)]\nmod b;\n#[cfg(test)]\nm! {\n}\n", 0);
        check("impl A {\n    #[cfg(test)]\n    fn b() {\n    }\n}\n", 2);
        check("#[cfg(all(test, unix))]\nfn a() {\n}\n", 0);
    }

    #[test]
    fn what_is_not_for_tests_alone_counts() {
        check("#[cfg(not(test))]\nfn a() {}\n#[cfg(any(test, unix))]\nfn b() {}\n", 4);
    }

    #[test]
    fn files_of_tests_do_not_count() {
        check("#![cfg(test)]\nfn a() {}\n", 0);
        let sources = parse(&[
            ("crates/a/src/lib.rs", "#[cfg(test)]\nmod kit;\nmod b;\n"),
            ("crates/a/src/kit.rs", "fn a() {}\n"),
            ("crates/a/src/kit/deep.rs", "fn a() {}\n"),
            ("crates/a/src/b.rs", "fn a() {}\n"),
            ("crates/a/src/b/tests.rs", "fn a() {}\n"),
            ("crates/a/src/b/tests/c.rs", "fn a() {}\n"),
        ]);
        assert_eq!(sources.iter().map(Source::product_lines).collect::<Vec<_>>(), [1, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn the_table_adds_up_and_leaves_the_tools_out_of_the_total() {
        let sources = parse(&[
            ("crates/a/src/lib.rs", "fn short() {}\n"),
            ("crates/a/src/b/c.rs", "fn long() {\n    1\n}\n"),
            ("crates/a/tests/it/main.rs", "fn t() {}\n"),
            ("crates/b/src/lib.rs", "\n\n"),
            ("crates/b/build.rs", "fn main() {}\n"),
            ("xtask/src/main.rs", "fn main() {}\n"),
        ]);
        let expected = "\
| crate | lines | files | p90 of files | largest file | longest function |
|---|---:|---:|---:|---|---|
| a | 4 | 2 | 3 | 3 b/c.rs | 3 long |
| b | 2 | 1 | 2 | 2 lib.rs | 0  |
| total | 6 | 3 | 3 | 3 a/b/c.rs | 3 long |
| xtask (not in the total) | 1 | 1 | 1 | 1 main.rs | 1 main |
";
        assert_eq!(table(&sources), expected);
    }

    #[test]
    fn nine_of_ten_files_are_not_longer_than_the_percentile() {
        assert_eq!(percentile((1..=10).collect()), 9);
        assert_eq!(percentile((1..=11).collect()), 10);
        assert_eq!(percentile(vec![7]), 7);
        assert_eq!(percentile(vec![]), 0);
    }
}
