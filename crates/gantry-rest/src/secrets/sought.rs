//! Finds values in a text that may spell them in its own way: as JSON does, as JSON within JSON does, or as addresses do.

use std::ops::Range;

/// A text, JSON, and JSON within JSON.
const DEPTH: usize = 3;

/// Bytes, and where each of them begins in the text that they were read from. There is one place more: the end.
struct Read {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

/// Where the text has one of these values, in order; places that overlap are one.
pub(super) fn all(text: &str, values: &[String]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if values.is_empty() {
        return found;
    }
    let mut read = Read { bytes: text.as_bytes().to_vec(), places: (0..=text.len()).collect() };
    for _ in 0..DEPTH {
        read.find(values, &mut found);
        if read.bytes.contains(&b'%') {
            read.decoded(percent).find(values, &mut found);
        }
        if read.bytes.contains(&b'+') {
            read.decoded(form).find(values, &mut found);
        }
        if !read.bytes.contains(&b'\\') {
            break;
        }
        read = read.decoded(escape);
    }
    joined(found)
}

fn joined(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.sort_by_key(|range| (range.start, range.end));
    let mut all: Vec<Range<usize>> = Vec::with_capacity(found.len());
    for range in found {
        match all.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => all.push(range),
        }
    }
    all
}

impl Read {
    fn find(&self, values: &[String], found: &mut Vec<Range<usize>>) {
        for value in values.iter().map(|value| value.as_bytes()).filter(|value| !value.is_empty()) {
            let mut from = 0;
            while let Some(rest) = self.bytes.get(from..)
                && let Some(at) = rest.windows(value.len()).position(|window| window == value)
            {
                let (start, end) = (from + at, from + at + value.len());
                if let (Some(first), Some(behind)) = (self.places.get(start), self.places.get(end)) {
                    found.push(*first..*behind);
                }
                from = end;
            }
        }
    }

    /// The same, read once more: `decode` writes what the bytes begin with, and says how many it took for that.
    fn decoded(&self, decode: fn(&[u8], &mut Vec<u8>) -> Option<usize>) -> Self {
        let (mut bytes, mut places) = (Vec::with_capacity(self.bytes.len()), Vec::new());
        let mut at = 0;
        while let Some(rest) = self.bytes.get(at..)
            && let Some(byte) = rest.first()
        {
            let place = self.places.get(at).copied().unwrap_or_default();
            at += decode(rest, &mut bytes).unwrap_or_else(|| {
                bytes.push(*byte);
                1
            });
            places.resize(bytes.len(), place);
        }
        places.extend(self.places.last());
        Self { bytes, places }
    }
}

/// An escape of a JSON string.
fn escape(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let [b'\\', kind, behind @ ..] = rest else { return None };
    let plain = match kind {
        b'"' | b'\\' | b'/' => *kind,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'u' => return unit(behind, out).map(|taken| taken + 2),
        _ => return None,
    };
    out.push(plain);
    Some(2)
}

/// What stands behind `\u`: a character, or the first half of one whose other half follows.
fn unit(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let first = hex(rest.get(..4)?)?;
    let (c, taken) = match (char::from_u32(first), rest.get(4..10)) {
        (Some(c), _) => (c, 4),
        (None, Some([b'\\', b'u', second @ ..])) => {
            let both = [u16::try_from(first).ok()?, u16::try_from(hex(second)?).ok()?];
            (char::decode_utf16(both).next()?.ok()?, 10)
        }
        (None, _) => return None,
    };
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Some(taken)
}

/// A byte of an address.
fn percent(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let [b'%', digits @ ..] = rest else { return None };
    out.push(u8::try_from(hex(digits.get(..2)?)?).ok()?);
    Some(3)
}

/// The same of a form, where a space is a `+`.
fn form(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    if rest.first() != Some(&b'+') {
        return percent(rest, out);
    }
    out.push(b' ');
    Some(1)
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
}
