//! The store: the durable ledger of calls, with sessions, approvals, grants and keys beside it, in SQLite.
//!
//! **Invariant:** when `intend` returns, the intent is on the disk. A call that may have an effect begins only after that, so
//! a crash leaves an open entry and the next start reports it as `OUTCOME_UNKNOWN`.
//!
//! **Invariant:** a call that waits for a person has one approval that waits with it, and moves only together with it
//! (`approvals/transitions.rs`). When `hold` or `transition` returns, that is on the disk; an approval is redeemed once.
//!
//! **Invariant:** the ledger is append-only and hash-chained; `verify` proves it. A call's state is that of its newest entry.
//!
//! Several processes may use one data folder. Each has one writer thread (`writer`), which commits in groups, and two
//! connections that read. Only `sql` knows the database.

mod approvals;
mod error;
mod grants;
mod keys;
mod ledger;
mod membership;
mod options;
mod readers;
mod retention;
mod session_totals;
mod sessions;
mod sql;
mod writer;

pub use approvals::{
    ApprovalDetails, ApprovalFilter, ApprovalRow, DecisionRow, HoldLimits, HoldOutcome, NewApproval, Omitted,
    Ready, RefusedDecision, Transition, Unsent, Verdict, WebhookSent,
};
pub use error::Error;
pub use gantry_core::State;
pub use gantry_core::approval::Scope;
pub use grants::{GrantFilter, GrantKey, GrantRow};
pub use keys::{KeyRow, KeyStatus};
pub use ledger::{
    BadEntry, CallFilter, CallHead, CallRow, CalledTool, IdempotencyKey, Intent, IntentOutcome, Outcome,
    Recovery, Verification, WholeCall,
};
pub use options::Options;
pub use sessions::{SessionFilter, SessionKey, SessionRow, SessionSummary, Totals};

use gantry_core::id::ProcessId;
use ledger::{Author, Ledger};
use options::{GROUP, PAGE_DEFAULT, PAGE_MAX};
use readers::Readers;
use sql::{Connection, Place, single, statements};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle, Thread};
use tokio::sync::mpsc;
use writer::{Counters, Message, OnCallerGone, Reply, WriteJob, Writer};

statements! {
    COUNT_CHANGE = "UPDATE changes SET n = n + 1";
    CHANGES = "SELECT n FROM changes";
}

/// A handle of an open store; clones share it.
///
/// Dropping the last handle waits until the writer has committed what it accepted. `shutdown` does the same without blocking
/// the thread.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    process: ProcessId,
    /// The folder of the locks of all processes.
    locks: PathBuf,
    /// Taken when the last handle is dropped, which lets the writer end.
    messages: Option<mpsc::Sender<Message>>,
    thread: Thread,
    join: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
    readers: Readers,
    place: Arc<Place>,
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

/// Counters of the writer since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    pub commits: u64,
    pub entries: u64,
    /// Records that could not be written even at the second try.
    pub lost: u64,
    /// Messages that wait for the writer.
    pub queue_depth: usize,
}

/// A part of a list.
#[derive(Debug, Clone)]
pub struct Page<T, C> {
    pub items: Vec<T>,
    /// The cursor of the rows after these; `None` at the end.
    pub next: Option<C>,
}

impl<T, C> Page<T, C> {
    /// Cuts a list that was fetched with one row too many; that row says that there are more.
    fn cut(mut items: Vec<T>, limit: u32, cursor: impl FnOnce(&T) -> C) -> Self {
        let limit = limit as usize;
        let more = items.len() > limit;
        items.truncate(limit);
        Self { next: items.last().filter(|_| more).map(cursor), items }
    }

    fn try_map<U>(self, map: impl FnMut(T) -> Result<U, Error>) -> Result<Page<U, C>, Error> {
        let items = self.items.into_iter().map(map).collect::<Result<_, _>>()?;
        Ok(Page { items, next: self.next })
    }
}

impl Store {
    /// Opens the store, making it if there is none, and ends what dead processes left open. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be used, the database is damaged, a newer program has written it, or an older one still uses it.
    pub fn open(options: Options) -> Result<(Self, Recovery), Error> {
        let folder = match options.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        let locks = membership::prepare(folder)?;
        let mut conn = Connection::open_writer(&options.path)?;
        // Order: the migration comes before the lock, so that processes that start at once do not take each other for older
        // ones. A newer program may migrate between the two, so the schema is checked again.
        conn.migrate(&options.path, || membership::is_in_use(&locks))?;
        let lock = membership::join(&locks)?;
        conn.migrate(&options.path, || Ok(true))?;
        let process = lock.process;
        let author = Author::new(&conn, process)?;
        let recovery = ledger::recover(&mut conn, &locks, author)?;

        let (messages, receiver) = mpsc::channel(options.queue.max(1));
        let counters = Arc::new(Counters::default());
        let place = Arc::new(Place::of(&options.path));
        let opened = (conn, Arc::clone(&place));
        let writer =
            Writer::new(opened, (lock, author), receiver, options.group_delay, Arc::clone(&counters));
        let join = thread::Builder::new()
            .name("gantry-store".to_owned())
            .spawn(move || writer.run())
            .map_err(Error::unexpected)?;
        let inner = Inner {
            process,
            locks,
            messages: Some(messages),
            thread: join.thread().clone(),
            join: Some(join),
            counters,
            readers: Readers::new(options.path),
            place,
        };
        Ok((Self { inner: Arc::new(inner) }, recovery))
    }

    pub fn process(&self) -> ProcessId {
        self.inner.process
    }

    pub fn is_alive(&self, process: ProcessId) -> bool {
        process == self.inner.process || membership::is_alive(&self.inner.locks, process)
    }

    /// Whether the database still lies where it was opened, for what is put on record only later.
    ///
    /// # Errors
    /// It was removed or replaced.
    pub fn check_place(&self) -> Result<(), Error> {
        self.inner.place.check()
    }

    /// Waits until everything that was accepted before is durable.
    pub async fn flush(&self) -> Result<(), Error> {
        self.write(OnCallerGone::Skip, |_| Ok(())).await
    }

    pub fn stats(&self) -> Stats {
        let counters = &self.inner.counters;
        Stats {
            commits: counters.commits.load(Ordering::Relaxed),
            entries: counters.entries.load(Ordering::Relaxed),
            lost: counters.lost.load(Ordering::Relaxed),
            queue_depth: self.inner.messages.as_ref().map_or(0, waiting),
        }
    }

    /// Commits what was accepted, closes the database and gives up the lock of this process. Every handle is closed
    /// by it; calls that are still open will be unknown at the next start.
    ///
    /// # Errors
    /// When the database could not be closed cleanly; the next start repairs it.
    pub async fn shutdown(&self) -> Result<(), Error> {
        // Order: the readers go first, so that the writer's connection is the last one and can empty the log.
        self.inner.readers.close();
        match self.wait(Message::Stop).await {
            // It was shut down before.
            Err(Error::Closed) => Ok(()),
            stopped => stopped,
        }
    }

    /// Runs a query behind everything that was accepted before it, so that a caller reads its own writes.
    async fn read_own_writes<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.flush().await?;
        self.read_committed(query).await
    }

    /// Runs a query on what is durable now: enough for tables whose writes are durable when they return.
    async fn read_committed<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.inner.readers.run(query).await
    }

    /// Changes approvals, grants or keys without an entry in the ledger, and waits until that is durable.
    async fn change<T: Send + 'static>(
        &self,
        change: impl Fn(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.write(OnCallerGone::Write, move |ledger| ledger.change(&change)).await
    }

    /// Has the writer do a job in its next transaction, and waits until that is durable.
    async fn write<T: Send + 'static>(
        &self,
        on_caller_gone: OnCallerGone,
        work: impl FnMut(&mut Ledger<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.wait(move |reply| Message::Job(Box::new(WriteJob { work, on_caller_gone, reply }))).await
    }

    /// Sends a message that is answered when it is durable.
    async fn wait<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, Error> {
        let (reply, answer) = Reply::new();
        self.send(message(reply)).await?;
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// Hands a message to the writer, and wakes it from its delay when a caller waits for the disk or, because enough
    /// messages have gathered, soon would wait for the channel.
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

fn check_size(what: &'static str, bytes: usize, limit: usize) -> Result<(), Error> {
    if bytes > limit { Err(Error::TooLarge { what, bytes, limit }) } else { Ok(()) }
}

fn page_size(limit: u32) -> u32 {
    if limit == 0 { PAGE_DEFAULT } else { limit.min(PAGE_MAX) }
}

/// Counts a transaction that changed approvals, grants or keys, so that other processes notice it.
fn count_change(conn: &Connection) -> Result<(), Error> {
    conn.execute(COUNT_CHANGE, &[]).map(|_| ())
}

fn count_changes(conn: &Connection) -> Result<i64, Error> {
    conn.first(CHANGES, &[], single).map(Option::unwrap_or_default)
}
