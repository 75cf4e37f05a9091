//! Answers that come in pieces: JSON in lines, server-sent events, and answers that are put together from tokens.
//!
//! At a limit reading stops, and what came until then is the result, which says so.

mod collect;
mod lines;

use super::fault::Told;
use collect::{Collector, UNREADABLE_CHARS};
use gantry_core::{ErrorCode, Fault, ToolError};
use gantry_egress::{HttpError, HttpResponse};
use gantry_provider::RawOutput;
use gantry_provider::client::{Audience, Notice};
use lines::Lines;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

use super::options::StreamMode;

/// How often a client hears of progress at most.
const PROGRESS: Duration = Duration::from_millis(200);

/// What the pieces are.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// A JSON value in each line.
    Lines,
    /// JSON values, each behind a record separator.
    Sequence,
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
    /// There is no more, or it was said that the rest does not matter.
    Complete,
    /// A limit, by its name.
    Limit(&'static str),
    /// The connection broke.
    Broken(HttpError),
}

/// Reads an answer piece by piece: so many bytes, and until then.
pub(super) async fn read(
    mut response: HttpResponse,
    form: &Form,
    (max_bytes, until): (usize, Instant),
    (told, audience): (&Told<'_>, &dyn Audience),
) -> Result<RawOutput, Fault> {
    let mut lines = Lines::new(if matches!(form, Form::Sequence) { lines::RECORD } else { b'\n' });
    let mut collector = Collector::new(form);
    let mut progress = Progress::new(audience);
    let mut bytes = 0_usize;
    let end = loop {
        let chunk = match timeout_at(until, response.chunk()).await {
            Err(_elapsed) => break End::Limit("timeout"),
            Ok(Err(error)) => break End::Broken(error),
            Ok(Ok(None)) => {
                let last = lines.rest();
                let ended = last.and_then(|last| collector.take(&last));
                break ended.unwrap_or_else(|| {
                    collector.finish();
                    End::Complete
                });
            }
            Ok(Ok(Some(chunk))) => chunk,
        };
        let left = max_bytes.saturating_sub(bytes);
        bytes = bytes.saturating_add(chunk.len());
        let readable = chunk.get(..left).unwrap_or(&chunk);
        if let Some(end) = lines.split(readable, |line| collector.take(&line)) {
            break end;
        }
        if chunk.len() > left {
            break End::Limit("maxBytes");
        }
        progress.tell(collector.count(), bytes);
    };
    conclude(collector, end, told)
}

fn conclude(collector: Collector<'_>, end: End, told: &Told<'_>) -> Result<RawOutput, Fault> {
    let truncated = match end {
        End::Complete => None,
        End::Limit(limit) => Some(limit),
        End::Broken(error) if !collector.has_anything() => return Err(told.http(&error)),
        End::Broken(_) => Some("connection"),
    };
    if let Some(start) = collector.only_unreadable() {
        let start: String = told.secrets.mask(start.to_owned()).chars().take(UNREADABLE_CHARS).collect();
        let message =
            format!("nothing of the stream that was answered could be read; it begins with {start:?}");
        return Err(told.after_sending(ToolError::new(ErrorCode::ExecutionError, message)));
    }
    Ok(collector.output(truncated))
}

/// Tells a client how far reading has come, if it wants to know.
struct Progress<'a> {
    audience: Option<&'a dyn Audience>,
    next: Instant,
    told: usize,
}

impl<'a> Progress<'a> {
    fn new(audience: &'a dyn Audience) -> Self {
        let wanted = audience.wants_progress();
        Self { audience: wanted.then_some(audience), next: Instant::now(), told: 0 }
    }

    fn tell(&mut self, items: usize, bytes: usize) {
        let Some(audience) = self.audience else { return };
        if items <= self.told || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + PROGRESS;
        self.told = items;
        let params = json!({ "progress": items, "message": format!("{items} items, {bytes} bytes") });
        audience.notify(Notice::Progress(params.to_string().into()));
    }
}
