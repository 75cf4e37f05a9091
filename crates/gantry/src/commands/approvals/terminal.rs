//! The terminal of a prompt: reads lines while other tasks run, receives Ctrl-C, and opens the user's own editor.

use anyhow::Context as _;
use std::fs;
use std::io::{self, Write as _};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

const DEFAULT_EDITOR: &str = "vi";

/// The input of a terminal. Reads one line at a time and only when asked to, so that an editor can use the terminal in
/// between. While it exists, Ctrl-C does not end the process.
#[derive(Debug)]
pub(in crate::commands) struct Input {
    /// A read that was canceled before its line came; its line is the next one.
    reading: Option<JoinHandle<io::Result<Option<String>>>>,
    interrupts: Signal,
}

pub(super) enum Typed {
    Line(String),
    /// The end of the input (Ctrl-D).
    End,
    Interrupt,
}

impl Input {
    pub(in crate::commands) fn new() -> anyhow::Result<Self> {
        Ok(Self { reading: None, interrupts: interrupts()? })
    }

    /// Discards what was typed before a question was shown: a line that was meant for the question before must not answer
    /// this one.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.interrupts = interrupts()?;
        if self.reading.as_ref().is_some_and(JoinHandle::is_finished) {
            self.reading = None;
        }
        // Fails if standard input is no terminal; then nothing was typed ahead.
        rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush).ok();
        Ok(())
    }

    /// Reads the next line. Cancel-safe: a line that comes later is returned by the next call.
    pub(super) async fn next(&mut self) -> anyhow::Result<Typed> {
        let reading = self.reading.get_or_insert_with(|| tokio::task::spawn_blocking(read_line));
        let line = tokio::select! {
            line = reading => line,
            _ = self.interrupts.recv() => return Ok(Typed::Interrupt),
        };
        self.reading = None;
        let line = line?.context("cannot read from the terminal")?;
        Ok(line.map_or(Typed::End, Typed::Line))
    }

    /// Returns at the next Ctrl-C, or at once if one came since the last [`Input::flush`].
    pub(super) async fn interrupted(&mut self) {
        self.interrupts.recv().await;
    }
}

fn interrupts() -> anyhow::Result<Signal> {
    signal(SignalKind::interrupt()).context("cannot listen for signals")
}

fn read_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    Ok((io::stdin().read_line(&mut line)? > 0).then(|| line.trim().to_owned()))
}

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
