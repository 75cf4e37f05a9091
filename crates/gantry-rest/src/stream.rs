//! Answers that come in pieces: JSON lines, server-sent events, and answers that are put together from tokens.
//!
//! Reading stops at a limit. What came until then is the result, which names the limit.

use super::encode;
use super::options::{StreamMode, Streaming};
use super::response::{RestCall, is_json};
use gantry_core::{ErrorCode, ToolError, raw};
use gantry_egress::{HttpError, HttpResponse, SseEvent, SseParser};
use gantry_provider::CallResult;
use gantry_provider::RawOutput;
use gantry_provider::client::ServerNotification;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Shortest time between two progress notifications.
const PROGRESS: Duration = Duration::from_millis(200);

/// Items of one answer.
const ITEMS: usize = 10_000;

/// Characters that are shown of a line that cannot be read.
const UNREADABLE_CHARS: usize = 200;

/// The item by which services end a stream.
const DONE: &str = "[DONE]";

/// Why reading stopped.
#[derive(Debug)]
enum End {
    /// The stream has ended, or its last item was read.
    Complete,
    /// A limit, by its name.
    Limit(&'static str),
    Broken(HttpError),
}

/// Reads an answer piece by piece.
pub(super) async fn read(mut response: HttpResponse, options: &Streaming, call: &RestCall<'_>) -> CallResult {
    let until = call.until.min(Instant::now() + options.timeout.get());
    let mut stream = Stream {
        options,
        line: Vec::new(),
        events: SseParser::new(options.max_bytes.size()),
        items: Vec::new(),
        unreadable: None,
        answer: None,
    };
    let (mut bytes, mut reported, mut next_report) = (0_usize, 0, Instant::now());
    let wants_progress = call.client.wants_progress();
    let end = loop {
        let chunk = match timeout_at(until, response.chunk()).await {
            Err(_elapsed) => break End::Limit("timeout"),
            Ok(Err(error)) => break End::Broken(error),
            Ok(Ok(None)) => break stream.finish(),
            Ok(Ok(Some(chunk))) => chunk,
        };
        let left = options.max_bytes.size().saturating_sub(bytes);
        bytes = bytes.saturating_add(chunk.len());
        if let Some(end) = stream.push(chunk.get(..left).unwrap_or(&chunk)) {
            break end;
        }
        if chunk.len() > left {
            break End::Limit("maxBytes");
        }
        if wants_progress && stream.items.len() > reported && Instant::now() >= next_report {
            (reported, next_report) = (stream.items.len(), Instant::now() + PROGRESS);
            let message = format!("{reported} items, {bytes} bytes");
            let params = json!({ "progress": reported, "message": message }).to_string();
            call.client.notify(ServerNotification::Progress(params.into()));
        }
    };
    stream.conclude(end, call)
}

/// A stream that is being read. Its buffers are bounded by the bytes of the whole answer.
struct Stream<'a> {
    options: &'a Streaming,
    /// The line that has begun.
    line: Vec<u8>,
    events: SseParser,
    /// The texts of JSON values; in `json-stream`, the piece of the answer in each object.
    items: Vec<String>,
    /// In `json-stream`, the first line that could not be read, and the answer itself.
    unreadable: Option<String>,
    answer: Option<Value>,
}

impl Stream<'_> {
    /// Takes the next bytes; returns why reading ends, if it does.
    fn push(&mut self, bytes: &[u8]) -> Option<End> {
        if self.options.mode == StreamMode::Sse {
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
        let end = match self.options.mode {
            StreamMode::Sse => self.events.finish().and_then(|event| self.take_event(event)),
            StreamMode::Ndjson | StreamMode::JsonStream => self.end_line(),
        };
        end.unwrap_or(End::Complete)
    }

    fn end_line(&mut self) -> Option<End> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        match line.trim() {
            text if self.options.mode == StreamMode::JsonStream => self.take_object(text),
            "" => None,
            DONE => Some(End::Complete),
            text => self.add(json_of(text)),
        }
    }

    fn take_event(&mut self, event: SseEvent) -> Option<End> {
        if event.data.trim() == DONE {
            return Some(End::Complete);
        }
        let data = json_of(&event.data);
        let quoted = |text: Option<String>| text.map(|text| raw::quoted(&text));
        let (kind, id) = (quoted(event.kind), quoted(event.id));
        let members = [("event", kind.as_deref()), ("id", id.as_deref()), ("data", Some(&*data))];
        self.add(raw::object(members.into_iter().filter_map(|(key, value)| Some((key, value?)))))
    }

    fn take_object(&mut self, line: &str) -> Option<End> {
        let Streaming { line_prefix, discriminator_field, done_value, answer_field, .. } = self.options;
        let Streaming { token_value, token_field, .. } = self.options;
        let prefix = line_prefix.as_deref().unwrap_or_default().trim();
        let text = line.strip_prefix(prefix).unwrap_or(line).trim();
        if text.is_empty() || text == DONE || is_framing(text) {
            return None;
        }
        let Ok(Value::Object(mut object)) = serde_json::from_str(text) else {
            self.unreadable.get_or_insert_with(|| text.to_owned());
            return None;
        };
        let kind = object.get(or(discriminator_field, "type")).and_then(Value::as_str);
        if kind == Some(or(done_value, "done")) {
            self.answer = object.remove(or(answer_field, "answer")).filter(|answer| !answer.is_null());
            self.unreadable = None;
            return Some(End::Complete);
        }
        let is_token = kind == Some(or(token_value, "token"));
        let token = object.remove(or(token_field, "content")).filter(|_| is_token);
        self.add(token.as_ref().map(encode::value_text).unwrap_or_default())
    }

    fn add(&mut self, item: String) -> Option<End> {
        if self.items.len() >= ITEMS {
            return Some(End::Limit("maxItems"));
        }
        self.items.push(item);
        None
    }

    fn conclude(self, end: End, call: &RestCall<'_>) -> CallResult {
        let truncated = match end {
            End::Complete => None,
            End::Limit(limit) => Some(limit),
            End::Broken(error) if self.items.is_empty() => return Err(call.http(&error)),
            End::Broken(_) => Some("connection"),
        };
        if let Some(start) = self.unreadable.filter(|_| self.items.is_empty()) {
            let start: String = call.secrets.mask(start).chars().take(UNREADABLE_CHARS).collect();
            let message =
                format!("nothing of the stream that was answered could be read; it begins with {start:?}");
            return Err(call.after_sending(ToolError::new(ErrorCode::ExecutionError, message)));
        }
        let items = || format!("[{}]", self.items.join(","));
        let is_answer = self.options.mode == StreamMode::JsonStream;
        Ok(match (self.answer, truncated) {
            (Some(Value::String(text)), _) => RawOutput::Text(text),
            (Some(value), _) => RawOutput::Json(value.to_string()),
            (None, None) if is_answer => RawOutput::Text(self.items.concat()),
            (None, Some(limit)) if is_answer => {
                RawOutput::Text(format!("{}\n\n[The answer is not complete: {limit}]", self.items.concat()))
            }
            (None, None) => RawOutput::Json(items()),
            (None, Some(limit)) => {
                RawOutput::Json(raw::object([("items", &*items()), ("truncated", &raw::quoted(limit))]))
            }
        })
    }
}

/// A text as JSON: as it is if it is some, else quoted.
fn json_of(text: &str) -> String {
    if is_json(text) { text.trim().to_owned() } else { raw::quoted(text) }
}

fn or<'a>(option: &'a Option<String>, default: &'a str) -> &'a str {
    option.as_deref().unwrap_or(default)
}

/// Whether a line belongs to the frame of an event stream.
fn is_framing(text: &str) -> bool {
    text.starts_with(':') || ["event:", "id:", "retry:"].iter().any(|field| text.starts_with(field))
}
