//! Edits arguments in the user's own editor.

use anyhow::Context as _;
use std::fs;
use std::io::Write as _;

/// The editor where neither VISUAL nor EDITOR is set.
const DEFAULT_EDITOR: &str = "vi";

/// Opens the text in the editor and returns it as the user saved it.
pub(super) async fn edit(text: String) -> anyhow::Result<String> {
    tokio::task::spawn_blocking(move || edit_blocking(&text)).await?
}

fn edit_blocking(text: &str) -> anyhow::Result<String> {
    // Only its owner can read a temporary file.
    let mut draft = tempfile::Builder::new()
        .prefix("gantry-arguments-")
        .suffix(".json")
        .tempfile()
        .context("cannot create a temporary file")?;
    draft.write_all(text.as_bytes()).context("cannot write the arguments")?;
    let chosen = ["VISUAL", "EDITOR"].iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
    let editor = chosen.unwrap_or_else(|| DEFAULT_EDITOR.into());
    // The variable may contain options, which the shell splits.
    let mut command = editor.clone();
    command.push(" \"$@\"");
    #[expect(clippy::disallowed_methods, reason = "it is the user's own editor, on the user's own terminal")]
    let status = std::process::Command::new("sh").arg("-c").arg(command).arg("sh").arg(draft.path()).status();
    let shown = editor.display();
    let status = status.with_context(|| format!("cannot start the editor {shown}; set EDITOR to another"))?;
    anyhow::ensure!(status.success(), "the editor {shown} ended with {status}; set EDITOR to another");
    // Editors may replace the file, so it is read by its path.
    fs::read_to_string(draft.path()).context("cannot read the edited arguments")
}
