//! Every limit of the wire, with the reason for the number.

use std::time::Duration;

/// A request id that is a string. Ids are echoed and kept while a call runs, so they must be small.
pub const ID_BYTES: usize = 256;
/// Messages in one batch of a 2025-03-26 session.
pub const BATCH_MESSAGES: usize = 50;
/// A tool name as a client sends it; the protocol recommends at most 128 characters.
pub const TOOL_NAME_BYTES: usize = 256;
/// Characters of a client's text that an error message repeats.
pub const ECHO_CHARS: usize = 80;
/// Characters of the name and of the version that a client gives itself.
pub const CLIENT_INFO_CHARS: usize = 128;
/// One line on stdio.
pub const LINE_BYTES: usize = 16 * 1024 * 1024;
/// What is read from stdio at once.
pub const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Requests that run at once on one stdio connection; the next line is not read before one of them ends.
pub const STDIO_IN_FLIGHT: usize = 256;
/// Answers that wait for the stdio writer; calls that have an answer wait when the peer does not read.
pub const STDIO_ANSWERS_WAITING: usize = 64;
/// How long calls in flight may go on after the input of a stdio connection has ended.
pub const STDIO_DRAIN: Duration = Duration::from_secs(5);
/// How long cancelled calls, and after them the writer, may take to finish.
pub const STDIO_LAST_WORDS: Duration = Duration::from_secs(1);
/// Requests that run at once in one HTTP session.
pub const SESSION_IN_FLIGHT: usize = 1024;
/// HTTP sessions that are open at once, if the options do not say otherwise.
pub const SESSIONS: usize = 10_000;
/// How long an HTTP session may go without a request, if the options do not say otherwise.
pub const SESSION_IDLE: Duration = Duration::from_secs(60 * 60);
