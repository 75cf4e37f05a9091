//! Answers that come in pieces: JSON lines, server-sent events, and answers that are put together from tokens.
//!
//! Reading stops at a limit. What came until then is the result, which names the limit.

use super::answer::is_json;
use super::fault::ErrorContext;
use super::options::StreamMode;
use gantry_core::{ErrorCode, Fault, ToolError, raw};
use gantry_egress::{HttpError, HttpResponse, SseEvent, SseParser};
use gantry_provider::RawOutput;
use gantry_provider::client::{ClientChannel, ServerNotification};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Shortest time between two progress notifications.
const PROGRESS: Duration = Duration::from_millis(200);

/// Items of one answer.
const ITEMS: usize = 10_000;

/// Characters that are shown of a line that is no JSON.
const UNREADABLE_CHARS: usize = 200;

/// Characters of it that are searched for secrets: more than are shown, as half a secret is not found.
const MASKED_CHARS: usize = 10_000;

/// The item by which services end a stream.
const DONE: &str = "[DONE]";

/// What the pieces are.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// A JSON value in each line.
    Lines,
    /// Server-sent events.
    Events,
    /// Objects that an answer is put together from: [`StreamMode::Json`].
    Answer(StreamMode),
}

/// How much is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) timeout: Duration,
    pub(super) max_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), max_bytes: 4 << 20 }
    }
}

/// Why reading stopped.
#[derive(Debug)]
enum End {
    /// The stream has ended, or its last item was read.
    Complete,
    /// A limit, by its name.
    Limit(&'static str),
    Broken(HttpError),
}

/// Reads an answer piece by piece, up to so many bytes and until this time.
pub(super) async fn read(
    mut response: HttpResponse,
    form: &Form,
    (max_bytes, until): (usize, Instant),
    (context, audience): (&ErrorContext<'_>, &dyn ClientChannel),
) -> Result<RawOutput, Fault> {
    let mut stream = Stream::new(form, max_bytes);
    let mut progress = Progress::new(audience);
    let mut bytes = 0_usize;
    let end = loop {
        let chunk = match timeout_at(until, response.chunk()).await {
            Err(_elapsed) => break End::Limit("timeout"),
            Ok(Err(error)) => break End::Broken(error),
            Ok(Ok(None)) => break stream.finish(),
            Ok(Ok(Some(chunk))) => chunk,
        };
        let left = max_bytes.saturating_sub(bytes);
        bytes = bytes.saturating_add(chunk.len());
        if let Some(end) = stream.push(chunk.get(..left).unwrap_or(&chunk)) {
            break end;
        }
        if chunk.len() > left {
            break End::Limit("maxBytes");
        }
        progress.report(stream.count, bytes);
    };
    stream.conclude(end, context)
}

/// A stream that is being read. Its buffers are bounded by the bytes of the whole answer.
struct Stream<'a> {
    form: &'a Form,
    /// The line that has begun.
    line: Vec<u8>,
    events: SseParser,
    /// The texts of JSON values.
    items: Vec<String>,
    /// Items, or objects of an answer, that could be read.
    count: usize,
    /// The beginning of the first line that could not be read.
    unreadable: Option<String>,
    /// The tokens of an answer, and the answer itself.
    tokens: String,
    answer: Option<Value>,
}

impl<'a> Stream<'a> {
    fn new(form: &'a Form, max_bytes: usize) -> Self {
        Self {
            form,
            line: Vec::new(),
            events: SseParser::new(max_bytes),
            items: Vec::new(),
            count: 0,
            unreadable: None,
            tokens: String::new(),
            answer: None,
        }
    }

    /// Takes the next bytes; returns why reading ends, if it does.
    fn push(&mut self, bytes: &[u8]) -> Option<End> {
        if matches!(self.form, Form::Events) {
            let mut events = Vec::new();
            if self.events.push(bytes, &mut events).is_err() {
                return Some(End::Limit("maxBytes"));
            }
            return events.into_iter().find_map(|event| self.take_event(event));
        }
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.line.extend_from_slice(part);
            if parts.peek().is_some()
                && let Some(end) = self.end_line()
            {
                return Some(end);
            }
        }
        None
    }

    /// The stream has ended. Some services do not end their last line or event.
    fn finish(&mut self) -> End {
        let end = match self.form {
            Form::Events => self.events.finish().and_then(|event| self.take_event(event)),
            Form::Lines | Form::Answer(_) => self.end_line(),
        };
        end.unwrap_or(End::Complete)
    }

    fn end_line(&mut self) -> Option<End> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        match self.form {
            Form::Answer(mode) => self.take_object(mode, &line),
            Form::Lines | Form::Events => match line.trim() {
                "" => None,
                DONE => Some(End::Complete),
                text if is_json(text) => self.add(text.to_owned(), true),
                text => {
                    let start = self.note_unreadable(text);
                    self.add(json!({ "unreadable": start }).to_string(), false)
                }
            },
        }
    }

    fn take_event(&mut self, event: SseEvent) -> Option<End> {
        let data = event.data;
        if data.trim() == DONE {
            return Some(End::Complete);
        }
        let data = if is_json(&data) { data } else { raw::quoted(&data) };
        let quoted = |text: Option<String>| text.map(|text| raw::quoted(&text));
        let (kind, id) = (quoted(event.kind), quoted(event.id));
        let members = [("event", kind.as_deref()), ("id", id.as_deref()), ("data", Some(data.trim()))];
        self.add(raw::object(members.into_iter().filter_map(|(key, value)| Some((key, value?)))), true)
    }

    fn take_object(&mut self, mode: &StreamMode, line: &str) -> Option<End> {
        let StreamMode::Json {
            line_prefix,
            discriminator_field,
            done_value,
            answer_field,
            token_value,
            token_field,
        } = mode
        else {
            return None;
        };
        let text = line.trim();
        let prefix = line_prefix.trim();
        let text = text.strip_prefix(prefix).unwrap_or(text).trim();
        if text.is_empty() || text == DONE || is_framing(text) {
            return None;
        }
        let Ok(Value::Object(mut object)) = serde_json::from_str(text) else {
            self.note_unreadable(text);
            return None;
        };
        self.count += 1;
        let kind = object.get(discriminator_field).and_then(Value::as_str);
        if kind == Some(done_value) {
            self.answer = object.remove(answer_field).filter(|answer| !answer.is_null());
            return Some(End::Complete);
        }
        if kind == Some(token_value) {
            match object.remove(token_field) {
                Some(Value::String(token)) => self.tokens.push_str(&token),
                Some(Value::Null) | None => {}
                Some(other) => self.tokens.push_str(&other.to_string()),
            }
        }
        (self.count >= ITEMS).then_some(End::Limit("maxItems"))
    }

    fn add(&mut self, item: String, readable: bool) -> Option<End> {
        if self.items.len() >= ITEMS {
            return Some(End::Limit("maxItems"));
        }
        self.count += usize::from(readable);
        self.items.push(item);
        None
    }

    fn note_unreadable(&mut self, text: &str) -> String {
        self.unreadable.get_or_insert_with(|| text.chars().take(MASKED_CHARS).collect());
        text.chars().take(UNREADABLE_CHARS).collect()
    }

    fn conclude(self, end: End, context: &ErrorContext<'_>) -> Result<RawOutput, Fault> {
        let truncated = match end {
            End::Complete => None,
            End::Limit(limit) => Some(limit),
            End::Broken(error) if self.count == 0 => return Err(context.http(&error)),
            End::Broken(_) => Some("connection"),
        };
        if let Some(start) = self.unreadable.filter(|_| self.count == 0) {
            let start: String = context.secrets.mask(start).chars().take(UNREADABLE_CHARS).collect();
            let message =
                format!("nothing of the stream that was answered could be read; it begins with {start:?}");
            return Err(context.after_sending(ToolError::new(ErrorCode::ExecutionError, message)));
        }
        let items = || format!("[{}]", self.items.join(","));
        Ok(match (self.form, self.answer, truncated) {
            (Form::Answer(_), Some(Value::String(text)), _) => RawOutput::Text(text),
            (Form::Answer(_), Some(value), _) => RawOutput::Json(value.to_string()),
            (Form::Answer(_), None, None) => RawOutput::Text(self.tokens),
            (Form::Answer(_), None, Some(limit)) => {
                RawOutput::Text(format!("{}\n\n[The answer is not complete: {limit}]", self.tokens))
            }
            (Form::Lines | Form::Events, _, None) => RawOutput::Json(items()),
            (Form::Lines | Form::Events, _, Some(limit)) => {
                RawOutput::Json(raw::object([("items", &*items()), ("truncated", &raw::quoted(limit))]))
            }
        })
    }
}

/// Whether a line belongs to the frame of an event stream.
fn is_framing(text: &str) -> bool {
    text.starts_with(':') || ["event:", "id:", "retry:"].iter().any(|field| text.starts_with(field))
}

/// Notifies the client how far reading has come, if it wants to know.
struct Progress<'a> {
    audience: Option<&'a dyn ClientChannel>,
    next: Instant,
    reported: usize,
}

impl<'a> Progress<'a> {
    fn new(audience: &'a dyn ClientChannel) -> Self {
        let wanted = audience.wants_progress();
        Self { audience: wanted.then_some(audience), next: Instant::now(), reported: 0 }
    }

    fn report(&mut self, items: usize, bytes: usize) {
        let Some(audience) = self.audience else { return };
        if items <= self.reported || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + PROGRESS;
        self.reported = items;
        let params = json!({ "progress": items, "message": format!("{items} items, {bytes} bytes") });
        audience.notify(ServerNotification::Progress(params.to_string().into()));
    }
}
