//! The one thread that writes: it gathers messages into groups and commits each group once.
//!
//! A group in which somebody waits for the disk is committed at once; while that commit runs, the next group
//! gathers by itself. A group in which nobody waits lingers for more, so that plain reads cost a fraction of a
//! commit. During the linger the thread is parked and not listening to its channel, so a sender of a plain record
//! wakes nobody; senders that wait unpark it (see `Store::send`).
//!
//! A failed commit leaves no state behind: its waiters get the error, its plain records one more try, and the
//! next group begins from the head that it reads itself.

use crate::error::Error;
use crate::keep;
use crate::ledger::{Answer, Ledger};
use crate::node::NodeLock;
use crate::options::{GROUP, PRUNE_EVERY, RETRY_PAUSE};
use crate::row::{SessionRow, WholeCall};
use gantry_core::id::SessionId;
use rusqlite::{Connection, TransactionBehavior};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Somebody who waits for the disk.
#[derive(Debug)]
pub(crate) struct Waiter<T> {
    reply: oneshot::Sender<Result<T, Error>>,
    /// The answer, kept back until the commit.
    answer: Option<Result<T, Error>>,
}

impl<T> Waiter<T> {
    /// A waiter and the place where the answer will come.
    pub(crate) fn new() -> (Self, oneshot::Receiver<Result<T, Error>>) {
        let (reply, answer) = oneshot::channel();
        (Self { reply, answer: None }, answer)
    }

    /// Answers, with the error of the transaction if there was one.
    fn release(self, failed: Option<&Error>) {
        let answer = match failed {
            Some(error) => Err(error.clone()),
            None => self.answer.unwrap_or(Err(Error::Closed)),
        };
        // A waiter that has gone away needs no answer.
        self.reply.send(answer).ok();
    }
}

/// What becomes of work whose caller has stopped waiting before it was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Abandoned {
    /// It is done all the same.
    Done,
    /// It is left out: what it records is worth nothing without its caller.
    LeftOut,
}

/// Something to be written whose caller waits for the disk.
pub(crate) struct Job<T, W> {
    pub(crate) work: W,
    pub(crate) abandoned: Abandoned,
    pub(crate) waiter: Waiter<T>,
}

/// A job of any answer.
pub(crate) trait Durable: Send {
    /// Does the work inside the transaction of a group.
    fn write(&mut self, ledger: &mut Ledger<'_>) -> Result<(), Error>;

    /// Answers the caller, with the error of the transaction if there was one.
    fn release(self: Box<Self>, failed: Option<&Error>);
}

impl<T: Send, W: FnMut(&mut Ledger<'_>) -> Answer<T> + Send> Durable for Job<T, W> {
    fn write(&mut self, ledger: &mut Ledger<'_>) -> Result<(), Error> {
        if self.abandoned == Abandoned::Done || !self.waiter.reply.is_closed() {
            self.waiter.answer = Some((self.work)(ledger)?);
        }
        Ok(())
    }

    fn release(self: Box<Self>, failed: Option<&Error>) {
        self.waiter.release(failed);
    }
}

/// What the writer is asked.
pub(crate) enum Message {
    /// Answered when it is durable, and with it everything before it.
    Job(Box<dyn Durable>),
    /// Answered when everything before it is durable and the database is closed.
    Stop(Waiter<()>),
    /// Written with the next group; nobody waits.
    Note(Note),
}

impl Message {
    /// Whether somebody waits for the commit.
    pub(crate) fn is_urgent(&self) -> bool {
        !matches!(self, Self::Note(_))
    }
}

/// What is written without anybody waiting for it.
#[derive(Debug)]
pub(crate) enum Note {
    /// A whole call.
    Whole(Box<WholeCall>),
    /// A session began.
    OpenSession(Box<SessionRow>),
    /// A session was used.
    TouchSession(SessionId, i64),
    /// A session ended.
    CloseSession(SessionId, i64),
}

/// Counters that the writer shares with its handle.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) lost: AtomicU64,
}

/// The state of the writer's thread.
pub(crate) struct Writer {
    conn: Connection,
    lock: NodeLock,
    messages: mpsc::Receiver<Message>,
    linger: Duration,
    counters: Arc<Counters>,
    stopping: Vec<Waiter<()>>,
    forget_at: Instant,
}

impl Writer {
    pub(crate) fn new(
        conn: Connection,
        lock: NodeLock,
        messages: mpsc::Receiver<Message>,
        linger: Duration,
        counters: Arc<Counters>,
    ) -> Self {
        let forget_at = Instant::now() + PRUNE_EVERY;
        Self { conn, lock, messages, linger, counters, stopping: Vec::new(), forget_at }
    }

    /// Writes until it is told to stop or the last handle is gone; then closes the database.
    pub(crate) fn run(mut self) {
        let mut failed = Vec::new();
        while let Some(messages) = self.gather(!failed.is_empty()) {
            failed = self.settle(&failed, messages);
        }
        self.finish();
    }

    /// The next group; `None` when nothing more can come. When records of a failed group wait for their second
    /// try, the group may be empty.
    fn gather(&mut self, retrying: bool) -> Option<Vec<Message>> {
        let mut messages = Vec::new();
        if retrying {
            thread::park_timeout(RETRY_PAUSE);
        } else {
            messages.push(self.messages.blocking_recv()?);
        }
        // Order: an old ring is used up before the channel is emptied. Senders ring after sending, so what was
        // rung for is in the channel by now, and what comes later rings again.
        thread::park_timeout(Duration::ZERO);
        self.drain(&mut messages);
        let linger = !retrying && messages.len() < GROUP && !messages.iter().any(Message::is_urgent);
        if linger && !self.messages.is_closed() {
            thread::park_timeout(self.linger);
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

    /// Commits a group and answers its waiters. Returns the records that deserve a second try.
    fn settle(&mut self, retried: &[Note], mut messages: Vec<Message>) -> Vec<Note> {
        let failed = self.commit(retried, &mut messages).err();
        if let Some(error) = &failed {
            self.report(error, retried.len());
        }
        let mut again = Vec::new();
        for message in messages {
            match message {
                Message::Job(job) => job.release(failed.as_ref()),
                Message::Stop(waiter) => {
                    // What was accepted before is still written; nothing is accepted any more.
                    self.messages.close();
                    self.stopping.push(waiter);
                }
                Message::Note(note) if failed.is_some() => again.push(note),
                Message::Note(_) => {}
            }
        }
        again
    }

    fn commit(&mut self, retried: &[Note], messages: &mut [Message]) -> Result<(), Error> {
        let tx =
            self.conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Error::sqlite)?;
        let mut ledger = Ledger::begin(&tx, self.lock.node)?;
        for note in retried {
            write(&mut ledger, note)?;
        }
        for message in messages {
            match message {
                Message::Job(job) => job.write(&mut ledger)?,
                Message::Note(note) => write(&mut ledger, note)?,
                Message::Stop(_) => {}
            }
        }
        let entries = ledger.finish()?;
        if Instant::now() >= self.forget_at {
            keep::forget(&tx)?;
            self.forget_at = Instant::now() + PRUNE_EVERY;
        }
        tx.commit().map_err(Error::sqlite)?;
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.counters.entries.fetch_add(entries, Ordering::Relaxed);
        Ok(())
    }

    fn report(&self, error: &Error, lost: usize) {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        self.counters.lost.fetch_add(lost as u64, Ordering::Relaxed);
        tracing::error!(%error, cause, lost, "a group of the ledger could not be committed");
    }

    /// Moves the log into the database file, closes it and answers those who asked for the end.
    fn finish(self) {
        let checkpoint = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let closed = checkpoint.and(self.conn.close().map_err(|(_, error)| error)).map_err(Error::sqlite);
        // Order: the lock goes last, so that a node without a lock has nothing left to write.
        drop(self.lock);
        if let Err(error) = &closed {
            tracing::warn!(%error, "the store was not closed cleanly; the next start will repair it");
        }
        for waiter in self.stopping {
            waiter.release(closed.as_ref().err());
        }
    }
}

fn write(ledger: &mut Ledger<'_>, note: &Note) -> Result<(), Error> {
    match note {
        Note::Whole(whole) => ledger.record(whole),
        Note::OpenSession(session) => ledger.open_session(session),
        Note::TouchSession(id, at) => {
            ledger.touch_session(*id, *at);
            Ok(())
        }
        Note::CloseSession(id, at) => ledger.close_session(*id, *at),
    }
}
