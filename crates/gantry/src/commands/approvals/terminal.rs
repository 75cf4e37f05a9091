//! Reads lines from the terminal while other tasks run, and receives Ctrl-C.

use anyhow::Context as _;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

/// The input of a terminal. Reads one line at a time and only when asked to, so that an editor can use the terminal in
/// between. While it exists, Ctrl-C does not end the process.
#[derive(Debug)]
pub(in crate::commands) struct Input {
    /// A read that was canceled before its line came; its line is the next one.
    reading: Option<JoinHandle<io::Result<Option<String>>>>,
    interrupts: Signal,
}

/// What the user typed.
pub(super) enum Typed {
    Line(String),
    /// The end of the input (Ctrl-D).
    End,
    /// Ctrl-C.
    Interrupt,
}

impl Input {
    pub(in crate::commands) fn new() -> anyhow::Result<Self> {
        Ok(Self { reading: None, interrupts: interrupts()? })
    }

    /// Discards what was typed before a question was shown.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.interrupts = interrupts()?;
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
    pub(in crate::commands) async fn interrupted(&mut self) {
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
