//! The signals that ask Gantry to stop: the first one stops it in good order, another one at once.

use anyhow::Context as _;
use rustix::process::{getpid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a shell adds to the number of the signal that has ended a program.
const ENDED_BY: u8 = 128;

/// A signal that asks Gantry to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// SIGINT, which Ctrl-C sends.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl StopSignal {
    /// The exit code of a program that has stopped for it.
    pub(crate) fn exit_code(self) -> u8 {
        ENDED_BY
            + match self {
                Self::Interrupt => 2,
                Self::Terminate => 15,
            }
    }
}

/// Listens for them.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen. From here on they do not end the process by themselves.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for one of them.
    pub(crate) async fn recv(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
        }
    }

    /// Waits for SIGTERM, where Ctrl-C means something else.
    pub(crate) async fn recv_terminate(&mut self) -> StopSignal {
        self.terminate.recv().await;
        StopSignal::Terminate
    }

    /// Lets the next one end the process at once.
    pub(crate) fn kill_on_next_signal(self) {
        // What was pressed before does not count.
        let mut signals = Self::listen().unwrap_or(self);
        tokio::spawn(async move {
            signals.recv().await;
            kill_process(getpid(), rustix::process::Signal::KILL).ok();
        });
    }
}
