//! Programs in the background, which are stopped when the value that stands for them is dropped.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::Program;

/// The last lines of a program are kept, to be shown when it fails.
const MAX_LINES: usize = 500;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

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
        if let Some(stdout) = child.stdout.take() {
            keep_lines(stdout, Arc::clone(&lines));
        }
        if let Some(stderr) = child.stderr.take() {
            keep_lines(stderr, Arc::clone(&lines));
        }
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
    /// Waits until the program prints a line that `find` accepts.
    pub(crate) fn wait_for_line<T>(
        &mut self,
        timeout: Duration,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T> {
        let end = Instant::now() + timeout;
        loop {
            let has_ended = self.has_ended()?;
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = lines.iter().find_map(|line| find(line)) {
                return Ok(found);
            }
            drop(lines);
            if has_ended || Instant::now() >= end {
                bail!("`{}` did not print the expected line; it printed:\n{}", self.shown, self.output());
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until the program ends, with whichever exit code; after the timeout it is stopped, and that is an error.
    pub(crate) fn finish(mut self, timeout: Duration) -> Result<()> {
        let end = Instant::now() + timeout;
        while !self.has_ended()? {
            if Instant::now() >= end {
                bail!("`{}` did not end within {timeout:?}; it printed:\n{}", self.shown, self.output());
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// The last lines that the program printed.
    pub(crate) fn output(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("  {line}\n")).collect()
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
