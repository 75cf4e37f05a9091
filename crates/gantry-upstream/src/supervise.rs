//! Keeps one replica of a server alive: connects, lists, checks its health, and reconnects for as long as it takes.

use crate::backoff::Backoff;
use crate::context::CHANGE_BYTES;
use crate::health::{HealthState, PingResult};
use crate::listing::Listing;
use crate::replica::Replica;
use crate::server::UpstreamServer;
use crate::uri_map::MessageKind;
use gantry_core::raw;
use gantry_mcp::client::{self, Connection, Event, Failure, Target};
use gantry_provider::HealthStatus;
use gantry_provider::client::LogLevel;
use gantry_provider::resources::{Change, ListKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until, timeout};

/// Notifications of a server that may wait to be handled.
const EVENTS: usize = 256;

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

/// Why a connection is not watched any more.
enum End {
    Stopped,
    Restarted,
    Lost(String),
}

/// A connection that is ready.
struct Started {
    connection: Arc<Connection>,
    listing: Listing,
    /// How long the first list took.
    latency: Duration,
    events: mpsc::Receiver<Event>,
}

/// Keeps a replica alive until its server is stopped.
pub(super) async fn replica(server: Arc<UpstreamServer>, n: usize) {
    let Some(replica) = server.replicas.get(n) else { return };
    let mut backoff = Backoff::default();
    let mut first = true;
    loop {
        // Cancel-safety: a start that is given up leaves nothing behind.
        let started = tokio::select! {
            () = server.stop.cancelled() => return,
            started = start(&server, replica, first) => started,
        };
        first = false;
        let reason = match started {
            Ok(started) => match serve(&server, n, replica, started, &mut backoff).await {
                End::Stopped => return,
                End::Restarted => {
                    server.on_restart(replica);
                    continue;
                }
                End::Lost(reason) => reason,
            },
            Err(reason) => reason,
        };
        let wait = backoff.next();
        server.on_down(replica, reason, wait);
        tokio::select! {
            () = server.stop.cancelled() => return,
            () = replica.restart.notified() => backoff.reset(),
            () = sleep(wait) => {}
        }
    }
}

/// Connects and lists. The first attempt waits for its turn among the servers that start at once.
async fn start(server: &UpstreamServer, replica: &Replica, first: bool) -> Result<Started, String> {
    let _turn = if first { server.context.starts.acquire().await.ok() } else { None };
    let limit = server.settings.startup_timeout;
    let failure = match timeout(limit, connect(server, replica)).await {
        Ok(Ok(started)) => return Ok(started),
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => format!("it was not ready within {} ms (startupTimeoutMs)", limit.as_millis()),
    };
    Err(match &replica.process {
        Some(process) => process.describe_exit(failure).await,
        None => failure,
    })
}

async fn connect(server: &UpstreamServer, replica: &Replica) -> Result<Started, Failure> {
    let settings = &server.settings;
    let (sender, events) = mpsc::channel(EVENTS);
    let target = Target {
        name: Arc::clone(&settings.id),
        transport: replica.transport.clone(),
        protocol: settings.protocol,
        declared: settings.declared,
        startup_timeout: settings.startup_timeout,
        trace: Some(server.frame_tap(replica)),
        events: sender.clone(),
    };
    let connection = Arc::new(client::connect(&target, server.context.eras.of(settings)).await?);
    server.context.eras.remember(settings, connection.about().version);
    let asked = Instant::now();
    let listing = Listing::fetch(&connection).await?;
    replica.capability_sessions.begin(sender);
    Ok(Started { connection, listing, latency: asked.elapsed(), events })
}

/// Watches a connection until it ends, and ends it.
async fn serve(
    server: &UpstreamServer,
    n: usize,
    replica: &Replica,
    started: Started,
    backoff: &mut Backoff,
) -> End {
    let Started { connection, listing, latency, events } = started;
    let since = Instant::now();
    server.on_ready(n, &connection, listing, latency);
    let end = tokio::select! {
        end = watch(server, replica, &connection, events) => end,
        never = server.resubscribe(&connection) => match never {},
    };
    if since.elapsed() >= HEALTHY || matches!(end, End::Restarted) {
        backoff.reset();
    }
    if let End::Lost(reason) = &end {
        // Calls fail fast from now on, however long the end of the connection takes.
        replica.down(server.secrets.mask(reason.clone()), Duration::ZERO);
    }
    if timeout(CLOSE, connection.close()).await.is_err() {
        tracing::debug!("{}: the connection did not close in time", server.settings.id);
    }
    match (end, &replica.process) {
        (End::Lost(reason), Some(process)) => End::Lost(process.describe_exit(reason).await),
        (end, _) => end,
    }
}

async fn watch(
    server: &UpstreamServer,
    replica: &Replica,
    connection: &Connection,
    mut events: mpsc::Receiver<Event>,
) -> End {
    let health = server.settings.health;
    let interval = health.interval.max(MIN_INTERVAL);
    let mut checks = interval_at(Instant::now() + interval, interval);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut checked, mut relist_at, mut listed_at) =
        (HealthState::default(), None::<Instant>, None::<Instant>);
    loop {
        tokio::select! {
            () = server.stop.cancelled() => return End::Stopped,
            () = replica.restart.notified() => return End::Restarted,
            reason = connection.closed() => return End::Lost(reason),
            Some(event) = events.recv() => {
                if announce(server, event).is_some() {
                    let soonest = listed_at.map_or_else(Instant::now, |at| at + RELIST_EVERY);
                    relist_at = Some(relist_at.unwrap_or(soonest.max(Instant::now() + DEBOUNCE)));
                }
            }
            () = at(relist_at) => {
                listed_at = Some(Instant::now());
                relist_at = relist(server, replica, connection).await.err().map(|()| Instant::now() + RELIST_AGAIN);
            }
            _ = checks.tick() => {
                if !checked.has_missed() {
                    replica.heard.store(false, Ordering::Relaxed);
                }
                let ping = check(replica, connection, health.timeout).await;
                let latency = match ping { PingResult::Answered(time) => Some(time), PingResult::Late | PingResult::Missed => None };
                let status = checked.record(ping, health.timeout, &replica.in_flight);
                if status == HealthStatus::Red {
                    return End::Lost(format!("it did not answer two health checks within {} ms each", health.timeout.as_millis()));
                }
                replica.checked(status, latency);
            }
        }
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Pings a replica. Any message that came from it since the last missed ping proves that it is there, above all a late
/// answer.
async fn check(replica: &Replica, connection: &Connection, limit: Duration) -> PingResult {
    let asked = Instant::now();
    match connection.ping(limit).await {
        Ok(time) => PingResult::Answered(time),
        // It does not know `ping`, but it answers.
        Err(Failure::Answered(_)) => PingResult::Answered(asked.elapsed()),
        Err(Failure::Unavailable(_) | Failure::Lost(_) | Failure::Canceled) => {
            if replica.heard.swap(false, Ordering::Relaxed) { PingResult::Late } else { PingResult::Missed }
        }
    }
}

/// Passes on a notification that sessions are subscribed to. Returns the list that has to be read again, if one has.
pub(super) fn announce(server: &UpstreamServer, event: Event) -> Option<ListKind> {
    let (provider, subscriptions) = (Arc::clone(&server.settings.id), &server.context.subscriptions);
    let change = match event {
        Event::Changed(kind) => return Some(kind),
        Event::Updated(params) | Event::Log(params) | Event::ElicitationComplete(params)
            if params.len() > CHANGE_BYTES =>
        {
            tracing::debug!("{provider}: a notification of {} bytes is dropped", params.len());
            return None;
        }
        Event::Updated(params) => {
            let own = raw::string_member(&params, "uri")?;
            if !subscriptions.has_subscriber(&provider, &own) {
                return None;
            }
            let shown = server.uri_map().rewrite(MessageKind::Uri, &params);
            let uri = raw::string_member(&shown, "uri")?.into();
            Change::Updated { provider, uri, params: shown.into() }
        }
        Event::Log(params) => {
            let level = raw::string_member(&params, "level").and_then(|word| LogLevel::parse(&word));
            let level = level.unwrap_or(LogLevel::Info);
            if level < subscriptions.least_level() {
                return None;
            }
            Change::Log { provider, level, params }
        }
        Event::ElicitationComplete(params) => Change::ElicitationComplete { provider, params },
    };
    server.context.observer.changed(change);
    None
}

/// Reads the lists again; if that fails, the old ones stay.
async fn relist(server: &UpstreamServer, replica: &Replica, connection: &Connection) -> Result<(), ()> {
    let failure = match timeout(server.settings.startup_timeout, Listing::fetch(connection)).await {
        Ok(Ok(listing)) => {
            replica.listed(Arc::new(listing));
            server.refresh_view();
            return Ok(());
        }
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => "no answer in time".to_owned(),
    };
    tracing::warn!("{}: its lists changed and cannot be read: {failure}", server.settings.id);
    Err(())
}
