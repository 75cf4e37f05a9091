//! How `search_code` presents itself.

use super::query::{CONTEXT, CONTEXT_RANKED, GLOBS, MOST, QUERY_BYTES, USUAL, USUAL_RANKED};
use crate::schema::{READS, count, flag, list, object, part, text, texts};
use gantry_core::tool::{OwnRule, ToolSpec};
use serde_json::{Value, json};

/// The name of the tool.
pub(super) const SEARCH_CODE: &str = "search_code";

pub(super) fn search_code() -> ToolSpec {
    ToolSpec {
        name: SEARCH_CODE.into(),
        title: Some("Search code".into()),
        description: "Searches the files of the workspace. mode ranked (the default) takes words or identifiers and \
                      gives the best files for them, with the best line of each: use it to find where something is \
                      done. mode literal finds every line with a text, mode regex every line that fits a regular \
                      expression: use them to find all places. Files that .gitignore or .ignore leave out, hidden \
                      files and binary files are not searched; symbolic links are not followed."
            .into(),
        input_schema: object(&["query"], &arguments()),
        output_schema: Some(object(&["mode", "matches"], &answer())),
        annotations: READS,
        own_rule: OwnRule::Never,
        raw: None,
        target: None,
    }
}

fn arguments() -> Value {
    json!({
        "query": {
            "type": "string", "minLength": 1, "maxLength": QUERY_BYTES,
            "description": "What to look for: words or identifiers (ranked), a text within one line (literal), or a \
                            regular expression that is matched line by line (regex).",
        },
        "mode": mode("How to search."),
        "path": text("A directory or file to search in, relative to the workspace root; everything unless given."),
        "glob": {
            "description": "Only files whose path fits one of these globs: \"*.rs\" at any depth, \"src/**/*.ts\" from \
                            the workspace root; \"!*.lock\" leaves files out.",
            "anyOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" }, "maxItems": GLOBS },
            ],
        },
        "caseSensitive": {
            "type": "boolean",
            "description": "Whether upper and lower case differ, in literal and regex. Unless given, they do if the \
                            query has an upper-case letter.",
        },
        "maxResults": {
            "type": "integer", "minimum": 1, "maximum": MOST,
            "description": format!("How many matches to return, at most; {USUAL}, or {USUAL_RANKED} for ranked, unless given."),
        },
        "context": {
            "type": "integer", "minimum": 0, "maximum": CONTEXT,
            "description": format!("Lines to show before and after each match; 0, or {CONTEXT_RANKED} for ranked, unless given."),
        },
    })
}

fn answer() -> Value {
    let found = json!({
        "path": text("The file, relative to the workspace root."),
        "line": { "type": "integer", "minimum": 1, "description": "The number of the line." },
        "column": {
            "type": "integer", "minimum": 1,
            "description": "Where in the line the match begins, in characters; not for ranked.",
        },
        "text": text("The line; of a long one the part around the match."),
        "before": texts("Lines before it."),
        "after": texts("Lines after it."),
        "score": { "type": "number", "description": "How well the file fits, compared with the others; ranked only." },
        "symbol": text("The definition that the line is or seems to belong to; ranked only."),
    });
    json!({
        "mode": mode("How it was searched."),
        "matches": list(
            &part(&["path", "line", "text"], &found),
            "What was found: by path and line, or the best first for ranked."
        ),
        "truncated": flag("True if there is more than what is listed; absent otherwise."),
        "filesSearched": count("How many files were searched; absent if the search could end early."),
        "skipped": count("Files and directories that could not be searched; absent if none."),
        "note": text("What limits the answer; absent if nothing does."),
    })
}

fn mode(description: &str) -> Value {
    json!({ "type": "string", "enum": ["ranked", "literal", "regex"], "default": "ranked", "description": description })
}
