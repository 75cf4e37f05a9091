//! Files that differ, as `git diff --raw --numstat -z` lists them: first which and how, then by how many lines.

use super::script::{Answer, unreadable};
use crate::failure::{self, Result};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// Files that one result names.
pub(super) const FILES: usize = 1000;

/// One file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Change {
    /// The file, relative to the workspace root.
    pub(super) path: String,
    /// What it was called before, if it was renamed or copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    /// What happened to it.
    #[schemars(extend(
        "enum" = ["added", "modified", "deleted", "renamed", "copied", "conflicted", "typechange"]
    ))]
    pub(super) status: &'static str,
    /// Lines that came; 0 for a binary file.
    pub(super) added: u64,
    /// Lines that went; 0 for a binary file.
    pub(super) deleted: u64,
    /// Whether it has no lines.
    pub(super) binary: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// The first of them.
    pub(super) files: Vec<Change>,
    /// How many there are.
    pub(super) count: u64,
    pub(super) added: u64,
    pub(super) deleted: u64,
}

impl Changes {
    pub(super) fn is_truncated(&self) -> bool {
        self.count > self.files.len() as u64
    }
}

pub(super) fn status_word(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'A' => "added",
        b'M' => "modified",
        b'D' => "deleted",
        b'R' => "renamed",
        b'C' => "copied",
        b'T' => "typechange",
        b'U' => "conflicted",
        _ => return None,
    })
}

/// Reads a whole list, up to its end or to an empty field.
pub(super) fn parse(answer: &mut Answer<'_>) -> Result<Changes> {
    let unreadable = match answer.is_cut {
        true => || failure::failed("more files differ than can be listed; name some of them in files"),
        false => unreadable,
    };
    let mut changes = Changes::default();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    while let Some(field) = answer.next() {
        if field.is_empty() {
            break;
        }
        if let Some(raw) = field.strip_prefix(b":") {
            let letter = raw.rsplit(|byte| *byte == b' ').next().and_then(|last| last.first());
            let status = letter.and_then(|letter| status_word(*letter)).ok_or_else(unreadable)?;
            let first = answer.next().ok_or_else(unreadable)?;
            let has_two = matches!(letter, Some(b'R' | b'C'));
            let second = has_two.then(|| answer.next().ok_or_else(unreadable)).transpose()?;
            let name = second.unwrap_or(first);
            // A file in conflict comes twice: as that, and with its lines.
            if places.contains_key(name) {
                continue;
            }
            changes.count += 1;
            if changes.files.len() < FILES {
                places.insert(name.to_owned(), changes.files.len());
                let from = second.map(|_renamed| answer.path(first));
                let path = answer.path(name);
                changes.files.push(Change { path, from, status, added: 0, deleted: 0, binary: false });
            }
            continue;
        }
        let (lines, name) = parse_lines(field, answer).ok_or_else(unreadable)?;
        let (added, deleted) = lines.unwrap_or_default();
        changes.added += added;
        changes.deleted += deleted;
        if let Some(change) = places.get(name).and_then(|place| changes.files.get_mut(*place)) {
            change.added = added;
            change.deleted = deleted;
            change.binary = lines.is_none();
        }
    }
    Ok(changes)
}

/// How many lines came and went; none for a file that has no lines.
type Lines = Option<(u64, u64)>;

/// The lines of a file and its name: `1\t2\tname`, or `1\t2\t` and two fields with the
/// old and the new name.
fn parse_lines<'a>(field: &'a [u8], answer: &mut Answer<'a>) -> Option<(Lines, &'a [u8])> {
    let mut parts = field.splitn(3, |byte| *byte == b'\t');
    let (added, deleted, name) = (parts.next()?, parts.next()?, parts.next()?);
    let name = if name.is_empty() {
        answer.next()?;
        answer.next()?
    } else {
        name
    };
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
    match (added, deleted) {
        (b"-", b"-") => Some((None, name)),
        _ => Some((Some((number(added)?, number(deleted)?)), name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::script::captured;

    /// The list in a repository in the folder `sub`, and what comes after it.
    fn parsed(list: &[u8]) -> Result<(Changes, Vec<u8>)> {
        let stdout = captured(&[b"/workspace/sub\0", list].concat());
        let mut answer = Answer::of(&stdout)?;
        Ok((parse(&mut answer)?, answer.rest.to_vec()))
    }

    fn change(path: &str, status: &'static str, lines: (u64, u64)) -> Change {
        Change { path: path.into(), from: None, status, added: lines.0, deleted: lines.1, binary: false }
    }

    #[test]
    fn kinds_and_counts_of_every_file_are_read_whatever_its_name() {
        let text = b":000000 100644 0000 abcd A\0new\nline \t.txt\0:100644 100644 abcd abce M\0a\xff\0\
            :100644 100644 abcd abce R087\0old\0to\0:100644 000000 abcd 0000 D\0gone\0\
            3\t0\tnew\nline \t.txt\0-\t-\ta\xff\0\x31\t2\t\0old\0to\x000\t7\tgone\0\0diff --git";
        let (changes, rest) = parsed(text).unwrap();
        assert_eq!(
            changes.files,
            [
                change("sub/new\nline \t.txt", "added", (3, 0)),
                Change { binary: true, ..change("sub/a\\xff", "modified", (0, 0)) },
                Change { from: Some("sub/old".into()), ..change("sub/to", "renamed", (1, 2)) },
                change("sub/gone", "deleted", (0, 7)),
            ]
        );
        assert_eq!((changes.count, changes.added, changes.deleted), (4, 4, 9));
        assert_eq!(rest, b"diff --git");
    }

    #[test]
    fn a_file_in_conflict_is_one_file() {
        let text = b":000000 100644 0 0 U\0z\0:100644 100644 a 0 M\0z\x000\t0\tz\x006\t0\tz\0";
        let (changes, _) = parsed(text).unwrap();
        assert_eq!((changes.files, changes.count), (vec![change("sub/z", "conflicted", (6, 0))], 1));
    }

    #[test]
    fn all_are_counted_and_the_first_are_named() {
        let mut text = Vec::new();
        for n in 0..FILES + 5 {
            text.extend(format!(":000000 100644 0000 abcd A\0f{n}\0").bytes());
        }
        for n in 0..FILES + 5 {
            text.extend(format!("1\t1\tf{n}\0").bytes());
        }
        let (changes, _) = parsed(&text).unwrap();
        assert_eq!((changes.files.len(), changes.count, changes.added), (FILES, 1005, 1005));
        assert!(changes.is_truncated());
    }

    #[test]
    fn what_git_never_prints_is_no_list() {
        for text in [&b":100644 X\0a\0"[..], b"1\t2\0", b"x\t1\ta\0", b":0 0 0 0 R1\0a\0", b"1\t2\t\0a\0"] {
            assert!(parsed(text).is_err(), "{text:?}");
        }
    }
}
