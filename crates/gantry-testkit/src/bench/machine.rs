//! The machine that the figures are from, and how much else it did meanwhile.

use anyhow::{Context as _, Result};
use std::fs;
use std::time::{Duration, Instant};

/// The length of the kernel's clock tick as `/proc` shows it, on every platform that Linux has.
const TICK: Duration = Duration::from_millis(10);

/// What the machine says of itself, and what the ledgers of the bench lie on: on a disk in memory, a durable write costs
/// nothing.
pub(super) fn describe() -> Result<String> {
    let (cpus, mounts, kernel) =
        (read("/proc/cpuinfo")?, read("/proc/self/mounts")?, read("/proc/sys/kernel/osrelease")?);
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpu = model.map_or("unknown CPU", |(_, model)| model);
    let cores = std::thread::available_parallelism()?;
    let data = filesystem(&mounts, &std::env::temp_dir().to_string_lossy());
    Ok(format!("{cores} cores ({cpu}), Linux {}, data on {data}", kernel.trim_end()))
}

/// The kind of file system that a path is on: that of the longest mount point above it.
fn filesystem<'a>(mounts: &'a str, path: &str) -> &'a str {
    let fields = mounts.lines().map(|line| line.split(' '));
    let mounts = fields.filter_map(|mut fields| Some((fields.nth(1)?, fields.next()?)));
    let above = mounts.filter(|(point, _)| std::path::Path::new(path).starts_with(point));
    // Of two mounts on one point the later one is seen, and so it is taken here.
    above.max_by_key(|(point, _)| point.len()).map_or("an unknown file system", |(_, kind)| kind)
}

/// CPU time of everything on the machine but this process and the servers it started.
#[derive(Debug, Clone, Copy)]
pub(super) struct OtherLoad {
    at: Instant,
    ticks: u64,
}

impl OtherLoad {
    /// Children count once they have ended.
    pub(super) fn now() -> Result<Self> {
        let all = busy(&read("/proc/stat")?).context("cannot read /proc/stat")?;
        let own = own(&read("/proc/self/stat")?).context("cannot read /proc/self/stat")?;
        Ok(Self { at: Instant::now(), ticks: all.saturating_sub(own) })
    }

    pub(super) fn cores_since(self, earlier: Self) -> f64 {
        let ticks = self.ticks.saturating_sub(earlier.ticks) as f64;
        ticks * TICK.as_secs_f64() / self.at.duration_since(earlier.at).as_secs_f64()
    }
}

/// Ticks of all cores that were not idle: user, nice, system, interrupts, and what the host took away.
fn busy(stat: &str) -> Option<u64> {
    let ticks: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    let [user, nice, system, _idle, _waiting, hard, soft, stolen, ..] = ticks.as_slice() else { return None };
    Some(user + nice + system + hard + soft + stolen)
}

/// Ticks of this process and of its children that ended.
fn own(stat: &str) -> Option<u64> {
    // The name in front may hold anything, but ends in the last parenthesis.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').skip(11).take(4).map(|n| n.parse::<u64>().ok()).sum()
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path}; the bench needs Linux"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        assert_eq!(busy("cpu  1 2 4 800 900 8 16 32 0 0\ncpu0 1\n"), Some(63));
        assert_eq!(busy("cpu  1 2"), None);
        assert_eq!(own("7 (a ) name) S 1 1 1 0 -1 0 0 0 0 0 1 2 4 8 20 0"), Some(15));
        let mounts = "/dev/a / ext4 rw 0 0\ntmp /tmp tmpfs rw 0 0\ntmp /tmpx xfs rw 0 0\n";
        assert_eq!(filesystem(mounts, "/tmp/x"), "tmpfs");
        assert_eq!(filesystem(mounts, "/home"), "ext4");
    }
}
