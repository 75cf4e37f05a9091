//! Server-sent events, cut out of the chunks of a body.

use super::limits::HANDLE_BYTES;
use std::{mem, time::Duration};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// Its type; `message` if it has none.
    pub(super) kind: String,
    /// Its lines, joined.
    pub(super) data: String,
}

/// An event that is longer than allowed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server sent an event of more than {0} bytes")]
pub(super) struct TooLong(usize);

/// Takes bytes as they come and gives events when they are whole. It remembers the last id and the wait that the
/// server asked for, because both outlive the stream.
#[derive(Debug)]
pub(super) struct SseParser {
    limit: usize,
    /// An unfinished line.
    line: Vec<u8>,
    /// The last line ended with a carriage return, so that a line feed after it is not a line of its own.
    after_return: bool,
    started: bool,
    kind: String,
    data: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl SseParser {
    /// A parser that keeps at most `limit` bytes of one event.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_return: false,
            started: false,
            kind: String::new(),
            data: None,
            last_id: None,
            retry: None,
        }
    }

    /// The id of the last event that had one.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The wait before the stream is opened again, if the server named one.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Forgets what is unfinished, for the next stream.
    pub(super) fn restart(&mut self) {
        let fresh = Self { last_id: self.last_id.take(), retry: self.retry, ..Self::new(self.limit) };
        *self = fresh;
    }

    /// Takes the next chunk and appends the events that it completes. Events without data are not given.
    pub(super) fn push(&mut self, chunk: &[u8], events: &mut Vec<SseEvent>) -> Result<(), TooLong> {
        if chunk.is_empty() {
            return Ok(());
        }
        let split_end = mem::take(&mut self.after_return);
        let mut rest = if split_end { chunk.strip_prefix(b"\n").unwrap_or(chunk) } else { chunk };
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, tail) = rest.split_at(end);
            self.line.extend_from_slice(line);
            self.fits()?;
            events.extend(self.end_line());
            rest = match tail {
                [b'\r', b'\n', after @ ..] | [_, after @ ..] => after,
                [] => tail,
            };
            self.after_return = tail == b"\r";
        }
        self.line.extend_from_slice(rest);
        self.fits()
    }

    fn fits(&self) -> Result<(), TooLong> {
        if self.line.len() + self.data.as_ref().map_or(0, String::len) > self.limit {
            Err(TooLong(self.limit))
        } else {
            Ok(())
        }
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let bytes = mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let text = if mem::replace(&mut self.started, true) {
            &*text
        } else {
            text.strip_prefix('\u{feff}').unwrap_or(&text)
        };
        if text.is_empty() {
            return self.end_event();
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.kind),
            "data" => {
                if let Some(data) = &mut self.data {
                    data.push('\n');
                }
                self.data.get_or_insert_default().push_str(value);
            }
            "id" if value.len() <= HANDLE_BYTES && !value.contains('\0') => {
                self.last_id = Some(value.to_owned())
            }
            "retry" => self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry),
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        let kind = mem::take(&mut self.kind);
        // An event that only primes the stream carries an id and no data.
        let data = self.data.take().filter(|data| !data.is_empty())?;
        Some(SseEvent { kind: if kind.is_empty() { "message".into() } else { kind }, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(chunks: &[&[u8]]) -> (Vec<SseEvent>, SseParser) {
        let mut parser = SseParser::new(1000);
        let mut events = Vec::new();
        for chunk in chunks {
            parser.push(chunk, &mut events).unwrap();
        }
        (events, parser)
    }

    fn message(data: &str) -> SseEvent {
        SseEvent { kind: "message".into(), data: data.into() }
    }

    #[test]
    fn all_line_ends_are_the_same() {
        for text in ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r"] {
            assert_eq!(parse(&[text.as_bytes()]).0, [message("a"), message("b")], "{text:?}");
        }
    }

    #[test]
    fn an_event_has_a_kind_an_id_several_lines_and_comments() {
        let (events, parser) = parse(&[
            b"\xef\xbb\xbf: hi\nevent: endpoint\nid: 7\nretry: 20\ndata:/m\ndata\ndata:  x\nodd: 1\n\n",
        ]);
        assert_eq!(events, [SseEvent { kind: "endpoint".into(), data: "/m\n\n x".into() }]);
        assert_eq!(parser.last_id(), Some("7"));
        assert_eq!(parser.retry(), Some(Duration::from_millis(20)));
    }

    #[test]
    fn an_event_that_only_primes_is_remembered_but_not_given() {
        let (events, mut parser) = parse(&[b"id: p1\nretry: 500\ndata:\n\nretry: soon\ndata: unfinished"]);
        assert_eq!(events, []);
        assert_eq!(parser.retry(), Some(Duration::from_millis(500)));
        parser.restart();
        assert_eq!(parser.last_id(), Some("p1"));
        let mut events = Vec::new();
        parser.push(b"data: x\n\n", &mut events).unwrap();
        assert_eq!(events, [message("x")]);
    }

    #[test]
    fn an_endless_event_is_refused_while_it_comes() {
        let mut parser = SseParser::new(10);
        assert_eq!(parser.push(b"data: 1\n", &mut Vec::new()), Ok(()));
        assert_eq!(parser.push(b"data: 2345678901", &mut Vec::new()), Err(TooLong(10)));
    }

    proptest! {
        #[test]
        fn where_the_chunks_are_cut_does_not_matter(cut in 0usize..62, line_end in "\r\n|\n|\r") {
            let text = format!("id: 1{line_end}data: α{line_end}data: b{line_end}{line_end}event: e{line_end}data: c{line_end}{line_end}");
            let bytes = text.as_bytes();
            let (left, right) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(parse(&[left, right]).0, parse(&[bytes]).0);
        }
    }
}
