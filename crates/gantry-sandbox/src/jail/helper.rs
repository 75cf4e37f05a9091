//! The helper: this same executable, re-executed, which builds a jail around itself and runs one program in it.
//!
//! ```text
//! gantry ── helper │ first process of the jail ── the program ── its descendants
//! ```
//!
//! The helper and the first process hold one end of the control socket, whose other end only Gantry holds. Both end
//! when it closes, and the kernel kills all processes of a process namespace together with its first one. The first
//! process therefore also is the one that supervises the limits.
//!
//! Invariant: each of them has a single thread.

mod accounting;
mod confine;
mod exec;
mod mounts;
mod network;
mod pid1;
mod proc;
pub(super) mod rootfs;
mod seccomp;
mod userns;

use super::JailError;
use super::error::{At as _, Step};
use super::probe::Backend;
use super::protocol::{self, JobSpec, Owner, Report};
use crate::sys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, set_dumpable_behavior};
use rustix::thread::CapabilitySet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

/// The name of the helper and the first process in a list of processes. `pkill gantry` must not end Gantry and its jobs
/// together.
pub(super) const PROCESS_NAME: &str = "sandbox-jail";

/// A job on its way into the jail.
struct HelperJob {
    control: OwnedFd,
    spec: JobSpec,
    memory_is_bounded: bool,
    workspace: Option<OwnedFd>,
    stores: Vec<OwnedFd>,
}

/// Runs the helper, whose standard input is the control socket. Returns whether a job came over it.
pub(crate) fn main() -> bool {
    let Ok(job) = receive() else { return false };
    let result = match job.spec.backend {
        Backend::Native => native(&job),
        Backend::Bubblewrap => in_bubblewrap(&job),
    };
    if let Err(error) = result {
        protocol::send(&job.control, &Report::Failed(error), &[]).ok();
    }
    true
}

fn receive() -> io::Result<HelperJob> {
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    sys::close_all_but(control.as_fd());
    // Away from the terminal of Gantry: Ctrl-C is for Gantry, which stops its jobs in good order.
    rustix::process::setsid().ok();
    sys::block_signals()?;
    sys::set_process_name(PROCESS_NAME)?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let (memory_is_bounded, descriptors) = protocol::receive(&control)?.ok_or(Errno::PIPE)?;
    let mut descriptors = descriptors.into_iter();
    let spec = protocol::read_job(File::from(descriptors.next().ok_or(Errno::BADF)?))?;
    rustix::stdio::dup2_stdin(descriptors.next().ok_or(Errno::BADF)?)?;
    let mut folder = |_: Owner| descriptors.next().ok_or(Errno::BADF);
    let workspace = spec.workspace.map(&mut folder).transpose()?;
    let stores = spec.stores.iter().copied().map(folder).collect::<Result<_, _>>()?;
    Ok(HelperJob { control, spec, memory_is_bounded, workspace, stores })
}

/// Runs as the first process of a jail that bubblewrap has built, and in it only.
fn in_bubblewrap(job: &HelperJob) -> Result<(), JailError> {
    hide().at(Step::Confine, "dumpable")?;
    mounts::check_folders(job)?;
    rootfs::write_files(job)?;
    pid1::run(job, proc::Proc::given().at(Step::Rootfs, "/proc")?)
}

/// Makes the namespaces, and watches over the first process of the jail.
fn native(job: &HelperJob) -> Result<(), JailError> {
    let folders = userns::enter(job)?;
    let sources = rootfs::gather(&job.spec, folders)?;
    userns::become_user()?;
    hide().at(Step::Confine, "dumpable")?;
    let helper = ProcessFd::of(rustix::process::getpid()).at(Step::Namespaces, "pidfd")?;
    // Opened before the first process leaves the machine's file system, which it does for the helper as well.
    let null = sys::open_null().at(Step::Rootfs, "/dev/null")?;
    let (ours, theirs) = protocol::pair().at(Step::Namespaces, "socket")?;
    match sys::fork().at(Step::Namespaces, "fork")? {
        None => {
            drop(ours);
            let code = match first_process(job, sources, &helper, &theirs) {
                Ok(()) => 0,
                Err(error) => {
                    protocol::send(&job.control, &Report::Failed(error), &[]).ok();
                    1
                }
            };
            sys::jail::exit(code)
        }
        Some(first) => {
            drop((sources, theirs));
            if let Err(error) = watch_over(job, first, &null, &ours) {
                // The first process, which may have started the program, ends with this one.
                protocol::send(&job.control, &Report::Broken { reason: error.to_string() }, &[]).ok();
            }
            Ok(())
        }
    }
}

/// Keeps processes of the jail from looking into this one.
fn hide() -> rustix::io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
}

fn first_process(
    job: &HelperJob,
    sources: rootfs::Sources,
    helper: &ProcessFd,
    to_helper: &OwnedFd,
) -> Result<(), JailError> {
    // Set only now, because a change of the user resets it. The helper may have ended before.
    sys::signal_on_death_of_parent(Signal::KILL).at(Step::Confine, "death signal")?;
    if helper.has_ended() {
        return Err(Errno::SRCH).at(Step::Namespaces, "the helper");
    }
    let proc = rootfs::build(job, sources)?;
    // An opened list of mounts tells a change only once, so the helper gets its own.
    let mounts = proc.mounts().at(Step::Protection, "watching them")?;
    protocol::send(to_helper, &(), &[mounts.as_fd()]).at(Step::Protection, "watching them")?;
    pid1::run(job, proc)
}

/// Waits for the end of the first process, or for that of Gantry, or for a change of the jail's mounts, and then ends the
/// first process. That one looks for the same, but a job can keep it busy.
fn watch_over(job: &HelperJob, first: Pid, null: &OwnedFd, from_first: &OwnedFd) -> io::Result<()> {
    sys::release_stdio(null)?;
    confine::keep_capabilities(CapabilitySet::empty())?;
    let process = ProcessFd::of(first)?;
    let wait = |third: Option<PollFd<'_>>| {
        let third = third.unwrap_or(PollFd::new(&process.0, PollFlags::empty()));
        let mut events =
            [PollFd::new(&process.0, PollFlags::IN), PollFd::new(&job.control, sys::END_OF_INPUT), third];
        while events.iter().all(|event| event.revents().is_empty()) {
            sys::ignore_interrupt(poll(&mut events, None))?;
        }
        io::Result::Ok(events.map(|event| !event.revents().is_empty()))
    };
    // The list of the jail's mounts comes when they are made; without one, the first process ends.
    let mut happened = wait(Some(PollFd::new(from_first, PollFlags::IN)))?;
    let mut is_changed = false;
    if let [false, false, _] = happened {
        let mounts = protocol::receive::<()>(from_first)?.and_then(|(_, mut descriptors)| descriptors.pop());
        happened = wait(mounts.as_ref().map(|mounts| PollFd::new(mounts, PollFlags::PRI)))?;
        is_changed = happened[2];
    }
    if !happened[0] {
        // It may end on its own at this very moment.
        rustix::process::pidfd_send_signal(&process.0, Signal::KILL).ok();
    }
    while let Err(Errno::INTR) = rustix::process::waitpid(Some(first), WaitOptions::empty()) {}
    if is_changed { Err(io::Error::other(pid1::PROTECTION_LOST)) } else { Ok(()) }
}

/// A process, even if its number is used again.
struct ProcessFd(OwnedFd);

impl ProcessFd {
    fn of(pid: Pid) -> io::Result<Self> {
        Ok(Self(rustix::process::pidfd_open(pid, PidfdFlags::empty())?))
    }

    fn has_ended(&self) -> bool {
        let mut events = [PollFd::new(&self.0, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut events, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}
