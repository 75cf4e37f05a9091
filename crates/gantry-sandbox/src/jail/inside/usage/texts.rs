//! What the process file system says about memory and writing.

use std::io;

/// What a process has written, by its list of that.
pub(super) fn write_count(io: &str) -> io::Result<u64> {
    let count = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok());
    count.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The bytes in a line such as `Name:   12 kB`.
pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Whether it is the status of a process that has not ended.
pub(super) fn has_memory(status: &str) -> bool {
    field(status, "RssAnon:").is_some()
}

/// Whether it is the status of something that does not run, and will not before it is let: stopped, dead, or in a sleep
/// that no signal ends, as who waits for a child to be executed.
pub(super) fn is_still(status: &str) -> bool {
    let state = status.lines().find_map(|line| line.strip_prefix("State:")?.trim_start().chars().next());
    !matches!(state, Some('R' | 'S'))
}

/// What a process has, of which it may share some with others.
pub(super) fn resident(status: &str) -> u64 {
    let parts = ["RssAnon:", "RssShmem:"].iter().filter_map(|name| field(status, name));
    parts.sum::<u64>() + hidden(status)
}

/// What a process has that is not in memory: swapped out, and the tables of its pages.
pub(super) fn hidden(status: &str) -> u64 {
    ["VmSwap:", "VmPTE:"].iter().filter_map(|name| field(status, name)).sum()
}

/// How many sockets there are.
pub(super) fn socket_count(sockstat: &str) -> u64 {
    let count = |line: &str| line.strip_prefix("sockets: used ")?.trim().parse().ok();
    sockstat.lines().find_map(count).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_in_bytes() {
        let text = "Rss:    4 kB\nPss_Anon:        12 kB\n";
        assert_eq!(field(text, "Pss_Anon:"), Some(12 << 10));
        assert_eq!(field(text, "Pss_Shmem:"), None);
    }

    #[test]
    fn sockets_are_counted() {
        assert_eq!(socket_count("sockets: used 294\nTCP: inuse 4 orphan 0\n"), 294);
    }

    #[test]
    fn who_runs_is_not_still() {
        for (status, is) in [
            ("Name:\tR\nState:\tT (stopped)\n", true),
            ("State:\tD (disk sleep)\n", true),
            ("State:\tZ (zombie)\n", true),
            ("State:\tR (running)\n", false),
            ("State:\tS (sleeping)\n", false),
        ] {
            assert_eq!(is_still(status), is, "{status}");
        }
    }
}
