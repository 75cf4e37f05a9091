//! Every limit of the wire, with the reason for the number.

use std::time::Duration;

/// A request id that is a string. Ids are echoed and kept while a call runs, so they must be small.
pub(crate) const ID_BYTES: usize = 256;
/// Messages in one batch of a 2025-03-26 session.
pub(crate) const BATCH_MESSAGES: usize = 50;
/// A tool name as a client sends it; the protocol recommends at most 128 characters.
pub(crate) const TOOL_NAME_BYTES: usize = 256;
/// Characters of a client's text that an error message repeats.
pub(crate) const EXCERPT_CHARS: usize = 80;
/// One line on stdio.
pub const LINE_BYTES: usize = 16 * 1024 * 1024;
/// Bytes that one read from stdio takes.
pub(crate) const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Requests that run at once on one stdio connection; one more is refused.
pub(crate) const STDIO_IN_FLIGHT: usize = 256;
/// Answers that wait for the stdio writer; calls that have an answer wait when the peer does not read.
pub(crate) const STDIO_ANSWERS_WAITING: usize = 64;
/// How long calls in flight may go on after the input of a stdio connection has ended.
pub(crate) const STDIO_DRAIN: Duration = Duration::from_secs(5);
/// How long cancelled calls, and after them the writer, may take to finish.
pub(crate) const STDIO_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Requests that run at once in one HTTP session.
pub(crate) const SESSION_IN_FLIGHT: usize = 1024;
/// HTTP sessions that are open at once, if the options do not say otherwise.
pub(crate) const SESSIONS: usize = 10_000;
/// How long an HTTP session may go without a request, if the options do not say otherwise.
pub(crate) const SESSION_IDLE: Duration = Duration::from_secs(60 * 60);
/// Messages that wait for the transport of one request; what a server tells beyond that is dropped.
pub(crate) const OUTGOING_MESSAGES: usize = 256;
/// Bytes of them.
pub(crate) const OUTGOING_BYTES: usize = 4 * 1024 * 1024;
/// Questions that a server may ask a client at once.
pub(crate) const QUESTIONS: usize = 16;
/// Questions of one session that wait for the client.
pub(crate) const QUESTIONS_WAITING: usize = 64;
/// How long a client may take to answer: a person may have to read, think and type.
pub(crate) const QUESTION_WAIT: Duration = Duration::from_secs(10 * 60);
/// Requests of 2026-07-28 that wait for answers of their clients.
pub(crate) const PARKED: usize = 1024;
/// Of these, the requests of one identity.
pub(crate) const PARKED_PER_IDENTITY: usize = 256;
/// How long a request whose question was not answered may take to end by itself.
pub(crate) const PARKED_GRACE: Duration = Duration::from_secs(60);
/// How often an otherwise silent stream says that it is alive; proxies give up after 30 seconds or more.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// After how long a client whose stream broke is to come back, in milliseconds.
pub(crate) const RETRY_MS: u32 = 1000;
/// Events of one stream that a legacy client can have replayed.
pub(crate) const STREAM_EVENTS: usize = 256;
/// Bytes of them.
pub(crate) const STREAM_BYTES: usize = 4 * 1024 * 1024;
/// Streams of one session that can be resumed.
pub(crate) const SESSION_STREAMS: usize = 64;
/// Bytes of all events that are kept for replay in all sessions.
pub(crate) const REPLAY_BYTES: usize = 256 * 1024 * 1024;
/// How long a stream that has ended can be resumed.
pub(crate) const STREAM_KEPT: Duration = Duration::from_secs(5 * 60);
/// The same when the events of all sessions exceed [`REPLAY_BYTES`] and a client is reading the stream: as long as it may
/// take to read a response.
pub(crate) const STREAM_KEPT_WHEN_FULL: Duration = Duration::from_secs(10);
/// Resources that one session or one `subscriptions/listen` may watch.
pub(crate) const SUBSCRIPTIONS: usize = 1024;
/// Bytes of a URI that may be watched.
pub(crate) const URI_BYTES: usize = 8 * 1024;
/// Connections of HTTP+SSE and WebSocket at once.
pub const CONNECTIONS: usize = 1024;
/// Messages of a client that wait to be read, where something else than this crate receives them.
pub(crate) const MESSAGES_WAITING: usize = 64;
/// `subscriptions/listen` requests at once on one connection.
pub(crate) const CONNECTION_LISTENS: usize = 32;
/// How long a legacy client waits for a plain answer before it is given a stream, on which it is kept awake.
pub(crate) const STREAM_AFTER: Duration = Duration::from_secs(5);
