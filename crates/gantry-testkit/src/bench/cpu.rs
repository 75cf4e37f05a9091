//! CPU time of a process, thread by thread, as the kernel's scheduler counts it.
//!
//! `schedstat` counts nanoseconds where `stat` counts hundredths of a second. A thread that ends between two
//! readings takes its time with it; the threads that are measured here live as long as their process.

use anyhow::{Context as _, Result};
use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// The thread that writes the ledger.
const LEDGER: &str = "gantry-store";

/// A reading of all threads of a process.
#[derive(Debug)]
pub(super) struct Cpu(HashMap<String, Thread>);

#[derive(Debug)]
struct Thread {
    is_ledger: bool,
    time: Duration,
}

/// CPU time between two readings.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) total: Duration,
    /// The part of it that the ledger's writer took.
    pub(super) ledger: Duration,
}

impl Cpu {
    pub(super) fn of(pid: u32) -> Result<Self> {
        let folder = format!("/proc/{pid}/task");
        let mut threads = HashMap::new();
        for entry in
            fs::read_dir(&folder).with_context(|| format!("cannot list {folder}; the bench needs Linux"))?
        {
            let path = entry?.path();
            let (Ok(name), Ok(times)) =
                (fs::read_to_string(path.join("comm")), fs::read_to_string(path.join("schedstat")))
            else {
                continue; // The thread has just ended.
            };
            let ran = times.split(' ').next().and_then(|ns| ns.parse().ok());
            let time =
                ran.map(Duration::from_nanos).context("the kernel does not count CPU time in schedstat")?;
            let thread = Thread { is_ledger: name.trim_end() == LEDGER, time };
            threads.insert(path.to_string_lossy().into_owned(), thread);
        }
        Ok(Self(threads))
    }

    pub(super) fn here() -> Result<Self> {
        Self::of(std::process::id())
    }

    pub(super) fn since(&self, earlier: &Self) -> Spent {
        let mut spent = Spent::default();
        for (path, thread) in &self.0 {
            let before = earlier.0.get(path).map_or(Duration::ZERO, |thread| thread.time);
            let time = thread.time.saturating_sub(before);
            spent.total += time;
            if thread.is_ledger {
                spent.ledger += time;
            }
        }
        spent
    }
}
