//! Which files the requirements of a project of Python include.
//!
//! Whatever pip takes for an include has to be one here, or a yes would not rest on it; so lines are divided, joined and
//! cut into words as pip does it. That something is taken for one that is none does no harm.

use crate::develop::fault;
use crate::develop::site::{MANIFEST_BYTES, Site};
use crate::own;
use gantry_core::Fault;
use gantry_sandbox::jail::WORKSPACE;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The file that pip is told to install from.
pub(super) const REQUIREMENTS: &str = "requirements.txt";
/// Files of requirements that include each other.
const INCLUDES: usize = 50;
/// What ends a line for Python, beside `\r\n`.
const LINE_ENDS: [char; 10] =
    ['\n', '\r', '\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}'];
/// Lines at the beginning of a file in which an encoding may be declared.
const DECLARING_LINES: usize = 2;

/// The files that the requirements include, and those that these include.
pub(super) fn included(site: &Site) -> Result<BTreeSet<PathBuf>, Fault> {
    let mut found = BTreeSet::new();
    let mut unread = vec![site.folder.join(REQUIREMENTS)];
    while let Some(file) = unread.pop() {
        let content = site.content(&file, MANIFEST_BYTES)?.unwrap_or_default();
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        for named in includes(&decoded(&file, content)?) {
            let scheme = named.to_ascii_lowercase();
            if ["http://", "https://"].iter().any(|start| scheme.starts_with(start)) {
                // It comes from the network, where only the registry can be reached.
                continue;
            }
            let path = inside(&folder, &named)?;
            if found.insert(path.clone()) {
                unread.push(path);
            }
            if found.len() > INCLUDES {
                return Err(fault::failed(format!(
                    "the files of requirements include more than {INCLUDES} others; put them into fewer files"
                )));
            }
        }
    }
    Ok(found)
}

/// A file as text. Pip reads other encodings too, in which the same bytes may say something else.
fn decoded(file: &Path, content: Vec<u8>) -> Result<String, Fault> {
    let odd = || {
        fault::failed(format!(
            "{} is not in UTF-8, or declares another encoding; save it in UTF-8, which installing needs; nothing was installed",
            own::shown(&file.display().to_string())
        ))
    };
    let Ok(text) = String::from_utf8(content) else { return Err(odd()) };
    let mut beginning = text.split('\n').take(DECLARING_LINES).filter(|line| line.starts_with('#'));
    let is_odd =
        |name: &str| !["utf-8", "utf8", "ascii"].iter().any(|known| name.eq_ignore_ascii_case(known));
    if beginning.any(|line| declared_encoding(line).is_some_and(is_odd)) {
        return Err(odd());
    }
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// What a line such as `# -*- coding: NAME -*-` declares.
fn declared_encoding(line: &str) -> Option<&str> {
    line.match_indices("coding").find_map(|(at, word)| {
        let rest = line.get(at + word.len()..)?.strip_prefix([':', '='])?.trim_start();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        rest.get(..end).filter(|name| !name.is_empty())
    })
}

/// What the lines include: `-r FILE`, `-c FILE`, in all the ways in which pip takes it.
fn includes(text: &str) -> Vec<String> {
    let mut named = Vec::new();
    for line in lines(text) {
        let line = without_comment(&line).trim_matches(is_blank);
        // Options after the name of a package include nothing.
        let words = if line.starts_with('-') { words(line) } else { Vec::new() };
        for (at, word) in words.iter().enumerate() {
            let (option, value) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ if word.starts_with("--") => (word.as_str(), None),
                _ => (word.get(..2).unwrap_or(word), word.get(2..).filter(|value| !value.is_empty())),
            };
            // pip takes the beginnings of long options for the whole.
            let is_long = |whole: &str| option.len() > 2 && whole.starts_with(option);
            if matches!(option, "-r" | "-c") || is_long("--requirement") || is_long("--constraint") {
                // The next word may be an option as well, because this one may be the value of another.
                let value = value.or_else(|| words.get(at + 1).map(String::as_str));
                named.extend(value.map(str::to_owned));
            }
        }
    }
    named
}

/// The lines of a file, those that end in a backslash joined with the next. A comment is not gone on with.
fn lines(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n");
    let (mut joined, mut open) = (Vec::new(), String::new());
    for line in text.split(LINE_ENDS) {
        let is_comment = line.trim_start_matches(is_blank).starts_with('#');
        if line.ends_with('\\') && !is_comment {
            open.push_str(line.trim_matches('\\'));
            continue;
        }
        // What follows a line that goes on is a comment all the same.
        open.push_str(if is_comment { " " } else { "" });
        open.push_str(line);
        joined.push(std::mem::take(&mut open));
    }
    joined.push(open);
    joined
}

fn without_comment(line: &str) -> &str {
    let mut after_blank = true;
    let comment = line.char_indices().find(|(_, c)| {
        let begins = *c == '#' && after_blank;
        after_blank = is_blank(*c);
        begins
    });
    comment.and_then(|(at, _)| line.get(..at)).unwrap_or(line)
}

/// What Python takes for a blank.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// The words of a line as a shell has them: quoted, escaped or plain.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (None | Some('"'), '\\') => {
                let escaped = chars.next();
                let stays = quote.is_some() && !matches!(escaped, Some('"' | '\\'));
                word.get_or_insert_default().extend(stays.then_some('\\').into_iter().chain(escaped));
            }
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t' | '\r' | '\n') => words.extend(word.take()),
            (None | Some(_), c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// A file that another one names, relative to the workspace.
fn inside(folder: &Path, named: &str) -> Result<PathBuf, Fault> {
    let path = Path::new(named);
    let path = match path.strip_prefix(WORKSPACE) {
        Ok(inside) => inside.to_owned(),
        Err(_) => folder.join(path),
    };
    let is_address = named.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"));
    if path.is_absolute() || named.contains("${") || is_address {
        return Err(fault::failed(format!(
            "the requirements include {}, which is no path in the workspace; installing needs one",
            own::shown(named)
        )));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_found_in_every_spelling() {
        let text = "-r a.txt\n--requirement b.txt\n--requirement=c.txt\n-cd.txt\n--const 'e.txt'\n  -i https://x -r \\\n f.txt\n\
                    requests==1 # -r no.txt\nrequests -r no.txt\n--require-hashes\n--extra-index-url y\n";
        assert_eq!(includes(text), ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt", "f.txt"]);
    }

    #[test]
    fn lines_end_wherever_python_ends_them() {
        for end in
            ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\u{85}", "\u{2028}", "\u{2029}"]
        {
            assert_eq!(includes(&format!("requests==1{end}-r evil.txt{end}")), ["evil.txt"], "{end:?}");
            assert_eq!(includes(&format!("-r \\{end}evil.txt")), ["evil.txt"], "{end:?}");
        }
        // It only looks like a continuation.
        assert_eq!(includes("# a comment \\\n-r evil.txt"), ["evil.txt"]);
        assert_eq!(includes("\\-r \\\nevil.txt"), ["evil.txt"]);
        assert_eq!(includes("\x1f-r evil.txt"), ["evil.txt"]);
        assert_eq!(includes("-r evil.txt\\\n# a comment"), ["evil.txt"]);
    }

    #[test]
    fn words_are_those_of_a_shell() {
        assert_eq!(includes("-r 'my file.txt'"), ["my file.txt"]);
        assert_eq!(includes(r#"--req"uirement"=ev\il.txt"#), ["evil.txt"]);
        assert_eq!(includes(r#"-r "a\"b\c""#), [r#"a"b\c"#]);
        assert_eq!(includes("-r a\u{a0}b.txt"), ["a\u{a0}b.txt"]);
        // The first may be the value of another option.
        assert_eq!(includes("-i -r -r evil.txt").last().unwrap(), "evil.txt");
        assert_eq!(includes("-r"), Vec::<String>::new());
    }

    #[test]
    fn only_utf_8_is_read() {
        let read = |content: &[u8]| decoded(Path::new("p/r.txt"), content.to_vec());
        assert_eq!(includes(&read("\u{feff}-r x.txt".as_bytes()).unwrap()), ["x.txt"]);
        assert!(read(b"# -*- coding: utf-8 -*-\n# encoding=ascii\n").is_ok());
        assert!(read(b"\n\n# coding: utf-7\n").is_ok(), "pip looks at two lines");
        for odd in [
            &b"# coding: utf-7\n+AC0-r evil.txt"[..],
            b"x\n#vim: fileencoding=latin-1",
            b"\xff\xfe-\0r\0",
            b"\xfe\xff\0-\0r",
            b"\0\0\xfe\xff",
            b"caf\xe9",
        ] {
            let fault = read(odd).unwrap_err();
            assert!(fault.error.message.contains("p/r.txt is not in UTF-8"), "{odd:?}: {fault:?}");
        }
    }

    #[test]
    fn includes_from_elsewhere_are_refused() {
        assert_eq!(inside(Path::new("p"), "x.txt").unwrap(), Path::new("p/x.txt"));
        assert_eq!(inside(Path::new("p"), "/workspace/x.txt").unwrap(), Path::new("x.txt"));
        for odd in ["/store/x.txt", "file:///workspace/x.txt", "FILE:/workspace/x.txt", "${HOME}/x.txt"] {
            assert!(inside(Path::new("p"), odd).is_err(), "{odd}");
        }
    }
}
