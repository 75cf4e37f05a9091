//! What a step costs: wall time, and CPU time, which says the same however busy the machine is.

use std::fs;
use std::time::{Duration, Instant};

/// The kernel counts in hundredths of a second towards programs, whatever its own clock is.
const TICK: Duration = Duration::from_millis(10);
/// Where the four times of `/proc/self/stat` begin, counted after the name: this process in user and kernel mode,
/// then the children that have ended.
const FIRST_TIME: usize = 11;

#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) wall: Duration,
    /// Of this process and its children; on Linux alone.
    pub(super) cpu: Option<Duration>,
}

/// The moment when a step began.
pub(super) struct Clock(Instant, Option<Duration>);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now(), cpu_time())
    }

    pub(super) fn read(&self) -> Cost {
        let cpu = cpu_time().zip(self.1).map(|(now, before)| now.saturating_sub(before));
        Cost { wall: self.0.elapsed(), cpu }
    }
}

fn cpu_time() -> Option<Duration> {
    parse(&fs::read_to_string("/proc/self/stat").ok()?)
}

fn parse(stat: &str) -> Option<Duration> {
    // The name of the program is in parentheses and may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(FIRST_TIME).take(4).map(str::parse::<u32>);
    Some(TICK * times.sum::<Result<u32, _>>().ok()?)
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
