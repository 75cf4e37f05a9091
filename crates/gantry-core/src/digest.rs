//! Digests: the fingerprint of a tool's definition and the binding of a permit.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// A SHA-256 digest, printed as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of several parts. Each part is preceded by its length, so that no two lists of parts collide
    /// by moving a boundary.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        Self::of_each(parts)
    }

    /// The same from an iterator.
    pub fn of_each(parts: impl IntoIterator<Item: AsRef<[u8]>>) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The first `n` hexadecimal digits.
    pub fn short(&self, n: usize) -> String {
        self.to_string().chars().take(n).collect()
    }

    /// Writes the digits into a buffer of sixty-four bytes.
    fn hex<'a>(&self, text: &'a mut [u8; 64]) -> &'a str {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            if let [high, low] = pair {
                *high = HEX.get(usize::from(byte >> 4)).copied().unwrap_or(b'0');
                *low = HEX.get(usize::from(byte & 15)).copied().unwrap_or(b'0');
            }
        }
        std::str::from_utf8(text).unwrap_or_default()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hex(&mut [0; 64]))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        const NO_DIGIT: u8 = 0xFF;
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => NO_DIGIT,
        };
        let text: &[u8; 64] = text.as_bytes().try_into().map_err(|_other_length| NotADigest)?;
        // Lists of approvals parse thousands, so the loop does not stop at a wrong digit.
        let (mut bytes, mut digits) = ([0; 32], 0);
        for (byte, [high, low]) in bytes.iter_mut().zip(text.as_chunks().0) {
            let (high, low) = (digit(*high), digit(*low));
            digits |= high | low;
            *byte = high << 4 | low;
        }
        if digits == NO_DIGIT { Err(NotADigest) } else { Ok(Self(bytes)) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 lower-case hexadecimal digits")]
pub struct NotADigest;

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.hex(&mut [0; 64]))
    }
}

deserialize_from_text!(Digest);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_a_boundary_changes_the_digest() {
        assert_ne!(Digest::of_parts(&[b"ab", b"c"]), Digest::of_parts(&[b"a", b"bc"]));
        assert_ne!(Digest::of_parts(&[b"ab"]), Digest::of_parts(&[b"ab", b""]));
    }

    #[test]
    fn a_digest_prints_as_hexadecimal() {
        let text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), text);
        assert_eq!(Digest::of(b"").short(6), "e3b0c4");
        assert_eq!(text.parse(), Ok(Digest::of(b"")));
        for bad in ["e3b0c4", &format!("{text}0"), &text.to_uppercase(), &text.replace('e', "g")] {
            assert_eq!(bad.parse::<Digest>(), Err(NotADigest), "{bad}");
        }
    }
}
