//! The helper: this same executable, re-executed, which builds a jail around itself and runs one program in it.
//!
//! ```text
//! gantry ── helper │ first process of the jail ── the program ── whatever it starts
//! ```
//!
//! The helper and the first process hold one end of the control socket, whose other end only Gantry holds. Both end
//! when it closes, and the kernel kills what is in a process namespace together with its first process. The first
//! process therefore also is the one that watches the limits.
//!
//! Invariant: each of them has a single thread. The helper and the first process never let go of the descriptor of the
//! workspace, which holds its lock.

mod confine;
mod covers;
mod filter;
mod identity;
mod init;
mod network;
mod payload;
mod proc;
mod space;
mod usage;
pub(super) mod view;

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions};
use rustix::thread::CapabilitySet;

use super::plan::{self, At as _, FILES_LIMIT, Failure, Plan, Report, Step, Walls};
use super::{STORE, WORKSPACE, bubblewrap};
use crate::sys;

/// What the helper and the first process are called in a list of processes, and the helper before it has a plan.
const PROCESS_NAME: &str = "sandbox-jail";
const IDLE_NAME: &str = "sandbox-idle";

/// A job on its way into the jail.
struct Order {
    control: UnixStream,
    plan: Plan,
    /// The workspace and the store.
    folders: Vec<OwnedFd>,
    /// The contents of the plan's files.
    contents: Vec<Vec<u8>>,
}

/// Runs the helper, whose standard input is the control socket. Returns whether there was one.
pub(crate) fn main() -> bool {
    let Ok(order) = receive() else {
        io::stderr().write_all(b"this is for Gantry's own use; run `gantry --help` for the commands\n").ok();
        return false;
    };
    let result = match &order.plan.walls {
        Walls::Native(_) => native(&order),
        Walls::Given { .. } => given(&order),
    };
    if let Err(failure) = result {
        // If Gantry is gone, nobody wants to know.
        plan::send(&order.control, &Report::Failed(failure), &[]).ok();
    }
    true
}

fn receive() -> io::Result<Order> {
    let control = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
    sys::close_all_but(control.as_fd());
    // Away from the terminal of Gantry: Ctrl-C is for Gantry, which stops its jobs in good order.
    rustix::process::setsid().ok();
    sys::block_signals()?;
    sys::set_process_name(IDLE_NAME)?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let (plan, descriptors) = plan::receive::<Plan>(&control)?;
    sys::set_process_name(PROCESS_NAME)?;
    let mut descriptors = descriptors.into_iter();
    rustix::stdio::dup2_stdin(descriptors.next().ok_or(Errno::BADF)?)?;
    let mut room = FILES_LIMIT;
    let mut contents = Vec::new();
    for (_, length) in &plan.files {
        room = room.checked_sub(*length).ok_or(Errno::FBIG)?;
        let mut content = vec![0; usize::try_from(*length).map_err(io::Error::other)?];
        (&control).read_exact(&mut content)?;
        contents.push(content);
    }
    Ok(Order { control, plan, folders: descriptors.collect(), contents })
}

/// Finds itself in walls that somebody else has built. They were described by paths, which may lead elsewhere by now; the
/// covers are looked at when they are watched.
fn given(order: &Order) -> Result<(), Failure> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Step::Confine, "dumpable")?;
    for (folder, at) in order.folders.iter().zip([WORKSPACE, STORE]) {
        if !bubblewrap::is_in_place(folder, at).at(Step::View, at)? {
            return Err(Errno::STALE).at(Step::View, at);
        }
    }
    init::run(order, None)
}

/// Makes the namespaces, and watches over the first process of the jail.
fn native(order: &Order) -> Result<(), Failure> {
    let Walls::Native(view) = &order.plan.walls else { return Ok(()) };
    let folders = identity::enter(view, &order.folders)?;
    let sources = view::gather(view, order.plan.access, folders)?;
    identity::become_user()?;
    // Nothing in the jail may look into the helper or its first process.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Step::Confine, "dumpable")?;
    let helper = PidFile::of(rustix::process::getpid()).at(Step::Namespaces, "pidfd")?;
    // Before the first process leaves the machine's file system, which takes the helper along at any moment.
    let null = open_null().at(Step::View, "/dev/null")?;
    let (ours, theirs) = UnixStream::pair().at(Step::Namespaces, "socket")?;
    match sys::fork().at(Step::Namespaces, "fork")? {
        None => {
            drop(ours);
            let code = match first_process(order, sources, &helper, &theirs) {
                Ok(()) => 0,
                Err(failure) => {
                    plan::send(&order.control, &Report::Failed(failure), &[]).ok();
                    1
                }
            };
            sys::jail::exit(code)
        }
        Some(first) => {
            drop((sources, theirs));
            if let Err(error) = watch_over(order, first, &null, ours) {
                // The end of this process is that of the first one, which may have started the program.
                plan::send(&order.control, &Report::Broken { reason: error.to_string() }, &[]).ok();
            }
            Ok(())
        }
    }
}

fn first_process(
    order: &Order,
    sources: view::Sources,
    helper: &PidFile,
    to_helper: &UnixStream,
) -> Result<(), Failure> {
    // It works only now: a change of the user takes it back. The helper may have ended before.
    sys::signal_on_death_of_parent(Signal::KILL).at(Step::Confine, "death signal")?;
    if helper.has_ended() {
        return Err(Errno::SRCH).at(Step::Namespaces, "the helper");
    }
    let proc = view::build(order, sources)?;
    init::run(order, Some(init::Built { proc, helper: to_helper }))
}

/// Waits for the end of the first process, or for that of Gantry, or for a cover to fall, and then ends it. The first
/// process looks for the same, but a job can keep that one busy.
fn watch_over(order: &Order, first: Pid, null: &OwnedFd, from_first: UnixStream) -> io::Result<()> {
    let_go(null)?;
    confine::keep_capabilities(CapabilitySet::empty())?;
    let process = PidFile::of(first)?;
    let mut awaited = Awaited::View(from_first);
    let is_uncovered = loop {
        let third = match &awaited {
            Awaited::View(socket) => PollFd::new(socket, PollFlags::IN),
            Awaited::Change(mounts) => PollFd::new(mounts, PollFlags::PRI),
            Awaited::Nothing => PollFd::new(&process.0, PollFlags::empty()),
        };
        let mut events =
            [PollFd::new(&process.0, PollFlags::IN), PollFd::new(&order.control, sys::END_OF_INPUT), third];
        match poll(&mut events, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [ended, gone, told] = events.map(|event| !event.revents().is_empty());
        let is_uncovered = told && matches!(awaited, Awaited::Change(_));
        if (gone || is_uncovered) && !ended {
            // It may end on its own at this very moment.
            rustix::process::pidfd_send_signal(&process.0, Signal::KILL).ok();
        }
        if ended || gone || is_uncovered {
            break is_uncovered;
        }
        if told {
            awaited = awaited.next();
        }
    };
    while let Err(Errno::INTR) = rustix::process::waitpid(Some(first), WaitOptions::empty()) {}
    if is_uncovered { Err(io::Error::other(init::UNCOVERED)) } else { Ok(()) }
}

/// What the helper waits for besides ends.
enum Awaited {
    /// The list of the jail's mounts, which comes when they are made.
    View(UnixStream),
    /// A change of them.
    Change(OwnedFd),
    /// The first process ends before there are any.
    Nothing,
}

impl Awaited {
    fn next(self) -> Self {
        let Self::View(socket) = self else { return self };
        let list = plan::receive::<String>(&socket).ok().and_then(|(_, mut descriptors)| descriptors.pop());
        list.map_or(Self::Nothing, Self::Change)
    }
}

/// Gives up the job's pipes, which this process only carried to it.
fn let_go(null: &OwnedFd) -> io::Result<()> {
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    Ok(())
}

fn open_null() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// A process, whatever becomes of its number.
struct PidFile(OwnedFd);

impl PidFile {
    fn of(pid: Pid) -> io::Result<Self> {
        Ok(Self(rustix::process::pidfd_open(pid, PidfdFlags::empty())?))
    }

    fn has_ended(&self) -> bool {
        let mut events = [PollFd::new(&self.0, PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut events, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}
