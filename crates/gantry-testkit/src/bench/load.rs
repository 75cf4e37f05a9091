//! A closed loop: workers that each make one call after the other, and how long the calls took.

use super::report::Figures;
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

/// What a closed loop did; the percentiles of the calls' times are in microseconds.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) calls: u64,
    pub(super) wall: Duration,
    pub(super) p50: f64,
    pub(super) p99: f64,
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
        let wall = start.elapsed();
        times.sort_unstable_by(f32::total_cmp);
        let percentile =
            |part: usize| times.get(times.len() * part / 100).map_or(f64::NAN, |time| (*time).into());
        Ok((workers, Self { calls: times.len() as u64, wall, p50: percentile(50), p99: percentile(99) }))
    }

    pub(super) fn figures(&self) -> Figures {
        let rate = self.calls as f64 / self.wall.as_secs_f64();
        vec![("calls/s", rate), ("p50 µs", self.p50), ("p99 µs", self.p99)]
    }
}
