//! The response cache: answers that may be given again, keyed by the permit, with one execution for concurrent misses.
//!
//! The key is the permit's binding and the very provider, so an answer never precedes the authorisation of the call that gets
//! it, and never crosses projects, identities or agents, nor outlives the server or the folder that gave it. Only successes
//! are kept; a failure is shared with the calls that waited for the same execution and then forgotten.

use crate::pipeline::sleep_until_opt;
use gantry_core::digest::Digest;
use gantry_core::{CallError, ErrorCode, Permit, Refusal};
use gantry_provider::RawOutput;
use moka::future::Cache as Moka;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

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
enum NotCached {
    /// It failed, under the time limit of the caller that ran it.
    Failed(CallError, Duration),
    TooLarge(Arc<RawOutput>),
}

/// How long a caller waits for an answer, its own or that of an equal call.
#[derive(Debug)]
pub(crate) struct WaitLimits<'a> {
    /// Fires when the caller gives up.
    pub(crate) cancel: &'a CancellationToken,
    /// When it gives up by itself, if it said so.
    pub(crate) deadline: Option<Instant>,
    /// How long its own execution would be given.
    pub(crate) limit: Duration,
    /// The number of the provider that it is for.
    pub(crate) provider: u64,
}

/// An output and whether it was there already.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) output: Arc<RawOutput>,
    pub(crate) cached: bool,
}

#[derive(Debug)]
pub(crate) struct Cache(Moka<Key, Entry>);

/// What a call is bound to, and the number of the provider that answers it.
type Key = (Digest, u64);

#[derive(Debug)]
struct PerEntry;

impl moka::Expiry<Key, Entry> for PerEntry {
    fn expire_after_create(&self, _key: &Key, entry: &Entry, _now: Instant) -> Option<Duration> {
        Some(entry.lifetime)
    }
}

impl Default for Cache {
    fn default() -> Self {
        let weight = |_: &Key, entry: &Entry| u32::try_from(entry.output.size() + 256).unwrap_or(u32::MAX);
        Self(Moka::builder().max_capacity(CAPACITY).weigher(weight).expire_after(PerEntry).build())
    }
}

impl Cache {
    /// The kept answer to this call, or what `execute` gives, which is run once for all that ask at the same time and is kept
    /// for its lifetime.
    pub(crate) async fn get_or_execute<F>(
        &self,
        permit: &Permit,
        lifetime: Duration,
        limits: &WaitLimits<'_>,
        execute: impl Fn() -> F,
    ) -> Result<Answer, CallError>
    where
        F: Future<Output = Result<RawOutput, CallError>>,
    {
        loop {
            let ran = AtomicBool::new(false);
            let miss = async {
                ran.store(true, Ordering::Relaxed);
                let output = execute().await.map_err(|error| NotCached::Failed(error, limits.limit))?;
                let output = Arc::new(output);
                if output.size() > MAX_ENTRY {
                    Err(NotCached::TooLarge(output))
                } else {
                    Ok(Entry { output, lifetime })
                }
            };
            let mut finding = pin!(self.0.try_get_with((permit.binding(), limits.provider), miss));
            let found = tokio::select! {
                biased;
                found = &mut finding => Ok(found),
                () = limits.cancel.cancelled() => Err((ErrorCode::Canceled, "canceled")),
                () = sleep_until_opt(limits.deadline) => Err((ErrorCode::Timeout, "timeout")),
            };
            let found = match found {
                Ok(found) => found,
                // Cancel-safety: only a wait for another call's execution is dropped; the call's own ends by itself.
                Err(_) if ran.load(Ordering::Relaxed) => finding.await,
                Err((code, why)) => {
                    let message =
                        format!("{why} while another call fetched the same answer; nothing was run for it");
                    return Err(Refusal::new(code, message).into());
                }
            };
            let ran = ran.load(Ordering::Relaxed);
            return match found {
                Ok(entry) => Ok(Answer { output: entry.output, cached: !ran }),
                Err(unkept) => match &*unkept {
                    NotCached::TooLarge(output) => Ok(Answer { output: Arc::clone(output), cached: !ran }),
                    NotCached::Failed(error, limit) if !ran && is_caller_timeout(error, *limit, limits) => {
                        continue;
                    }
                    NotCached::Failed(error, _) => Err(error.clone()),
                },
            };
        }
    }
}

/// Whether an execution failed only because its caller had a shorter limit, which is no answer to this one.
fn is_caller_timeout(error: &CallError, limit: Duration, limits: &WaitLimits<'_>) -> bool {
    let code = error.error().code;
    // Equal limits share the failure: else callers of a tool that hangs would time out one after the other.
    code == ErrorCode::Canceled || (code == ErrorCode::Timeout && limit < limits.limit)
}
