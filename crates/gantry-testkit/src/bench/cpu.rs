//! CPU time of a process, thread by thread, as the kernel's scheduler counts it.
//!
//! `schedstat` counts nanoseconds where `stat` counts hundredths of a second. A thread that ends between two
//! readings takes its time with it; the threads that are measured here live as long as their process.

use anyhow::{Context as _, Result};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The thread that writes the ledger.
const LEDGER: &str = "gantry-store";

/// A reading of all threads of a process: whether each writes the ledger, and its time.
#[derive(Debug)]
pub(super) struct Threads(HashMap<PathBuf, (bool, Duration)>);

/// CPU time between two readings.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CpuTime {
    pub(super) total: Duration,
    /// The part of it that the ledger's writer took.
    pub(super) ledger: Duration,
}

impl Threads {
    pub(super) fn of(pid: u32) -> Result<Self> {
        let folder = format!("/proc/{pid}/task");
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot list {folder}; the bench needs Linux"))?;
        let mut threads = HashMap::new();
        for entry in entries {
            let path = entry?.path();
            let read = |name: &str| fs::read_to_string(path.join(name));
            let (Ok(name), Ok(times)) = (read("comm"), read("schedstat")) else {
                continue; // The thread has just ended.
            };
            let ran = times.split(' ').next().and_then(|ns| ns.parse().ok());
            let ran = ran.context("the kernel does not count CPU time in schedstat")?;
            threads.insert(path, (name.trim_end() == LEDGER, Duration::from_nanos(ran)));
        }
        Ok(Self(threads))
    }

    pub(super) fn since(&self, earlier: &Self) -> CpuTime {
        let mut spent = CpuTime::default();
        for (path, (is_ledger, time)) in &self.0 {
            let before = earlier.0.get(path).map_or(Duration::ZERO, |(_, time)| *time);
            let time = time.saturating_sub(before);
            spent.total += time;
            spent.ledger += if *is_ledger { time } else { Duration::ZERO };
        }
        spent
    }
}
