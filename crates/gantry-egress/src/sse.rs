//! A bounded parser of server-sent events.

use std::mem;
use std::time::Duration;

/// Longest id of an event; a longer one is ignored.
const ID_BYTES: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    pub kind: Option<String>,
    pub id: Option<String>,
    /// The `data` lines, joined by line feeds; never empty.
    pub data: String,
}

impl SseEvent {
    /// Whether the event has the default type, `message`.
    #[must_use]
    pub fn is_message(&self) -> bool {
        self.kind.as_deref().is_none_or(|kind| kind == "message")
    }
}

/// An event that is longer than the parser's limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server sent an event of more than {0} bytes")]
pub struct EventTooLong(usize);

/// Cuts events out of the chunks of a body. It keeps the last id and the reconnection time that the server named across
/// [`Self::restart`], because both outlive the stream.
#[derive(Debug, Default)]
pub struct SseParser {
    limit: usize,
    /// An unfinished line.
    line: Vec<u8>,
    /// The last line ended with a carriage return, so that a line feed after it is not a line of its own.
    after_return: bool,
    started: bool,
    kind: Option<String>,
    id: Option<String>,
    data: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl SseParser {
    /// A parser that buffers at most `limit` bytes of one event.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// The id of the last event that had one.
    #[must_use]
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long to wait before the stream is opened again, if the server named a time.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Drops an unfinished event, for the next stream.
    pub fn restart(&mut self) {
        let fresh = Self { last_id: self.last_id.take(), retry: self.retry, ..Self::new(self.limit) };
        *self = fresh;
    }

    /// Takes the next chunk and appends the events that it completes. Events without data are skipped.
    pub fn push(&mut self, chunk: &[u8], events: &mut Vec<SseEvent>) -> Result<(), EventTooLong> {
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

    /// The last event of a stream that ended without the empty line after it.
    pub fn finish(&mut self) -> Option<SseEvent> {
        self.end_line().or_else(|| self.end_event())
    }

    fn fits(&self) -> Result<(), EventTooLong> {
        if self.line.len() + self.data.as_ref().map_or(0, String::len) > self.limit {
            Err(EventTooLong(self.limit))
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
            "event" => self.kind = Some(value.to_owned()).filter(|kind| !kind.is_empty()),
            "data" => {
                if let Some(data) = &mut self.data {
                    data.push('\n');
                }
                self.data.get_or_insert_default().push_str(value);
            }
            "id" if value.len() <= ID_BYTES && !value.contains('\0') => {
                self.id = Some(value.to_owned());
                self.last_id.clone_from(&self.id);
            }
            "retry" => self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry),
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        let (kind, id) = (self.kind.take(), self.id.take());
        // An event that only primes the stream carries an id and no data.
        let data = self.data.take().filter(|data| !data.is_empty())?;
        Some(SseEvent { kind, id, data })
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
        SseEvent { kind: None, id: None, data: data.into() }
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
        let (kind, id) = (Some("endpoint".into()), Some("7".into()));
        assert_eq!(events, [SseEvent { kind, id, data: "/m\n\n x".into() }]);
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
    fn a_stream_may_end_without_ending_its_last_event() {
        for text in ["data: a\n", "data: a"] {
            let (events, mut parser) = parse(&[text.as_bytes()]);
            assert_eq!((events, parser.finish(), parser.finish()), (vec![], Some(message("a")), None));
        }
    }

    #[test]
    fn an_endless_event_is_refused_while_it_comes() {
        let mut parser = SseParser::new(10);
        assert_eq!(parser.push(b"data: 1\n", &mut Vec::new()), Ok(()));
        assert_eq!(parser.push(b"data: 2345678901", &mut Vec::new()), Err(EventTooLong(10)));
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
