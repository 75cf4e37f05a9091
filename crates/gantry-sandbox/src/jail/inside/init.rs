//! The first process of a jail: starts the program, takes away the dead, and ends everything when a limit is reached,
//! the program has ended or Gantry is gone. To end everything, it only has to end itself.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::CapabilitySet;

use super::covers::Laid;
use super::proc::Proc;
use super::space::Space;
use super::usage::{Look, Usage};
use super::{Order, PidFile, confine, let_go, network, open_null, payload, view};
use crate::jail::plan::{self, At as _, Failure, Report, Step};
use crate::jail::{End, Limits};
use crate::sys::{self, jail::Dead};

/// How often the limits are looked at.
const LOOK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// What is said to whoever started a job that could suddenly see or change something protected.
pub(super) const UNCOVERED: &str = "something protected in the workspace was replaced while the job ran, so that the job could get at \
                         it; the job was ended at once; check what was replaced, and run the job again";

/// What part of its limit of processor time a process shows at least that the kernel has ended for it. The kernel counts
/// whole ticks there, of which a process on a busy machine may have had little, and shows what it really had.
const CPU_SHOWN: u32 = 2;

/// What the list of mounts is handed to the helper with.
const HANDED: &str = "mounts";

/// The walls that this process has built, and the helper that watches over it.
pub(super) struct Built<'a> {
    pub(super) proc: Proc,
    pub(super) helper: &'a UnixStream,
}

/// Starts the program and watches over it to its end. Without a process file system the walls were built by another.
pub(super) fn run(order: &Order, built: Option<Built<'_>>) -> Result<(), Failure> {
    let is_native = built.is_some();
    let proc = match built {
        Some(Built { proc, helper }) => {
            // An opened list of mounts tells a change only once, so the helper gets its own.
            let mounts = proc.mounts().at(Step::Covers, "watching them")?;
            plan::send(helper, &HANDED, &[mounts.as_fd()]).at(Step::Covers, "watching them")?;
            proc
        }
        None => {
            view::write_files(order)?;
            Proc::given().at(Step::View, "/proc")?
        }
    };
    network::make(order, &proc)?;
    let mut notes = Vec::new();
    if proc.is_borrowed() {
        notes.push(
            "jobs have no /proc, because this machine's is partly hidden (as in most containers)".to_owned(),
        );
    }
    let mounts = proc.mounts().at(Step::Covers, "watching them")?;
    let covers = Laid::find(order)?;
    let limits = &order.plan.limits;
    let space = Space::new(&order.folders, order.plan.access, limits.written);
    let space = space.at(Step::Limits, "the file system of a folder shows no use of it")?;
    let usage = Usage::new(proc, space).at(Step::Limits, "usage")?;
    let (ours, theirs) = UnixStream::pair().at(Step::Execute, "socket")?;
    plan::send(&order.control, &Report::Executing, &[]).at(Step::Execute, "report")?;
    let Some(program) = sys::fork().at(Step::Execute, "fork")? else {
        drop(ours);
        let Err(failure) = payload::run(order, &theirs);
        plan::send(&theirs, &Report::Failed(failure), &[]).ok();
        sys::jail::exit(1)
    };
    drop(theirs);
    let started = Instant::now();
    if is_native {
        // What it takes to look at every process of the jail.
        confine::keep_capabilities(CapabilitySet::SYS_PTRACE).at(Step::Confine, "capabilities")?;
    }
    open_null().and_then(|null| let_go(&null)).at(Step::Execute, "pipes")?;
    notes.extend(executed(&ours)?);
    let watch = Watch { order, program, usage, mounts, covers, is_uncovered: false, started };
    plan::send(&order.control, &Report::Started { notes }, &[]).at(Step::Execute, "report")?;
    let report = match watch.run() {
        Ok(None) => return Ok(()),
        Ok(Some(end)) => Report::Ended { end, duration: started.elapsed() },
        Err(error) => Report::Broken { reason: error.to_string() },
    };
    // Without anybody to hear it, this is the end as well.
    plan::send(&order.control, &report, &[]).ok();
    Ok(())
}

/// Waits until the program is executed, which closes the socket, and returns what is missing in its jail.
fn executed(program: &UnixStream) -> Result<Vec<String>, Failure> {
    let mut found = None;
    loop {
        match plan::receive::<Report>(program) {
            Ok((Report::Started { notes }, _)) => found = Some(notes),
            Ok((Report::Failed(failure), _)) => return Err(failure),
            Ok((Report::Listening | Report::Executing | Report::Ended { .. } | Report::Broken { .. }, _)) => {
                return Err(Errno::PROTO).at(Step::Execute, "");
            }
            // It was killed before it got anywhere, or it is executed.
            Err(_) => return found.ok_or(Errno::PIPE).at(Step::Execute, "it ended early"),
        }
    }
}

struct Watch<'a> {
    order: &'a Order,
    program: Pid,
    usage: Usage,
    /// Tells when a mount of the jail has changed.
    mounts: OwnedFd,
    covers: Laid,
    is_uncovered: bool,
    started: Instant,
}

impl Watch<'_> {
    /// Returns how the program ended. None: nobody wants to know any more.
    fn run(mut self) -> io::Result<Option<End>> {
        let process = PidFile::of(self.program)?;
        let limits = self.order.plan.limits;
        loop {
            let left = limits.wall.saturating_sub(self.started.elapsed());
            let mut events = [
                PollFd::new(&process.0, PollFlags::IN),
                PollFd::new(&self.order.control, PollFlags::IN | sys::END_OF_INPUT),
                PollFd::new(&self.mounts, PollFlags::PRI),
            ];
            match poll(&mut events, Some(&shorter(left))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let [_, gone, is_changed] = events.map(|event| !event.revents().is_empty());
            if is_changed || !self.covers.is_whole() {
                return Err(uncovered());
            }
            if gone {
                return Ok(None);
            }
            let dead = self.reap()?;
            let (memory, written) = match self.look()? {
                Look::Seen { memory, written } => (memory, written),
                Look::Slow => return Ok(Some(End::MemoryLimit)),
                // What is more urgent is found out next.
                Look::Interrupted => (0, 0),
            };
            if self.is_uncovered {
                return Err(uncovered());
            }
            let end = dead.map(|dead| end_of(dead, &limits, memory.saturating_add(written)));
            if written > limits.written {
                return Ok(Some(End::WriteLimit));
            }
            if end.is_some() {
                return Ok(end);
            }
            if memory > limits.memory {
                return Ok(Some(End::MemoryLimit));
            }
            if self.started.elapsed() >= limits.wall {
                return Ok(Some(End::WallLimit));
            }
        }
    }

    /// Looks at what the job takes, unless there is something more urgent meanwhile: a job can make it last.
    fn look(&mut self) -> io::Result<Look> {
        let (control, limits) = (&self.order.control, &self.order.plan.limits);
        let is_uncovered = Cell::new(false);
        let is_urgent = || {
            let mut events = [
                PollFd::new(control, PollFlags::IN | sys::END_OF_INPUT),
                PollFd::new(&self.mounts, PollFlags::PRI),
            ];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let is_ready = poll(&mut events, Some(&now)).is_ok_and(|ready| ready > 0);
            let [_, mounts] = events.map(|event| !event.revents().is_empty());
            // The kernel tells it only once.
            is_uncovered.set(is_uncovered.get() || mounts);
            is_ready || self.started.elapsed() >= limits.wall
        };
        let look = self.usage.look(limits.memory, is_urgent);
        self.is_uncovered |= is_uncovered.get();
        look
    }

    /// Takes away whoever is dead, and returns the program if it is among them.
    fn reap(&self) -> io::Result<Option<Dead>> {
        let mut program = None;
        loop {
            match sys::jail::reap_one() {
                Ok(Some(dead)) if dead.pid == self.program => program = Some(dead),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(program),
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(program),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Nothing in the jail can change its mounts. Who replaces a covered path outside takes the cover off.
fn uncovered() -> io::Error {
    sys::jail::kill_others();
    io::Error::other(UNCOVERED)
}

/// Until the next look, or until the time is over.
fn shorter(left: Duration) -> Timespec {
    let look = Duration::from_nanos(LOOK_INTERVAL.tv_nsec.unsigned_abs());
    let pause = left.min(look);
    Timespec { tv_sec: 0, tv_nsec: i64::from(pause.subsec_nanos()) }
}

/// `taken` is what the job is known to have written, or to hold in memory.
fn end_of(dead: Dead, limits: &Limits, taken: u64) -> End {
    let has_used_time = dead.time >= limits.cpu / CPU_SHOWN;
    match (dead.status.code(), dead.status.signal()) {
        (Some(code), _) => End::Exited(code),
        // A job can send itself the same signals.
        (None, Some(libc::SIGXCPU | libc::SIGKILL)) if has_used_time => End::CpuLimit,
        (None, Some(libc::SIGXFSZ)) if taken >= limits.written / 2 => End::WriteLimit,
        (None, signal) => End::Signalled(signal.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitStatus;

    #[test]
    fn a_signal_is_that_of_a_limit_only_if_the_limit_was_reached() {
        let limits = Limits {
            wall: Duration::from_secs(9),
            cpu: Duration::from_secs(5),
            memory: 0,
            processes: 1,
            written: 100,
            output: 0,
        };
        let end = |signal: i32, seconds: u64, taken| {
            let (status, time) = (ExitStatus::from_raw(signal), Duration::from_secs(seconds));
            end_of(Dead { pid: rustix::process::getpid(), status, time }, &limits, taken)
        };
        for signal in [libc::SIGXCPU, libc::SIGKILL] {
            assert_eq!(end(signal, 5, 0), End::CpuLimit);
            assert_eq!(end(signal, 1, 0), End::Signalled(signal));
        }
        assert_eq!(end(libc::SIGXFSZ, 0, 99), End::WriteLimit);
        assert_eq!(end(libc::SIGXFSZ, 0, 9), End::Signalled(libc::SIGXFSZ));
    }
}
