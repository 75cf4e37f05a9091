//! SIGINT and SIGTERM: the first one stops Gantry in good order, the next one kills it.

use anyhow::Context as _;
use rustix::process::{getpid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What shells add to the number of the signal that ended a program.
const EXIT_CODE_BASE: u8 = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// SIGINT, which Ctrl-C sends.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl StopSignal {
    pub(crate) fn exit_code(self) -> u8 {
        EXIT_CODE_BASE + if self == Self::Interrupt { 2 } else { 15 }
    }
}

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

    pub(crate) async fn recv(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
        }
    }

    /// Waits for SIGTERM, where Ctrl-C has another meaning.
    pub(crate) async fn recv_terminate(&mut self) -> StopSignal {
        self.terminate.recv().await;
        StopSignal::Terminate
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
