//! The text form of a key of the store: `gk_<id>_<secret>`.
//!
//! The id finds the row, the secret proves the right to it. Only the digest of the secret is stored; the secret is random
//! and long, so a plain digest is enough and there is nothing to guess.

use gantry_core::digest::Digest;
use gantry_core::id::KeyId;
use uuid::Uuid;

/// What every key of the store begins with, so that people and scanners know one when they see it.
const PREFIX: &str = "gk_";

const SECRET_DIGITS: usize = 64;

/// A key as it was sent.
#[derive(Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(super) id: KeyId,
    secret: &'a str,
}

impl<'a> Token<'a> {
    /// The parts of a text that has the form of a key.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let digits = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if secret.len() != SECRET_DIGITS || !digits(secret) {
            return None;
        }
        let id = format!("key_{id}").parse().ok()?;
        Some(Self { id, secret })
    }

    /// What the store has of the secret.
    pub(super) fn digest(&self) -> Digest {
        Digest::of(self.secret.as_bytes())
    }
}

/// A new key: its id, what the store keeps of it, and the text that its holder gets, once.
pub(crate) fn mint() -> (KeyId, Digest, String) {
    let id = KeyId::generate();
    // Three times 122 random bits, brought to the 256 that a secret has.
    let random = [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()];
    let parts: Vec<&[u8]> = random.iter().map(|part| part.as_bytes().as_slice()).collect();
    let secret = Digest::of_parts(&parts).to_string();
    let text = format!("{PREFIX}{}_{secret}", id.uuid().as_simple());
    (id, Digest::of(secret.as_bytes()), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_key_is_read_back_and_no_two_are_alike() {
        let (id, digest, text) = mint();
        let token = Token::parse(&text).unwrap();
        assert_eq!((token.id, token.digest()), (id, digest));
        assert!(!text.contains(&digest.to_string()), "the key is not what is stored");
        assert_eq!(text.len(), 3 + 32 + 1 + 64);
        assert_ne!(mint().2, text);
    }

    #[test]
    fn anything_else_is_no_key() {
        let (_, _, text) = mint();
        let short = text.get(..text.len() - 1).unwrap();
        for bad in
            ["", "gk_", "gk__", short, &format!("{text}0"), &text.to_uppercase(), &text.replace("gk_", "xx_")]
        {
            assert!(Token::parse(bad).is_none(), "{bad}");
        }
    }
}
