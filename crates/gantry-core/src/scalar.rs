//! Scalars without quotes, as YAML 1.2 reads them, minus what its readers disagree about.

use serde_json::Number;

/// A plain scalar as a number. `.inf`, `.nan` and what overflows stay text, as JSON has no such numbers.
#[must_use]
pub fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        let signed = text.parse::<i64>().map(Number::from);
        if let Ok(number) = signed.or_else(|_| text.parse::<u64>().map(Number::from)) {
            return Some(number);
        }
    }
    let float = digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    text.parse().ok().filter(|_| float).and_then(Number::from_f64)
}

fn radix(digits: &str, radix: u32) -> Option<Number> {
    let plain = digits.chars().all(|digit| digit.is_digit(radix));
    u64::from_str_radix(digits, radix).ok().filter(|_| plain).map(Number::from)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_number_is_what_every_reader_takes_for_one() {
        for (text, expected) in [
            ("7", "7"),
            ("-7", "-7"),
            ("+7", "7"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("1.5e3", "1500.0"),
            ("0", "0"),
        ] {
            assert_eq!(number(text).map(|number| number.to_string()).as_deref(), Some(expected), "{text}");
        }
        for text in
            ["012", "10_069", "1:30", ".inf", ".nan", "1e999", "0x", "0xg", "2001-01-01", "", "-", "e5"]
        {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
