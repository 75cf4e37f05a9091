//! Prints a generated reference page: config, schema, troubleshooting, errors, cli, tools or openapi.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the page is this program's output")]

use gantry_testkit::{reference, troubleshooting};
use std::process::ExitCode;

fn main() -> ExitCode {
    let page = match std::env::args().nth(1).as_deref() {
        Some("errors") => errors(),
        Some("cli") => gantry::cli_reference(),
        Some("schema") => {
            serde_json::to_string_pretty(&gantry::config::json_schema()).unwrap_or_default() + "\n"
        }
        Some(page @ ("config" | "tools" | "troubleshooting")) => match in_folder(page) {
            Ok(page) => page,
            Err(error) => {
                eprintln!("{error:#}");
                return ExitCode::FAILURE;
            }
        },
        Some("openapi") => {
            serde_json::to_string_pretty(&gantry_server::openapi::document()).unwrap_or_default() + "\n"
        }
        _ => return ExitCode::from(2),
    };
    print!("{page}");
    ExitCode::SUCCESS
}

/// A page that is made in an empty folder.
fn in_folder(page: &str) -> anyhow::Result<String> {
    let folder = tempfile::tempdir()?;
    match page {
        "config" => reference::config::page(),
        "tools" => reference::tools::page(folder.path()),
        _ => troubleshooting::page(folder.path()),
    }
}

fn errors() -> String {
    let mut page = String::from(
        "# Error codes\n\nGenerated from the program itself by `cargo xtask reference`. The list is complete: every entry point uses these codes and no others.\n\n\
         | code | meaning |\n|---|---|\n",
    );
    for code in gantry_core::ErrorCode::ALL {
        page.push_str(&format!("| `{code}` | {} |\n", code.meaning().trim()));
    }
    page
}
