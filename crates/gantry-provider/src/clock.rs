//! The wall clock. Providers and the engine read it here and nowhere else.

use gantry_core::inline_schema;
use rustix::time::{ClockId, clock_gettime};
use schemars::json_schema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970, UTC. A clock set before that reads as zero.
pub fn now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|d| i64::try_from(d.as_micros()).ok())
        .unwrap_or(0)
}

/// How long ago a moment was; none if it is in the future.
pub fn age(moment: SystemTime) -> Option<Duration> {
    SystemTime::now().duration_since(moment).ok()
}

/// Microseconds since 1970 by a clock that is set once, when the process first reads it, and then runs by itself, also
/// while the machine sleeps: setting the wall clock while Gantry runs makes nothing happen early, late or twice.
pub fn steady_us() -> i64 {
    static SET: LazyLock<(i64, i64)> = LazyLock::new(|| (now_us(), uptime_us()));
    steady_at(*SET, uptime_us())
}

/// The later of [`now_us`] and [`steady_us`], for what must end in time: neither a wall clock that is set back nor a
/// machine that sleeps prolongs a key.
pub fn latest_us() -> i64 {
    now_us().max(steady_us())
}

/// The clock that cannot be set and that counts while the machine sleeps. The monotonic clock of Linux stands still then,
/// that of macOS does not.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UPTIME: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const UPTIME: ClockId = ClockId::Monotonic;

/// Microseconds since the machine started, its sleep included.
fn uptime_us() -> i64 {
    let time = clock_gettime(UPTIME);
    time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_nsec / 1000)
}

/// The time of a clock that was set to `start_us` when the machine had run for `began_us`.
fn steady_at((start_us, began_us): (i64, i64), uptime_us: i64) -> i64 {
    start_us.saturating_add(uptime_us.saturating_sub(began_us).max(0))
}

pub fn iso(us: i64) -> String {
    jiff::Timestamp::from_microsecond(us).map_or_else(|_| us.to_string(), |t| t.to_string())
}

/// A moment in microseconds of Unix time, which the API writes as RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&iso(self.0))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let moment: jiff::Timestamp = text.parse().map_err(de::Error::custom)?;
        Ok(Self(moment.as_microsecond()))
    }
}

inline_schema!(Timestamp, |_| json_schema!({ "type": "string", "format": "date-time" }));

/// Reads a moment: RFC 3339, or a span back from now such as `15m`, `2h`, `7d`. In microseconds.
pub fn parse(text: &str) -> Option<i64> {
    parse_at(text, now_us())
}

fn parse_at(text: &str, now: i64) -> Option<i64> {
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return Some(moment.as_microsecond());
    }
    span_us(text).map(|span| now.saturating_sub(span))
}

/// Reads a span such as `90s`, `15m`, `2h` or `7d`, in microseconds.
pub fn span_us(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let count: i64 = text.strip_suffix(unit)?.parse().ok().filter(|n| *n >= 0)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    count.checked_mul(seconds * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apr_8_a_changed_system_clock_moves_nothing_that_waits() {
        // Set once, to what the wall clock says; later it is never asked.
        let set = (7_000_000, 100);
        assert_eq!(steady_at(set, 100), 7_000_000);
        assert_eq!(steady_at(set, 5_000_100), 12_000_000);
        assert_eq!(steady_at(set, 99), 7_000_000, "it does not go back");
        assert_eq!(steady_at((i64::MAX, 100), 5_000_100), i64::MAX);
        assert!(steady_us() <= steady_us());
    }

    #[test]
    fn moments_are_read_absolute_or_back_from_now() {
        assert_eq!(parse("1970-01-01T00:00:01Z"), Some(1_000_000));
        assert_eq!(parse_at("1h", 3_600_000_007), Some(7));
        for bad in ["", "h", "-1h", "1w", "yesterday", "1.5h", "99999999999999999d"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(iso(1_000_000), "1970-01-01T00:00:01Z");
    }
}
