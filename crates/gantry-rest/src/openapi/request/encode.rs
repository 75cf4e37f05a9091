//! Percent-encoding.

use percent_encoding::percent_encode_byte;

/// The characters that are not encoded. Letters, digits and `-._~` never are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncodeSet {
    /// None.
    Component,
    /// The reserved characters of a value with `allowReserved`, but for those that would end the value and those that no
    /// query may have (`& # + [ ]`). What is encoded already stays so.
    Reserved,
    /// Those that the fixed parts of a path and of its query may have. What is encoded already stays so.
    Fixed,
    /// All. The caller checks or escapes the text.
    Plain,
}

impl EncodeSet {
    fn keeps(self, byte: u8) -> bool {
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        unreserved
            || match self {
                Self::Component => false,
                Self::Reserved => b":/?@!$'()*,;=".contains(&byte),
                Self::Fixed => b":@!$&'()*+,;=/?".contains(&byte),
                Self::Plain => true,
            }
    }
}

/// Appends a text in this encoding.
pub(crate) fn push(out: &mut String, text: &str, set: EncodeSet) {
    if set == EncodeSet::Plain {
        out.push_str(text);
        return;
    }
    let keeps_encoded = matches!(set, EncodeSet::Reserved | EncodeSet::Fixed);
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().copied().enumerate() {
        let encoded = byte == b'%' && keeps_encoded && is_encoded(bytes, at);
        if encoded || set.keeps(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(percent_encode_byte(byte));
        }
    }
}

pub(crate) fn encode(text: &str, set: EncodeSet) -> String {
    let mut out = String::with_capacity(text.len());
    push(&mut out, text, set);
    out
}

/// Whether two hexadecimal digits come after this byte.
fn is_encoded(bytes: &[u8], at: usize) -> bool {
    let digits = bytes.get(at.saturating_add(1)..at.saturating_add(3));
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}
