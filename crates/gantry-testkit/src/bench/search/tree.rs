//! A tree of source files as large projects have them, the same every time.

use anyhow::{Context as _, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Files in one folder.
const PER_FOLDER: usize = 20;
/// Folders in one folder.
const PER_AREA: usize = 50;
/// Different words.
const WORDS: usize = 6_000;
/// One file of so many has what literal searches look for.
pub(super) const EVERY: usize = 1_000;
/// What they look for.
pub(super) const NEEDLE: &str = "quokkaBarometer(";

/// Writes so many files, and a file that says what git ignores.
pub(super) fn write(root: &Path, n_files: usize) -> Result<()> {
    fs::create_dir_all(root.join(".git"))?;
    fs::write(root.join(".gitignore"), "target/\n*.log\nnode_modules/\n")?;
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    for n in 0..n_files {
        let folder = n / PER_FOLDER;
        let area = folder / PER_AREA;
        let path = root.join(format!("area{area:03}/part{folder:05}"));
        if n % PER_FOLDER == 0 {
            fs::create_dir_all(&path)?;
        }
        let name = format!("{}_{n}.rs", word(chance.word()));
        fs::write(path.join(name), file(&mut chance, n)?).context("cannot write the tree")?;
    }
    Ok(())
}

/// A file of some functions, 3.6 KB on average.
fn file(chance: &mut Chance, n: usize) -> Result<String> {
    let mut text = format!("//! The {} of the {}.\n\n", word(chance.word()), word(chance.word()));
    for _ in 0..6 + chance.below(13) {
        let (what, on) = (word(chance.word()), word(chance.word()));
        writeln!(text, "pub fn {what}_{on}(input: &{}) -> Result<()> {{", camel(chance))?;
        for _ in 0..3 + chance.below(8) {
            let (to, from, with) = (word(chance.word()), word(chance.word()), word(chance.word()));
            writeln!(text, "    let {to} = {from}.{with}({});", chance.below(1000))?;
        }
        text.push_str("    Ok(())\n}\n\n");
    }
    if n % EVERY == EVERY / 2 {
        writeln!(text, "// {NEEDLE}{n})")?;
    }
    Ok(text)
}

fn camel(chance: &mut Chance) -> String {
    let mut name = word(chance.word()) + &word(chance.word());
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}

/// A word that can be spoken, by its number.
pub(super) fn word(mut n: usize) -> String {
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

/// Numbers that look random and are the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// The number of a word: few are common, most are rare.
    fn word(&mut self) -> usize {
        let even = self.below(1_000_000) as f64 / 1_000_000.0;
        (WORDS as f64).powf(even) as usize
    }
}
