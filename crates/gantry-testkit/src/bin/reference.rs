//! Prints a generated reference page: config, schema, troubleshooting, errors, cli, tools or openapi.

#![expect(clippy::print_stdout, reason = "the page is this program's output")]

use gantry_testkit::reference::{config, tools, troubleshooting};
use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    let page = match std::env::args().nth(1).as_deref() {
        Some("config") => config::page()?,
        Some("schema") => serde_json::to_string_pretty(&gantry::config::json_schema())? + "\n",
        Some("troubleshooting") => troubleshooting::page()?,
        Some("errors") => errors(),
        Some("cli") => gantry::cli_reference(),
        Some("tools") => tools::page()?,
        Some("openapi") => serde_json::to_string_pretty(&gantry_server::openapi::document())? + "\n",
        _ => return Ok(ExitCode::from(2)),
    };
    print!("{page}");
    Ok(ExitCode::SUCCESS)
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
