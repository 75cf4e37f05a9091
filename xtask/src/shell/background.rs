//! Programs in the background, which are stopped when the value that stands for them is dropped.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::Program;

/// The last lines of a program are kept, to be shown when it fails.
const MAX_LINES: usize = 500;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

type Lines = Arc<Mutex<VecDeque<String>>>;

/// A program that runs until it ends by itself or this is dropped.
#[derive(Debug)]
pub(crate) struct BackgroundProcess {
    child: Child,
    shown: String,
    lines: Lines,
}

impl Program {
    /// Starts the program and keeps what it prints.
    pub(crate) fn start(mut self) -> Result<BackgroundProcess> {
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().with_context(|| format!("cannot start `{}`", self.shown))?;
        let lines = Lines::default();
        child.stdout.take().into_iter().for_each(|stdout| keep_lines(stdout, Arc::clone(&lines)));
        child.stderr.take().into_iter().for_each(|stderr| keep_lines(stderr, Arc::clone(&lines)));
        Ok(BackgroundProcess { child, shown: self.shown, lines })
    }
}

/// Reads in a thread of its own, which ends with the stream.
fn keep_lines(stream: impl Read + Send + 'static, lines: Lines) {
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == MAX_LINES {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    });
}

impl BackgroundProcess {
    /// Asks `check` until it has a result; a timeout is an error.
    pub(crate) fn wait<T>(
        &mut self,
        timeout: Duration,
        mut check: impl FnMut(&mut Self) -> Result<Option<T>>,
    ) -> Result<T> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(found) = check(self)? {
                return Ok(found);
            }
            if Instant::now() >= end {
                bail!("`{}` took longer than {timeout:?}; it printed:\n{}", self.shown, self.output());
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until the program prints a line that `find` accepts.
    pub(crate) fn wait_for_line<T>(
        &mut self,
        timeout: Duration,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T> {
        self.wait(timeout, |process| {
            let has_ended = process.has_ended()?;
            let found = process.lines().iter().find_map(|line| find(line));
            if found.is_none() && has_ended {
                bail!("`{}` ended too early; it printed:\n{}", process.shown, process.output());
            }
            Ok(found)
        })
    }

    /// Waits until the program ends, with whichever exit code.
    pub(crate) fn finish(mut self, timeout: Duration) -> Result<()> {
        self.wait(timeout, |process| Ok(process.has_ended()?.then_some(())))
    }

    /// The last lines that the program printed.
    pub(crate) fn output(&self) -> String {
        self.lines().iter().map(|line| format!("  {line}\n")).collect()
    }

    fn lines(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_ended(&mut self) -> Result<bool> {
        let status = self.child.try_wait();
        Ok(status.with_context(|| format!("cannot read the state of `{}`", self.shown))?.is_some())
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        // Both fail if it has ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
