//! Counts the bytes of a job, and notices idle connections.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// The bytes that a job may transfer, and those that it has.
#[derive(Debug)]
pub(super) struct Budget {
    limit: u64,
    spent: AtomicU64,
}

impl Budget {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, spent: AtomicU64::new(0) }
    }

    pub(super) fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    pub(super) fn is_over(&self) -> bool {
        self.left() == 0
    }

    fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent())
    }

    fn spend(&self, bytes: usize) {
        self.spent.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The meter of one connection: the job's budget, and the time of the last transfer.
#[derive(Debug)]
pub(super) struct Meter {
    budget: Arc<Budget>,
    /// The connection began after the budget was spent. It only carries the answer that says so.
    over_budget: bool,
    began: Instant,
    /// Milliseconds from `began` to the last transfer.
    last_activity: AtomicU64,
}

impl Meter {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self {
            over_budget: budget.is_over(),
            budget,
            began: Instant::now(),
            last_activity: AtomicU64::new(0),
        }
    }

    /// Returns when nothing was transferred for this long.
    pub(super) async fn idle(&self, limit: Duration) {
        loop {
            let last = self.began + Duration::from_millis(self.last_activity.load(Ordering::Relaxed));
            if last.elapsed() >= limit {
                return;
            }
            tokio::time::sleep_until(last + limit).await;
        }
    }

    /// How many bytes may be transferred next.
    fn left(&self) -> io::Result<usize> {
        if self.over_budget {
            return Ok(usize::MAX);
        }
        match self.budget.left() {
            0 => Err(io::Error::new(io::ErrorKind::QuotaExceeded, "the job has used up its bytes")),
            left => Ok(usize::try_from(left).unwrap_or(usize::MAX)),
        }
    }

    fn count(&self, bytes: usize) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_activity.store(now, Ordering::Relaxed);
        self.budget.spend(bytes);
    }
}

/// A stream whose bytes are counted.
#[derive(Debug)]
pub(super) struct Metered<S> {
    inner: S,
    meter: Arc<Meter>,
}

impl<S> Metered<S> {
    pub(super) fn new(inner: S, meter: Arc<Meter>) -> Self {
        Self { inner, meter }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Limit: at most one buffer more than is left is read.
        self.meter.left()?;
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        self.meter.count(buf.filled().len().saturating_sub(before));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let left = self.meter.left()?.min(data.len());
        let data = data.get(..left).unwrap_or(data);
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, data))?;
        self.meter.count(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
