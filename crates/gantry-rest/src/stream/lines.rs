//! Bytes as they come, cut into lines.

/// Bytes of one line; of a longer one only the beginning is kept.
pub(super) const LINE_BYTES: usize = 1 << 20;

/// Stands before each value of a JSON sequence.
pub(super) const RECORD: u8 = 0x1e;

/// The lines of a stream.
#[derive(Debug)]
pub(super) struct Lines {
    delimiter: u8,
    begun: Vec<u8>,
    /// The line that has begun is too long.
    overlong: bool,
}

/// A line, or the beginning of one that is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) overlong: bool,
}

impl Lines {
    pub(super) fn new(delimiter: u8) -> Self {
        Self { delimiter, begun: Vec::new(), overlong: false }
    }

    /// Hands out each line that is complete with this piece, until somebody has had enough.
    pub(super) fn split<T>(&mut self, piece: &[u8], mut take: impl FnMut(Line) -> Option<T>) -> Option<T> {
        let delimiter = self.delimiter;
        let mut parts = piece.split(|byte| *byte == delimiter).peekable();
        while let Some(part) = parts.next() {
            let room = LINE_BYTES.saturating_sub(self.begun.len());
            self.overlong |= part.len() > room;
            self.begun.extend_from_slice(part.get(..room).unwrap_or(part));
            if parts.peek().is_some()
                && let Some(ended) = take(self.line())
            {
                return Some(ended);
            }
        }
        None
    }

    /// What came after the last line.
    pub(super) fn rest(&mut self) -> Option<Line> {
        (!self.begun.is_empty()).then(|| self.line())
    }

    fn line(&mut self) -> Line {
        let bytes = std::mem::take(&mut self.begun);
        let text = String::from_utf8_lossy(&bytes);
        let text = text.strip_suffix('\r').unwrap_or(&text).to_owned();
        Line { text, overlong: std::mem::take(&mut self.overlong) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<Line> {
        let (mut lines, mut found) = (Lines::new(b'\n'), Vec::new());
        for piece in pieces {
            let ended: Option<()> = lines.split(piece, |line| {
                found.push(line);
                None
            });
            assert_eq!(ended, None);
        }
        found.extend(lines.rest());
        found
    }

    #[test]
    fn lines_are_found_however_they_are_cut_into_pieces() {
        let whole = "a\r\n\nä\nb".as_bytes();
        let expected = ["a", "", "ä", "b"];
        for cut in 0..whole.len() {
            let (first, second) = whole.split_at(cut);
            let texts: Vec<String> = all(&[first, second]).into_iter().map(|line| line.text).collect();
            assert_eq!(texts, expected, "{cut}");
        }
    }

    #[test]
    fn of_a_line_without_end_only_its_beginning_is_kept() {
        let long = vec![b'x'; LINE_BYTES];
        let lines = all(&[&long, b"y\nz\n"]);
        assert_eq!((lines[0].text.len(), lines[0].overlong), (LINE_BYTES, true));
        assert_eq!(lines[1], Line { text: "z".into(), overlong: false });
    }
}
