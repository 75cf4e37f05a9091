//! Lines in, lines out: the framing of stdio, bounded in both directions.

use crate::limits::{LINE_BYTES, READ_BUFFER_BYTES};
use std::{io, mem};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, BufWriter};
use tokio::sync::mpsc;

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// The line without its end.
    Whole(Vec<u8>),
    /// A line that was longer than [`LINE_BYTES`] and was skipped.
    TooLong,
}

/// Reads lines that may have any length but are kept only up to a limit.
#[derive(Debug)]
pub struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    too_long: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(reader: R) -> Self {
        let reader = BufReader::with_capacity(READ_BUFFER_BYTES, reader);
        Self { reader, line: Vec::new(), too_long: false }
    }

    /// The next line; `None` at the end of the input.
    ///
    /// Cancel-safety: what was read of a line stays in `self`.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let buffer = self.reader.fill_buf().await?;
            if buffer.is_empty() {
                let unfinished = self.too_long || !self.line.is_empty();
                return Ok(unfinished.then(|| self.take()));
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            if self.too_long || self.line.len() + part.len() > LINE_BYTES {
                self.too_long = true;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(part);
            }
            let consumed = part.len() + usize::from(end.is_some());
            self.reader.consume(consumed);
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> Line {
        let line = mem::take(&mut self.line);
        if mem::take(&mut self.too_long) { Line::TooLong } else { Line::Whole(line) }
    }
}

/// Writes answers as lines until all senders are gone.
pub async fn write<W: AsyncWrite + Unpin>(writer: W, mut answers: mpsc::Receiver<String>) -> io::Result<()> {
    let mut writer = BufWriter::new(writer);
    while let Some(answer) = answers.recv().await {
        writer.write_all(&one_line(answer)).await?;
        if answers.is_empty() {
            writer.flush().await?;
        }
    }
    writer.flush().await
}

/// An answer with its line end. Texts that came from elsewhere may be laid out over several lines; between the
/// tokens of JSON a blank means the same, and inside a string there are no line ends.
pub(crate) fn one_line(answer: String) -> Vec<u8> {
    let mut line = answer.into_bytes();
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    line
}
