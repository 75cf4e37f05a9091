//! CPU time: what a step costs, however much else the machine does meanwhile.

use std::fs;
use std::time::Duration;

/// The kernel counts in hundredths of a second towards programs, whatever its own clock is.
const TICK: Duration = Duration::from_millis(10);
/// Where the four times of `/proc/self/stat` begin, counted after the name: this process in user and kernel mode,
/// then the children that have ended.
const FIRST_TIME: usize = 11;

/// The CPU time of this process and of all that it has started and that has ended; `None` where the kernel is not Linux.
pub(super) fn spent() -> Option<Duration> {
    parse(&fs::read_to_string("/proc/self/stat").ok()?)
}

fn parse(stat: &str) -> Option<Duration> {
    // The name of the program is in parentheses and may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = 0_u32;
    for field in fields.split_whitespace().skip(FIRST_TIME).take(4) {
        ticks = ticks.checked_add(field.parse().ok()?)?;
    }
    Some(TICK * ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_this_process_and_its_children_are_added() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 9 0 0 0 100 20 3000 400 20 0 1 0 1234";
        assert_eq!(parse(stat), Some(Duration::from_millis(35_200)));
    }

    #[test]
    fn what_cannot_be_read_is_no_time() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("42 (a) S 1 42 42 0 -1 4194560 9 0 0 0 many 20 3000 400"), None);
    }
}
