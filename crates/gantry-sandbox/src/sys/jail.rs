//! The system calls of the jail that rustix does not wrap, or not as safe ones.

use super::{FIRST_EXTRA, done, set_signal_mask};
use rustix::mount::MountAttrFlags;
use rustix::process::{Pid, Signal};
use rustix::thread::UnshareFlags;
use std::ffi::{CStr, OsStr};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// The last number of a signal.
const LAST_SIGNAL: i32 = 64;

/// Limit: bytes of the record of a user.
const RECORD_LIMIT: usize = 64 << 10;

/// Puts this process, which must have a single thread, into new namespaces.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the process has one thread, so no other thread loses its descriptors.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Sets attributes of an opened mount and makes it private; with those beneath it, if it is recursive.
pub(crate) fn set_mount_attributes(
    mount: impl AsFd,
    attributes: MountAttrFlags,
    is_recursive: bool,
) -> io::Result<()> {
    let flags = if is_recursive { libc::AT_RECURSIVE } else { 0 };
    change_mount(mount, attributes.bits().into(), 0, flags)
}

/// Lets users and groups appear on a mount as a user namespace maps them.
pub(crate) fn map_owners(mount: impl AsFd, namespace: impl AsFd) -> io::Result<()> {
    let namespace = u64::from(namespace.as_fd().as_raw_fd().cast_unsigned());
    change_mount(mount, libc::MOUNT_ATTR_IDMAP, namespace, 0)
}

fn change_mount(mount: impl AsFd, attr_set: u64, userns_fd: u64, flags: libc::c_int) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set, attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd };
    // SAFETY: the path is an empty C string, and the structure is as long as is said; the kernel only reads both.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    done(result)
}

/// A child that has ended and was reaped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dead {
    pub(crate) pid: Pid,
    pub(crate) status: ExitStatus,
    /// The processor time of it and of the children that it had reaped itself.
    pub(crate) time: Duration,
}

/// Reaps one dead child, if there is any.
pub(crate) fn reap_one() -> io::Result<Option<Dead>> {
    let mut status = 0;
    // SAFETY: all zeros are a valid value of a structure of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both results are written to variables that live longer than the call.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
    if pid == -1 {
        return Err(io::Error::last_os_error());
    }
    let span = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.unsigned_abs()) + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    let time = span(usage.ru_utime) + span(usage.ru_stime);
    Ok(Pid::from_raw(pid).map(|pid| Dead { pid, status: ExitStatus::from_raw(status), time }))
}

/// Ends this process, a fork, without the exit handlers of its parent.
pub(crate) fn exit(code: u8) -> ! {
    // SAFETY: it takes a number and does not return.
    unsafe { libc::_exit(code.into()) }
}

/// Signals every process of this process namespace but this one, which is its first. There may be none.
pub(crate) fn signal_others(signal: Signal) {
    // SAFETY: it takes two numbers.
    unsafe { libc::kill(-1, signal.as_raw()) };
}

/// Marks an opened file or folder until the last process has closed this opening of it.
pub(crate) fn mark(opened: impl AsFd) -> io::Result<()> {
    lock(opened, libc::F_OFD_SETLK, libc::F_RDLCK).map(drop)
}

/// Whether another opening of the same file or folder is marked.
pub(crate) fn is_marked(opened: impl AsFd) -> io::Result<bool> {
    Ok(lock(opened, libc::F_OFD_GETLK, libc::F_WRLCK)? != libc::F_UNLCK)
}

/// Sets or queries a lock on all of it. Returns the kind of lock that is in the way.
fn lock(opened: impl AsFd, command: libc::c_int, kind: libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: all zeros are a valid value of a structure of integers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the structure is the one that these commands take, and lives longer than the call.
    let result = unsafe { libc::fcntl(opened.as_fd().as_raw_fd(), command, &raw mut lock) };
    if result == 0 { Ok(lock.l_type.into()) } else { Err(io::Error::last_os_error()) }
}

/// Gives every signal its default effect, and unblocks all of them.
pub(crate) fn reset_signals() -> io::Result<()> {
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: no handler is installed, so no code can be called. Signals that cannot be changed are refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    set_signal_mask(libc::sigemptyset)
}

/// Has every descriptor but the standard ones closed at the next execution.
pub(crate) fn close_extra_on_exec() -> io::Result<()> {
    // SAFETY: nothing is closed now, so no owner loses a descriptor.
    let result = unsafe {
        libc::syscall(libc::SYS_close_range, FIRST_EXTRA, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    done(result)
}

/// Brings the loopback device of this network namespace up.
pub(crate) fn loopback_up(socket: impl AsFd) -> io::Result<()> {
    // SAFETY: all zeros are a valid value of this structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *slot = byte.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the structure is the one that this request reads, and lives longer than the call.
    let result = unsafe {
        libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &raw const request)
    };
    done(result.into())
}

/// The home folder of this user in the user database; HOME may be another.
pub(crate) fn home() -> Option<PathBuf> {
    let mut buffer = vec![0; RECORD_LIMIT];
    // SAFETY: all zeros are a valid value of a structure of integers and pointers.
    let mut record: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: the record and the buffer, which is as long as is said, live longer than what is read from them below.
    let result = unsafe {
        let uid = libc::getuid();
        libc::getpwuid_r(uid, &raw mut record, buffer.as_mut_ptr(), buffer.len(), &raw mut found)
    };
    if result != 0 || found.is_null() || record.pw_dir.is_null() {
        return None;
    }
    // SAFETY: a record that was found has a C string there, in the buffer.
    let home = unsafe { CStr::from_ptr(record.pw_dir) };
    Some(PathBuf::from(OsStr::from_bytes(home.to_bytes())))
}
