//! The response cache: answers that may be given again, keyed by the permit, with one execution for concurrent misses.
//!
//! The key is the permit's binding, so an answer never precedes the authorisation of the call that gets it and never
//! crosses projects, identities or agents. Only successes are kept; what a call fails with is shared with those that
//! waited for the same execution and then forgotten.

use crate::provider::RawOutput;
use gantry_core::digest::Digest;
use gantry_core::{CallError, ErrorCode, Permit};
use moka::future::Cache as Moka;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of answers that are kept in all.
const CAPACITY: u64 = 64 * 1024 * 1024;

/// An answer larger than this is not worth keeping in memory.
const MAX_ENTRY: usize = 1024 * 1024;

#[derive(Debug, Clone)]
struct Entry {
    output: Arc<RawOutput>,
    lifetime: Duration,
}

/// Why an execution left nothing in the cache.
#[derive(Debug)]
enum Unkept {
    Failed(CallError),
    TooLarge(Arc<RawOutput>),
}

/// An output and whether it was there already.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) output: Arc<RawOutput>,
    pub(crate) cached: bool,
}

/// The cache.
#[derive(Debug)]
pub(crate) struct Cache(Moka<Digest, Entry>);

#[derive(Debug)]
struct PerEntry;

impl moka::Expiry<Digest, Entry> for PerEntry {
    fn expire_after_create(&self, _key: &Digest, entry: &Entry, _now: Instant) -> Option<Duration> {
        Some(entry.lifetime)
    }
}

impl Default for Cache {
    fn default() -> Self {
        let weight =
            |_: &Digest, entry: &Entry| u32::try_from(entry.output.text().len() + 256).unwrap_or(u32::MAX);
        Self(Moka::builder().max_capacity(CAPACITY).weigher(weight).expire_after(PerEntry).build())
    }
}

impl Cache {
    /// The kept answer to this call, or what `execute` gives, which is run once for all that ask at the same time.
    pub(crate) async fn through<F>(
        &self,
        permit: &Permit,
        execute: impl Fn() -> F,
    ) -> Result<Answer, CallError>
    where
        F: Future<Output = Result<RawOutput, CallError>>,
    {
        let Some(lifetime) = permit.tool().settings.cache else {
            let output = Arc::new(execute().await?);
            return Ok(Answer { output, cached: false });
        };
        loop {
            let ran = std::sync::atomic::AtomicBool::new(false);
            let miss = async {
                ran.store(true, std::sync::atomic::Ordering::Relaxed);
                let output = Arc::new(execute().await.map_err(Unkept::Failed)?);
                if output.text().len() > MAX_ENTRY {
                    Err(Unkept::TooLarge(output))
                } else {
                    Ok(Entry { output, lifetime })
                }
            };
            let found = self.0.try_get_with(permit.binding(), miss).await;
            let ran = ran.load(std::sync::atomic::Ordering::Relaxed);
            return match found {
                Ok(entry) => Ok(Answer { output: entry.output, cached: !ran }),
                Err(unkept) => match &*unkept {
                    Unkept::TooLarge(output) => Ok(Answer { output: Arc::clone(output), cached: !ran }),
                    // Another caller gave up; that is no answer to this one.
                    Unkept::Failed(error) if !ran && error.error().code == ErrorCode::Canceled => continue,
                    Unkept::Failed(error) => Err(error.clone()),
                },
            };
        }
    }
}
