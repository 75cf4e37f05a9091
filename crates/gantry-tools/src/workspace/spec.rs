//! How the file tools present themselves: names, schemas, hints.

use super::FsTools;
use crate::schema::{CHANGES, READS, count as size, flag, object, part, text};
use gantry_core::tool::{Annotations, OwnRule, ToolSpec};
use serde_json::{Value, json};

/// What an agent should know before it uses any of them.
pub(super) const INSTRUCTIONS: &str = "Files are named by paths relative to the workspace root, with forward \
slashes (\"src/main.rs\"); \".\" is the root. Absolute paths and paths that lead outside are refused. Overwriting \
and deleting wait for a person's approval; creating, reading, listing and moving to a free name do not.";

/// The tools.
pub(super) fn tools() -> Vec<ToolSpec> {
    vec![list_directory(), read_file(), write_file(), delete_file(), move_file()]
}

/// The tools of a catalogue entry, which say where they work.
pub(super) fn catalogue_tools(which: FsTools, allowed: Option<&str>) -> Vec<ToolSpec> {
    let mut tools = match which {
        FsTools::Read => vec![list_directory(), read_file()],
        FsTools::Write => vec![write_file(), delete_file(), move_file()],
    };
    for tool in &mut tools {
        tool.description = format!("{} {}", tool.description, works_in(allowed));
    }
    tools
}

/// What an agent should know before it uses the tools of a catalogue entry.
pub(super) fn catalogue_instructions(allowed: Option<&str>) -> String {
    format!("Files are named by paths relative to the workspace root. {}", works_in(allowed))
}

fn works_in(allowed: Option<&str>) -> String {
    match allowed {
        Some(allowed) => {
            format!(
                "Works only at these paths of the workspace and below them: {allowed}; others are refused."
            )
        }
        None => "Works in the whole workspace.".to_owned(),
    }
}

fn list_directory() -> ToolSpec {
    ToolSpec {
        name: "list_directory".into(),
        title: Some("List directory".into()),
        description: "Lists the files and directories in a directory of the workspace, sorted by name. Use it to \
                      find out what exists before reading or writing. With recursive, names are paths relative to \
                      the listed directory, up to 16 levels deep. At most 10,000 entries are returned."
            .into(),
        input_schema: object(
            &["path"],
            &json!({
                "path": text("The directory, relative to the workspace root; \".\" is the root itself."),
                "recursive": flag("Whether to list the directories within as well. Symbolic links are not followed."),
                "includeHidden": flag("Whether to list entries whose name starts with a dot."),
            }),
        ),
        output_schema: Some(object(
            &["entries"],
            &json!({
                "entries": { "type": "array", "description": "The entries, sorted by name.", "items": part(
                    &["name", "type", "size", "modified"],
                    &json!({
                        "name": text(
                            "The name; with recursive, the path relative to the listed directory. \
                             Bytes that are not UTF-8 stand as \\xNN."
                        ),
                        "type": { "type": "string", "enum": ["file", "directory", "symlink"], "description": "What it is." },
                        "size": size("The size in bytes; 0 for directories."),
                        "modified": modified(),
                    }),
                ) },
                "truncated": flag("True if there is more than what is listed; absent otherwise."),
            }),
        )),
        annotations: READS,
        own_rule: OwnRule::Never,
        raw: None,
        target: None,
    }
}

fn read_file() -> ToolSpec {
    ToolSpec {
        name: "read_file".into(),
        title: Some("Read file".into()),
        description: "Reads a whole file of the workspace. Use it to see a file's content before changing it. Text \
                      comes as it is; read anything that is not UTF-8 text with encoding base64. At most 10 MiB."
            .into(),
        input_schema: object(
            &["path"],
            &json!({
                "path": text("The file, relative to the workspace root."),
                "encoding": encoding("How to return the content: as text, or as base64 for binary files."),
            }),
        ),
        output_schema: Some(object(
            &["content", "size", "modified"],
            &json!({
                "content": text("The content, in the encoding that was asked for."),
                "size": size("The size of the file in bytes."),
                "modified": modified(),
            }),
        )),
        annotations: READS,
        own_rule: OwnRule::Never,
        raw: None,
        target: None,
    }
}

fn write_file() -> ToolSpec {
    ToolSpec {
        name: "write_file".into(),
        title: Some("Write file".into()),
        description: "Writes a whole file of the workspace. Use it to create a file, or to replace the content of \
                      one; replacing waits for a person's approval. The file changes in one step: it has the old \
                      content or the new one, never a part. At most 10 MiB."
            .into(),
        input_schema: object(
            &["path", "content"],
            &json!({
                "path": text("The file, relative to the workspace root."),
                "content": text("The whole new content, in the given encoding."),
                "encoding": encoding("How the content is given: as text, or as base64 for binary files."),
                "createDirs": flag("Whether to create the directories of the path that do not exist."),
            }),
        ),
        output_schema: Some(object(
            &["path", "size"],
            &json!({
                "path": text("The file, relative to the workspace root."),
                "size": size("The size of the file in bytes."),
            }),
        )),
        annotations: Annotations { idempotent_hint: Some(true), ..CHANGES },
        own_rule: OwnRule::Depends,
        raw: None,
        target: None,
    }
}

fn delete_file() -> ToolSpec {
    ToolSpec {
        name: "delete_file".into(),
        title: Some("Delete file".into()),
        description:
            "Deletes a file, a symbolic link or a directory of the workspace for good. Always waits for a \
                      person's approval. Use move_file instead to keep the content under another name."
                .into(),
        input_schema: object(
            &["path"],
            &json!({
                "path": text("The file or directory, relative to the workspace root."),
                "recursive": flag(
                    "Whether to delete a directory with everything in it; without, only an empty one is deleted."
                ),
            }),
        ),
        output_schema: Some(object(
            &["deleted"],
            &json!({
                "deleted": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "What was deleted: paths relative to the workspace root, sorted; at most 10,000.",
                },
                "truncated": flag("True if more was deleted than is named; absent otherwise."),
            }),
        )),
        annotations: Annotations { destructive_hint: Some(true), ..CHANGES },
        // It always asks; as `Depends` the question can say what would be deleted.
        own_rule: OwnRule::Depends,
        raw: None,
        target: None,
    }
}

fn move_file() -> ToolSpec {
    ToolSpec {
        name: "move_file".into(),
        title: Some("Move file".into()),
        description: "Moves or renames a file or directory within the workspace, in one step. The directory of the \
                      new path must exist. An existing target is left alone unless overwrite is true, which waits \
                      for a person's approval."
            .into(),
        input_schema: object(
            &["from", "to"],
            &json!({
                "from": text("The file or directory to move, relative to the workspace root."),
                "to": text("Its new path including its new name, relative to the workspace root."),
                "overwrite": flag("Whether to replace a file that has the new path."),
            }),
        ),
        output_schema: Some(object(
            &["from", "to"],
            &json!({
                "from": text("The old path."),
                "to": text("The new path."),
            }),
        )),
        annotations: CHANGES,
        own_rule: OwnRule::Depends,
        raw: None,
        target: None,
    }
}

fn encoding(description: &str) -> Value {
    json!({ "type": "string", "enum": ["utf-8", "base64"], "default": "utf-8", "description": description })
}

fn modified() -> Value {
    json!({ "type": "string", "format": "date-time", "description": "When the content was last changed, in UTC." })
}
