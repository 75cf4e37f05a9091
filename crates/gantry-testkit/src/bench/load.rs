//! A closed loop: workers that each make one call after the other, and how long the calls took.

use anyhow::Result;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Calls for whose times a worker has room before it has to ask for more.
const ROOM: usize = 1 << 17;

/// Somebody who makes calls.
pub(super) trait Worker: Send + 'static {
    /// Makes one call and checks its reply.
    fn call(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// What a closed loop did.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) calls: u64,
    pub(super) wall: Duration,
    /// In nanoseconds, ascending.
    times: Vec<u32>,
}

impl Load {
    /// Lets the workers call for some time and gives them back.
    ///
    /// # Errors
    /// A call failed; the others are not waited for.
    pub(super) async fn run<W: Worker>(workers: Vec<W>, time: Duration) -> Result<(Vec<W>, Self)> {
        let start = Instant::now();
        let end = start + time;
        let mut running: JoinSet<Result<(W, Vec<u32>)>> = JoinSet::new();
        for mut worker in workers {
            running.spawn(async move {
                let mut times = Vec::with_capacity(ROOM);
                let mut now = Instant::now();
                while now < end {
                    worker.call().await?;
                    let then = std::mem::replace(&mut now, Instant::now());
                    times.push(u32::try_from((now - then).as_nanos()).unwrap_or(u32::MAX));
                }
                Ok((worker, times))
            });
        }
        let mut workers = Vec::new();
        let mut times = Vec::new();
        while let Some(ended) = running.join_next().await {
            let (worker, took) = ended??;
            workers.push(worker);
            times.extend(took);
        }
        let wall = start.elapsed();
        times.sort_unstable();
        Ok((workers, Self { calls: times.len() as u64, wall, times }))
    }

    /// The time within which this part of the calls had ended, in microseconds.
    pub(super) fn quantile(&self, part: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        let n = (last as f64 * part).round() as usize;
        f64::from(self.times.get(n).copied().unwrap_or(0)) / 1e3
    }

    pub(super) fn per_second(&self) -> f64 {
        self.calls as f64 / self.wall.as_secs_f64()
    }
}
