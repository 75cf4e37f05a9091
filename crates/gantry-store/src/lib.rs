//! The store: the durable ledger of calls and the sessions they belong to, in SQLite.
//!
//! **Invariant:** when `intend` returns, the intent is on the disk. A call that may have an effect begins only
//! after that, so a crash leaves an open entry and the next start reports it as `OUTCOME_UNKNOWN`.
//!
//! **Invariant:** a call that waits for a person has one approval that waits with it, and moves only together with it
//! (`ledger/held.rs`). When `hold` or `settle` returns, that is on the disk; an approval is redeemed once.
//!
//! **Invariant:** the ledger is append-only and hash-chained; `verify` proves it. A call's state is that of its
//! newest entry.
//!
//! Several processes may use one data folder. Each has one writer thread (`writer`), which commits in groups, and
//! two connections that read; nothing of the driver appears outside this crate, so that another database can
//! stand behind the same `Store`.

mod approval;
mod body;
mod chain;
mod error;
mod grant;
mod granting;
mod holding;
mod keep;
mod key;
mod keyring;
mod ledger;
mod node;
mod options;
mod query;
mod read;
mod reader;
mod recovery;
mod row;
mod schema;
mod table;
mod tally;
mod writer;

pub use approval::{
    Announced, ApprovalFilter, ApprovalRow, Asked, DecisionRow, HeldAs, HoldLimits, NewApproval, Omitted,
    Ready, RefusedDecision, Scope, Settled, Unsent, Verdict,
};
pub use error::Error;
pub use grant::{GrantFilter, GrantKey, GrantRow};
pub use key::{KeyRow, Standing};
pub use options::Options;
pub use row::{
    BadEntry, CallFilter, CallHead, CallRow, CalledTool, IdempotencyKey, Intended, Intent, Outcome, Page,
    Recovery, SessionFilter, SessionKey, SessionRow, SessionSummary, State, Stats, Totals, Verification,
    WholeCall,
};

use gantry_core::id::{CallId, NodeId, SessionId};
use ledger::{Answer, Ledger};
use options::{ARGUMENTS_MAX, GROUP, KEY_MAX};
use reader::Readers;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle, Thread};
use tokio::sync::mpsc;
use writer::{Abandoned, Counters, Job, Message, Note, Waiter, Writer};

/// A handle of an open store; clones share it.
///
/// The last handle that goes waits until the writer has committed what it accepted. `shutdown` does the same
/// without blocking the thread.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    node: NodeId,
    /// The folder of the locks of all nodes.
    nodes: PathBuf,
    /// Taken when the last handle goes, which lets the writer end.
    messages: Option<mpsc::Sender<Message>>,
    thread: Thread,
    join: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
    readers: Readers,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.readers.close();
        self.messages = None;
        self.thread.unpark();
        if let Some(Err(_)) = self.join.take().map(JoinHandle::join) {
            tracing::error!("the store's writer panicked; records it had accepted may be lost");
        }
    }
}

impl Store {
    /// Opens the store, making it if there is none, and settles what dead processes left behind. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be used, the database is damaged, or a newer program has written it.
    pub fn open(options: Options) -> Result<(Self, Recovery), Error> {
        let folder = match options.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        let nodes = node::prepare(folder)?;
        let lock = node::join(&nodes)?;
        let node = lock.node;
        let mut conn = schema::open_writer(&options.path)?;
        let recovery = recovery::recover(&mut conn, &nodes, node)?;

        let (messages, receiver) = mpsc::channel(options.queue.max(1));
        let counters = Arc::new(Counters::default());
        let writer = Writer::new(conn, lock, receiver, options.linger, Arc::clone(&counters));
        let join = thread::Builder::new()
            .name("gantry-store".to_owned())
            .spawn(move || writer.run())
            .map_err(Error::unexpected)?;
        let inner = Inner {
            node,
            nodes,
            messages: Some(messages),
            thread: join.thread().clone(),
            join: Some(join),
            counters,
            readers: Readers::new(options.path),
        };
        Ok((Self { inner: Arc::new(inner) }, recovery))
    }

    /// This process, as the ledger names it.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.inner.node
    }

    /// Records that a call is about to have its effect; durable when it returns.
    ///
    /// If the key was used before by the same project and principal, nothing is recorded and the call that used it
    /// is returned. A call that was held begins under its own id and key again, and under its approval, which is
    /// `Executing` from then on.
    ///
    /// Cancel-safety: a caller that stops waiting must not run the call; its intent may have become durable, and
    /// then stands open until this process ends.
    ///
    /// # Errors
    /// `Taken` when the call has begun, ended or waits, or its approval does not let it run; otherwise the intent is not
    /// durable and the call must not run.
    pub async fn intend(&self, intent: Intent) -> Result<Intended, Error> {
        limit_head(&intent.head, intent.idempotency.as_ref())?;
        // Without its caller nobody would run the call.
        self.write(Abandoned::LeftOut, move |ledger| ledger.intend(&intent)).await
    }

    /// Records how a call ended; durable when it returns.
    ///
    /// It takes calls that run, and those whose outcome was unknown until a person found out. A held call that was
    /// approved, and is refused or fails before it begins, ends as `CancelledBySystem`; one that has begun ends as
    /// `CompletedFailure` if it is said to be refused.
    ///
    /// # Errors
    /// `UnknownCall` without an earlier entry, `Taken` when the call is settled or waits; otherwise the outcome is not
    /// durable and may be given again.
    pub async fn close(&self, call: CallId, mut outcome: Outcome) -> Result<(), Error> {
        if !outcome.state.is_over() {
            return Err(Error::NotAnEnding { call, state: outcome.state });
        }
        self.write(Abandoned::Done, move |ledger| ledger.close(call, &mut outcome)).await
    }

    /// Records a call that has ended, in one entry, committed with the next group. Returns when the writer has
    /// accepted it, which waits while its channel is full. The call must have no entry.
    ///
    /// # Errors
    /// `Closed` after shutdown; `NotAnEnding` and `TooLarge` for records that cannot be.
    pub async fn record(&self, whole: WholeCall) -> Result<(), Error> {
        if whole.outcome.state == State::Executing {
            return Err(Error::NotAnEnding { call: whole.head.id, state: whole.outcome.state });
        }
        limit("arguments", whole.head.arguments.len(), ARGUMENTS_MAX)?;
        self.send(Message::Note(Note::Whole(Box::new(whole)))).await
    }

    /// Records that a session began; accepted like `record`.
    ///
    /// # Errors
    /// `Closed` after shutdown.
    pub async fn open_session(&self, session: SessionRow) -> Result<(), Error> {
        self.send(Message::Note(Note::OpenSession(Box::new(session)))).await
    }

    /// Records that a session was used at that time; its calls do so by themselves. Accepted like `record`.
    ///
    /// # Errors
    /// `Closed` after shutdown.
    pub async fn touch_session(&self, id: SessionId, at_us: i64) -> Result<(), Error> {
        self.send(Message::Note(Note::TouchSession(id, at_us))).await
    }

    /// Records that a session ended; accepted like `record`.
    ///
    /// # Errors
    /// `Closed` after shutdown.
    pub async fn close_session(&self, id: SessionId, at_us: i64) -> Result<(), Error> {
        self.send(Message::Note(Note::CloseSession(id, at_us))).await
    }

    /// Waits until everything that was accepted before is durable.
    ///
    /// # Errors
    /// When the group that was under way could not be committed.
    pub async fn flush(&self) -> Result<(), Error> {
        self.write(Abandoned::LeftOut, |_| Ok(Ok(()))).await
    }

    /// The call with that id, with its result if that is kept.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn call(&self, id: CallId) -> Result<Option<CallRow>, Error> {
        self.read(move |conn| read::call_with_result(conn, id)).await
    }

    /// The call that was made under an idempotency key, with its result if that is kept.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn call_by_key(
        &self,
        project: Arc<str>,
        principal: Arc<str>,
        key: String,
    ) -> Result<Option<CallRow>, Error> {
        self.read(move |conn| match ledger::key_use(conn, &project, &principal, &key)? {
            Some(call) => read::call_with_result(conn, call),
            None => Ok(None),
        })
        .await
    }

    /// The calls that pass the filter, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn calls(&self, filter: CallFilter) -> Result<Page<CallRow>, Error> {
        self.read(move |conn| query::calls(conn, &filter)).await
    }

    /// The calls of a session after the cursor, the oldest first; the limit is that of `CallFilter`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn calls_of_session(
        &self,
        session: SessionId,
        cursor: Option<i64>,
        limit: u32,
    ) -> Result<Page<CallRow>, Error> {
        self.read(move |conn| query::calls_of_session(conn, session, cursor, limit)).await
    }

    /// The session with that id and its sums.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn session(&self, id: SessionId) -> Result<Option<SessionSummary>, Error> {
        self.read(move |conn| query::session(conn, id)).await
    }

    /// The sessions that pass the filter and their sums, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<Page<SessionSummary>, Error> {
        self.read(move |conn| query::sessions(conn, &filter)).await
    }

    /// The newest session of that key which has not ended and was used since then.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn standing_session(
        &self,
        key: &SessionKey,
        since_us: i64,
    ) -> Result<Option<SessionRow>, Error> {
        let key = key.clone();
        self.read(move |conn| query::standing_session(conn, &key, since_us)).await
    }

    /// Walks the hash chain from its first entry to its newest.
    ///
    /// # Errors
    /// When the store cannot be read; a broken chain is a result, not an error.
    pub async fn verify(&self) -> Result<Verification, Error> {
        self.read(chain::verify).await
    }

    /// The writer's counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let counters = &self.inner.counters;
        Stats {
            commits: counters.commits.load(Ordering::Relaxed),
            entries: counters.entries.load(Ordering::Relaxed),
            lost: counters.lost.load(Ordering::Relaxed),
            queue_depth: self.inner.messages.as_ref().map_or(0, waiting),
        }
    }

    /// Commits what was accepted, closes the database and gives up the node's lock. Every handle is closed by
    /// it; calls that are still open will be unknown at the next start.
    ///
    /// # Errors
    /// When the database could not be closed cleanly; the next start repairs it.
    pub async fn shutdown(&self) -> Result<(), Error> {
        // Order: the readers go first, so that the writer's connection is the last one and can empty the log.
        self.inner.readers.close();
        match self.wait(Message::Stop).await {
            // Somebody else has shut it down.
            Err(Error::Closed) => Ok(()),
            stopped => stopped,
        }
    }

    /// Runs a query behind everything that was accepted before it, so that a caller reads its own writes.
    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.flush().await?;
        self.look(query).await
    }

    /// Runs a query on what is durable now.
    async fn look<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.inner.readers.run(query).await
    }

    /// Changes one of the tables beside the ledger, and waits until that is durable.
    async fn change<T: Send + 'static>(
        &self,
        change: impl Fn(&Connection) -> Answer<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.write(Abandoned::Done, move |ledger| ledger.change(&change)).await
    }

    /// Has the writer do something in its next transaction, and waits until that is durable.
    async fn write<T: Send + 'static>(
        &self,
        abandoned: Abandoned,
        work: impl FnMut(&mut Ledger<'_>) -> Answer<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.wait(move |waiter| Message::Job(Box::new(Job { work, abandoned, waiter }))).await
    }

    /// Sends a message that is answered when it is durable.
    async fn wait<T>(&self, message: impl FnOnce(Waiter<T>) -> Message) -> Result<T, Error> {
        let (waiter, answer) = Waiter::new();
        self.send(message(waiter)).await?;
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// Hands a message to the writer, and wakes it from its linger when somebody waits for the disk or, because
    /// enough messages have gathered, soon would wait for the channel.
    async fn send(&self, message: Message) -> Result<(), Error> {
        let messages = self.inner.messages.as_ref().ok_or(Error::Closed)?;
        let urgent = message.is_urgent();
        messages.send(message).await.ok().ok_or(Error::Closed)?;
        if urgent || waiting(messages) >= GROUP.min(messages.max_capacity()) {
            self.inner.thread.unpark();
        }
        Ok(())
    }
}

fn waiting(messages: &mpsc::Sender<Message>) -> usize {
    messages.max_capacity() - messages.capacity()
}

fn limit_head(head: &CallHead, key: Option<&IdempotencyKey>) -> Result<(), Error> {
    limit("arguments", head.arguments.len(), ARGUMENTS_MAX)?;
    limit("the idempotency key", key.map_or(0, |key| key.key.len()), KEY_MAX)
}

fn limit(what: &'static str, bytes: usize, limit: usize) -> Result<(), Error> {
    if bytes > limit { Err(Error::TooLarge { what, bytes, limit }) } else { Ok(()) }
}
