//! The end of a process tree: everything that is, or becomes, a child of this guard is killed and reaped.
//!
//! The guard is a subreaper, so a process that loses its parent becomes its child. Killing children until none are left
//! therefore reaches every descendant, one level after the other.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// How long killing may take; processes that are left then cannot be killed by the guard.
pub(super) const KILL_LIMIT: Duration = Duration::from_secs(5);

/// The first pause between two rounds, which doubles, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The state of the children of this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reaped {
    pub(super) main: Option<WaitStatus>,
    pub(super) is_empty: bool,
}

pub(super) fn reap(main: Pid) -> rustix::io::Result<Reaped> {
    let mut reaped = Reaped { main: None, is_empty: false };
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == main => reaped.main = Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(reaped),
            Err(Errno::CHILD) => {
                reaped.is_empty = true;
                return Ok(reaped);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Kills all children and their descendants. Returns how the main child ended, if it did so now.
pub(super) fn end(main: Pid) -> rustix::io::Result<Option<WaitStatus>> {
    let deadline = Instant::now() + KILL_LIMIT;
    let mut pause = FIRST_PAUSE;
    let mut ended = None;
    loop {
        let reaped = reap(main)?;
        ended = ended.or(reaped.main);
        if reaped.is_empty || Instant::now() > deadline {
            return Ok(ended);
        }
        for child in children() {
            // It is not reaped yet, so its number is still its own; a refusal shows in the next rounds.
            kill_process(child, Signal::KILL).ok();
        }
        thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// The children of this process. Without a process file system nothing is known but the main child's group.
fn children() -> Vec<Pid> {
    let me = getpid();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
        .filter(|pid| parent(*pid) == Some(me))
        .collect()
}

/// The parent, as the process file system has it: `pid (name) state parent …`, where the name may hold anything.
fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let after_name = stat.rsplit(|byte| *byte == b')').next()?;
    let parent = std::str::from_utf8(after_name).ok()?.split_ascii_whitespace().nth(1)?;
    Pid::from_raw(parent.parse().ok()?)
}
