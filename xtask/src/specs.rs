//! `cargo xtask specs`: imports OpenAPI documents that others wrote, and prints what became of them as a table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell::{Program, target_dir};
use crate::test::specs::{self, Corpus};

/// Reasons that are shown of each corpus, the most frequent ones.
const REASONS: usize = 5;

/// What the user asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// All documents, not only the choice that the tests take.
    long: bool,
    /// A Gantry that is built already.
    program: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--long" => options.long = true,
                "--program" => {
                    options.program = Some(words.next().ok_or("--program needs a path")?.into());
                }
                other => return Err(format!("`specs` does not know `{other}`")),
            }
        }
        Ok(options)
    }
}

/// What became of the documents of a corpus.
#[derive(Debug, Default)]
struct Tally {
    documents: usize,
    /// Those that could not be used at all.
    refused: Vec<String>,
    operations: u64,
    imported: u64,
    /// How many operations were left out for each reason.
    skipped: BTreeMap<String, u64>,
    bytes: u64,
    elapsed_ms: f64,
    slowest_ms: f64,
    peak_bytes: u64,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    specs::ensure(root)?;
    let program = match &options.program {
        Some(program) => root.join(program),
        None => {
            Program::cargo(root).args(["build", "--release", "-p", "gantry"]).run()?;
            target_dir(root).join("release").join("gantry")
        }
    };
    println!("| corpus | documents | operations | imported | skipped | time, all / slowest | peak memory |");
    println!("|---|---|---|---|---|---|---|");
    for corpus in specs::corpora(root, options.long)? {
        let tally = tally(&program, root, &corpus)?;
        println!("{}", row(&corpus, &tally));
        for path in &tally.refused {
            eprintln!("refused: {path}");
        }
    }
    Ok(())
}

fn tally(program: &Path, root: &Path, corpus: &Corpus) -> Result<Tally> {
    let mut tally = Tally::default();
    for document in &corpus.documents {
        match inspect(program, root, document)
            .with_context(|| format!("the report on {}", document.display()))?
        {
            Some(report) => tally.add(&report),
            None => tally.refused.push(document.display().to_string()),
        }
    }
    Ok(tally)
}

/// The report on a document, if it can be used. Where it does not say where its API is, whoever uses it does.
fn inspect(program: &Path, root: &Path, document: &Path) -> Result<Option<Value>> {
    let report = |more: &[&str]| {
        let inspect = Program::new(program, root).args(["openapi", "inspect", "--json"]).args(more);
        inspect.args([document]).probe().map(|output| serde_json::from_str::<Value>(&output)).transpose()
    };
    let first = report(&[])?;
    if first.as_ref().is_some_and(|report| report["skipped"].to_string().contains("set baseUrl")) {
        return Ok(report(&["--base-url", "https://api.example.com"])?);
    }
    Ok(first)
}

impl Tally {
    fn add(&mut self, report: &Value) {
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        self.documents += 1;
        self.operations += number(&report["counts"]["operations"]);
        self.imported += number(&report["counts"]["tools"]);
        for skipped in report["skipped"].as_array().into_iter().flatten() {
            let reason = skipped["reason"].as_str().unwrap_or("no reason").to_owned();
            *self.skipped.entry(general(&reason)).or_default() += 1;
        }
        self.bytes += number(&report["stats"]["bytes"]);
        let elapsed = report["stats"]["elapsedMs"].as_f64().unwrap_or_default();
        self.elapsed_ms += elapsed;
        self.slowest_ms = self.slowest_ms.max(elapsed);
        self.peak_bytes = self.peak_bytes.max(number(&report["stats"]["peakMemoryBytes"]));
    }

    /// The reasons, most frequent first.
    fn reasons(&self) -> String {
        let mut reasons: Vec<_> = self.skipped.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let mut shown: Vec<_> =
            reasons.iter().take(REASONS).map(|(reason, count)| format!("{count} × {reason}")).collect();
        if reasons.len() > REASONS {
            shown.push(format!("{} more reasons", reasons.len() - REASONS));
        }
        if !self.refused.is_empty() {
            shown.push(format!("{} documents refused", self.refused.len()));
        }
        shown.join("; ").replace('|', "\\|")
    }
}

/// A reason without the names in it, so that equal ones are counted together.
fn general(reason: &str) -> String {
    let mut text = String::new();
    for (at, piece) in reason.split(['"', '`']).enumerate() {
        // Every second piece was in quotation marks.
        text.push_str(if at % 2 == 0 { piece } else { "…" });
    }
    text
}

fn row(corpus: &Corpus, tally: &Tally) -> String {
    let skipped: u64 = tally.skipped.values().sum();
    let share =
        if tally.operations == 0 { 0.0 } else { tally.imported as f64 * 100.0 / tally.operations as f64 };
    let reasons = tally.reasons();
    let reasons = if reasons.is_empty() { String::new() } else { format!(": {reasons}") };
    format!(
        "| {} (`{}`) | {}, {:.1} MB | {} | {} ({share:.2} %) | {skipped}{reasons} | {} / {} | {} MB |",
        corpus.name,
        corpus.source,
        tally.documents,
        tally.bytes as f64 / 1e6,
        tally.operations,
        tally.imported,
        seconds(tally.elapsed_ms),
        seconds(tally.slowest_ms),
        tally.peak_bytes / 1_000_000,
    )
}

fn seconds(ms: f64) -> String {
    format!("{:.2} s", ms / 1000.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_told_apart() {
        let expected = Options { long: true, program: Some("a/b".into()) };
        assert_eq!(Options::parse(&["--long", "--program", "a/b"]), Ok(expected));
        assert!(Options::parse(&["--program"]).is_err() && Options::parse(&["--fast"]).is_err());
    }

    #[test]
    fn a_row_has_the_sums() {
        let corpus = Corpus { name: "N".to_owned(), source: "s".to_owned(), documents: Vec::new() };
        let mut tally = Tally::default();
        for name in ["a", "b"] {
            tally.add(&json!({
                "counts": { "operations": 10, "tools": 9 },
                "skipped": [{ "reason": format!("the reference \"{name}\" leads nowhere") }],
                "stats": { "elapsedMs": 250, "bytes": 1_500_000, "peakMemoryBytes": 20_000_000 },
            }));
        }
        let expected = "| N (`s`) | 2, 3.0 MB | 20 | 18 (90.00 %) | 2: 2 × the reference … leads nowhere | 0.50 s / 0.25 s | 20 MB |";
        assert_eq!(row(&corpus, &tally), expected);
    }
}
