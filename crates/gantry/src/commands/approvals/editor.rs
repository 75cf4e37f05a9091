//! Changing arguments in the person's own editor.

use anyhow::Context as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// The editor of those who have not chosen one.
const EDITOR: &str = "vi";

/// Lets the person change a text, and returns it as they left it.
pub(super) async fn edit(text: String) -> anyhow::Result<String> {
    tokio::task::spawn_blocking(move || edited(&text)).await?
}

fn edited(text: &str) -> anyhow::Result<String> {
    let file = Draft::new(text)?;
    let chosen = ["VISUAL", "EDITOR"].iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
    let editor = chosen.unwrap_or_else(|| EDITOR.into());
    // The variable may hold options too, and the shell knows how to read them.
    let mut command = editor.clone();
    command.push(" \"$@\"");
    #[expect(
        clippy::disallowed_methods,
        reason = "it is the person's own editor, on the person's own terminal"
    )]
    let status = std::process::Command::new("sh").arg("-c").arg(command).arg("sh").arg(&file.0).status();
    let shown = editor.display();
    let status = status.with_context(|| format!("cannot start the editor {shown}; set EDITOR to another"))?;
    anyhow::ensure!(status.success(), "the editor {shown} ended with {status}; set EDITOR to another");
    fs::read_to_string(&file.0).context("cannot read what was edited")
}

/// A file for its owner's eyes only. Gone when dropped.
struct Draft(PathBuf);

impl Draft {
    fn new(text: &str) -> anyhow::Result<Self> {
        let name = format!("gantry-arguments-{}.json", uuid::Uuid::new_v4().simple());
        let path = std::env::temp_dir().join(name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let draft = Self(path);
        file.write_all(text.as_bytes()).context("cannot write the arguments")?;
        Ok(draft)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It is in the folder for what may be lost, and nobody else can read it.
        fs::remove_file(&self.0).ok();
    }
}
