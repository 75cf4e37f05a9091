//! `search_code` on this repository and on a generated tree of 200,000 files: literal search beside ripgrep, and ranked
//! search, with the files in the page cache and, where the bench runs as root, without. Each call goes through the whole
//! pipeline; each `rg` is a process of its own.

use super::in_process::{InProcess, folder};
use super::report::{Figures, Table, percentiles, timed_for};
use super::{ROUNDS, Section, progress};
use crate::Random;
use anyhow::{Context as _, Result, ensure};
use gantry_tools::builtin::BuiltinProvider;
use gantry_tools::options::SearchOptions;
use gantry_tools::search::search_tools;
use gantry_tools::workspace::ProtectedPaths;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Files of the generated tree, in one folder, and folders in one folder.
const FILES: usize = 200_000;
const PER_FOLDER: usize = 20;
const PER_AREA: usize = 50;
/// Different words in the tree.
const WORDS: usize = 6_000;
/// One file of so many has what literal searches look for.
const EVERY: usize = 1_000;
const NEEDLE: &str = "quokkaBarometer(";

/// Empties the page cache, and the cache of names, when "3" is written to it.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

const RG: &str = "--line-number --no-heading --no-config --fixed-strings --smart-case --";

pub(super) async fn measure(time: Duration) -> Result<Table> {
    let title = "search_code beside rg (rg as a process, search_code through the pipeline)";
    let mut table = Table::new(title, &["tree", "search"]);
    let tree = folder()?;
    progress(Section::Search, 0, &format!("writing {FILES} files"));
    write_tree(tree.path())?;
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let questions = ["ledger entry", "how is a permit made", "tool"].map(str::to_owned);
    compare(&mut table, time, ("repository", &repository), "OUTCOME_UNKNOWN", questions).await?;
    let rare = [word(5_000), word(4_321)].join(" ");
    let common = [word(1), word(2), word(40)].join(" ");
    let name = format!("{}_{}", word(900), word(30));
    compare(&mut table, time, ("200,000 files", tree.path()), NEEDLE, [rare, common, name]).await?;
    Ok(table)
}

async fn compare(
    table: &mut Table,
    time: Duration,
    (label, workspace): (&str, &Path),
    needle: &str,
    questions: [String; 3],
) -> Result<()> {
    let folder = folder()?;
    let search = search_tools(workspace, ProtectedPaths::default(), SearchOptions::default())?;
    let provider = Arc::new(BuiltinProvider::workspace(vec![search]));
    let bench = InProcess::start(folder.path(), provider, |_| Ok(())).await?;
    let call = async |arguments: &Value| bench.call("search_code", arguments.to_string().into()).await;
    let literal = json!({ "query": needle, "mode": "literal", "maxResults": 1000 });
    for round in 0..ROUNDS {
        let ranked = json!({ "query": &questions[0] });
        progress(Section::Search, round, &format!("{label}, ranked, nothing in the page cache"));
        if empty_page_cache() {
            let start = std::time::Instant::now();
            call(&ranked).await?;
            let ms = start.elapsed().as_secs_f64() * 1e3;
            table.add(&[label, "ranked, nothing in the page cache"], vec![("p50 ms", ms)]);
        }
        let found: Value = serde_json::from_str(&call(&literal).await?.model_text())?;
        let found = found["matches"].as_array().map_or(0, Vec::len);
        ensure!(found > 0, "search_code does not find {needle}");
        progress(Section::Search, round, &format!("{label}, literal: {needle}"));
        let times = timed_for(time, async || call(&literal).await.map(drop)).await?;
        table.add(&[label, "literal, search_code"], figures(times));
        if let Ok(by_rg) = rg(workspace, needle) {
            ensure!(by_rg == found, "rg finds {by_rg} lines, search_code {found}");
            let times = timed_for(time, async || rg(workspace, needle).map(drop)).await?;
            table.add(&[label, "literal, rg"], figures(times));
        }
        for (kind, question) in ["rare words", "common words", "an identifier"].iter().zip(&questions) {
            progress(Section::Search, round, &format!("{label}, ranked: {question}"));
            let arguments = json!({ "query": question });
            let times = timed_for(time, async || call(&arguments).await.map(drop)).await?;
            table.add(&[label, &format!("ranked, {kind}")], figures(times));
        }
    }
    bench.projects.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

fn figures(times: Vec<f64>) -> Figures {
    let ms = times.into_iter().map(|us| us / 1e3).collect();
    percentiles(ms, [("p50 ms", 50), ("p95 ms", 95)])
}

/// How many lines ripgrep finds.
fn rg(workspace: &Path, needle: &str) -> Result<usize> {
    let mut command = Command::new("rg");
    command.args(RG.split(' ')).args([needle, "."]).current_dir(workspace).stdin(Stdio::null());
    let output = command.output().context("rg cannot be started")?;
    Ok(output.stdout.iter().filter(|byte| **byte == b'\n').count())
}

/// Whether the files are no longer in memory. Only root may do that, to the whole machine.
fn empty_page_cache() -> bool {
    rustix::fs::sync();
    fs::write(DROP_CACHES, "3").is_ok()
}

/// Writes source files as large projects have them, the same every time, and a file that says what git ignores.
fn write_tree(root: &Path) -> Result<()> {
    fs::create_dir_all(root.join(".git"))?;
    fs::write(root.join(".gitignore"), "target/\n*.log\nnode_modules/\n")?;
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for n in 0..FILES {
        let folder = n / PER_FOLDER;
        let path = root.join(format!("area{:03}/part{folder:05}", folder / PER_AREA));
        if n % PER_FOLDER == 0 {
            fs::create_dir_all(&path)?;
        }
        let name = format!("{}_{n}.rs", any_word(&mut random));
        fs::write(path.join(name), source_file(&mut random, n)?).context("cannot write the tree")?;
    }
    Ok(())
}

/// A file of some functions, 3.6 KB on average.
fn source_file(random: &mut Random, n: usize) -> Result<String> {
    let mut text = format!("//! The {} of the {}.\n\n", any_word(random), any_word(random));
    for _ in 0..6 + random.index(13) {
        let mut kind = any_word(random) + &any_word(random);
        kind.get_mut(..1).context("an empty word")?.make_ascii_uppercase();
        writeln!(text, "pub fn {}_{}(input: &{kind}) -> Result<()> {{", any_word(random), any_word(random))?;
        for _ in 0..3 + random.index(8) {
            let [to, from, with] = [any_word(random), any_word(random), any_word(random)];
            writeln!(text, "    let {to} = {from}.{with}({});", random.index(1000))?;
        }
        text.push_str("    Ok(())\n}\n\n");
    }
    if n % EVERY == EVERY / 2 {
        writeln!(text, "// {NEEDLE}{n})")?;
    }
    Ok(text)
}

/// A word that can be spoken, by its number.
fn word(mut n: usize) -> String {
    const SYLLABLES: [&str; 20] = [
        "ka", "ro", "mi", "tel", "su", "ban", "do", "fi", "gra", "hol", "je", "lum", "nor", "pa", "que",
        "ris", "ta", "vel", "wi", "zo",
    ];
    let mut word = String::new();
    n += SYLLABLES.len();
    while n > 0 {
        word.push_str(SYLLABLES[n % SYLLABLES.len()]);
        n /= SYLLABLES.len();
    }
    word
}

/// A word: few are common, most are rare.
fn any_word(random: &mut Random) -> String {
    let even = random.index(1_000_000) as f64 / 1_000_000.0;
    word((WORDS as f64).powf(even) as usize)
}
