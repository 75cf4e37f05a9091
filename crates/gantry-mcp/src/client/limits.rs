//! The limits of the client side, with the reason for each number.

use std::time::Duration;

/// One message of a server: a line, a frame, an event or a body.
pub(super) const MESSAGE_BYTES: usize = crate::limits::LINE_BYTES;
/// The body of an HTTP response that is an error.
pub(super) const ERROR_BODY_BYTES: usize = 64 * 1024;
/// Characters of such a body, or of another text of a server, that an error message repeats.
pub(super) const EXCERPT_CHARS: usize = 200;
/// Requests of clients that are pending on one connection.
pub(super) const MAX_IN_FLIGHT: usize = 1024;
/// Requests that wait to be written.
pub(super) const WRITES_WAITING: usize = 64;
/// How long a request waits for its turn to be written. A server that does not read for so long is stuck.
pub(super) const WRITE_WAIT: Duration = Duration::from_secs(10);
/// Requests of a server to clients that are open at once; more are answered with an error.
pub(super) const MAX_CLIENT_REQUESTS: usize = 256;
/// Cancellations and answers that wait to be written: all requests may be cancelled, and all requests of the server
/// answered, at the same moment.
pub(super) const URGENT_WAITING: usize = MAX_IN_FLIGHT + MAX_CLIENT_REQUESTS;
/// POSTs that carry messages without an answer, at once.
pub(super) const POSTS: usize = 16;
/// How long such a POST may take.
pub(super) const POST_WAIT: Duration = Duration::from_secs(10);
/// Rounds of `input_required` that one request may take. Other clients give up after as many.
pub(super) const ROUNDS: usize = 10;
/// Requests for input in one round.
pub(super) const INPUTS_PER_ROUND: usize = 16;
/// The wait before a round that asks for no input, doubling from the first to the second.
pub(super) const ROUND_PAUSE: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];
/// Pages of one list.
pub(super) const PAGES: usize = 1000;
/// Items of one list.
pub(super) const ITEMS: usize = 100_000;
/// Bytes of all items of one list.
pub(super) const LIST_BYTES: usize = 64 * 1024 * 1024;
/// The cursor of one page.
pub(super) const CURSOR_BYTES: usize = 64 * 1024;
/// How long a server of unknown era may take to answer `server/discover` before it is also sent `initialize`.
pub(super) const PROBE_WAIT: Duration = Duration::from_secs(2);
/// The first and the longest wait before a stream is opened again.
pub(super) const REOPEN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// After a stream that was open for so long, the next wait is the first one again.
pub(super) const STREAM_WAS_WELL: Duration = Duration::from_secs(10);
/// Attempts to resume a broken stream of an answer that may bring neither a message nor the id of an event.
pub(super) const RESUMES: usize = 5;
/// Attempts to open a background stream that may fail to connect before the server counts as gone.
pub(super) const BACKGROUND_FAILURES: u32 = 3;
/// How long a server may take to acknowledge a `subscriptions/listen`.
pub(super) const ACKNOWLEDGE: Duration = Duration::from_secs(5);
/// Resources that one connection may be subscribed to.
pub(super) const MAX_SUBSCRIPTIONS: usize = 10_000;
/// The shortest and the longest wait between two polls of a task.
pub(super) const POLL: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(10)];
/// The wait where the server names none.
pub(super) const POLL_DEFAULT: Duration = Duration::from_secs(1);
/// How long each step of an orderly end may take.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of a session id or an event id that are kept and sent back.
pub(super) const HANDLE_BYTES: usize = 4096;
/// How long after a failed write the reader may find a better reason for the end.
pub(super) const WRITE_BROKE: Duration = Duration::from_millis(200);
