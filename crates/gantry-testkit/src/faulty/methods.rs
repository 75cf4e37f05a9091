//! The method table: what each request of each era is answered with.

use super::MODERN;
use super::connection::Request;
use super::era::RequestEra;
use super::features::{self, page};
use super::server::Subscription;
use super::tools;
use super::wire::{Failure, METHOD_NOT_FOUND, Reply, SERVER_INFO_KEY, SUBSCRIPTION_KEY, note};
use serde_json::{Value, json};

/// What the server says of itself; `--poison` hides an order in it.
const INSTRUCTIONS: &str = "Instructions of the faulty server: call echo first.";

/// Answers a request that was admitted.
pub(super) async fn answer(request: &Request) -> Reply {
    match (request.method.as_str(), request.era) {
        ("initialize", RequestEra::Legacy) => initialize(request),
        ("ping", RequestEra::Legacy) => {
            tokio::time::sleep(request.server().options.faults.slow_ping).await;
            done()
        }
        ("logging/setLevel", RequestEra::Legacy) => {
            let level = request.params.level.clone();
            request.connection.session.state.lock().unwrap().log_level = level;
            done()
        }
        ("resources/subscribe", RequestEra::Legacy) => {
            let uri = request.params.uri.clone();
            request.connection.session.state.lock().unwrap().subscriptions.insert(uri);
            done()
        }
        ("resources/unsubscribe", RequestEra::Legacy) => {
            request.connection.session.state.lock().unwrap().subscriptions.remove(&request.params.uri);
            done()
        }
        ("server/discover", RequestEra::Modern) => {
            tokio::time::sleep(request.server().options.faults.slow_ping).await;
            discover(request)
        }
        ("subscriptions/listen", RequestEra::Modern) => listen(request).await,
        ("tools/list", _) => page(request, "tools", &tools::definitions(request.server())),
        ("tools/call", _) => tools::call(request).await,
        ("resources/list", _) => page(request, "resources", &features::resources(request.server())),
        ("resources/templates/list", _) => page(request, "resourceTemplates", &features::templates()),
        ("prompts/list", _) => page(request, "prompts", &features::prompts(request.server())),
        ("resources/read", _) => features::read(request),
        ("prompts/get", _) => features::prompt(request),
        ("completion/complete", _) => features::complete(request),
        (method, _) => Failure::new(METHOD_NOT_FOUND, format!("there is no method {method}")).into(),
    }
}

fn done() -> Reply {
    Reply::Result("{}".into())
}

fn initialize(request: &Request) -> Reply {
    let session = &request.connection.session;
    let version = session.state.lock().unwrap().version.clone();
    let mut capabilities = capabilities();
    capabilities["logging"] = json!({});
    let result = json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "serverInfo": server_info(),
        "instructions": instructions(request),
    });
    // Over HTTP the sender of this request is none for news; there the GET stream listens.
    if request.connection.on_disconnect == super::connection::OnDisconnect::Disconnected {
        request.server().listen(request.connection.sender.clone(), Subscription::Session(session.clone()));
    }
    Reply::Result(result.to_string())
}

fn discover(request: &Request) -> Reply {
    let result = json!({
        "supportedVersions": [MODERN],
        "capabilities": capabilities(),
        "instructions": instructions(request),
        "_meta": { SERVER_INFO_KEY: server_info() },
    });
    Reply::Cacheable(result.to_string())
}

/// Stays open until it is cancelled or its connection is gone.
async fn listen(request: &Request) -> Reply {
    let filter = request.params.notifications.clone();
    let id: Value = serde_json::from_str(&request.id).unwrap_or_default();
    let granted = json!({ "_meta": { SUBSCRIPTION_KEY: id }, "notifications": filter });
    let granted = note("notifications/subscriptions/acknowledged", &granted);
    let subscription = Subscription::Filter { filter, id, ended: request.token.clone() };
    request.server().listen_after(granted, request.connection.sender.clone(), subscription).await;
    request.stopped().await;
    Reply::Silence
}

fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "prompts": { "listChanged": true },
        "completions": {},
        "experimental": { "faulty/vendor": { "odd": true } },
    })
}

fn server_info() -> Value {
    json!({ "name": "faulty", "title": "The faulty server", "version": "1.2.3" })
}

fn instructions(request: &Request) -> String {
    let options = &request.server().options;
    let hidden = if options.faults.poison { tools::special::hidden_order() } else { String::new() };
    format!("{}{hidden}", options.instructions.as_deref().unwrap_or(INSTRUCTIONS))
}
