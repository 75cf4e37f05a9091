//! Digests: the fingerprint of a tool's definition and the binding of a permit.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// A SHA-256 digest, printed as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of several parts. Each part is preceded by its length, so that no two lists of parts collide
    /// by moving a boundary.
    #[must_use]
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// The thirty-two bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest that these bytes are.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The first `n` hexadecimal digits, for names and messages.
    #[must_use]
    pub fn short(&self, n: usize) -> String {
        self.to_string().chars().take(n).collect()
    }
}

impl Digest {
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

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.hex(&mut [0; 64]))
    }
}

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
    }
}
