//! How the tools for developers present themselves: names, schemas, hints.

use super::ecosystem::Ecosystem;
use super::suite::{WALL, WALL_LIMIT};
use crate::schema::{CHANGES, count, flag, object, text, texts};
use gantry_core::tool::{Annotations, OwnRule, ToolSpec};
use serde_json::{Value, json};

/// The tools.
pub(super) fn tools() -> Vec<ToolSpec> {
    vec![run_tests(), format_code(), install_package()]
}

fn run_tests() -> ToolSpec {
    ToolSpec {
        name: "run_tests".into(),
        title: Some("Run tests".into()),
        description: "Runs the tests of a project in the workspace and returns how many passed and failed, with the end of \
                      the runner's output. Finds out what runs them: cargo test, node --test, jest, vitest, mocha or \
                      the package's test script, pytest or unittest, go test. Runs in the sandbox, without network: call \
                      install_package first if packages are missing. Tests that fail are a result, not an error."
            .into(),
        input_schema: object(&[], &json!({
            "path": folder(),
            "ecosystem": ecosystem(),
            "filter": text("Run only tests whose name contains this; for pytest an expression of -k, for go and node a \
                            regular expression."),
            "timeout": {
                "type": "integer", "minimum": 1, "maximum": WALL_LIMIT.as_secs(), "default": WALL.as_secs(),
                "description": "Seconds after which the tests are ended.",
            },
            "args": texts("Further arguments for the program that runs the tests."),
        })),
        output_schema: Some(object(
            &[
                "ecosystem", "runner", "command", "parsed", "passed", "failed", "skipped", "exitCode", "duration", "sandbox",
                "output",
            ],
            &json!({
                "ecosystem": text("What the project is of."),
                "runner": text("What ran the tests."),
                "command": texts("The program that was run, with its arguments."),
                "parsed": {
                    "type": "boolean",
                    "description": "Whether the runner closed with counts that are known. If not, they are 0 and mean \
                                    nothing; go by exitCode and output.",
                },
                "passed": count("Tests that passed."),
                "failed": count("Tests that failed, as far as the runner counted them; exitCode tells of a runner that \
                                 died."),
                "skipped": count("Tests that were left out."),
                "exitCode": exit_code(),
                "duration": duration(),
                "sandbox": sandbox(),
                "output": text("The end of the runner's output. If it is truncated, lines about tests that passed are \
                                left out first."),
                "hint": text("What to do first, where that is plain; absent otherwise."),
                "truncated": truncated("output"),
            }),
        )),
        annotations: CHANGES,
        own_rule: OwnRule::Never,
        raw: None,
        target: None,
    }
}

fn format_code() -> ToolSpec {
    ToolSpec {
        name: "format_code".into(),
        title: Some("Format code".into()),
        description: "Formats a file, or the code of a project, in place with its own formatter: rustfmt, prettier, ruff \
                      or black, gofmt, shfmt, clang-format. Says which files changed. With check, changes nothing and \
                      returns the formatter's own exit code and output. Does not ask a person, although it overwrites \
                      files: it changes their form only."
            .into(),
        input_schema: object(&[], &json!({
            "path": { "type": "string", "default": ".", "description": "A file, or the folder of a project, relative to \
                                                                        the workspace root. Of Rust, the whole \
                                                                        package around a folder is formatted." },
            "ecosystem": ecosystem(),
            "check": flag("Whether to change nothing. exitCode is not 0 where something would change; older versions of \
                           gofmt only say it in output."),
        })),
        output_schema: Some(object(&["formatter", "changed", "checked", "exitCode"], &json!({
            "formatter": text("What formatted the code."),
            "changed": texts("Files that changed, relative to the workspace root; at most 1,000. Empty when checked."),
            "unchanged": count("Files of the same kinds that did not change; absent when checked."),
            "checked": { "type": "boolean", "description": "Whether nothing was changed because that was asked for." },
            "exitCode": exit_code(),
            "output": text("The end of what the formatter said, if anything."),
            "truncated": truncated("changed or output"),
        }))),
        annotations: Annotations { idempotent_hint: Some(true), ..CHANGES },
        own_rule: OwnRule::Never,
        raw: None,
        target: None,
    }
}

fn install_package() -> ToolSpec {
    ToolSpec {
        name: "install_package".into(),
        title: Some("Install packages".into()),
        description: "Installs packages from a registry into a project of the workspace: npm, pnpm or yarn, pip (into \
                      .venv), cargo, go. Without packages, installs what the project declares. Always waits for a \
                      person's approval, because it reaches the network and brings code of others. Runs in the sandbox; \
                      install scripts of npm packages are not run unless scripts is true."
            .into(),
        input_schema: object(&[], &json!({
            "path": folder(),
            "packages": texts("Names in the registry, with a version if need be: react@^18, requests>=2, serde@1, \
                               golang.org/x/text@v0.21.0. No paths, addresses or options."),
            "ecosystem": ecosystem(),
            "dev": flag("Whether they are only for development (npm and cargo)."),
            "scripts": flag("Whether packages of npm may run their install scripts."),
        })),
        output_schema: Some(object(
            &["ecosystem", "command", "changed", "exitCode", "duration", "sandbox", "output"],
            &json!({
                "ecosystem": text("What the project is of."),
                "command": texts("The program that was run last, with its arguments."),
                "changed": texts("Manifests, lock files and settings in the folder that changed, relative to the workspace root."),
                "exitCode": exit_code(),
                "duration": duration(),
                "sandbox": sandbox(),
                "output": text("The end of what the program said."),
                "truncated": truncated("output"),
            }),
        )),
        annotations: Annotations { open_world_hint: Some(true), ..CHANGES },
        // It always asks; as `Depends` the question can say what would be installed from where.
        own_rule: OwnRule::Depends,
        raw: None,
        target: None,
    }
}

fn folder() -> Value {
    json!({ "type": "string", "default": ".", "description": "The folder of the project, relative to the workspace root." })
}

fn ecosystem() -> Value {
    json!({
        "type": "string", "enum": Ecosystem::ALL.map(Ecosystem::name),
        "description": "What the project is of, where its folder holds several or says nothing.",
    })
}

fn exit_code() -> Value {
    json!({ "type": "integer", "description": "The exit code of the program; 128 and a signal's number if that ended it." })
}

fn duration() -> Value {
    count("How long it took, in milliseconds.")
}

fn sandbox() -> Value {
    text("How the program was confined.")
}

fn truncated(what: &str) -> Value {
    json!({ "type": "boolean", "description": format!("True if there was more than {what} has; absent otherwise.") })
}
