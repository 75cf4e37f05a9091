//! Reads the Test Anything Protocol as Node's test runner speaks it: nested, with a block of YAML for each test.
//!
//! Only tests that hold no others are counted; a test that fails because one within it does is no other failure.

use super::{Failure, NAME_BYTES, Tally};
use crate::develop::words;

/// Spaces by which the tests within a test are shifted.
const STEP: usize = 4;
/// How deep tests are nested; deeper ones count as this deep.
const LEVELS: usize = 64;
/// Why a test did not run that was not asked for.
const NOT_CHOSEN: &str = "does not match pattern";

/// A line that says what came of a test.
#[derive(Debug)]
struct Point<'a> {
    ok: bool,
    name: String,
    /// The word after the name, such as `SKIP`, and what follows it.
    directive: Option<&'a str>,
}

/// What is said in the block after such a line.
#[derive(Debug, Default)]
struct Block {
    error: String,
    location: Option<String>,
    kind: String,
    why: String,
}

/// What the text says; none if it is not of this protocol.
pub(super) fn parse(text: &str) -> Option<Tally> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("TAP version")).skip(1).peekable();
    lines.peek()?;
    let mut tally = Tally::default();
    let mut names: Vec<String> = Vec::new();
    // Whether tests were seen within the one that is open at each depth.
    let mut holds = [false; LEVELS + 2];
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let (depth, rest) = ((indent / STEP).min(LEVELS), line.trim_start());
        if let Some(name) = rest.strip_prefix("# Subtest: ") {
            names.truncate(depth);
            names.push(unescaped(words::head(name, NAME_BYTES)));
            continue;
        }
        let Some(point) = point(rest) else { continue };
        let mut block = Block::default();
        if lines.peek().is_some_and(|next| next.trim() == "---") {
            block = Block::read(&mut lines);
        }
        let is_parent = std::mem::take(holds.get_mut(depth + 1)?) || block.kind == "suite";
        *holds.get_mut(depth)? = true;
        names.truncate(depth);
        count(&mut tally, &point, block, (is_parent, &names));
    }
    Some(tally)
}

fn count(tally: &mut Tally, point: &Point<'_>, block: Block, (is_parent, above): (bool, &[String])) {
    match point.directive {
        Some(why) if why.contains(NOT_CHOSEN) => {}
        Some(_) if !is_parent => tally.count([0, 0, 1]),
        None if point.ok && !is_parent => tally.count([1, 0, 0]),
        None if !point.ok && (!is_parent || block.why != "subtestsFailed") => {
            tally.count([0, 1, 0]);
            tally.note(|| {
                let names = above.iter().map(String::as_str).chain([point.name.as_str()]);
                let name = names.collect::<Vec<_>>().join(" > ");
                Failure { name, message: block.error, ..Failure::default() }.at(block.location.as_deref())
            });
        }
        Some(_) | None => {}
    }
}

fn point(line: &str) -> Option<Point<'_>> {
    let (ok, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    let rest = rest.strip_prefix(' ')?.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = rest.trim_start().strip_prefix("- ").unwrap_or(rest);
    let directive = rest.rfind(" # ").map(|at| (at, rest.get(at + 3..).unwrap_or_default()));
    let directive = directive.filter(|(_, text)| {
        let word = text.split_whitespace().next().unwrap_or_default();
        word.eq_ignore_ascii_case("skip") || word.eq_ignore_ascii_case("todo")
    });
    let name = directive.and_then(|(at, _)| rest.get(..at)).unwrap_or(rest);
    Some(Point { ok, name: unescaped(name.trim()), directive: directive.map(|(_, text)| text) })
}

fn unescaped(name: &str) -> String {
    name.replace("\\#", "#").replace("\\\\", "\\")
}

impl Block {
    /// Reads to the end of the block, whose first line is `---`.
    fn read<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Self {
        let mut block = Self::default();
        let first = lines.next().unwrap_or_default();
        let indent = first.len() - first.trim_start().len();
        let mut in_error = false;
        for line in lines {
            let own = line.get(indent..).unwrap_or_default();
            if own == "..." {
                break;
            }
            if own.starts_with("  ") || own.is_empty() {
                if in_error {
                    block.error.push_str(own.get(2..).unwrap_or_default());
                    block.error.push('\n');
                }
                continue;
            }
            let (key, value) = own.split_once(':').unwrap_or((own, ""));
            let value = value.trim();
            in_error = key == "error" && value.starts_with('|');
            match key {
                "error" if !in_error => block.error = unquoted(value),
                "location" => block.location = Some(unquoted(value)),
                "type" => block.kind = unquoted(value),
                "failureType" => block.why = unquoted(value),
                _ => {}
            }
        }
        block
    }
}

fn unquoted(value: &str) -> String {
    let inner = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
    inner.map_or_else(|| value.to_owned(), |inner| inner.replace("\\'", "'").replace("''", "'"))
}
