//! SIGINT and SIGTERM: the first one stops Gantry in good order, the next one kills it.

use anyhow::Context as _;
use rustix::process::{getpid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit codes of a program that SIGINT (Ctrl-C) or SIGTERM stopped: what shells make of the number of the signal.
const INTERRUPTED: u8 = 128 + 2;
const TERMINATED: u8 = 128 + 15;

#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts to receive; from here on the signals do not end the process by themselves.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for the next signal, and returns the exit code that it stands for.
    pub(crate) async fn recv(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
        }
    }

    /// Waits for SIGTERM, where Ctrl-C has another meaning.
    pub(crate) async fn recv_terminate(&mut self) -> u8 {
        self.terminate.recv().await;
        TERMINATED
    }

    pub(crate) fn kill_on_next_signal(self) {
        // Signals that came before do not count.
        let mut signals = Self::listen().unwrap_or(self);
        tokio::spawn(async move {
            signals.recv().await;
            kill_process(getpid(), rustix::process::Signal::KILL).ok();
        });
    }
}
