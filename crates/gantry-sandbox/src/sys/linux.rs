//! What Linux offers beyond POSIX.

use super::{FIRST_EXTRA, ignore_interrupt};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, getpid, set_child_subreaper, set_parent_process_death_signal};
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// The event of a socket whose other end is closed for writing.
pub(crate) const END_OF_INPUT: PollFlags = PollFlags::RDHUP;

/// Makes the orphans among all descendants children of this process.
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Has this process signalled when the thread that started it ends.
pub(crate) fn signal_on_death_of_parent(signal: Signal) -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(signal))?)
}

pub(crate) fn set_process_name(name: &str) -> io::Result<()> {
    Ok(rustix::thread::set_name(&CString::new(name)?)?)
}

/// Closes all descriptors but the standard ones and `keep`.
pub(crate) fn close_all_but(keep: BorrowedFd<'_>) {
    let close = |first: RawFd, last: RawFd| {
        if first <= last {
            // SAFETY: it runs before this process has opened anything, so no owner loses a descriptor.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    };
    // A kernel without this call (before 5.9) hands on the descriptors that Gantry itself was started with.
    close(FIRST_EXTRA, keep.as_raw_fd() - 1);
    close(keep.as_raw_fd().saturating_add(1), RawFd::MAX);
}

/// SIGCHLD and SIGHUP as something to wait for; both must be blocked.
#[derive(Debug)]
pub(crate) struct Signals(OwnedFd);

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let mut signals = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set before it is used; the result is checked before it is owned.
        unsafe {
            libc::sigemptyset(signals.as_mut_ptr());
            libc::sigaddset(signals.as_mut_ptr(), libc::SIGCHLD);
            libc::sigaddset(signals.as_mut_ptr(), libc::SIGHUP);
            match libc::signalfd(-1, signals.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => Err(io::Error::last_os_error()),
                number => Ok(Self(OwnedFd::from_raw_fd(number))),
            }
        }
    }

    /// Waits for a signal or for an event of `other`, and returns the latter.
    pub(crate) fn or_events_of(&self, other: impl AsFd, interest: PollFlags) -> io::Result<PollFlags> {
        let mut descriptors = [PollFd::new(&other, interest), PollFd::new(&self.0, PollFlags::IN)];
        ignore_interrupt(poll(&mut descriptors, None))?;
        let [events, signals] = descriptors.map(|descriptor| descriptor.revents());
        if !signals.is_empty() {
            // Which signals they were does not matter: the caller reads the state of its children anew.
            let mut buffer = [0; 1024];
            ignore_interrupt(rustix::io::read(&self.0, &mut buffer))?;
        }
        Ok(events)
    }
}
