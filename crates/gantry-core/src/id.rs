//! Identifiers as newtypes: prefixed when printed, ordered by the time they were made.

use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Why a text is not an identifier.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("\"{text}\" is not an id of the form {prefix}_ followed by 32 hexadecimal digits")]
pub struct ParseIdError {
    prefix: &'static str,
    text: String,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id that sorts after every id made before it.
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }

            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// Without the prefix.
            pub fn uuid(&self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0.as_simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let error = || ParseIdError { prefix: $prefix, text: text.chars().take(80).collect() };
                let digits = text.strip_prefix(concat!($prefix, "_")).ok_or_else(error)?;
                // Only the plain form: `Uuid::parse_str` would take braces and hyphens too.
                if digits.len() != 32 || digits.bytes().any(|b| b.is_ascii_uppercase()) {
                    return Err(error());
                }
                Uuid::parse_str(digits).map(Self).ok().ok_or_else(error)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        deserialize_from_text!($name);
    )+};
}

ids! {
    /// One tool invocation, a row in the ledger.
    CallId = "call";
    /// One run of an agent, or one connected client.
    SessionId = "run";
    /// A call that waits for a person or for its time.
    ApprovalId = "appr";
    /// An approval of more than one call.
    GrantId = "grant";
    /// A credential.
    KeyId = "key";
    /// A member of a cluster; the ledger has one hash chain per node. A SQLite database belongs to one node.
    NodeId = "node";
    /// One process that writes to a store; several may write to the chain of one node.
    ProcessId = "process";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_printing_and_parsing() {
        let id = CallId::generate();
        assert_eq!(id.to_string().parse::<CallId>(), Ok(id));
        assert_eq!(CallId::from_bytes(*id.as_bytes()), id);
        assert_eq!(serde_json::from_str::<CallId>(&serde_json::to_string(&id).unwrap()).unwrap(), id);
    }

    #[test]
    fn ids_sort_by_the_time_they_were_made() {
        let ids: Vec<_> = (0..1000).map(|_| SessionId::generate()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(ids.windows(2).all(|pair| pair[0].to_string() < pair[1].to_string()));
    }

    #[test]
    fn other_spellings_are_refused() {
        let id = CallId::generate().to_string();
        for bad in
            ["", "call_", "call_xyz", &id.to_uppercase(), &id.replace("call", "run"), &format!("{id}0")]
        {
            assert!(bad.parse::<CallId>().is_err(), "{bad} was accepted");
        }
    }
}
