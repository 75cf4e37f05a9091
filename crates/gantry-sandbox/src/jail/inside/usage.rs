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

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::time::{ClockId, clock_gettime};

use super::proc::{Proc, open_folder};
use super::space::Space;
use super::view::IN_MEMORY;

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
        Ok(Self { proc, own: own?, in_memory, space, written: Written::default() })
    }

    /// Looks at all processes, unless something is more urgent.
    pub(super) fn look(&mut self, memory_limit: u64, is_urgent: impl Fn() -> bool) -> io::Result<Look> {
        let (since, busy_before) = (Instant::now(), processor_time());
        let is_slow =
            || since.elapsed() > WAIT_LIMIT || processor_time().saturating_sub(busy_before) > LOOK_LIMIT;
        let stop = || match () {
            () if is_urgent() => Some(Look::Interrupted),
            () if is_slow() => Some(Look::Slow),
            () => None,
        };
        let processes = self.proc.processes()?;
        let taken = self.space.taken()?;
        let apart = self.apart_from_processes()?.saturating_add(taken.in_memory);
        let mut memory = apart;
        // This process has inherited what orphans have written.
        let mut written = self.inherited()?;
        let mut living = Vec::new();
        for pid in processes {
            if let Some(stopped) = stop() {
                return Ok(stopped);
            }
            // One that is gone by now takes nothing.
            let Some(one) = self.process(pid) else { continue };
            memory = memory.saturating_add(resident(&one.status));
            written = written.saturating_add(self.written_of(&one)?);
            living.push(one);
        }
        // Twice, because those that end meanwhile leave their part of what is shared to the others.
        for _ in 0..EXACT_LOOKS {
            if memory <= memory_limit {
                break;
            }
            memory = apart;
            for one in &living {
                if let Some(stopped) = stop() {
                    return Ok(stopped);
                }
                memory = memory.saturating_add(self.exact(one).unwrap_or_default());
            }
        }
        let written = self.written.total(written).saturating_add(taken.in_memory).max(taken.unseen);
        Ok(Look::Seen { memory, written })
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
    fn exact(&self, process: &Process) -> Option<u64> {
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

/// What a process has, of which it may share some with others.
fn resident(status: &str) -> u64 {
    let parts = ["RssAnon:", "RssShmem:"].iter().filter_map(|name| field(status, name));
    parts.sum::<u64>() + hidden(status)
}

/// What a process has that is not in memory: swapped out, and the tables of its pages.
fn hidden(status: &str) -> u64 {
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
}
