//! How much the processes of a jail take.
//!
//! **Memory** is the private and shared memory of all processes, swapped out or not, their page tables, and the content of
//! the jail's file systems in memory. Pages of files on disk do not count: the kernel can drop them. The kernel does not
//! show what waits in sockets; so of many sockets each counts as if it were full.
//!
//! **Written** is what the kernel counts as caused to be written to disk. A process that ends hands its count on to the
//! one that waits for it. A parent that ignores SIGCHLD loses those counts; what was seen of them before is kept. Empty
//! files and folders count nothing, nor does what goes to a file system over the network. Large uncounted writes are
//! noticed by the space that is lost: see `space.rs`.
//!
//! **Short-lived processes.** Memory can be passed on from one process to the next, each of which ends before it is read.
//! So the process list is re-read until it is stable, and a job that keeps forking is stopped while it is measured.

mod space;

use super::HelperJob;
use super::proc::{Proc, open_folder};
use super::rootfs::IN_MEMORY;
use crate::jail::error::{At as _, Step};
use crate::jail::{Access, JailError};
use crate::sys;
use rustix::process::{DumpableBehavior, Signal, set_dumpable_behavior};
use space::Space;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

/// What a file in memory takes besides its contents.
const FILE_COST: u64 = 1024;

/// Sockets that count nothing, and what each further one counts: what the kernel lets wait in one.
const FREE_SOCKETS: u64 = 128;
const SOCKET_COST: u64 = 256 << 10;

/// How often processes are listed until there is no new one, and how many samples in a row may do without.
const ROUNDS: usize = 4;
const UNSTABLE_SAMPLES: u32 = 3;

/// How long processes may take to stop, and how often it is asked whether they have.
const STOP_LIMIT: Duration = Duration::from_millis(50);
const STOP_INTERVAL: Duration = Duration::from_millis(1);

/// Limit: bytes of a process's list of what it has read and written.
const OWN_LIMIT: usize = 1024;

/// The error of a job with a process that cannot be looked into, such as one whose program may be executed but not read.
const UNREADABLE: &str = "a process of the job cannot be looked at, so what it writes cannot be limited; the job was ended; \
                          do not execute programs in it that its user may not read";

/// Bytes that the processes of a jail take.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// Exact if it is more than the limit, else perhaps too much.
    pub(super) memory: u64,
    pub(super) written: u64,
}

#[derive(Debug)]
pub(super) struct Accounting {
    proc: Proc,
    memory_limit: u64,
    /// What this process itself has written.
    own: File,
    in_memory: Vec<OwnedFd>,
    space: Space,
    written: Written,
    /// Samples in a row in which a new process was found to the end.
    unstable: u32,
}

#[derive(Debug)]
struct Process {
    /// Where it is shown: one folder of its own, or those of its threads.
    folders: Vec<String>,
    status: String,
}

/// Asks whether a sample is to be given up.
type IsInterrupted<'a> = &'a dyn Fn() -> bool;

impl Accounting {
    pub(super) fn new(proc: Proc, job: &HelperJob) -> Result<Self, JailError> {
        let limits = &job.spec.job.limits;
        let workspace = job.workspace.as_ref().filter(|_| job.spec.job.access == Access::Write);
        let stores = job.stores.iter().zip(&job.spec.job.stores);
        let stores = stores.filter(|(_, store)| store.access == Access::Write).map(|(folder, _)| folder);
        let space = Space::new(workspace.into_iter().chain(stores), limits.written)
            .at(Step::Limits, "the file system of a folder shows no use of it")?;
        let open = || -> io::Result<_> {
            let in_memory =
                IN_MEMORY.iter().map(|(path, ..)| open_folder(path)).collect::<io::Result<_>>()?;
            // The list of a process that hides belongs to root. No other process is here yet to look into this one.
            set_dumpable_behavior(DumpableBehavior::Dumpable)?;
            let own = proc.file("self/io");
            set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
            Ok((in_memory, own?))
        };
        let (in_memory, own) = open().at(Step::Limits, "usage")?;
        let (memory_limit, written) = (limits.memory, Written::default());
        Ok(Self { proc, memory_limit, own, in_memory, space, written, unstable: 0 })
    }

    /// Samples all processes. None: it was interrupted.
    pub(super) fn sample(&mut self, is_interrupted: IsInterrupted<'_>) -> io::Result<Option<Sample>> {
        match self.whole_sample(is_interrupted) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            sample => sample.map(Some),
        }
    }

    fn whole_sample(&mut self, is_interrupted: IsInterrupted<'_>) -> io::Result<Sample> {
        let taken = self.space.taken()?;
        let apart = self.apart_from_processes()?.saturating_add(taken.in_memory);
        // Shared memory counts in each process that has it. That is quick, and enough below the limit.
        let mut memory = apart;
        // This process has inherited what orphans have written.
        let mut written = self.inherited()?;
        let is_stable = self.each(is_interrupted, |process| {
            memory = memory.saturating_add(resident(&process.status));
            written = written.saturating_add(self.written_of(process)?);
            Ok(())
        })?;
        if memory > self.memory_limit {
            memory = apart.saturating_add(self.proportional(is_interrupted)?);
        }
        self.unstable = if is_stable { 0 } else { self.unstable + 1 };
        // A process that ends meanwhile leaves its part of shared memory to others, and counts twice.
        if memory > self.memory_limit || self.unstable == UNSTABLE_SAMPLES {
            self.unstable = 0;
            memory = apart.saturating_add(self.proportional_while_stopped(is_interrupted)?);
        }
        let written = self.written.total(written).saturating_add(taken.in_memory).max(taken.lost);
        Ok(Sample { memory, written })
    }

    /// Visits each process that lives. Returns whether the list was stable in the end.
    fn each(
        &self,
        is_interrupted: IsInterrupted<'_>,
        mut visit: impl FnMut(&Process) -> io::Result<()>,
    ) -> io::Result<bool> {
        let mut known = BTreeSet::new();
        for _ in 0..ROUNDS {
            let listed = self.proc.processes()?.into_iter();
            let new: Vec<u32> = listed.filter(|pid| known.insert(*pid)).collect();
            if new.is_empty() {
                return Ok(true);
            }
            for pid in new {
                check(is_interrupted)?;
                // A process that has ended takes nothing.
                if let Some(process) = self.process(pid) {
                    visit(&process)?;
                }
            }
        }
        Ok(false)
    }

    /// The memory of all processes, with what they share counted once.
    fn proportional(&self, is_interrupted: IsInterrupted<'_>) -> io::Result<u64> {
        let mut memory: u64 = 0;
        self.each(is_interrupted, |process| {
            memory = memory.saturating_add(self.proportional_of(process).unwrap_or_default());
            Ok(())
        })?;
        Ok(memory)
    }

    /// The same while all processes of the job are stopped.
    ///
    /// It also continues processes that the job had stopped itself. Each of them can be continued by the job at any time,
    /// and only a job that forks without pause, or has too much memory, comes to it.
    fn proportional_while_stopped(&self, is_interrupted: IsInterrupted<'_>) -> io::Result<u64> {
        let measure = || {
            let since = Instant::now();
            // A process that is about to end does so, and meanwhile shares its memory with others.
            while since.elapsed() < STOP_LIMIT && !self.are_stopped()? {
                check(is_interrupted)?;
                std::thread::sleep(STOP_INTERVAL);
            }
            self.proportional(is_interrupted)
        };
        sys::jail::signal_others(Signal::STOP);
        let memory = measure();
        sys::jail::signal_others(Signal::CONT);
        memory
    }

    fn are_stopped(&self) -> io::Result<bool> {
        let is_stopped = |pid: u32, task: u32| {
            self.proc.text(&format!("{pid}/task/{task}/status")).map_or(true, |status| is_stopped(&status))
        };
        let all =
            |pid| self.proc.tasks(pid).unwrap_or_default().into_iter().all(|task| is_stopped(pid, task));
        Ok(self.proc.processes()?.into_iter().all(all))
    }

    /// A process that lives. If its first thread has ended, the others show what it has.
    fn process(&self, pid: u32) -> Option<Process> {
        let shown = |folder: String| {
            let status = self.proc.text(&format!("{folder}/status")).ok()?;
            has_memory(&status).then_some((folder, status))
        };
        if let Some((folder, status)) = shown(pid.to_string()) {
            return Some(Process { folders: vec![folder], status });
        }
        let threads = self.proc.tasks(pid).ok()?.into_iter();
        let mut threads = threads.filter_map(|thread| shown(format!("{pid}/task/{thread}"))).peekable();
        let (_, status) = threads.peek().cloned()?;
        Some(Process { folders: threads.map(|(folder, _)| folder).collect(), status })
    }

    /// The memory of a process; of shared memory, its part. None: it has ended.
    fn proportional_of(&self, process: &Process) -> Option<u64> {
        let folder = process.folders.first()?;
        let rollup = self.proc.text(&format!("{folder}/smaps_rollup")).unwrap_or_default();
        let now = self.proc.text(&format!("{folder}/status")).ok().filter(|status| has_memory(status))?;
        let parts = field(&rollup, "Pss_Anon:").zip(field(&rollup, "Pss_Shmem:"));
        Some(parts.map_or_else(|| resident(&now), |(anon, shmem)| anon + shmem + not_resident(&now)))
    }

    /// What a process has written. Nothing if it has ended; that it lives and does not show it is an error.
    fn written_of(&self, process: &Process) -> io::Result<u64> {
        let mut sum: u64 = 0;
        for folder in &process.folders {
            let count = self.proc.text(&format!("{folder}/io")).and_then(|io| write_count(&io));
            let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            let lives =
                || self.proc.text(&format!("{folder}/status")).is_ok_and(|status| has_memory(&status));
            match count {
                Ok(written) => sum = sum.saturating_add(written),
                Err(error) if is_refused(&error) && lives() => return Err(io::Error::other(UNREADABLE)),
                Err(_) => {}
            }
        }
        Ok(sum)
    }

    fn inherited(&self) -> io::Result<u64> {
        let mut text = [0; OWN_LIMIT];
        let length = self.own.read_at(&mut text, 0)?;
        write_count(&String::from_utf8_lossy(text.get(..length).unwrap_or_default()))
    }

    /// Memory in file systems, and perhaps in sockets.
    fn apart_from_processes(&self) -> io::Result<u64> {
        let mut sum: u64 = 0;
        for folder in &self.in_memory {
            let state = rustix::fs::fstatvfs(folder)?;
            sum += state.f_blocks.saturating_sub(state.f_bfree).saturating_mul(state.f_frsize);
            sum += state.f_files.saturating_sub(state.f_ffree).saturating_mul(FILE_COST);
        }
        let sockets = self.proc.text("self/net/sockstat").unwrap_or_default();
        sum += socket_count(&sockets).saturating_sub(FREE_SOCKETS).saturating_mul(SOCKET_COST);
        Ok(sum)
    }
}

fn check(is_interrupted: IsInterrupted<'_>) -> io::Result<()> {
    if is_interrupted() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
}

/// Bytes written, by processes that live and those that have ended.
#[derive(Debug, Default)]
struct Written {
    /// Of processes whose count no other has inherited.
    lost: u64,
    /// The most that was seen, and whether the last sample showed less.
    most: u64,
    is_less: bool,
}

impl Written {
    /// Takes the sum of what living processes show.
    ///
    /// It can be less than before for a moment, when a count is handed on between two reads. Only if it is still less at
    /// the next sample is the rest lost.
    fn total(&mut self, living: u64) -> u64 {
        let seen = living.saturating_add(self.lost);
        if seen >= self.most {
            self.most = seen;
            self.is_less = false;
        } else if self.is_less {
            self.lost += self.most - seen;
            self.is_less = false;
        } else {
            self.is_less = true;
        }
        self.most
    }
}

/// The count in `/proc/…/io`.
fn write_count(io: &str) -> io::Result<u64> {
    let count = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok());
    count.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The bytes in a line such as `Name:   12 kB`.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Whether it is the status of a process that has not ended.
fn has_memory(status: &str) -> bool {
    field(status, "RssAnon:").is_some()
}

/// Whether it is the status of a thread that does not run: stopped, dead, or in a sleep that no signal ends, such as that of
/// a parent until its child has called exec.
fn is_stopped(status: &str) -> bool {
    let state = status.lines().find_map(|line| line.strip_prefix("State:")?.trim_start().chars().next());
    !matches!(state, Some('R' | 'S'))
}

/// The memory of a process, of which it may share some with others.
fn resident(status: &str) -> u64 {
    let parts = ["RssAnon:", "RssShmem:"].iter().filter_map(|name| field(status, name));
    parts.sum::<u64>() + not_resident(status)
}

/// The memory of a process that is swapped out, and its page tables.
fn not_resident(status: &str) -> u64 {
    ["VmSwap:", "VmPTE:"].iter().filter_map(|name| field(status, name)).sum()
}

fn socket_count(sockstat: &str) -> u64 {
    let count = |line: &str| line.strip_prefix("sockets: used ")?.trim().parse().ok();
    sockstat.lines().find_map(count).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_never_gets_less() {
        let mut written = Written::default();
        let seen: Vec<u64> =
            [5, 9, 3, 9, 9, 4, 4, 6].into_iter().map(|living| written.total(living)).collect();
        assert_eq!(seen, [5, 9, 9, 9, 9, 9, 9, 11]);
    }

    #[test]
    fn a_field_is_read_in_bytes() {
        let text = "Rss:    4 kB\nPss_Anon:        12 kB\n";
        assert_eq!(field(text, "Pss_Anon:"), Some(12 << 10));
        assert_eq!(field(text, "Pss_Shmem:"), None);
    }

    #[test]
    fn sockets_are_counted() {
        assert_eq!(socket_count("sockets: used 294\nTCP: inuse 4 orphan 0\n"), 294);
    }

    #[test]
    fn a_thread_that_runs_is_not_stopped() {
        for (status, is) in [
            ("Name:\tR\nState:\tT (stopped)\n", true),
            ("State:\tD (disk sleep)\n", true),
            ("State:\tZ (zombie)\n", true),
            ("State:\tR (running)\n", false),
            ("State:\tS (sleeping)\n", false),
        ] {
            assert_eq!(is_stopped(status), is, "{status}");
        }
    }
}
