//! The page of the mistakes that users make most in a configuration, with the exact messages of the program.

use anyhow::{Context as _, Result, bail};
use std::fmt::Write as _;

/// `troubleshooting.md`, with the program's message behind each mistake.
///
/// # Errors
/// A mistake is accepted, or there is no place to write it to.
pub fn page() -> Result<String> {
    let folder = tempfile::tempdir()?;
    let mut mistakes = include_str!("troubleshooting.md").split("```yaml\n");
    let mut page = mistakes.next().unwrap_or_default().to_owned();
    for mistake in mistakes {
        let (text, advice) = mistake.split_once("```\n").context("a mistake has no end")?;
        std::fs::write(folder.path().join("gantry.yaml"), text)?;
        let Err(error) = gantry::check_configuration(folder.path()) else { bail!("accepted:\n{text}") };
        let message = error.to_string().replace(&*folder.path().to_string_lossy(), "/home/you/project");
        write!(page, "```yaml\n{text}```\n\n```text\n{message}\n```\n{advice}")?;
    }
    Ok(page)
}
