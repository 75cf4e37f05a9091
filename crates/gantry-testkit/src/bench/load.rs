//! A closed loop: workers that each make one call after the other, and how long the calls took.

use super::report::{Figures, percentiles};
use anyhow::Result;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Calls for whose times a worker has room before it has to ask for more.
const ROOM: usize = 1 << 17;

/// One caller of a load.
pub(super) trait Worker: Send + 'static {
    /// Makes one call and checks its reply.
    fn call(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// What a closed loop did.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) calls: u64,
    pub(super) wall: Duration,
    /// The median and the 99th percentile of the calls' times, in microseconds.
    pub(super) times: Figures,
}

impl Load {
    /// Lets the workers call for some time and gives them back.
    pub(super) async fn run<W: Worker>(workers: Vec<W>, time: Duration) -> Result<(Vec<W>, Self)> {
        let start = Instant::now();
        let end = start + time;
        let mut running: JoinSet<Result<(W, Vec<f32>)>> = JoinSet::new();
        for mut worker in workers {
            running.spawn(async move {
                let mut times = Vec::with_capacity(ROOM);
                let mut now = Instant::now();
                while now < end {
                    worker.call().await?;
                    let then = std::mem::replace(&mut now, Instant::now());
                    times.push((now - then).as_secs_f32() * 1e6);
                }
                Ok((worker, times))
            });
        }
        let (mut workers, mut times) = (Vec::new(), Vec::new());
        while let Some(ended) = running.join_next().await {
            let (worker, took) = ended??;
            workers.push(worker);
            times.extend(took);
        }
        let (calls, wall) = (times.len() as u64, start.elapsed());
        let times = percentiles(times, [("p50 µs", 50), ("p99 µs", 99)]);
        Ok((workers, Self { calls, wall, times }))
    }

    /// The median, in microseconds.
    pub(super) fn median(&self) -> f64 {
        self.times[0].1
    }

    /// The rate, the median and the 99th percentile.
    pub(super) fn figures(&self) -> Figures {
        let rate = ("calls/s", self.calls as f64 / self.wall.as_secs_f64());
        std::iter::once(rate).chain(self.times.iter().copied()).collect()
    }
}
