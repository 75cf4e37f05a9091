//! Whole numbers and times with a default and a bound. 0 stands for the default, never for "without limit".

use schemars::{Schema, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use std::fmt;
use std::time::Duration;

const MILLISECONDS: &str = "a whole number of milliseconds";

/// A whole number of at most `MAX`; 0 is read as the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit<const DEFAULT: u64, const MAX: u64>(u64);

/// A time in whole milliseconds; 0 is read as the default. With the default 0, 0 is no time at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis<const DEFAULT: u64, const MAX: u64>(Duration);

/// A whole number from 1 to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Positive<const MAX: u64>(u64);

impl<const DEFAULT: u64, const MAX: u64> Millis<DEFAULT, MAX> {
    pub fn get(self) -> Duration {
        self.0
    }

    /// The time, unless it is 0.
    pub fn some(self) -> Option<Duration> {
        Some(self.0).filter(|time| !time.is_zero())
    }
}

/// What numbers have in common: how they are read, and what they become. 0 is read as the default.
macro_rules! number {
    ($name:ident<$($parameter:ident),+>, $min:literal, $default:expr) => {
        impl<$(const $parameter: u64),+> $name<$($parameter),+> {
            pub fn get(self) -> u64 {
                self.0
            }

            /// The number as a size in memory.
            pub fn size(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }
        }

        impl<$(const $parameter: u64),+> From<u64> for $name<$($parameter),+> {
            fn from(number: u64) -> Self {
                Self(number)
            }
        }

        impl<$(const $parameter: u64),+> From<$name<$($parameter),+>> for u64 {
            fn from(number: $name<$($parameter),+>) -> Self {
                number.0
            }
        }

        impl<$(const $parameter: u64),+> From<$name<$($parameter),+>> for usize {
            fn from(number: $name<$($parameter),+>) -> Self {
                number.size()
            }
        }

        impl<'de, $(const $parameter: u64),+> Deserialize<'de> for $name<$($parameter),+> {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                let number = bounded(input, "a whole number", $min, MAX)?;
                Ok(Self(if number == 0 { $default } else { number }))
            }
        }

        inline_schema!([$(const $parameter: u64),+] $name<$($parameter),+>, |_| schema($min, MAX, $default));
    };
}

number!(Limit<DEFAULT, MAX>, 0, DEFAULT);
number!(Positive<MAX>, 1, 0);

inline_schema!([const DEFAULT: u64, const MAX: u64] Millis<DEFAULT, MAX>, |_| {
    let mut schema = schema(0, MAX, DEFAULT);
    schema.insert("title".to_owned(), format!("{MILLISECONDS}, at most {MAX}").into());
    schema
});

impl<const DEFAULT: u64, const MAX: u64> Default for Limit<DEFAULT, MAX> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<const DEFAULT: u64, const MAX: u64> From<Limit<DEFAULT, MAX>> for u32 {
    fn from(limit: Limit<DEFAULT, MAX>) -> Self {
        u32::try_from(limit.0).unwrap_or(u32::MAX)
    }
}

impl<const DEFAULT: u64, const MAX: u64> Default for Millis<DEFAULT, MAX> {
    fn default() -> Self {
        Self(Duration::from_millis(DEFAULT))
    }
}

impl<const DEFAULT: u64, const MAX: u64> From<Duration> for Millis<DEFAULT, MAX> {
    fn from(time: Duration) -> Self {
        Self(time)
    }
}

impl<const DEFAULT: u64, const MAX: u64> From<Millis<DEFAULT, MAX>> for Duration {
    fn from(time: Millis<DEFAULT, MAX>) -> Self {
        time.0
    }
}

impl<const DEFAULT: u64, const MAX: u64> From<Millis<DEFAULT, MAX>> for Option<Duration> {
    fn from(time: Millis<DEFAULT, MAX>) -> Self {
        time.some()
    }
}

impl<'de, const DEFAULT: u64, const MAX: u64> Deserialize<'de> for Millis<DEFAULT, MAX> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let millis = Duration::from_millis(bounded(input, MILLISECONDS, 0, MAX)?);
        Ok(Self(millis).some().map_or_else(Self::default, Self))
    }
}

fn schema(min: u64, max: u64, default: u64) -> Schema {
    let mut schema = json_schema!({ "type": "integer", "minimum": min, "maximum": max });
    if default > 0 {
        schema.insert("default".to_owned(), default.into());
    }
    schema
}

fn bounded<'de, D: Deserializer<'de>>(
    input: D,
    noun: &'static str,
    min: u64,
    max: u64,
) -> Result<u64, D::Error> {
    let number = input.deserialize_u64(WholeNumber(noun))?;
    let wrong = |bound: String| {
        D::Error::invalid_value(Unexpected::Unsigned(number), &format!("{noun}, {bound}").as_str())
    };
    if number < min {
        return Err(wrong(format!("at least {min}")));
    }
    if number > max {
        return Err(wrong(format!("at most {max}")));
    }
    Ok(number)
}

struct WholeNumber(&'static str);

impl Visitor<'_> for WholeNumber {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_the_default_and_bounds_hold() {
        type Time = Millis<15_000, 60_000>;
        let read = |text: &str| serde_json::from_str::<Time>(text);
        assert_eq!(read("0").unwrap(), Time::default());
        assert_eq!(read("7").unwrap().get(), Duration::from_millis(7));
        for wrong in ["60001", "-1", "1.5", "\"7\"", "null"] {
            read(wrong).unwrap_err();
        }
        assert_eq!(serde_json::from_str::<Millis<0, 9>>("0").unwrap().some(), None);
        assert_eq!(serde_json::from_str::<Limit<8, 64>>("0").unwrap().get(), 8);
        let zero = serde_json::from_str::<Positive<9>>("0").unwrap_err().to_string();
        assert!(zero.contains("a whole number, at least 1"), "{zero}");
        let schema = schemars::schema_for!(Time);
        assert_eq!(
            (schema.get("default").unwrap(), schema.get("maximum").unwrap()),
            (&15_000.into(), &60_000.into())
        );
    }
}
