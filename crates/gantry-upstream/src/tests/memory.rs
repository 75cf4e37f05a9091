//! Tests of a server in memory, with a clock of their own: what health checks come to, and what it gets when it is back.

use super::*;
use gantry_core::id::SessionId;
use gantry_core::{Caller, Role};
use gantry_mcp::client::{IoStreams, Spawn};
use gantry_provider::server::RequestScope;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex, split};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// What a server does with a request.
enum Step {
    Answer(Value),
    /// The same after a while, in which it does nothing else.
    Late(Duration, Value),
    Silence,
}

/// Answers every request of every connection; connections count from 1.
type Script = Arc<dyn Fn(u64, &Value) -> Step + Send + Sync>;

/// A server in memory.
struct Memory {
    script: Script,
    connections: watch::Sender<u64>,
    /// Every request that came, by its connection.
    asked: Arc<watch::Sender<Vec<(u64, Value)>>>,
    /// Drops all connections when it moves on.
    drops: watch::Sender<()>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Spawn for Memory {
    fn spawn(&self) -> BoxFuture<'_, Result<IoStreams, String>> {
        let (ours, theirs) = duplex(64 * 1024);
        self.connections.send_modify(|n| *n += 1);
        let number = *self.connections.borrow();
        let (script, asked, mut drops) =
            (Arc::clone(&self.script), Arc::clone(&self.asked), self.drops.subscribe());
        tokio::spawn(async move {
            tokio::select! {
                () = serve(theirs, number, &script, &asked) => {}
                _ = drops.changed() => {}
            }
        });
        let (reader, writer) = split(ours);
        let wires = IoStreams { reader: Box::new(reader), writer: Box::new(writer), guard: Box::new(()) };
        Box::pin(std::future::ready(Ok(wires)))
    }
}

async fn serve(wires: DuplexStream, number: u64, script: &Script, asked: &watch::Sender<Vec<(u64, Value)>>) {
    let (reader, mut writer) = split(wires);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap();
        let Some(id) = request.get("id").cloned() else { continue };
        asked.send_modify(|asked| asked.push((number, request.clone())));
        let result = match script(number, &request) {
            Step::Answer(result) => result,
            Step::Late(time, result) => {
                sleep(time).await;
                result
            }
            Step::Silence => continue,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

/// What a server that works answers.
fn plain(request: &Value) -> Value {
    match request["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25", "serverInfo": { "name": "m", "version": "1" },
            "capabilities": { "tools": {}, "resources": { "subscribe": true } },
        }),
        Some("tools/list") => json!({ "tools": [{ "name": "a", "inputSchema": { "type": "object" } }] }),
        Some("resources/list") => json!({ "resources": [] }),
        Some("resources/templates/list") => json!({ "resourceTemplates": [] }),
        _ => json!({}),
    }
}

/// A legacy server with these replicas, once it is ready.
pub(super) async fn started_at(
    context: &Arc<UpstreamContext>,
    replicas: Vec<Replica>,
) -> Arc<UpstreamServer> {
    let mut settings = two_replicas(None);
    settings.options.protocol = Protocol::Legacy;
    let server = UpstreamServer::with_replicas(settings, context, |_, _, _| replicas);
    Arc::clone(&server).start();
    let mut changed = server.subscribe().unwrap();
    while !server.has_settled() {
        changed.changed().await.unwrap();
    }
    server
}

impl Memory {
    fn new(script: impl Fn(u64, &Value) -> Step + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            script: Arc::new(script),
            connections: watch::Sender::new(0),
            asked: Arc::new(watch::Sender::new(Vec::new())),
            drops: watch::Sender::new(()),
        })
    }

    /// A provider whose only replica this is, once it is ready.
    async fn started(self: &Arc<Self>) -> Arc<UpstreamServer> {
        self.started_for(Arc::<Changes>::default()).await
    }

    /// The same for this observer.
    async fn started_for(self: &Arc<Self>, observer: Arc<dyn Observer>) -> Arc<UpstreamServer> {
        let transport = Transport::Stdio(Arc::clone(self) as _);
        started_at(&context(observer), vec![Replica::new("1".into(), transport, None)]).await
    }

    /// How often a connection was asked this.
    fn count(&self, connection: u64, method: &str) -> usize {
        let of = |(n, request): &&(u64, Value)| *n == connection && request["method"] == method;
        self.asked.borrow().iter().filter(of).count()
    }

    /// Waits until so many connections were made.
    async fn has_connections(&self, n: u64) {
        self.connections.subscribe().wait_for(|made| *made >= n).await.unwrap();
    }
}

/// A server that has no time for health checks after the first moment.
fn silent_on_checks() -> Arc<Memory> {
    Memory::new(|connection, request| {
        if connection == 1 && request["method"] == "ping" {
            return Step::Silence;
        }
        Step::Answer(plain(request))
    })
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_is_not_taken_for_one_that_hangs() {
    let memory = silent_on_checks();
    let server = memory.started().await;
    let health = server.settings.options.health_check;
    let under_way = server.pick_any().unwrap();
    sleep(health.interval.get() * 20).await;
    assert!(memory.count(1, "ping") > 10, "it was checked all the time");
    assert_eq!(*memory.connections.borrow(), 1, "its connection is the first one still");
    assert_eq!((server.status().health, &*server.status().status), (HealthStatus::Yellow, "slow"));
    // What comes later does not keep it alive once it is done with what it had.
    let _later = server.pick_any().unwrap();
    drop(under_way);
    memory.has_connections(2).await;
    assert!(server.status().last_error.unwrap().contains("did not answer two health checks"));
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_with_nothing_to_do_is_begun_anew_after_two_checks() {
    let memory = silent_on_checks();
    let server = memory.started().await;
    let (health, started) = (server.settings.options.health_check, Instant::now());
    memory.has_connections(2).await;
    assert_eq!(memory.count(1, "ping"), 2);
    assert!(started.elapsed() <= (health.interval.get() + health.timeout.get()) * 2 + Duration::from_secs(1));
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_checks_late_is_slow_and_not_down() {
    let memory = Memory::new(|_, request| match request["method"].as_str() {
        Some("ping") => Step::Late(Duration::from_secs(6), plain(request)),
        _ => Step::Answer(plain(request)),
    });
    let server = memory.started().await;
    assert!(server.settings.options.health_check.timeout.get() < Duration::from_secs(6));
    sleep(server.settings.options.health_check.interval.get() * 20).await;
    assert_eq!(*memory.connections.borrow(), 1);
    assert_eq!(server.status().status, "slow");
    server.close().await;
}

#[tokio::test]
async fn only_what_may_be_a_message_of_the_server_says_that_it_is_there() {
    let server = server(None);
    let replica = &server.replicas[0];
    let frame_tap = server.frame_tap(replica);
    let message = r#" {"jsonrpc":"2.0"}"#;
    for (sent, text, counts) in [(true, message, false), (false, "noise", false), (false, message, true)] {
        frame_tap.frame(sent, text);
        assert_eq!(replica.heard.swap(false, Ordering::Relaxed), counts, "{text}");
    }
}

/// Keeps what an observer hears of a server's coming and going.
#[derive(Debug, Default)]
struct Announced(Mutex<Vec<String>>);

impl Observer for Announced {
    fn ready(&self, _server: &Arc<str>, _era: &'static str, tools: usize) {
        self.0.lock().unwrap().push(format!("ready with {tools}"));
    }

    fn down(&self, _server: &Arc<str>, _reason: String) {
        self.0.lock().unwrap().push("down".into());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_and_comes_is_announced_once_each_time() {
    let (memory, announced) =
        (Memory::new(|_, request| Step::Answer(plain(request))), Arc::<Announced>::default());
    let server = memory.started_for(Arc::clone(&announced) as _).await;
    memory.drops.send_replace(());
    memory.has_connections(2).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(*announced.0.lock().unwrap(), ["ready with 1", "down", "ready with 1"]);
    // Who asked for a restart need not hear that it is down.
    server.restart();
    assert_eq!(server.status().status, "starting");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(announced.0.lock().unwrap()[3..], ["ready with 1"]);
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_connection_ended_waits_for_the_next_one_if_that_is_tried_at_once() {
    let memory = Memory::new(|_, request| Step::Answer(plain(request)));
    let server = memory.started().await;
    let first = server.pick_any().unwrap();
    memory.drops.send_replace(());
    first.ready.connection.closed().await;
    let next = server.pick_reconnected(None, &CancellationToken::new()).await.expect("it reconnects at once");
    assert!(next.ready.number > first.ready.number);
    memory.drops.send_replace(());
    next.ready.connection.closed().await;
    assert!(
        server.pick_reconnected(None, &CancellationToken::new()).await.is_none(),
        "it waits before it tries again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_cancelled_does_not_wait_for_the_next_connection() {
    let memory = Memory::new(|connection, request| match connection {
        1 => Step::Answer(plain(request)),
        _ => Step::Silence,
    });
    let server = memory.started().await;
    memory.drops.send_replace(());
    memory.has_connections(2).await;
    let (cancel, begun) = (CancellationToken::new(), Instant::now());
    cancel.cancel();
    assert!(server.pick_reconnected(None, &cancel).await.is_none());
    assert_eq!(begun.elapsed(), Duration::ZERO);
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_server_has_is_never_older_than_what_its_first_replica_listed() {
    let server = silent_on_checks().started().await;
    let begin = std::sync::Barrier::new(4);
    let touch = || {
        begin.wait();
        (0..20).for_each(|_| drop(server.update(0, |state| state.latency = None)));
    };
    for _ in 0..500 {
        let newest = listing(&["a"]);
        std::thread::scope(|scope| {
            (0..3).for_each(|_| drop(scope.spawn(touch)));
            begin.wait();
            server.update(0, |state| state.listing = Some(Arc::clone(&newest)));
        });
        assert!(Arc::ptr_eq(&server.listing().unwrap(), &newest));
    }
    server.close().await;
}

/// Watches resources of a server for a session.
fn watch_some(server: &UpstreamServer, n: usize) {
    let session = SessionId::generate();
    for n in 0..n {
        server.context.subscriptions.subscribe(session, server.id(), &format!("a:{n}")).unwrap();
    }
}

/// Waits until a connection was asked for so many resources.
async fn subscribed(memory: &Memory, connection: u64, n: usize) {
    let mut asked = memory.asked.subscribe();
    while memory.count(connection, "resources/subscribe") < n {
        asked.changed().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn one_subscription_that_a_server_does_not_answer_holds_up_no_other() {
    let memory = Memory::new(|_, request| match request["params"]["uri"].as_str() {
        Some("a:7") => Step::Silence,
        _ => Step::Answer(plain(request)),
    });
    let server = memory.started().await;
    watch_some(&server, 100);
    memory.drops.send_replace(());
    memory.has_connections(2).await;
    subscribed(&memory, 2, 100).await;
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_a_server_could_not_take_is_sent_again() {
    let tries = AtomicUsize::new(0);
    let memory = Memory::new(move |_, request| match request["method"].as_str() {
        // No object, so no answer.
        Some("resources/subscribe") if tries.fetch_add(1, Ordering::Relaxed) < 3 => Step::Answer(json!(7)),
        _ => Step::Answer(plain(request)),
    });
    let server = memory.started().await;
    watch_some(&server, 2);
    memory.drops.send_replace(());
    memory.has_connections(2).await;
    subscribed(&memory, 2, 5).await;
    assert_eq!(*memory.connections.borrow(), 2);
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn two_sessions_that_subscribe_to_what_the_server_refuses_are_both_refused() {
    let memory = Memory::new(|_, request| match request["method"].as_str() {
        Some("resources/subscribe") => Step::Answer(json!(7)),
        _ => Step::Answer(plain(request)),
    });
    let server = memory.started().await;
    watch_some(&server, 1);
    watch_some(&server, 1);
    let (first, second) =
        tokio::join!(server.sync_subscription("a:0", None), server.sync_subscription("a:0", None));
    assert!(first.is_err() && second.is_err(), "{first:?} {second:?}");
    assert_eq!(memory.count(1, "resources/subscribe"), 2);
    server.close().await;
}

/// A caller that sees every server and has all the time.
struct Unbounded(SessionId, Caller);

impl RequestScope for Unbounded {
    fn session(&self) -> SessionId {
        self.0
    }

    fn caller(&self) -> &Caller {
        &self.1
    }

    fn can_see(&self, _server: &dyn gantry_provider::Provider) -> bool {
        true
    }

    fn timed_out<'a>(&'a self, _server: &'a str) -> BoxFuture<'a, Duration> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_one_replica_refuses_is_taken_back_at_the_other() {
    let accepts = Memory::new(|_, request| Step::Answer(plain(request)));
    let refuses = Memory::new(|_, request| match request["method"].as_str() {
        Some("resources/subscribe") => Step::Answer(json!(7)),
        _ => Step::Answer(plain(request)),
    });
    let replica =
        |memory: &Arc<Memory>| Replica::new("r".into(), Transport::Stdio(Arc::clone(memory) as _), None);
    let context = context(Arc::<Changes>::default());
    let server = started_at(&context, vec![replica(&accepts), replica(&refuses)]).await;
    while server.connections().len() < 2 {
        sleep(Duration::from_millis(1)).await;
    }
    let caller = Caller {
        principal: "ann".into(),
        role: Role::Agent,
        agent: None,
        project: "default".into(),
        parent_agents: Arc::default(),
    };
    let scope = Unbounded(SessionId::generate(), caller);
    context.subscribe(&scope, "gantry:s/a:b", &CancellationToken::new()).await.unwrap_err();
    assert_eq!(accepts.count(1, "resources/subscribe"), 1);
    assert_eq!(accepts.count(1, "resources/unsubscribe"), 1);
    server.close().await;
}
