//! A Rust file as `tidy` and `lines` see it: code, comments, and which lines are tests.
//!
//! Found by scanning text, which is enough for files that compile and are formatted, and needs no parser.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Where Rust sources are, relative to the root.
const SOURCE_ROOTS: [&str; 2] = ["crates", "xtask"];

/// A file; `path` is relative to the root.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text with comments, strings and characters blanked: every byte keeps its place.
    pub(crate) code: String,
    /// The text with everything but comments blanked.
    pub(crate) comments: String,
    /// The whole file is test code, by its name or because its module is declared `#[cfg(test)]`.
    pub(crate) is_test: bool,
    line_starts: Vec<usize>,
    /// For each line, whether it belongs to a test.
    test_lines: Vec<bool>,
    /// The modules that this file declares as `#[cfg(test)] mod name;`.
    test_modules: Vec<String>,
}

/// Reads every Rust file of the repository.
pub(crate) fn read_all(root: &Path) -> Result<Vec<Source>> {
    let mut paths = BTreeSet::new();
    for folder in SOURCE_ROOTS {
        collect(root, folder, &mut paths)?;
    }
    let read = |path: &String| {
        let text = fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        Ok(Source::new(path, text))
    };
    let mut sources = paths.iter().map(read).collect::<Result<Vec<Source>>>()?;
    mark_test_modules(&mut sources);
    Ok(sources)
}

/// Adds the Rust files below a folder; links are not followed.
fn collect(root: &Path, folder: &str, paths: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {folder}"))? {
        let entry = entry.with_context(|| format!("cannot list {folder}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        let kind = entry.file_type().with_context(|| format!("cannot read the type of {path}"))?;
        if kind.is_dir() && !name.starts_with('.') && name != "node_modules" {
            collect(root, &path, paths)?;
        } else if kind.is_file() && name.ends_with(".rs") {
            paths.insert(path);
        }
    }
    Ok(())
}

/// Marks the files, and all below them, that another file declares as `#[cfg(test)] mod name;`.
pub(crate) fn mark_test_modules(sources: &mut [Source]) {
    let mut modules = Vec::new();
    for source in sources.iter() {
        let suffixes = ["/lib.rs", "/main.rs", ".rs"];
        let folder = suffixes.iter().find_map(|suffix| source.path.strip_suffix(suffix)).unwrap_or_default();
        modules.extend(source.test_modules.iter().map(|name| format!("{folder}/{name}")));
    }
    for source in sources {
        let is_in = |module: &String| {
            let rest = source.path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        source.is_test |= modules.iter().any(is_in);
    }
}

impl Source {
    pub(crate) fn new(path: &str, text: String) -> Self {
        let (code, comments) = split(&text);
        let mut source = Self {
            path: path.to_owned(),
            // `testing.rs` is compiled only by the feature of that name, which only tests switch on.
            is_test: ["/tests.rs", "/testing.rs"].iter().any(|name| path.ends_with(name))
                || path.contains("/tests/")
                || code.contains("#![cfg(test)]"),
            line_starts: [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect(),
            test_lines: vec![false; text.lines().count()],
            test_modules: Vec::new(),
            text,
            code,
            comments,
        };
        source.find_tests();
        source
    }

    /// Whether the line, counted from 1, belongs to a test.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.is_test || self.test_lines.get(line - 1).copied().unwrap_or_default()
    }

    /// The number of lines that do not belong to tests.
    pub(crate) fn product_lines(&self) -> usize {
        if self.is_test { 0 } else { self.test_lines.iter().filter(|is_test| !**is_test).count() }
    }

    /// The lines, counted from 1, on which the code has this text.
    pub(crate) fn lines_with(&self, text: &str) -> impl Iterator<Item = usize> {
        self.code.match_indices(text).map(|(at, _)| self.line_at(at))
    }

    /// The line of a place in the text, counted from 1.
    fn line_at(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    fn find_tests(&mut self) {
        for (start, _) in self.code.match_indices("#[") {
            let Some(rest) = self.code.get(start + 2..) else { continue };
            let Some((attribute, item)) = rest.split_once(']') else { continue };
            let item_start = start + 2 + attribute.len() + 1;
            if !is_test_attribute(attribute) {
                continue;
            }
            let end = item_end(&self.code, item_start);
            let item = item.get(..end.saturating_sub(item_start)).unwrap_or_default();
            if let [.., "mod", name] = item.split_whitespace().collect::<Vec<_>>().as_slice() {
                self.test_modules.push((*name).to_owned());
            }
            let (first, last) = (self.line_at(start) - 1, self.line_at(end) - 1);
            if let Some(lines) = self.test_lines.get_mut(first..=last) {
                lines.fill(true);
            }
        }
    }
}

/// A character of a name.
pub(crate) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `cfg(test)`, `cfg(all(test, …))`, `test` and the like of `tokio::test(…)`.
fn is_test_attribute(attribute: &str) -> bool {
    let path = attribute.split('(').next().unwrap_or_default();
    attribute == "cfg(test)"
        || attribute.starts_with("cfg(all(test,")
        || path.rsplit("::").next() == Some("test")
}

/// Where the item at `start` ends: at its closing brace, its semicolon or, for a field, its comma.
fn item_end(code: &str, start: usize) -> usize {
    let (mut depth, mut angles, mut last) = (0_usize, 0_usize, b' ');
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return at - 1,
            b'}' if depth == 1 => return at,
            b')' | b']' | b'}' => depth -= 1,
            b'<' => angles += 1,
            b'>' if last != b'-' && last != b'=' => angles = angles.saturating_sub(1),
            b';' if depth == 0 => return at,
            b',' if depth == 0 && angles == 0 => return at,
            _ => {}
        }
        last = byte;
    }
    code.len()
}

/// The code without comments and literals, and the comments alone.
fn split(text: &str) -> (String, String) {
    let (mut code, mut comments) = (text.as_bytes().to_vec(), text.as_bytes().to_vec());
    let blank = |bytes: &mut Vec<u8>, from: usize, to: usize| {
        if let Some(bytes) = bytes.get_mut(from..to) {
            bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
    };
    let (mut at, mut code_start) = (0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let n_comment = comment_len(rest);
        match n_comment.or_else(|| literal_len(rest)) {
            Some(n) => {
                blank(&mut code, at, at + n);
                let comments_start = if n_comment.is_some() { at } else { at + n };
                blank(&mut comments, code_start, comments_start);
                at += n;
                code_start = at;
            }
            None => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    blank(&mut comments, code_start, text.len());
    let string = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (string(code), string(comments))
}

fn comment_len(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    rest.starts_with("/*").then(|| rest.find("*/").map_or(rest.len(), |end| end + 2))
}

/// The length of the string or character that begins here, if one does.
fn literal_len(rest: &str) -> Option<usize> {
    if let Some(raw) = rest.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if let Some(body) = raw.get(hashes..).and_then(|raw| raw.strip_prefix('"')) {
            let close = format!("\"{}", "#".repeat(hashes));
            return Some(body.find(&close).map_or(rest.len(), |end| 1 + hashes + 1 + end + close.len()));
        }
    }
    let mut chars = rest.char_indices();
    match chars.next()?.1 {
        '"' => {
            while let Some((at, c)) = chars.next() {
                match c {
                    '\\' => drop(chars.next()),
                    '"' => return Some(at + 1),
                    _ => {}
                }
            }
            Some(rest.len())
        }
        // A lifetime has no closing quote behind one character.
        '\'' if rest.starts_with("'\\") => rest.get(3..)?.find('\'').map(|end| 3 + end + 1),
        '\'' => chars.nth(1).filter(|(_, c)| *c == '\'').map(|(at, _)| at + 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("crates/a/src/b.rs", text.to_owned())
    }

    #[track_caller]
    fn check(text: &str, product_lines: usize) {
        assert_eq!(source(text).product_lines(), product_lines, "{text}");
    }

    #[test]
    fn code_and_comments_are_separated() {
        let text = "let a = 'x' + \"b // \\\" c\"; // d 'e'\nfn f<'g>(h: &'g str) { r#\"i\"j\"# } /* k */ br\"\\\" '\\''";
        let source = source(text);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&source.code), "let a = + ; fn f<'g>(h: &'g str) { } b");
        assert_eq!(words(&source.comments), "// d 'e' /* k */");
    }

    #[test]
    fn blanks_and_comments_count_and_tests_do_not() {
        check("//! One.\n\n// Three.\nfn four() {}\n", 4);
        check("fn one() {}\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\nfn six() {}\n", 2);
        check("mod a {\n    #[cfg(test)]\n    mod tests {}\n}\n", 2);
        check("#[cfg(test)]\nuse a::{\n    b,\n};\nuse c;\n", 1);
        check("#[cfg(test)]\nconst A: [u32; 1] =\n    [1];\nstatic B: u32 = 1;\n", 1);
        check("#[cfg(test)]\nstruct A {\n    b: u32,\n}\n#[cfg(test)]\nstruct B(u32);\nstruct C;\n", 1);
        check("#[cfg(test)]\n#[derive(Debug)]\nenum A {\n    B,\n}\n#[test]\nfn c<D, E>() {\n}\n", 0);
        check("#[cfg(test)]\ntrait A {}\n#[cfg(test)]\nmod b;\n#[cfg(test)]\nm! {\n}\n", 0);
        check("impl A {\n    #[cfg(test)]\n    fn b() {\n    }\n}\n", 2);
        check("struct A {\n    #[cfg(test)]\n    b: Map<C, D>,\n    e: F,\n}\n", 3);
        check("#[cfg(all(test, unix))]\nfn a() {\n}\n#[tokio::test(start_paused = true)]\nfn b() {\n}\n", 0);
        check("#[cfg(not(test))]\nfn a() {}\n#[cfg(any(test, unix))]\nfn b() {}\n", 4);
        check("#![cfg(test)]\nfn a() {}\n", 0);
    }

    #[test]
    fn a_file_whose_module_is_for_tests_is_a_test_file() {
        let files = [
            ("crates/a/src/lib.rs", "#[cfg(test)]\nmod kit;\nmod b;\n"),
            ("crates/a/src/kit.rs", "fn a() {}\n"),
            ("crates/a/src/kit/deep.rs", "fn a() {}\n"),
            ("crates/a/src/kit_of_parts.rs", "fn a() {}\n"),
            ("crates/a/src/b/tests.rs", "fn a() {}\n"),
            ("crates/a/src/b/tests/c.rs", "fn a() {}\n"),
        ];
        let mut sources = files.map(|(path, text)| Source::new(path, text.to_owned()));
        mark_test_modules(&mut sources);
        assert_eq!(sources.map(|source| source.product_lines()), [1, 0, 0, 1, 0, 0]);
    }
}
