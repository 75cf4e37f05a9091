//! How much the processes of a jail take.
//!
//! **Memory** is what is theirs alone or shared in memory only, swapped out or not, the tables that lead to pages, and what
//! is in the jail's file systems in memory. Pages of files on disk do not count: the system can drop them. What waits in
//! sockets does not show anywhere; so of many sockets each counts as if it were full.
//!
//! **Written** is what the kernel counts as caused to be written to disk. A process that ends hands its count on to the
//! one that waits for it. Who has the kernel do that (by ignoring SIGCHLD) loses those counts; what was seen of them
//! before is kept. Empty files and folders count nothing, nor does what goes to a file system over the network. What is
//! not counted is noticed when it is much: see `space.rs`.
//!
//! **Whoever comes and goes.** Memory can be passed on from one process to the next, each of which is gone before it is
//! looked at. So processes are listed until there is nobody new, and a job that goes on starting some is stopped for the
//! moment that it takes to count them.

mod texts;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::time::{ClockId, clock_gettime};
use texts::{field, has_memory, hidden, is_still, resident, socket_count, write_count};

use super::proc::{Proc, open_folder};
use super::space::Space;
use super::view::IN_MEMORY;
use crate::sys;

/// What a file in memory takes besides its contents.
const FILE_COST: u64 = 1024;

/// Sockets that count nothing, and what each further one counts: what the kernel lets wait in one.
const FREE_SOCKETS: u64 = 128;
const SOCKET_COST: u64 = 256 << 10;

/// How long one look may take, of processor time and altogether. A job that makes it last longer, by what it has mapped,
/// cannot be kept to its limits. On a busy machine it is not the job that makes it last.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
const WAIT_LIMIT: Duration = Duration::from_secs(5);

/// How often it must be seen exactly that a job has too much memory.
const EXACT_LOOKS: u32 = 2;

/// How often processes are listed until there is nobody new, and how many looks in a row may do without.
const ROUNDS: usize = 4;
const UNSETTLED_LOOKS: u32 = 3;

/// How long processes may take to stop, and how often it is asked whether they have.
const STOP_LIMIT: Duration = Duration::from_millis(50);
const STOP_INTERVAL: Duration = Duration::from_millis(1);

/// The most that the list of what a process has read and written is long.
const OWN_LIMIT: usize = 1024;

/// What is said of a job with a process that nobody can look into, such as one whose program may be executed but not read.
const UNSEEN: &str = "a process of the job cannot be looked at, so what it writes cannot be limited; the job was ended; do not \
                      execute programs in it that its user may not read";

/// What the processes of a jail have been seen to take.
#[derive(Debug)]
pub(super) struct Usage {
    proc: Proc,
    /// What this process itself has written.
    own: File,
    in_memory: Vec<OwnedFd>,
    space: Space,
    written: Written,
    /// Looks in a row in which somebody new was found to the end.
    unsettled: u32,
}

/// What a look has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Bytes of memory, exactly if they are more than the limit and else perhaps too many; bytes written so far.
    Seen { memory: u64, written: u64 },
    /// There is something to do that is more urgent.
    Interrupted,
    /// It took too long.
    Slow,
}

/// A process that lives.
#[derive(Debug)]
struct Process {
    /// Where it is seen: one folder of its own, or those of its threads.
    folders: Vec<String>,
    status: String,
}

/// Bytes of memory, and whether all processes were seen.
#[derive(Debug, Clone, Copy)]
struct Exact {
    memory: u64,
    is_settled: bool,
}

/// Why a look is not brought to its end.
#[derive(Debug)]
enum Halt {
    Because(Look),
    Error(io::Error),
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        Self::Error(error)
    }
}

/// Asks whether a look may go on.
type GoOn<'a> = &'a dyn Fn() -> Result<(), Halt>;

/// Everybody in the jail but this process, for as long as they are stopped.
///
/// This also lets go on whom the job had stopped itself. Each of its processes can do that at any time, and none can tell
/// the difference; and only a job that does nothing but start processes comes to it.
struct Stopped(());

impl Stopped {
    fn everybody() -> Self {
        sys::jail::stop_others();
        Self(())
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        sys::jail::continue_others();
    }
}

/// Bytes written, by those that live and those that are gone.
#[derive(Debug, Default)]
struct Written {
    /// Of those whose count nobody has inherited.
    lost: u64,
    /// The most that was seen, and whether the last look showed less.
    most: u64,
    is_less: bool,
}

impl Usage {
    pub(super) fn new(proc: Proc, space: Space) -> io::Result<Self> {
        let in_memory = IN_MEMORY.iter().map(|(path, ..)| open_folder(path)).collect::<io::Result<_>>()?;
        // The list of a process that hides belongs to root. Nobody else is here yet to look into this one meanwhile.
        set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        let own = proc.file("self/io");
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        Ok(Self { proc, own: own?, in_memory, space, written: Written::default(), unsettled: 0 })
    }

    /// Looks at all processes, unless something is more urgent.
    pub(super) fn look(&mut self, memory_limit: u64, is_urgent: impl Fn() -> bool) -> io::Result<Look> {
        let (since, busy_before) = (Instant::now(), processor_time());
        let is_slow =
            || since.elapsed() > WAIT_LIMIT || processor_time().saturating_sub(busy_before) > LOOK_LIMIT;
        let go_on = || match () {
            () if is_urgent() => Err(Halt::Because(Look::Interrupted)),
            () if is_slow() => Err(Halt::Because(Look::Slow)),
            () => Ok(()),
        };
        match self.whole_look(memory_limit, &go_on) {
            Ok(look) | Err(Halt::Because(look)) => Ok(look),
            Err(Halt::Error(error)) => Err(error),
        }
    }

    fn whole_look(&mut self, memory_limit: u64, go_on: GoOn<'_>) -> Result<Look, Halt> {
        let taken = self.space.taken()?;
        let apart = self.apart_from_processes()?.saturating_add(taken.in_memory);
        let mut memory = apart;
        // This process has inherited what orphans have written.
        let mut written = self.inherited()?;
        let mut is_settled = self.each(go_on, |one| {
            memory = memory.saturating_add(resident(&one.status));
            written = written.saturating_add(self.written_of(one)?);
            Ok(())
        })?;
        // Twice, because those that end meanwhile leave their part of what is shared to the others.
        for _ in 0..EXACT_LOOKS {
            if memory <= memory_limit {
                break;
            }
            let exact = self.exact(go_on)?;
            memory = apart.saturating_add(exact.memory);
            is_settled = exact.is_settled;
        }
        self.unsettled = if is_settled { 0 } else { self.unsettled + 1 };
        if self.unsettled == UNSETTLED_LOOKS {
            self.unsettled = 0;
            memory = apart.saturating_add(self.stopped(go_on)?);
        } else if !is_settled {
            // Those that have ended may have been counted with those that they were followed by.
            memory = memory.min(memory_limit);
        }
        let written = self.written.total(written).saturating_add(taken.in_memory).max(taken.unseen);
        Ok(Look::Seen { memory, written })
    }

    /// Looks at each process that lives. Returns whether there was nobody new in the end.
    fn each(
        &self,
        go_on: GoOn<'_>,
        mut look_at: impl FnMut(&Process) -> io::Result<()>,
    ) -> Result<bool, Halt> {
        let mut known = BTreeSet::new();
        for _ in 0..ROUNDS {
            let listed = self.proc.processes()?.into_iter();
            let new: Vec<u32> = listed.filter(|pid| known.insert(*pid)).collect();
            if new.is_empty() {
                return Ok(true);
            }
            for pid in new {
                go_on()?;
                // One that is gone by now takes nothing.
                if let Some(one) = self.process(pid) {
                    look_at(&one)?;
                }
            }
        }
        Ok(false)
    }

    /// What all processes take, with what they share counted once.
    fn exact(&self, go_on: GoOn<'_>) -> Result<Exact, Halt> {
        let mut memory: u64 = 0;
        let is_settled = self.each(go_on, |one| {
            memory = memory.saturating_add(self.exact_part(one).unwrap_or_default());
            Ok(())
        })?;
        Ok(Exact { memory, is_settled })
    }

    /// The same while nobody can do anything.
    fn stopped(&self, go_on: GoOn<'_>) -> Result<u64, Halt> {
        let _stopped = Stopped::everybody();
        let since = Instant::now();
        // Who is about to end does so, and meanwhile shares its memory with those that go on.
        while since.elapsed() < STOP_LIMIT && !self.is_still()? {
            go_on()?;
            std::thread::sleep(STOP_INTERVAL);
        }
        Ok(self.exact(go_on)?.memory)
    }

    fn is_still(&self) -> io::Result<bool> {
        let is_still = |pid: u32, task: u32| {
            self.proc.text(&format!("{pid}/task/{task}/status")).map_or(true, |status| is_still(&status))
        };
        let all = |pid| self.proc.tasks(pid).unwrap_or_default().into_iter().all(|task| is_still(pid, task));
        Ok(self.proc.processes()?.into_iter().all(all))
    }

    /// A process that lives. If its first thread has ended, the others show what it has.
    fn process(&self, pid: u32) -> Option<Process> {
        let seen = |folder: String| {
            let status = self.proc.text(&format!("{folder}/status")).ok()?;
            has_memory(&status).then_some((folder, status))
        };
        if let Some((folder, status)) = seen(pid.to_string()) {
            return Some(Process { folders: vec![folder], status });
        }
        let threads = self.proc.tasks(pid).ok()?.into_iter();
        let mut threads = threads.filter_map(|thread| seen(format!("{pid}/task/{thread}"))).peekable();
        let (_, status) = threads.peek().cloned()?;
        Some(Process { folders: threads.map(|(folder, _)| folder).collect(), status })
    }

    /// What counts of what it has; of what is shared, its part. None: it is gone by now.
    fn exact_part(&self, process: &Process) -> Option<u64> {
        let folder = process.folders.first()?;
        let rollup = self.proc.text(&format!("{folder}/smaps_rollup")).unwrap_or_default();
        let now = self.proc.text(&format!("{folder}/status")).ok().filter(|status| has_memory(status))?;
        let part = |name| field(&rollup, name);
        let parts = part("Pss_Anon:").zip(part("Pss_Shmem:"));
        Some(parts.map_or_else(|| resident(&now), |(alone, shared)| alone + shared + hidden(&now)))
    }

    /// What a process has written. Nothing if it is gone; that it lives and does not show it is an error.
    fn written_of(&self, process: &Process) -> io::Result<u64> {
        let mut sum: u64 = 0;
        for folder in &process.folders {
            let count = self.proc.text(&format!("{folder}/io")).and_then(|io| write_count(&io));
            let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            let lives =
                || self.proc.text(&format!("{folder}/status")).is_ok_and(|status| has_memory(&status));
            match count {
                Ok(written) => sum = sum.saturating_add(written),
                Err(error) if is_refused(&error) && lives() => return Err(io::Error::other(UNSEEN)),
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

    /// What is in file systems in memory, and perhaps in sockets.
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

impl Written {
    /// Takes the sum of what the living say.
    ///
    /// It can be less than before for a moment, when a count is handed on between two reads. Only if it is still less at
    /// the next look is the rest lost.
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

/// What this process has used of the processor, which has a single thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
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
}
