//! Cutting a piece out of a stored text: by page, lines, pattern, JSON path, head or tail.

use super::json_path;
use gantry_core::truncate::truncate;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Compiled size of a caller's regular expression, and this size times the bytes of a line that are searched without a look
/// at the clock. An expression can take a step for each of its parts at each byte: about 5 s for all this.
const REGEX_BYTES: usize = 1024 * 1024;
const REGEX_WORK: usize = 1 << 35;

/// How long lines are searched.
const GREP_TIME: Duration = Duration::from_secs(10);

/// Bytes of an output that is read as JSON.
const JSON_BYTES: usize = 16 * 1024 * 1024;

/// Lines that head and tail show unless told otherwise.
const DEFAULT_COUNT: usize = 100;

/// The piece of an output that a caller asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct View {
    pub(super) handle: String,
    mode: Mode,
    page: Option<usize>,
    from: Option<usize>,
    to: Option<usize>,
    pattern: Option<String>,
    context: Option<usize>,
    path: Option<String>,
    count: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Mode {
    #[default]
    Page,
    Lines,
    Grep,
    JsonPath,
    Head,
    Tail,
}

/// A piece of an output, as the tool returns it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Slice {
    handle: String,
    content: String,
    truncated: bool,
    total_bytes: usize,
    total_lines: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<usize>,
}

/// Cuts the piece out, at most `limit` bytes of it. An error says what is wrong with the request.
pub(super) fn cut(text: &str, view: &View, limit: usize) -> Result<Slice, String> {
    let mut slice = match view.mode {
        Mode::Page => page(text, view.page.unwrap_or(1), limit)?,
        Mode::Lines => lines(text, view)?,
        Mode::Grep => grep(text, view, limit)?,
        Mode::JsonPath => json_path(text, view, limit)?,
        Mode::Head => joined(text.lines().take(view.count.unwrap_or(DEFAULT_COUNT))),
        Mode::Tail => {
            let skip = text.lines().count().saturating_sub(view.count.unwrap_or(DEFAULT_COUNT));
            joined(text.lines().skip(skip))
        }
    };
    if slice.content.len() > limit {
        slice.content = truncate(&slice.content, limit).to_owned();
        slice.truncated = true;
    }
    slice.handle = view.handle.clone();
    slice.total_bytes = text.len();
    slice.total_lines = text.lines().count();
    Ok(slice)
}

fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> Slice {
    Slice { content: lines.collect::<Vec<_>>().join("\n"), ..Slice::default() }
}

fn page(text: &str, wanted: usize, limit: usize) -> Result<Slice, String> {
    let mut starts = vec![0];
    let mut at = 0;
    while text.len() - at > limit {
        let rest = text.get(at..).unwrap_or_default();
        let full = rest.floor_char_boundary(limit);
        // A page ends with a line where it can.
        let end = rest.get(..full).and_then(|page| page.rfind('\n')).map_or(full, |newline| newline + 1);
        at += end.max(1);
        starts.push(at);
    }
    let pages = starts.len();
    let start =
        starts.get(wanted - 1).ok_or_else(|| format!("there is no page {wanted}; the output has {pages}"))?;
    let end = starts.get(wanted).copied().unwrap_or(text.len());
    let content = text.get(*start..end).unwrap_or_default().to_owned();
    Ok(Slice { content, page: Some(wanted), pages: Some(pages), ..Slice::default() })
}

fn lines(text: &str, view: &View) -> Result<Slice, String> {
    let from = view.from.unwrap_or(1);
    let to = view.to.unwrap_or(usize::MAX);
    if to < from {
        return Err(format!("to ({to}) is before from ({from})"));
    }
    Ok(joined(text.lines().skip(from - 1).take(to - from + 1)))
}

fn grep(text: &str, view: &View, limit: usize) -> Result<Slice, String> {
    let pattern = view.pattern.as_deref().ok_or("grep needs a pattern")?;
    let lines: Vec<&str> = text.lines().collect();
    let longest = lines.iter().map(|line| line.len()).max().unwrap_or(0);
    let regex = regex(pattern, REGEX_BYTES.min(REGEX_WORK / longest.max(1)))?;
    let started = Instant::now();
    let context = view.context.unwrap_or(0);
    let mut content = String::new();
    let (mut matches, mut shown, mut cut_off) = (0, 0, false);
    for (n, line) in lines.iter().enumerate() {
        if started.elapsed() > GREP_TIME {
            return Err("the pattern takes too long in this output; make it simpler, or use lines".to_owned());
        } else if !regex.is_match(line) {
            continue;
        }
        matches += 1;
        for at in n.saturating_sub(context).max(shown)..(n + context + 1).min(lines.len()) {
            if content.len() > limit {
                cut_off = true;
                break;
            }
            content.push_str(&format!("{}:{}\n", at + 1, lines.get(at).copied().unwrap_or_default()));
            shown = at + 1;
        }
    }
    Ok(Slice { content, truncated: cut_off, matches: Some(matches), ..Slice::default() })
}

/// A regular expression of a caller with this compiled size at most, by which the time that a byte takes is bounded.
pub(super) fn regex(pattern: &str, bytes: usize) -> Result<Regex, String> {
    RegexBuilder::new(pattern).size_limit(bytes).build().map_err(|error| {
        if matches!(error, regex::Error::CompiledTooBig(_)) {
            format!("the pattern is larger than {bytes} bytes when compiled, too large for lines as long as these; make it simpler")
        } else {
            format!("the pattern is not a regular expression: {error}")
        }
    })
}

fn json_path(text: &str, view: &View, limit: usize) -> Result<Slice, String> {
    let path = view.path.as_deref().ok_or("jsonPath needs a path")?;
    if text.len() > JSON_BYTES {
        return Err(format!("the output is larger than {JSON_BYTES} bytes; use lines or grep"));
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|_invalid| "the output is not JSON; use lines or grep".to_owned())?;
    let found = json_path::find(path, &value)?;
    let mut content = String::new();
    for node in &found {
        if content.len() > limit {
            break;
        }
        // A single text is shown as it is; everything else as JSON.
        let text = node.as_str().filter(|_| found.len() == 1).map(str::to_owned);
        content.push_str(&text.unwrap_or_else(|| serde_json::to_string_pretty(node).unwrap_or_default()));
        content.push('\n');
    }
    Ok(Slice { content: content.trim_end().to_owned(), matches: Some(found.len()), ..Slice::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn view(json: Value) -> View {
        serde_json::from_value(json).unwrap()
    }

    fn content(text: &str, json: Value) -> String {
        cut(text, &view(json), 1000).unwrap().content
    }

    #[test]
    fn every_mode_cuts_its_piece() {
        let text = "one\ntwo\nthree\nfour";
        assert_eq!(content(text, json!({})), text);
        assert_eq!(content(text, json!({ "mode": "lines", "from": 2, "to": 3 })), "two\nthree");
        assert_eq!(content(text, json!({ "mode": "head", "count": 1 })), "one");
        assert_eq!(content(text, json!({ "mode": "tail", "count": 2 })), "three\nfour");
        assert_eq!(content(text, json!({ "mode": "grep", "pattern": "^t" })), "2:two\n3:three\n");
        assert_eq!(
            content(text, json!({ "mode": "grep", "pattern": "tw", "context": 1 })),
            "1:one\n2:two\n3:three\n"
        );
        let json_text = r#"{"items":[{"name":"a"},{"name":"b"}]}"#;
        assert_eq!(content(json_text, json!({ "mode": "jsonPath", "path": "$.items[1].name" })), "b");
    }

    #[test]
    fn requests_that_make_no_sense_say_so() {
        for bad in [
            json!({ "page": 9 }),
            json!({ "mode": "grep" }),
            json!({ "mode": "grep", "pattern": "(" }),
            json!({ "mode": "jsonPath", "path": "$[" }),
            json!({ "mode": "jsonPath", "path": "$" }),
            json!({ "mode": "jsonPath", "path": format!("$[{}0]", "*,".repeat(9)) }),
            json!({ "mode": "jsonPath", "path": "$..a..b" }),
            json!({ "mode": "lines", "from": 3, "to": 2 }),
        ] {
            assert!(cut("not json", &view(bad.clone()), 100).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn the_pages_together_are_the_text(text in "([a-zé]{0,9}\n?){0,30}", limit in 4usize..40) {
            let pages = cut(&text, &view(json!({})), limit).unwrap().pages.unwrap();
            let all: String = (1..=pages)
                .map(|page| {
                    let slice = cut(&text, &view(json!({ "page": page })), limit).unwrap();
                    assert!(slice.content.len() <= limit && !slice.truncated);
                    slice.content
                })
                .collect();
            prop_assert_eq!(all, text);
        }
    }
}
