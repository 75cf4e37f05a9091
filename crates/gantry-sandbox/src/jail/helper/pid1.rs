//! The first process of a jail: starts the program, reaps the dead, and ends everything when a limit is reached, the
//! program has ended or Gantry is gone. To end everything, it only has to end itself.

use super::accounting::{Accounting, Sample};
use super::mounts::MountWatch;
use super::proc::Proc;
use super::{HelperJob, ProcessFd, confine, exec, network};
use crate::jail::error::{At as _, Step};
use crate::jail::probe::Backend;
use crate::jail::protocol::{self, Report};
use crate::jail::{ExitReason, JailError, Limits};
use crate::sys::{self, jail::Dead};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use rustix::thread::CapabilitySet;
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

/// How often the limits and the protected mounts are checked.
const INTERVAL: Duration = Duration::from_millis(10);

/// Limits: processor time of one sample, and its time altogether, which is longer on a busy machine. A job that makes it
/// last longer, by what it has mapped, cannot be kept to its limits.
const SAMPLE_LIMIT: Duration = Duration::from_secs(1);
const WAIT_LIMIT: Duration = Duration::from_secs(5);

/// The error of a job that could suddenly see or change something protected.
pub(super) const PROTECTION_LOST: &str = "something protected in the workspace was replaced while the job ran, so that the job could get at it; the job was \
     ended at once; check what was replaced, and run the job again";

/// What part of its limit of processor time a process shows at least that the kernel has ended for it. The kernel counts
/// whole ticks there, of which a process on a busy machine may have had little, and shows what it really had.
const CPU_SHOWN: u32 = 2;

/// Starts the program and supervises it to its end.
pub(super) fn run(job: &HelperJob, proc: Proc) -> Result<(), JailError> {
    network::make(job, &proc)?;
    let mut notes = Vec::new();
    if proc.is_hosts() {
        notes.push(
            "jobs have no /proc, because this machine's is partly hidden (as in most containers)".to_owned(),
        );
    }
    let changes = proc.mounts().at(Step::Protection, "watching them")?;
    let mounts = MountWatch::find(job)?;
    let accounting = Accounting::new(proc, job)?;
    let (ours, theirs) = protocol::pair().at(Step::Execute, "socket")?;
    let own = ProcessFd::of(rustix::process::getpid()).at(Step::Execute, "pidfd")?;
    protocol::send(&job.control, &Report::Executing, &[own.0.as_fd()]).at(Step::Execute, "report")?;
    drop(own);
    let Some(program) = sys::fork().at(Step::Execute, "fork")? else {
        drop(ours);
        let Err(error) = exec::run(job, &theirs);
        protocol::send(&theirs, &exec::Started::Err(error), &[]).ok();
        sys::jail::exit(1)
    };
    drop(theirs);
    let started = Instant::now();
    if job.spec.backend == Backend::Native {
        // It takes this one to look at every process of the jail.
        confine::keep_capabilities(CapabilitySet::SYS_PTRACE).at(Step::Confine, "capabilities")?;
    }
    sys::open_null().and_then(|null| sys::release_stdio(&null)).at(Step::Execute, "pipes")?;
    notes.extend(executed(&ours)?);
    let supervisor = Supervisor { job, program, accounting, changes, mounts, started };
    protocol::send(&job.control, &Report::Started { notes }, &[]).at(Step::Execute, "report")?;
    let report = match supervisor.run() {
        Ok(None) => return Ok(()),
        Ok(Some(end)) => Report::Ended { end, duration: started.elapsed() },
        Err(error) => Report::Broken { reason: error.to_string() },
    };
    // Without Gantry to receive it, this is the end as well.
    protocol::send(&job.control, &report, &[]).ok();
    Ok(())
}

/// Waits until the program is executed, which closes the socket, and returns what its jail lacks.
fn executed(program: &OwnedFd) -> Result<Vec<String>, JailError> {
    let mut notes = None;
    while let Ok(Some((started, _))) = protocol::receive::<exec::Started>(program) {
        notes = Some(started?);
    }
    // Without notes, it was killed before.
    notes.ok_or(Errno::PIPE).at(Step::Execute, "it ended early")
}

struct Supervisor<'a> {
    job: &'a HelperJob,
    program: Pid,
    accounting: Accounting,
    /// Tells when a mount of the jail has changed, once.
    changes: OwnedFd,
    mounts: MountWatch,
    started: Instant,
}

impl Supervisor<'_> {
    /// Returns how the program ended. None: Gantry is gone or has given the job up.
    fn run(mut self) -> io::Result<Option<ExitReason>> {
        let process = ProcessFd::of(self.program)?;
        let limits = self.job.spec.job.limits;
        loop {
            let pause = limits.wall.saturating_sub(self.started.elapsed()).min(INTERVAL);
            let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(pause.subsec_nanos()) };
            let mut events = [
                PollFd::new(&process.0, PollFlags::IN),
                PollFd::new(&self.job.control, PollFlags::IN | sys::END_OF_INPUT),
                PollFd::new(&self.changes, PollFlags::PRI),
            ];
            sys::ignore_interrupt(poll(&mut events, Some(&pause)))?;
            let [_, gone, is_changed] = events.map(|event| !event.revents().is_empty());
            if is_changed || !self.mounts.are_in_place() {
                return Err(protection_lost());
            }
            if gone {
                return Ok(None);
            }
            let dead = self.reap()?;
            let end = exit_reason(dead, &limits, self.sample()?);
            if end.is_some() {
                return Ok(end);
            }
            if self.started.elapsed() >= limits.wall {
                return Ok(Some(ExitReason::WallLimit));
            }
        }
    }

    /// Samples what the job takes. A job can make that last, so an event interrupts it, and then nothing is known. None: it
    /// lasted too long.
    fn sample(&mut self) -> io::Result<Option<Sample>> {
        let (control, limits) = (&self.job.control, &self.job.spec.job.limits);
        let (is_changed, is_slow) = (Cell::new(false), Cell::new(false));
        let (since, busy_before) = (Instant::now(), processor_time());
        let is_interrupted = || {
            let mut events = [
                PollFd::new(control, PollFlags::IN | sys::END_OF_INPUT),
                PollFd::new(&self.changes, PollFlags::PRI),
            ];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let is_ready = poll(&mut events, Some(&now)).is_ok_and(|ready| ready > 0);
            let [_, changes] = events.map(|event| !event.revents().is_empty());
            is_changed.set(is_changed.get() || changes);
            is_slow.set(takes_too_long(since.elapsed(), processor_time().saturating_sub(busy_before)));
            is_ready || is_slow.get() || self.started.elapsed() >= limits.wall
        };
        let sample = self.accounting.sample(&is_interrupted);
        if is_changed.get() {
            return Err(protection_lost());
        }
        match sample? {
            None if is_slow.get() => Ok(None),
            sample => Ok(Some(sample.unwrap_or_default())),
        }
    }

    /// Reaps the dead processes, and returns the program if it is among them.
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

/// Kills the job at once. No process in the jail can change its mounts, but one outside takes a protected mount off by
/// replacing its path.
fn protection_lost() -> io::Error {
    sys::jail::signal_others(Signal::KILL);
    io::Error::other(PROTECTION_LOST)
}

/// The processor time of this process, which has a single thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Whether a sample lasts too long, by its time altogether and its processor time.
fn takes_too_long(elapsed: Duration, busy: Duration) -> bool {
    elapsed > WAIT_LIMIT || busy > SAMPLE_LIMIT
}

/// How the job has ended or has to end, if its program is dead or what it takes is too much. A job whose sample lasted too
/// long counts as one that takes too much memory.
fn exit_reason(dead: Option<Dead>, limits: &Limits, sample: Option<Sample>) -> Option<ExitReason> {
    let Sample { memory, written } = sample.unwrap_or_default();
    if written > limits.written {
        return Some(ExitReason::WriteLimit);
    }
    let is_too_much = sample.is_none() || memory > limits.memory;
    dead.map(|dead| death_reason(dead, limits, memory.saturating_add(written)))
        .or(is_too_much.then_some(ExitReason::MemoryLimit))
}

/// `taken` is what the job is known to have written, or to hold in memory.
fn death_reason(dead: Dead, limits: &Limits, taken: u64) -> ExitReason {
    let has_used_time = dead.time >= limits.cpu / CPU_SHOWN;
    match (dead.status.code(), dead.status.signal()) {
        (Some(code), _) => ExitReason::Exited(code),
        // A job can send itself the same signals.
        (None, Some(libc::SIGXCPU | libc::SIGKILL)) if has_used_time => ExitReason::CpuLimit,
        (None, Some(libc::SIGXFSZ)) if taken >= limits.written / 2 => ExitReason::WriteLimit,
        (None, signal) => ExitReason::Signalled(signal.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitStatus;

    const LIMITS: Limits = Limits {
        wall: Duration::from_secs(9),
        cpu: Duration::from_secs(5),
        memory: 1000,
        processes: 1,
        written: 100,
        output: 0,
    };

    fn dead(signal: i32, seconds: u64) -> Dead {
        let (status, time) = (ExitStatus::from_raw(signal), Duration::from_secs(seconds));
        Dead { pid: rustix::process::getpid(), status, time }
    }

    #[test]
    fn a_signal_is_that_of_a_limit_only_if_the_limit_was_reached() {
        let end = |signal: i32, seconds: u64, taken| death_reason(dead(signal, seconds), &LIMITS, taken);
        for signal in [libc::SIGXCPU, libc::SIGKILL] {
            assert_eq!(end(signal, 5, 0), ExitReason::CpuLimit);
            assert_eq!(end(signal, 1, 0), ExitReason::Signalled(signal));
        }
        assert_eq!(end(libc::SIGXFSZ, 0, 99), ExitReason::WriteLimit);
        assert_eq!(end(libc::SIGXFSZ, 0, 9), ExitReason::Signalled(libc::SIGXFSZ));
    }

    #[test]
    fn a_sample_that_lasts_too_long_shows_nothing_of_what_a_dead_program_took() {
        let end = |dead, sample| exit_reason(dead, &LIMITS, sample);
        let killed = Some(ExitReason::Signalled(libc::SIGXFSZ));
        assert_eq!(end(None, None), Some(ExitReason::MemoryLimit));
        assert_eq!(end(Some(dead(libc::SIGXFSZ, 0)), None), killed);

        let taking = |memory, written| Some(Sample { memory, written });
        assert_eq!(end(None, taking(1000, 100)), None);
        assert_eq!(end(None, taking(1001, 100)), Some(ExitReason::MemoryLimit));
        assert_eq!(end(None, taking(1001, 101)), Some(ExitReason::WriteLimit));
        assert_eq!(end(Some(dead(libc::SIGXFSZ, 0)), taking(1, 9)), killed);
        assert_eq!(end(Some(dead(0, 0)), taking(1001, 0)), Some(ExitReason::Exited(0)));
        assert_eq!(end(Some(dead(0, 0)), taking(0, 101)), Some(ExitReason::WriteLimit));
    }

    #[test]
    fn a_sample_is_bounded_in_processor_time_and_altogether() {
        let seconds = Duration::from_secs;
        assert!(!takes_too_long(seconds(5), seconds(1)));
        assert!(takes_too_long(seconds(6), seconds(0)));
        assert!(takes_too_long(seconds(2), seconds(2)));
    }
}
