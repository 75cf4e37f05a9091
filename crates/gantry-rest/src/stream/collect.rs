//! What becomes of the lines of a stream.

use super::lines::Line;
use super::{End, Form};
use crate::answer::is_json;
use crate::options::StreamMode;
use gantry_core::raw;
use gantry_provider::RawOutput;
use serde_json::{Value, json};

/// Items of one answer.
pub(super) const ITEMS: usize = 10_000;

/// Characters that are shown of what cannot be read.
pub(super) const UNREADABLE_CHARS: usize = 200;

/// Characters that are kept of it: more, as a secret that was cut in two is not known as one.
const KEPT_CHARS: usize = 10_000;

/// Says that there is no more.
const DONE: &str = "[DONE]";

/// Puts together what came.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    form: &'a Form,
    /// The texts of JSON values.
    items: Vec<String>,
    readable: usize,
    /// The beginning of the first line that could not be read.
    unreadable: Option<String>,
    event: Event,
    /// The pieces of an answer, and the answer itself.
    pieces: String,
    answer: Option<Value>,
}

/// A server-sent event that is not complete yet.
#[derive(Debug, Default)]
struct Event {
    name: Option<String>,
    id: Option<String>,
    data: Option<String>,
    overlong: bool,
}

impl<'a> Collector<'a> {
    pub(super) fn new(form: &'a Form) -> Self {
        Self {
            form,
            items: Vec::new(),
            readable: 0,
            unreadable: None,
            event: Event::default(),
            pieces: String::new(),
            answer: None,
        }
    }

    /// Takes a line; says so if that was the last one.
    pub(super) fn take(&mut self, line: &Line) -> Option<End> {
        match self.form {
            Form::Lines | Form::Sequence => self.take_value(line),
            Form::Events => self.take_field(line),
            Form::Answer(mode) => self.take_object(mode, line),
        }
    }

    /// There are no more lines. Not every service ends its last event as it should.
    pub(super) fn finish(&mut self) {
        if matches!(self.form, Form::Events) {
            self.end_event();
        }
    }

    /// How many items there are.
    pub(super) fn count(&self) -> usize {
        match self.form {
            Form::Lines | Form::Sequence | Form::Events => self.items.len(),
            Form::Answer(_) => self.readable,
        }
    }

    /// Whether anything has come that is worth showing.
    pub(super) fn has_anything(&self) -> bool {
        self.readable > 0
    }

    /// How the stream begins, if nothing of it could be read.
    pub(super) fn only_unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref().filter(|_| self.readable == 0)
    }

    fn take_value(&mut self, line: &Line) -> Option<End> {
        let text = line.text.trim();
        match text {
            "" => None,
            DONE => Some(End::Complete),
            _ if !line.overlong && is_json(text) => self.push(text.to_owned()),
            _ => self.push_unreadable(text),
        }
    }

    fn take_field(&mut self, line: &Line) -> Option<End> {
        if line.text.is_empty() {
            return self.end_event();
        }
        let (name, value) = line.text.split_once(':').unwrap_or((&line.text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => self.event.name = Some(value.to_owned()),
            "id" => self.event.id = Some(value.to_owned()),
            "data" => {
                self.event.overlong |= line.overlong;
                match &mut self.event.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    None => self.event.data = Some(value.to_owned()),
                }
            }
            // Comments, times to wait, and what nobody knows.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<End> {
        let event = std::mem::take(&mut self.event);
        let data = event.data?;
        if data.trim() == DONE {
            return Some(End::Complete);
        }
        if event.overlong {
            return self.push_unreadable(&data);
        }
        let data = if is_json(&data) { data } else { raw::quoted(&data) };
        let quoted = |text: Option<String>| text.map(|text| raw::quoted(&text));
        let (name, id) = (quoted(event.name), quoted(event.id));
        let members = [("event", name.as_deref()), ("id", id.as_deref()), ("data", Some(data.trim()))];
        let members = members.into_iter().filter_map(|(key, value)| Some((key, value?)));
        self.push(raw::object(members))
    }

    fn take_object(&mut self, mode: &StreamMode, line: &Line) -> Option<End> {
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
        let text = line.text.trim_start();
        let text =
            text.strip_prefix(line_prefix.as_str()).or_else(|| text.strip_prefix(line_prefix.trim_end()));
        let text = text.unwrap_or(&line.text).trim();
        if text.is_empty() || text == DONE || is_framing(text) {
            return None;
        }
        let Some(Value::Object(mut object)) = serde_json::from_str(text).ok().filter(|_| !line.overlong)
        else {
            self.note_unreadable(text);
            return None;
        };
        self.readable += 1;
        let kind = object.get(discriminator_field).and_then(Value::as_str);
        if kind == Some(done_value) {
            self.answer = object.remove(answer_field).filter(|answer| !answer.is_null());
            return Some(End::Complete);
        }
        if kind == Some(token_value) {
            match object.remove(token_field) {
                Some(Value::String(piece)) => self.pieces.push_str(&piece),
                Some(Value::Null) | None => {}
                Some(other) => self.pieces.push_str(&other.to_string()),
            }
        }
        (self.readable >= ITEMS).then_some(End::Limit("maxItems"))
    }

    fn push(&mut self, item: String) -> Option<End> {
        if self.items.len() >= ITEMS {
            return Some(End::Limit("maxItems"));
        }
        self.readable += 1;
        self.items.push(item);
        None
    }

    fn push_unreadable(&mut self, text: &str) -> Option<End> {
        if self.items.len() >= ITEMS {
            return Some(End::Limit("maxItems"));
        }
        let start = self.note_unreadable(text);
        self.items.push(json!({ "unreadable": start }).to_string());
        None
    }

    fn note_unreadable(&mut self, text: &str) -> String {
        self.unreadable.get_or_insert_with(|| text.chars().take(KEPT_CHARS).collect());
        text.chars().take(UNREADABLE_CHARS).collect()
    }

    /// The result.
    pub(super) fn output(self, truncated: Option<&str>) -> RawOutput {
        match (self.form, truncated) {
            (Form::Lines | Form::Sequence | Form::Events, None) => {
                RawOutput::Json(format!("[{}]", self.items.join(",")))
            }
            (Form::Lines | Form::Sequence | Form::Events, Some(limit)) => {
                let items = format!("[{}]", self.items.join(","));
                RawOutput::Json(raw::object([("items", &*items), ("truncated", &raw::quoted(limit))]))
            }
            (Form::Answer(_), truncated) => answered(self.answer, self.pieces, truncated),
        }
    }
}

fn answered(answer: Option<Value>, pieces: String, truncated: Option<&str>) -> RawOutput {
    match (answer, truncated) {
        (Some(Value::String(text)), _) => RawOutput::Text(text),
        (Some(value), _) => RawOutput::Json(value.to_string()),
        (None, None) => RawOutput::Text(pieces),
        (None, Some(limit)) => RawOutput::Text(format!("{pieces}\n\n[The answer is not complete: {limit}]")),
    }
}

/// Whether a line belongs to the frame of an event stream.
fn is_framing(text: &str) -> bool {
    text.starts_with(':') || ["event:", "id:", "retry:"].iter().any(|field| text.starts_with(field))
}
