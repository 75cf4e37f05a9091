//! Percent-encoding, by what may stand where.

use percent_encoding::percent_encode_byte;

/// Where a text is written, which says what of it may stand there as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    /// Only what means nothing anywhere.
    Strict,
    /// A value in a query with `allowReserved`. What would end the value, or what no query may have (`& # + [ ]`), is
    /// encoded all the same.
    Reserved,
    /// A value in a path with `allowReserved`: `/ ? #` would lead elsewhere and are encoded all the same.
    ReservedInPath,
    /// What a document has in its path.
    FixedPath,
    /// What a document has in the query of its path.
    FixedQuery,
    /// `application/x-www-form-urlencoded`: a space is `+`.
    Form,
    /// The same with `allowReserved`.
    FormReserved,
    /// The name of a cookie.
    CookieName,
    /// The value of a cookie: what its syntax has no room for is encoded, and `%`, so that it can be decoded.
    CookieValue,
    /// As it is. Whoever reads this looks at what comes.
    Plain,
}

impl Script {
    /// Whether this byte stands as it is.
    fn keeps(self, byte: u8) -> bool {
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        unreserved
            || match self {
                Self::Strict | Self::Form => false,
                Self::Reserved | Self::FormReserved => b":/?@!$'()*,;=".contains(&byte),
                Self::ReservedInPath => b":@!$&'()*+,;=".contains(&byte),
                Self::FixedPath => b":@!$&'()*+,;=/".contains(&byte),
                Self::FixedQuery => b":@!$&'()*+,;=/?".contains(&byte),
                Self::CookieName => b"!#$&'*+^`|".contains(&byte),
                Self::CookieValue => byte.is_ascii_graphic() && !b"\",;\\%".contains(&byte),
                Self::Plain => true,
            }
    }

    /// Whether what is encoded already stays so.
    fn keeps_encoded(self) -> bool {
        match self {
            Self::Reserved
            | Self::FormReserved
            | Self::ReservedInPath
            | Self::FixedPath
            | Self::FixedQuery => true,
            Self::Strict | Self::Form | Self::CookieName | Self::CookieValue | Self::Plain => false,
        }
    }

    /// What a space becomes.
    fn space(self) -> &'static str {
        match self {
            Self::Form | Self::FormReserved => "+",
            Self::Strict
            | Self::Reserved
            | Self::ReservedInPath
            | Self::FixedPath
            | Self::FixedQuery
            | Self::CookieName
            | Self::CookieValue => "%20",
            Self::Plain => " ",
        }
    }
}

/// Writes a text at the end of another.
pub(crate) fn push(out: &mut String, text: &str, script: Script) {
    if script == Script::Plain {
        out.push_str(text);
        return;
    }
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().copied().enumerate() {
        let encoded = byte == b'%' && script.keeps_encoded() && is_encoded(bytes, at);
        if encoded || script.keeps(byte) {
            out.push(char::from(byte));
        } else if byte == b' ' {
            out.push_str(script.space());
        } else {
            out.push_str(percent_encode_byte(byte));
        }
    }
}

/// The text as it is written there.
pub(crate) fn encode(text: &str, script: Script) -> String {
    let mut out = String::with_capacity(text.len());
    push(&mut out, text, script);
    out
}

/// Whether two hexadecimal digits come after this byte.
fn is_encoded(bytes: &[u8], at: usize) -> bool {
    let digits = bytes.get(at.saturating_add(1)..at.saturating_add(3));
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}
