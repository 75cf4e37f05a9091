//! Systems other than Linux: orphans are not caught, and the guard polls for ended processes.

use super::ignore_interrupt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The event of a socket whose other end is closed.
pub(crate) const END_OF_INPUT: PollFlags = PollFlags::HUP;

/// How often the guard checks whether a child or its parent has ended.
const LOOK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(())
}

pub(crate) fn signal_on_death_of_parent(_signal: Signal) -> io::Result<()> {
    Ok(())
}

pub(crate) fn set_process_name(_name: &str) -> io::Result<()> {
    Ok(())
}

pub(crate) fn close_all_but(_keep: BorrowedFd<'_>) {}

#[derive(Debug)]
pub(crate) struct Signals;

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for an event of `other`, but not longer than until the next look.
    pub(crate) fn or_events_of(&self, other: impl AsFd, interest: PollFlags) -> io::Result<PollFlags> {
        let mut descriptors = [PollFd::new(&other, interest)];
        ignore_interrupt(poll(&mut descriptors, Some(&LOOK_INTERVAL)))?;
        let [events] = descriptors.map(|descriptor| descriptor.revents());
        Ok(events)
    }
}
