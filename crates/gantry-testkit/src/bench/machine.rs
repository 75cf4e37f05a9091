//! The machine that the figures are from.

use anyhow::{Context as _, Result};
use std::fs;

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

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path}; the bench needs Linux"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_that_of_the_longest_mount_point() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmp /tmp tmpfs rw 0 0\ntmp /tmpx xfs rw 0 0\n";
        assert_eq!(filesystem(mounts, "/tmp/x"), "tmpfs");
        assert_eq!(filesystem(mounts, "/home"), "ext4");
    }
}
