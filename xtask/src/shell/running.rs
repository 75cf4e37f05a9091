//! Programs in the background, which end with the value that stands for them.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::Program;

/// The last lines of a program are kept, for when it has to be asked why.
const MAX_LINES: usize = 500;
const GLANCE: Duration = Duration::from_millis(20);

/// A program that runs until it is done or this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    shown: String,
    lines: Lines,
}

type Lines = Arc<Mutex<VecDeque<String>>>;

impl Program {
    /// Starts the program. What it prints is read as it comes, and shown to nobody.
    pub(crate) fn start(mut self) -> Result<Running> {
        let shown = self.shown;
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().with_context(|| format!("cannot start `{shown}`"))?;
        let lines = Lines::default();
        if let Some(stdout) = child.stdout.take() {
            read(stdout, Arc::clone(&lines));
        }
        if let Some(stderr) = child.stderr.take() {
            read(stderr, Arc::clone(&lines));
        }
        Ok(Running { child, shown, lines })
    }
}

/// Ends with the stream, so with the program.
fn read(stream: impl Read + Send + 'static, lines: Lines) {
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

impl Running {
    /// What `find` makes of a line that the program prints, now or soon.
    pub(crate) fn wait_for<T>(&mut self, patience: Duration, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        let end = Instant::now() + patience;
        loop {
            let has_ended = self.ended()?.is_some();
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = lines.iter().find_map(|line| find(line)) {
                return Ok(found);
            }
            drop(lines);
            if has_ended || Instant::now() >= end {
                bail!("`{}` did not say what was waited for; it said:\n{}", self.shown, self.said());
            }
            thread::sleep(GLANCE);
        }
    }

    /// Waits for its end, and makes it when that takes too long.
    pub(crate) fn finish(mut self, patience: Duration) -> Result<ExitStatus> {
        let end = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if Instant::now() >= end {
                bail!("`{}` was not done after {patience:?}; it said:\n{}", self.shown, self.said());
            }
            thread::sleep(GLANCE);
        }
    }

    /// The last lines that it printed.
    pub(crate) fn said(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("  {line}\n")).collect()
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("cannot ask after `{}`", self.shown))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
