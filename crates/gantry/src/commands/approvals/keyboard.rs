//! What the person at the terminal types, line by line, while other things happen.

use anyhow::Context as _;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

/// The keyboard. Only one line is read at a time and none before it is wanted, so that an editor can have the terminal
/// in between. Ctrl-C ends nothing by itself from the moment that there is one.
#[derive(Debug)]
pub(in crate::commands) struct Keyboard {
    reading: Option<JoinHandle<io::Result<Option<String>>>>,
    interrupts: Signal,
}

/// What was typed.
pub(super) enum Typed {
    Line(String),
    /// There will be no more lines.
    End,
    /// Ctrl-C.
    Interrupt,
}

impl Keyboard {
    pub(in crate::commands) fn new() -> anyhow::Result<Self> {
        Ok(Self { reading: None, interrupts: interrupts()? })
    }

    /// Forgets what was typed before a question was there to be answered.
    pub(super) fn forget(&mut self) -> anyhow::Result<()> {
        self.interrupts = interrupts()?;
        // Where that cannot be done, nothing was typed ahead either.
        rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush).ok();
        Ok(())
    }

    /// The next line. Whoever stops waiting for it gets the same line the next time.
    pub(super) async fn typed(&mut self) -> anyhow::Result<Typed> {
        let reading = self.reading.get_or_insert_with(|| tokio::task::spawn_blocking(read));
        let line = tokio::select! {
            line = reading => line,
            _ = self.interrupts.recv() => return Ok(Typed::Interrupt),
        };
        self.reading = None;
        let line = line?.context("cannot read what is typed")?;
        Ok(line.map_or(Typed::End, Typed::Line))
    }

    /// Returns when Ctrl-C is pressed, or has been since the last question.
    pub(super) async fn interrupted(&mut self) {
        self.interrupts.recv().await;
    }
}

fn interrupts() -> anyhow::Result<Signal> {
    signal(SignalKind::interrupt()).context("cannot listen for signals")
}

fn read() -> io::Result<Option<String>> {
    let mut line = String::new();
    Ok((io::stdin().read_line(&mut line)? > 0).then(|| line.trim().to_owned()))
}
