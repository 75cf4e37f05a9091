//! Keeps one replica of a server alive: connects, lists, checks its health, and reconnects for as long as it takes.

use crate::capability_sessions::CapabilitySessions;
use crate::context::CHANGE_BYTES;
use crate::health::{HealthState, PingResult};
use crate::listing::Listing;
use crate::replica::Replica;
use crate::server::UpstreamServer;
use crate::uri_map;
use crate::view::{AT_ONCE, Ready, ReplicaState};
use gantry_core::raw;
use gantry_mcp::client::{self, Change, Connection, Protocol, UpstreamError};
use gantry_provider::HealthStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until, timeout};
use uuid::Uuid;

/// Notifications of a server that may wait to be handled.
const CHANGES: usize = 256;

/// A server that was ready for so long has recovered: its next failure counts as the first.
const HEALTHY: Duration = Duration::from_secs(60);

/// Servers often announce several changes at once; they are handled together.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// The lists of a server that announces changes all the time are read no more often than this.
const RELIST_EVERY: Duration = Duration::from_secs(1);

/// When a list that could not be read is read again.
const RELIST_AGAIN: Duration = Duration::from_secs(5);

/// The shortest time between two health checks.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// How long an orderly end of a connection may take.
const CLOSE: Duration = Duration::from_secs(5);

/// The waits between attempts to connect, in seconds; the last one is repeated for as long as it takes.
const WAITS: [u64; 7] = [0, 1, 2, 5, 10, 30, 60];

/// Waits are lengthened by up to this part of themselves, so that servers that failed together do not return together.
const JITTER_PERCENT: u64 = 20;

pub(super) async fn keep_alive(server: Arc<UpstreamServer>, n: usize) {
    let Some(replica) = server.replicas.get(n) else { return };
    let supervisor = Supervisor { server: &server, n, replica };
    let mut known = server.context.eras.last_spoken(&server.settings).await;
    let (mut failures, mut is_first) = (0_usize, true);
    loop {
        let begun = Instant::now();
        // Cancel-safety: a start that is given up leaves nothing behind.
        let started = tokio::select! {
            () = server.stop.cancelled() => return,
            started = supervisor.start(is_first, &mut known) => started,
        };
        is_first = false;
        let was_up = started.is_ok();
        let (lost, has_lost_session) = match started {
            Ok((connection, changes)) => {
                let lost = supervisor.serve(&connection, changes, &mut failures).await;
                (lost, connection.has_lost_session())
            }
            Err(reason) => (Some(reason), false),
        };
        if server.stop.is_cancelled() {
            return;
        }
        let Some(reason) = lost else {
            server.update(n, ReplicaState::restarting);
            failures = 0;
            continue;
        };
        // A server that forgets its sessions works.
        let wait = if has_lost_session {
            AT_ONCE.saturating_sub(begun.elapsed())
        } else {
            failures = failures.saturating_add(1);
            wait_after(failures - 1)
        };
        server.on_down(n, was_up, reason, wait);
        tokio::select! {
            () = server.stop.cancelled() => return,
            () = replica.restart.notified() => failures = 0,
            () = sleep(wait) => {}
        }
    }
}

struct Supervisor<'a> {
    server: &'a UpstreamServer,
    /// The place of the replica.
    n: usize,
    replica: &'a Replica,
}

/// A connection that is ready, and the notifications that come over it.
type Started = (Arc<Connection>, mpsc::Receiver<Change>);

impl Supervisor<'_> {
    /// Connects and lists. The first attempt waits for its turn among the servers that start at once. `known` is the era to
    /// try first, now and afterwards.
    async fn start(&self, is_first: bool, known: &mut Protocol) -> Result<Started, String> {
        let _turn = if is_first { self.server.context.starts.acquire().await.ok() } else { None };
        let limit = self.server.settings.options.startup_timeout.get();
        let failure = match timeout(limit, self.connect(known)).await {
            Ok(Ok(started)) => return Ok(started),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it was not ready within {} ms (startupTimeoutMs)", limit.as_millis()),
        };
        Err(self.describe_exit(failure).await)
    }

    /// A failure with what the process of the replica says about it, if there is one.
    async fn describe_exit(&self, failure: String) -> String {
        match &self.replica.process {
            Some(process) => process.describe_exit(failure).await,
            None => failure,
        }
    }

    async fn connect(&self, known: &mut Protocol) -> Result<Started, UpstreamError> {
        let Self { server, n, replica } = *self;
        let (settings, eras) = (&server.settings, &server.context.eras);
        let (protocol, declared) = (settings.options.protocol, settings.options.declared());
        let (sender, changes) = mpsc::channel(CHANGES);
        let target = server.target(replica, protocol, declared, sender.clone());
        let connection = Arc::new(client::connect(&target, known).await?);
        eras.remember(settings, connection.info().version);
        let asked = Instant::now();
        let listing = Listing::fetch(&connection).await?;
        let (number, sessions) = (server.context.next_number(), CapabilitySessions::new(sender));
        let ready = Ready { number, connection: Arc::clone(&connection), sessions };
        server.on_ready(n, ready, listing, asked.elapsed());
        Ok((connection, changes))
    }

    /// Watches a connection until it ends, and ends it. Returns why it was lost; nothing if the server is stopped or
    /// restarted.
    async fn serve(
        &self,
        connection: &Arc<Connection>,
        changes: mpsc::Receiver<Change>,
        failures: &mut usize,
    ) -> Option<String> {
        let (server, since) = (self.server, Instant::now());
        let lost = tokio::select! {
            lost = self.watch(connection, changes) => lost,
            never = server.resubscribe(connection) => match never {},
        };
        // Stopping the server closes its connections, which is no failure, whichever of the two is seen first.
        let lost = lost.filter(|_| !server.stop.is_cancelled());
        if since.elapsed() >= HEALTHY {
            *failures = 0;
        }
        if let Some(reason) = &lost {
            // Calls fail fast from now on, however long the end of the connection takes.
            server.update(self.n, |state| state.down(server.secrets.mask(reason.clone()), Duration::ZERO));
        }
        if timeout(CLOSE, connection.close()).await.is_err() {
            tracing::debug!("{}: the connection did not close in time", server.id());
        }
        Some(self.describe_exit(lost?).await)
    }

    /// Returns why the connection was lost; nothing if the server is stopped or restarted.
    async fn watch(&self, connection: &Connection, mut changes: mpsc::Receiver<Change>) -> Option<String> {
        let health = self.server.settings.options.health_check;
        let interval = health.interval.get().max(MIN_INTERVAL);
        let mut checks = interval_at(Instant::now() + interval, interval);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut checked, mut relist_at, mut listed_at) =
            (HealthState::default(), None::<Instant>, None::<Instant>);
        loop {
            tokio::select! {
                () = self.server.stop.cancelled() => return None,
                () = self.replica.restart.notified() => return None,
                reason = connection.closed() => return Some(reason),
                Some(change) = changes.recv() => pass_on(self.server, change),
                () = self.replica.lists_changed.notified() => {
                    let soonest = listed_at.map_or_else(Instant::now, |at| at + RELIST_EVERY);
                    relist_at = Some(relist_at.unwrap_or(soonest.max(Instant::now() + DEBOUNCE)));
                }
                () = sleep_until(relist_at.unwrap_or_else(Instant::now)), if relist_at.is_some() => {
                    listed_at = Some(Instant::now());
                    relist_at = (!self.relist(connection).await).then(|| Instant::now() + RELIST_AGAIN);
                }
                _ = checks.tick() => {
                    if self.check(connection, &mut checked).await == HealthStatus::Red {
                        let limit = health.timeout.get().as_millis();
                        return Some(format!("it did not answer two health checks within {limit} ms each"));
                    }
                }
            }
        }
    }

    /// Pings the replica, and sets its health. Any message that came from it since the last missed ping proves that it is
    /// there, above all a late answer.
    async fn check(&self, connection: &Connection, checked: &mut HealthState) -> HealthStatus {
        let (heard, limit) = (&self.replica.heard, self.server.settings.options.health_check.timeout.get());
        if !checked.has_missed() {
            heard.store(false, Ordering::Relaxed);
        }
        let (ping, latency) = match connection.ping(limit).await {
            Ok(time) => (PingResult::Answered(time), Some(time)),
            Err(_) if heard.swap(false, Ordering::Relaxed) => (PingResult::Late, None),
            Err(_) => (PingResult::Missed, None),
        };
        let mut health = HealthStatus::Red;
        self.server.update(self.n, |state| {
            health = checked.record(ping, limit, &mut state.in_flight);
            state.set_health(health, latency);
        });
        health
    }

    /// Reads the lists again; if that fails, the old ones stay. Returns whether it could.
    async fn relist(&self, connection: &Connection) -> bool {
        let (server, limit) = (self.server, self.server.settings.options.startup_timeout.get());
        let failure = match timeout(limit, Listing::fetch(connection)).await {
            Ok(Ok(mut listing)) => {
                listing.keep_output_checks(server.listing().as_deref());
                server.update(self.n, |state| state.listing = Some(Arc::new(listing)));
                return true;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::warn!("{}: its lists changed and cannot be read: {failure}", server.id());
        false
    }
}

/// Passes on a notification that sessions are subscribed to, with the URIs that clients know.
pub(super) fn pass_on(server: &UpstreamServer, change: Change) {
    let subscriptions = &server.context.subscriptions;
    let (Change::Updated { params, .. }
    | Change::Log { params, .. }
    | Change::ElicitationComplete { params, .. }) = &change
    else {
        return;
    };
    if params.len() > CHANGE_BYTES {
        tracing::debug!("{}: a notification of {} bytes is dropped", server.id(), params.len());
        return;
    }
    let change = match change {
        Change::Updated { provider, uri, params } => {
            if !subscriptions.has_subscriber(&provider, &uri) {
                return;
            }
            let shown = server.uri_map.rewrite(uri_map::OBJECT, &params);
            let Some(uri) = raw::string_member(&shown, "uri") else { return };
            Change::Updated { provider, uri: uri.into(), params: shown.into() }
        }
        Change::Log { level, .. } if level < subscriptions.least_level() => return,
        change @ (Change::Log { .. } | Change::ElicitationComplete { .. } | Change::ListChanged { .. }) => {
            change
        }
    };
    server.context.observer.changed(change);
}

/// The wait after one more failure, when there were so many in a row before.
fn wait_after(failures: usize) -> Duration {
    let seconds = WAITS.get(failures).or(WAITS.last()).copied().unwrap_or_default();
    let span = seconds * 1000 * JITTER_PERCENT / 100;
    let jitter = u64::from(Uuid::new_v4().as_fields().0) % (span + 1);
    Duration::from_millis(seconds * 1000 + jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_jitter_and_never_end() {
        for (failures, seconds) in [0, 1, 2, 5, 10, 30, 60, 60, 60].into_iter().enumerate() {
            let wait = wait_after(failures);
            let (least, most) = (Duration::from_secs(seconds), Duration::from_millis(seconds * 1200));
            assert!((least..=most).contains(&wait), "{wait:?} after {seconds} s");
        }
    }
}
