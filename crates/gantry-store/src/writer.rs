//! The one thread that writes: it gathers messages into groups and commits each group once.
//!
//! A group in which a caller waits for the disk is committed at once; while that commit runs, the next group gathers by
//! itself. Other groups are delayed for more records, so that plain reads cost a fraction of a commit. During that delay the
//! thread is parked and does not listen to its channel, so sending a plain record costs no wakeup; senders that wait for the
//! disk unpark it (see `Store::send`).
//!
//! A failed commit leaves no state behind: its callers get the error, its plain records one more try, and the next group
//! begins from the head that it reads itself.

use crate::error::Error;
use crate::ledger::{Author, Ledger, WholeCall};
use crate::membership::ProcessLock;
use crate::options::{GROUP, PRUNE_EVERY, RETRY_PAUSE};
use crate::retention;
use crate::sessions::SessionRow;
use crate::sql::{Connection, Place};
use gantry_core::id::SessionId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// The answer to a caller that waits for the disk.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    sender: oneshot::Sender<Result<T, Error>>,
    /// The answer, kept back until the commit.
    answer: Option<Result<T, Error>>,
}

impl<T> Reply<T> {
    pub(crate) fn new() -> (Self, oneshot::Receiver<Result<T, Error>>) {
        let (sender, receiver) = oneshot::channel();
        (Self { sender, answer: None }, receiver)
    }

    /// Answers, with the error of the transaction if there was one.
    fn send(self, failed: Option<&Error>) {
        let answer = match failed {
            Some(error) => Err(error.clone()),
            None => self.answer.unwrap_or(Err(Error::Closed)),
        };
        // A caller that has gone away needs no answer.
        self.sender.send(answer).ok();
    }
}

/// What to do with a job whose caller has stopped waiting before it was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnCallerGone {
    Write,
    /// The record is worth nothing without its caller.
    Skip,
}

/// A job whose caller waits for the disk.
pub(crate) struct WriteJob<T, W> {
    pub(crate) work: W,
    pub(crate) on_caller_gone: OnCallerGone,
    pub(crate) reply: Reply<T>,
}

/// A [`WriteJob`] of any answer.
pub(crate) trait Durable: Send {
    /// Does the work inside the transaction of a group. An error fails the group.
    fn write(&mut self, ledger: &mut Ledger<'_>) -> Result<(), Error>;

    /// Answers the caller, with the error of the transaction if there was one.
    fn answer(self: Box<Self>, failed: Option<&Error>);
}

impl<T: Send, W: FnMut(&mut Ledger<'_>) -> Result<T, Error> + Send> Durable for WriteJob<T, W> {
    fn write(&mut self, ledger: &mut Ledger<'_>) -> Result<(), Error> {
        if self.on_caller_gone == OnCallerGone::Skip && self.reply.sender.is_closed() {
            return Ok(());
        }
        let before = ledger.conn.n_changed();
        match (self.work)(ledger) {
            // An error that comes after a part was written must undo it.
            Err(error) if ledger.conn.n_changed() != before => Err(error),
            // A damaged row that was only read concerns the callers that read it.
            Err(error) if error.aborts_group() && !matches!(error, Error::Corrupt { .. }) => Err(error),
            answer => {
                self.reply.answer = Some(answer);
                Ok(())
            }
        }
    }

    fn answer(self: Box<Self>, failed: Option<&Error>) {
        self.reply.send(failed);
    }
}

pub(crate) enum Message {
    /// Answered when it is durable, and with it everything before it.
    Job(Box<dyn Durable>),
    /// Answered when everything before it is durable and the database is closed.
    Stop(Reply<()>),
    /// Written with the next group, without an answer.
    Record(Record),
}

impl Message {
    /// Whether a caller waits for the commit.
    pub(crate) fn is_urgent(&self) -> bool {
        !matches!(self, Self::Record(_))
    }
}

/// A record that no caller waits for. It may hold secrets, so it has no `Debug` by which it could get into the log.
pub(crate) enum Record {
    Whole(Box<WholeCall>),
    OpenSession(Box<SessionRow>),
    CloseSession(SessionId, i64),
}

impl Record {
    fn write(&self, ledger: &mut Ledger<'_>) -> Result<(), Error> {
        match self {
            Self::Whole(whole) => ledger.record(whole),
            Self::OpenSession(session) => ledger.open_session(session),
            Self::CloseSession(id, at) => ledger.close_session(*id, *at),
        }
    }

    /// The call or the session that it is about.
    fn subject(&self) -> String {
        match self {
            Self::Whole(whole) => whole.head.id.to_string(),
            Self::OpenSession(session) => session.id.to_string(),
            Self::CloseSession(id, _) => id.to_string(),
        }
    }
}

/// Counters that the writer shares with its handle.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) lost: AtomicU64,
}

pub(crate) struct Writer {
    conn: Connection,
    place: Arc<Place>,
    lock: ProcessLock,
    author: Author,
    messages: mpsc::Receiver<Message>,
    group_delay: Duration,
    counters: Arc<Counters>,
    stopping: Vec<Reply<()>>,
    prune_at: Instant,
}

impl Writer {
    pub(crate) fn new(
        (conn, place): (Connection, Arc<Place>),
        (lock, author): (ProcessLock, Author),
        messages: mpsc::Receiver<Message>,
        group_delay: Duration,
        counters: Arc<Counters>,
    ) -> Self {
        let prune_at = Instant::now() + PRUNE_EVERY;
        Self { conn, place, lock, author, messages, group_delay, counters, stopping: Vec::new(), prune_at }
    }

    /// Writes until a message stops it or the last handle is gone; then closes the database.
    pub(crate) fn run(mut self) {
        let mut failed = Vec::new();
        while let Some(messages) = self.next_batch(!failed.is_empty()) {
            failed = self.commit_batch(&failed, messages);
        }
        self.finish();
    }

    /// The next group; `None` when nothing more can come. When records of a failed group wait for their second
    /// try, the group may be empty.
    fn next_batch(&mut self, retrying: bool) -> Option<Vec<Message>> {
        let mut messages = Vec::new();
        if retrying {
            thread::park_timeout(RETRY_PAUSE);
        } else {
            messages.push(self.messages.blocking_recv()?);
        }
        // Order: an old wakeup is used up before the channel is emptied. Senders unpark after sending, so their messages are
        // in the channel by now, and later ones unpark again.
        thread::park_timeout(Duration::ZERO);
        self.drain(&mut messages);
        let may_wait = !retrying && messages.len() < GROUP && !messages.iter().any(Message::is_urgent);
        if may_wait && !self.messages.is_closed() {
            thread::park_timeout(self.group_delay);
            self.drain(&mut messages);
        }
        Some(messages)
    }

    fn drain(&mut self, messages: &mut Vec<Message>) {
        while messages.len() < GROUP
            && let Ok(message) = self.messages.try_recv()
        {
            messages.push(message);
        }
    }

    /// Commits a group and answers its callers. Returns the records that deserve a second try.
    fn commit_batch(&mut self, retried: &[Record], mut messages: Vec<Message>) -> Vec<Record> {
        let failed = self.commit(retried, &mut messages).err();
        if let Some(error) = &failed {
            self.report(error, retried.len());
        }
        let mut again = Vec::new();
        for message in messages {
            match message {
                Message::Job(job) => job.answer(failed.as_ref()),
                Message::Stop(reply) => {
                    // Messages that were accepted before are still written; no more are accepted.
                    self.messages.close();
                    self.stopping.push(reply);
                }
                Message::Record(record) if failed.is_some() => again.push(record),
                Message::Record(_) => {}
            }
        }
        again
    }

    fn commit(&mut self, retried: &[Record], messages: &mut [Message]) -> Result<(), Error> {
        let (author, counters) = (self.author, &self.counters);
        let tx = self.conn.write()?;
        let mut ledger = Ledger::begin(&tx, author)?;
        for record in retried {
            write(&mut ledger, record, counters)?;
        }
        for message in messages {
            match message {
                Message::Job(job) => job.write(&mut ledger)?,
                Message::Record(record) => write(&mut ledger, record, counters)?,
                Message::Stop(_) => {}
            }
        }
        let entries = ledger.finish()?;
        if Instant::now() >= self.prune_at {
            retention::prune(&tx)?;
            self.prune_at = Instant::now() + PRUNE_EVERY;
        }
        self.place.check()?;
        tx.commit()?;
        counters.commits.fetch_add(1, Ordering::Relaxed);
        counters.entries.fetch_add(entries, Ordering::Relaxed);
        Ok(())
    }

    fn report(&self, error: &Error, lost: usize) {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        self.counters.lost.fetch_add(lost as u64, Ordering::Relaxed);
        tracing::error!(%error, cause, lost, "a group of the ledger could not be committed");
    }

    /// Closes the database and answers the callers that asked for the end.
    fn finish(self) {
        let closed = self.conn.close();
        // Order: the lock goes last, so that a process without a lock has nothing left to write.
        drop(self.lock);
        if let Err(error) = &closed {
            tracing::warn!(%error, "the store was not closed cleanly; the next start will repair it");
        }
        for mut reply in self.stopping {
            reply.answer = Some(Ok(()));
            reply.send(closed.as_ref().err());
        }
    }
}

/// Writes a record. One that does not fit the ledger is lost alone.
fn write(ledger: &mut Ledger<'_>, record: &Record, counters: &Counters) -> Result<(), Error> {
    match record.write(ledger) {
        Err(error) if !error.aborts_group() => {
            counters.lost.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%error, subject = record.subject(), "a record was not written");
            Ok(())
        }
        written => written,
    }
}
