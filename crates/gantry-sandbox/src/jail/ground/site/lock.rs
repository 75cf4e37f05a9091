//! The lock that tells whether anybody works in a workspace: shared by all jobs on it, in this process and in others.
//!
//! A job cannot get in the way with a lock of its own: while it runs, its jail holds a shared one, so it gets no
//! exclusive one itself.

use super::{JailError, unusable};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long whoever tidies up, or another program, may hold up a job.
const WAIT_LIMIT: Duration = Duration::from_secs(5);
/// How long a job that is being killed may take to let go of it.
const DEATH_LIMIT: Duration = Duration::from_secs(2);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Nobody else works in the workspace for as long as this lives.
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

    /// Gives up the share. With nobody else there, the workspace is ours until what is returned is dropped.
    pub(super) fn alone(dir: &'a OwnedFd) -> Option<Self> {
        flock(dir, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(Self(dir))
    }

    /// The same, but waits for those who leave.
    pub(super) fn alone_in_time(dir: &'a OwnedFd) -> Option<Self> {
        let deadline = Instant::now() + DEATH_LIMIT;
        loop {
            match Self::alone(dir) {
                None if Instant::now() < deadline => thread::sleep(PAUSE),
                alone => return alone,
            }
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // It ends with the descriptor anyway, unless something that outlives it has a copy.
        flock(self.0, FlockOperation::Unlock).ok();
    }
}
