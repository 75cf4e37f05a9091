//! The lock that tells whether any job works in a workspace: shared by all jobs on it, in this process and in others.
//!
//! A job cannot get in the way with a lock of its own: while it runs, its jail holds a shared one, so it gets no
//! exclusive one itself.

use super::lease::unusable;
use crate::jail::JailError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a job waits for one that removes placeholders, or for another program.
const WAIT_LIMIT: Duration = Duration::from_secs(5);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// The exclusive lock: no other job works in the workspace for as long as this lives.
#[derive(Debug)]
pub(super) struct Lock<'a>(&'a OwnedFd);

impl<'a> Lock<'a> {
    /// Shares the workspace with other jobs until `dir` is closed.
    pub(super) fn share(dir: impl AsFd, path: &Path) -> Result<(), JailError> {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            match flock(&dir, FlockOperation::NonBlockingLockShared) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(Errno::WOULDBLOCK) => {
                    let reason = "another program has locked it; end that program, or try again later";
                    return Err(unusable(path, &reason));
                }
                Err(error) => return Err(unusable(path, &format!("it cannot be locked: {error}"))),
            }
        }
    }

    /// Turns the share into the exclusive lock, if other shares end within this time.
    pub(super) fn exclusive(dir: &'a OwnedFd, wait: Duration) -> Option<Self> {
        let deadline = Instant::now() + wait;
        loop {
            match flock(dir, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Some(Self(dir)),
                Err(_) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // It ends with the descriptor anyway, unless a process that outlives it has a copy.
        flock(self.0, FlockOperation::Unlock).ok();
    }
}
