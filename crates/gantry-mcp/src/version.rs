//! The protocol versions that Gantry speaks, and what differs between them on the wire.

/// A protocol version, ordered by date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    V2024_11_05,
    /// Streamable HTTP and, only here, batches.
    V2025_03_26,
    /// Structured results and the version header.
    V2025_06_18,
    /// The last one with a handshake.
    V2025_11_25,
    /// The first one without a handshake and without sessions.
    V2026_07_28,
}

impl Version {
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The newest version that `initialize` can lead to.
    pub const LAST_LEGACY: Self = Self::V2025_11_25;
    /// The version whose requests stand alone.
    pub const MODERN: Self = Self::V2026_07_28;

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// The version that `initialize` leads to for a client that asks for `asked`.
    ///
    /// The modern version cannot be had by a handshake, so it is answered like an unknown one.
    #[must_use]
    pub fn negotiate(asked: &str) -> Self {
        Self::parse(asked).filter(|version| !version.is_modern()).unwrap_or(Self::LAST_LEGACY)
    }

    /// Whether requests of this version carry everything with them.
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }

    /// Whether a client may send several messages as one array.
    #[must_use]
    pub const fn has_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }

    /// Whether a result of this version can carry `structured` (JSON text) beside its content.
    ///
    /// Before 2025-06-18 there was no such field, and up to 2025-11-25 it had to be an object: older clients
    /// reject the whole result otherwise. The same value is in the content as text, so nothing is lost.
    #[must_use]
    pub fn carries_structured(self, structured: &str) -> bool {
        self.is_modern() || (self >= Self::V2025_06_18 && structured.trim_start().starts_with('{'))
    }
}
