//! `git_log`: commits, the newest first.

use super::act::{self, COMMITS, Log};
use super::fault;
use super::repository::{Fields, Repository, Script, code};
use crate::own::shown;
use crate::workshop::exit_code;
use gantry_core::Fault;
use serde_json::{Value, json};

pub(super) async fn run(repository: &Repository<'_>, args: &Log) -> Result<Value, Fault> {
    let most = args.max_count.clamp(1, COMMITS.0);
    let ran = repository.run(script(args, most)?).await?;
    match exit_code(ran.end) {
        0 => read(&ran.stdout.bytes, ran.stdout.is_truncated(), most),
        code::NO_REVISION => Err(fault::invalid_arguments(format!(
            "{} is not a revision of this repository, nor a range of two such as main..topic",
            shown(args.rev.as_deref().unwrap_or_default())
        ))),
        _ => Err(fault::of_git(&ran, "reading the log", &repository.shown)),
    }
}

fn script(args: &Log, most: u32) -> Result<Script, Fault> {
    let rev = args.rev.as_deref().map(|rev| act::word("rev", rev)).transpose()?.unwrap_or_default();
    // One more than asked for tells whether there are more.
    let mut options = vec![format!("--max-count={}", most + 1), format!("--skip={}", args.skip)];
    let conditions =
        [("author", &args.author), ("since", &args.since), ("until", &args.until), ("grep", &args.grep)];
    for (name, text) in conditions {
        if let Some(text) = text {
            options.push(format!("--{name}={}", act::phrase(name, text)?));
        }
    }
    options.extend(["--fixed-strings", "--regexp-ignore-case", "--"].map(str::to_owned));
    let script = Script::looks("git_log", &[include_str!("sh/log.sh")]);
    Ok(script.args([rev]).args(options).args(act::files(&args.files)?))
}

fn read(bytes: &[u8], is_cut: bool, most: u32) -> Result<Value, Fault> {
    let mut fields = Fields::of(bytes);
    fields.must("where the repository is")?;
    let mut commits = Vec::new();
    let mut is_truncated = is_cut;
    while !fields.rest().is_empty() {
        let Some(commit) = commit(&mut fields) else {
            if is_cut {
                break;
            }
            return Err(fault::unreadable("a commit of the log"));
        };
        if commits.len() == most as usize {
            is_truncated = true;
            break;
        }
        commits.push(commit);
    }
    let mut result = json!({ "commits": commits });
    if is_truncated {
        result["truncated"] = true.into();
    }
    Ok(result)
}

/// The fields of one commit, in the order of the script.
fn commit(fields: &mut Fields<'_>) -> Option<Value> {
    let mut next = || Some(String::from_utf8_lossy(fields.next()?).into_owned());
    let (hash, short, parents) = (next()?, next()?, next()?);
    let (name, email, date) = (next()?, next()?, next()?);
    let (refs, subject, body) = (next()?, next()?, next()?);
    let parents: Vec<&str> = parents.split_whitespace().collect();
    let mut commit = json!({
        "hash": hash,
        "short": short,
        "author": { "name": name, "email": email },
        "date": date,
        "subject": subject,
        "body": body.trim_end(),
        "parents": parents,
    });
    let refs = refs_of(&refs);
    if !refs.is_empty() {
        commit["refs"] = refs.into();
    }
    Some(commit)
}

/// `HEAD -> main, tag: v1, origin/main` as a list of names. A name has no space in it.
fn refs_of(text: &str) -> Vec<String> {
    let names = text.split(", ").flat_map(|name| name.split(" -> "));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[u8] = b"/workspace\0h1\0s1\0p1 p2\0Ann \xc3\x84\0a@x\x002024-01-02T03:04:05+02:00\0\
        HEAD -> main, tag: v1, origin/main\0Subject\0Body\n\nmore\n\0\
        h2\0s2\0\0Bob\0b@x\x002024-01-01T00:00:00Z\0\0One line\0\0";

    #[test]
    fn commits_are_read_field_by_field() {
        let log = read(TWO, false, 20).unwrap();
        assert_eq!(
            log,
            json!({ "commits": [
            { "hash": "h1", "short": "s1", "author": { "name": "Ann Ä", "email": "a@x" },
              "date": "2024-01-02T03:04:05+02:00", "subject": "Subject", "body": "Body\n\nmore",
              "parents": ["p1", "p2"], "refs": ["HEAD", "main", "tag: v1", "origin/main"] },
            { "hash": "h2", "short": "s2", "author": { "name": "Bob", "email": "b@x" },
              "date": "2024-01-01T00:00:00Z", "subject": "One line", "body": "", "parents": [] },
        ] })
        );
    }

    #[test]
    fn more_than_asked_for_is_cut_and_says_so() {
        let log = read(TWO, false, 1).unwrap();
        assert_eq!((log["commits"].as_array().unwrap().len(), &log["truncated"]), (1, &json!(true)));
        let cut = &TWO[..TWO.len() - 3];
        assert_eq!(read(cut, true, 20).unwrap()["truncated"], true);
        assert!(read(cut, false, 20).is_err());
        assert_eq!(read(b"/workspace\0", false, 20).unwrap(), json!({ "commits": [] }));
    }

    #[test]
    fn conditions_stay_in_their_place_on_the_command_line() {
        let args = |text: &str| serde_json::from_str::<Log>(text).unwrap();
        let one =
            script(&args(r#"{"author":"--all","grep":"a b","rev":"main..x","files":["-f"]}"#), 20).unwrap();
        assert_eq!(one.args[0], "main..x");
        assert!(
            one.args.contains(&"--author=--all".to_owned()) && one.args.contains(&"--grep=a b".to_owned())
        );
        let end = one.args.iter().position(|arg| arg == "--").unwrap();
        assert_eq!(one.args[end + 1..], ["/workspace/-f"]);
        for wrong in [r#"{"rev":"--all"}"#, r#"{"rev":""}"#, r#"{"since":"a\nb"}"#, r#"{"author":""}"#] {
            assert!(script(&args(wrong), 20).is_err(), "{wrong}");
        }
    }
}
