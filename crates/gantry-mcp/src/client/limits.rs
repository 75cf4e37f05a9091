//! The limits of the client side, with the reason for each number.

use std::time::Duration;

/// One message of a server: a line, a frame, an event or a body.
pub(super) const MESSAGE_BYTES: usize = crate::limits::LINE_BYTES;
/// The body of an HTTP answer that is an error.
pub(super) const ERROR_BODY_BYTES: usize = 64 * 1024;
/// Characters of such a body, or of another text of a server, that an error message repeats.
pub(super) const EXCERPT_CHARS: usize = 200;
/// Requests that are under way on one connection.
pub(super) const UNDER_WAY: usize = 1024;
/// Messages that wait to be written.
pub(super) const WRITES_WAITING: usize = 64;
/// How long a request waits for its turn to be written. Who does not read that long is stuck.
pub(super) const WRITE_WAIT: Duration = Duration::from_secs(10);
/// Questions of a server that are open at once; more are answered with an error.
pub(super) const QUESTIONS: usize = 256;
/// POSTs that carry notifications and answers, at once.
pub(super) const POSTS: usize = 16;
/// Such messages that are under way or wait for their turn; more are dropped. Every request can be withdrawn and every
/// question answered at the same moment.
pub(super) const POSTS_WAITING: usize = UNDER_WAY + QUESTIONS;
/// How long such a POST may take.
pub(super) const POST_WAIT: Duration = Duration::from_secs(10);
/// Rounds of `input_required` that one request may take. Other clients give up after as many.
pub(super) const ROUNDS: usize = 10;
/// Questions in one round.
pub(super) const QUESTIONS_PER_ROUND: usize = 16;
/// The wait before a round that asked nothing, doubling from the first to the second.
pub(super) const ROUND_PAUSE: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];
/// Pages of one list.
pub(super) const PAGES: usize = 1000;
/// Items of one list.
pub(super) const ITEMS: usize = 100_000;
/// Bytes of all items of one list.
pub(super) const LIST_BYTES: usize = 64 * 1024 * 1024;
/// The cursor of one page.
pub(super) const CURSOR_BYTES: usize = 64 * 1024;
/// How long a server may stay silent in the better era after its sibling has answered in the other one, unless that
/// took longer; never more than half of the time that is left.
pub(super) const DISCOVER_GRACE: Duration = Duration::from_secs(2);
/// The first and the longest wait before a stream is opened again.
pub(super) const REOPEN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// A stream that lived this long was well: the next wait is the first one again.
pub(super) const STREAM_WAS_WELL: Duration = Duration::from_secs(10);
/// Attempts to take a broken answer stream up again that may bring neither a message nor the id of an event.
pub(super) const RESUMES: usize = 5;
/// Attempts to open a background stream that may fail to connect before the server counts as gone.
pub(super) const BACKGROUND_FAILURES: u32 = 3;
/// How long a server may take to say which subscriptions it grants.
pub(super) const ACKNOWLEDGE: Duration = Duration::from_secs(5);
/// Resources that are watched on one connection.
pub(super) const WATCHED: usize = 10_000;
/// Wishes to watch a resource, or no longer, that wait for their turn.
pub(super) const WISHES: usize = 64;
/// The shortest and the longest wait between two looks at a task, and the one where the server names none.
pub(super) const POLL: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(10)];
/// See [`POLL`].
pub(super) const POLL_DEFAULT: Duration = Duration::from_secs(1);
/// How long an orderly end may take: the rest of the queue, then the other side.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(2);
/// Bytes of a session id or an event id that are kept and sent back.
pub(super) const HANDLE_BYTES: usize = 4096;
/// How long the end of a server's output may come after that of its input, to say why.
pub(super) const WRITE_BROKE: Duration = Duration::from_millis(200);
