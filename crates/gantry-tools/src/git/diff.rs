//! `git_diff`: what differs between two states of the files.

use super::act::{self, Diff};
use super::changes;
use super::fault;
use super::repository::{Fields, Repository, Script, Top, code};
use crate::own;
use crate::workshop::exit_code;
use gantry_core::Fault;
use serde_json::{Value, json};

/// Bytes of the text of a diff.
const DIFF_BYTES: usize = 1024 * 1024;

pub(super) async fn run(repository: &Repository<'_>, args: &Diff) -> Result<Value, Fault> {
    let ran = repository.run(script(args)?).await?;
    match exit_code(ran.end) {
        0 => read(&ran.stdout.bytes, ran.stdout.is_truncated()),
        code::NO_REVISION => Err(unknown(args)),
        _ => Err(fault::of_git(&ran, "comparing", &repository.shown)),
    }
}

fn script(args: &Diff) -> Result<Script, Fault> {
    if args.to.is_some() && (args.from.is_none() || args.staged) {
        return Err(fault::invalid_arguments(
            "to: this goes with from, and not with staged; leave it out to compare with the files as they are",
        ));
    }
    let staged = if args.staged { "--cached" } else { "" };
    let rev = |name: &str, rev: &Option<String>| match rev {
        Some(rev) => act::word(name, rev).map(str::to_owned),
        None => Ok(String::new()),
    };
    let context = args.context.min(act::CONTEXT.0).to_string();
    let words = [staged.to_owned(), context, rev("from", &args.from)?, rev("to", &args.to)?];
    let script = Script::looks("git_diff", &[include_str!("sh/diff.sh")]);
    Ok(script.args(words).args(act::files(&args.files)?))
}

fn unknown(args: &Diff) -> Fault {
    let named: Vec<String> =
        [&args.from, &args.to].into_iter().flatten().map(|rev| own::shown(rev)).collect();
    fault::invalid_arguments(format!(
        "{} is not a revision of this repository; git_log shows commits",
        named.join(" or ")
    ))
}

fn read(bytes: &[u8], is_cut: bool) -> Result<Value, Fault> {
    let mut fields = Fields::of(bytes);
    let top = Top::of(fields.must("where the repository is")?)?;
    let changes = match changes::read(&mut fields, &top) {
        Ok(changes) => changes,
        Err(_cut) if is_cut => {
            return Err(fault::failed("more files differ than can be listed; name some of them in files"));
        }
        Err(fault) => return Err(fault),
    };
    let text = fields.rest();
    let is_truncated = is_cut || text.len() > DIFF_BYTES || changes.is_truncated();
    let diff = String::from_utf8_lossy(whole_lines(text));
    let mut result = json!({ "diff": diff, "files": changes.files });
    if is_truncated {
        result["truncated"] = true.into();
    }
    Ok(result)
}

/// The beginning of a diff, up to the end of a line if it is too long.
fn whole_lines(text: &[u8]) -> &[u8] {
    let Some(kept) = text.get(..DIFF_BYTES) else { return text };
    let end = kept.iter().rposition(|byte| *byte == b'\n').map_or(DIFF_BYTES, |end| end + 1);
    kept.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_diff_is_cut_between_lines_and_says_so() {
        let mut text = b"/workspace\0:100644 100644 a b M\0a\x001\t1\ta\0\0".to_vec();
        let head = text.len();
        text.extend(b"0123456789\n".repeat(DIFF_BYTES / 11 + 2));
        let result = read(&text, false).unwrap();
        assert_eq!(result["truncated"], true);
        assert_eq!(result["diff"].as_str().unwrap().len(), DIFF_BYTES / 11 * 11);
        let result = read(&text[..head + 22], false).unwrap();
        assert_eq!(result["diff"], "0123456789\n0123456789\n");
        assert!(result.get("truncated").is_none());
        assert_eq!(whole_lines(&vec![b'x'; DIFF_BYTES + 1]).len(), DIFF_BYTES);
    }

    #[test]
    fn two_ends_have_to_make_sense_together() {
        let args = |text: &str| serde_json::from_str::<Diff>(text).unwrap();
        for wrong in [
            r#"{"to":"a"}"#,
            r#"{"staged":true,"from":"a","to":"b"}"#,
            r#"{"from":"-x"}"#,
            r#"{"from":"a b"}"#,
        ] {
            assert_eq!(script(&args(wrong)).unwrap_err().error.code.as_str(), "INVALID_ARGUMENTS", "{wrong}");
        }
        let right = script(&args(r#"{"from":"main","staged":true,"files":["a/../b","."]}"#)).unwrap();
        assert_eq!(right.args, ["--cached", "3", "main", "", "/workspace/b", "/workspace"]);
    }
}
