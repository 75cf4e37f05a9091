//! The system calls that neither std nor rustix wraps safely, and the differences between systems.
//!
//! Invariant: all `unsafe` code of this crate is here, in `sys/linux.rs` and in `sys/jail.rs`.
#![expect(
    unsafe_code,
    reason = "fork, signal masks, inherited descriptors and pre_exec have no safe wrapper"
)]

#[cfg(target_os = "linux")]
pub(crate) mod jail;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Pid, Signal, getppid, setsid};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

#[cfg(target_os = "linux")]
pub(crate) use linux::{
    END_OF_INPUT, Signals, become_subreaper, close_all_but, set_process_name, signal_on_death_of_parent,
};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{
    END_OF_INPUT, Signals, become_subreaper, close_all_but, set_process_name, signal_on_death_of_parent,
};

/// The first descriptor after standard input, output and error.
const FIRST_EXTRA: RawFd = 3;

/// Lets the process that `command` starts inherit this descriptor; closed here when the command is dropped.
pub(crate) fn inherit(command: &mut Command, descriptor: OwnedFd) {
    let keep_open = move || Ok(fcntl_setfd(&descriptor, FdFlags::empty())?);
    // SAFETY: the closure makes one system call on a descriptor that it owns and does not allocate.
    unsafe { command.pre_exec(keep_open) };
}

/// Takes over a descriptor that the parent left open for this process, and closes it on exec.
pub(crate) fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    if number < FIRST_EXTRA {
        return Err(Errno::BADF.into());
    }
    // SAFETY: the number is not negative; that it is open is what the call finds out.
    fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) })?;
    // SAFETY: the descriptor is open, and nothing else in this process owns one: it starts with this call.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
    Ok(descriptor)
}

/// A descriptor that reads nothing and takes everything.
pub(crate) fn open_null() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// Gives up the pipes of a program, which this process only carried to it.
pub(crate) fn release_stdio(null: &OwnedFd) -> io::Result<()> {
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    Ok(())
}

/// Splits this process in two; the new one gets `None`.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: a guard has a single thread, so no lock can be held by a thread that does not exist in the copy.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

pub(crate) fn block_signals() -> io::Result<()> {
    set_signal_mask(libc::sigfillset)
}

fn set_signal_mask(fill: unsafe extern "C" fn(*mut libc::sigset_t) -> libc::c_int) -> io::Result<()> {
    let mut signals = MaybeUninit::uninit();
    // SAFETY: `fill` is sigfillset or sigemptyset, which initialise the set; the old mask is not asked for.
    let result = unsafe {
        fill(signals.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, signals.as_ptr(), std::ptr::null_mut())
    };
    done(result.into())
}

/// The error of a C function that returns zero if it succeeds.
fn done(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Prepares the process that `command` starts: its own session and process group, no blocked signal, and on Linux
/// death together with `guard`, which must be this process.
pub(crate) fn detach(command: &mut Command, guard: Pid) {
    let prepare = move || {
        setsid()?;
        set_signal_mask(libc::sigemptyset)?;
        signal_on_death_of_parent(Signal::KILL)?;
        // A guard that died before the line above sends no signal any more.
        if getppid() != Some(guard) {
            return Err(Errno::SRCH.into());
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only; it does not allocate and takes no lock.
    unsafe { command.pre_exec(prepare) };
}

/// Ignores that a signal ended a wait early, or that a read found nothing: the caller's loop repeats it.
pub(crate) fn ignore_interrupt(result: rustix::io::Result<usize>) -> io::Result<()> {
    match result {
        Ok(_) | Err(Errno::INTR | Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
