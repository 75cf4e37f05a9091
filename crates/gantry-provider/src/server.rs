//! Servers: providers that are connected to, watched and restarted, and that offer resources and prompts besides tools.
//!
//! The engine decides which servers a runtime has and which of them a caller can see. How a server is reached is not
//! its business: it gets a [`ServerFactory`] from the program, opens one [`ServerGroup`] per runtime with it, and passes
//! in an [`Observer`] for events.

use crate::resources::{Change, Features, ForwardRequest, ListKind};
use crate::status::{PinChoice, PinDiff, Pins, ProviderStatus};
use crate::{BoxFuture, ErrorObject, Provider, code};
use gantry_core::Caller;
use gantry_core::digest::Digest;
use gantry_core::id::SessionId;
use gantry_core::names::NamePrefixes;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// How one server is reached. The engine passes it on; only the group that makes servers reads it.
pub trait ServerConfig: Any + Debug + Send + Sync {
    /// The server's id, which is its namespace too.
    fn id(&self) -> &Arc<str>;

    /// Whether its tools are shown under its namespace.
    fn is_prefixed(&self) -> bool;
}

/// A provider with a connection that comes and goes.
pub trait Server: Provider {
    /// Whether it is reached and watched as this says, so that its connections can be kept.
    fn has_config(&self, config: &dyn ServerConfig) -> bool;

    /// Starts it, unless it is switched off. Does not wait. Called once.
    fn start(self: Arc<Self>);

    /// Drops its connections and connects again, at once.
    fn restart(&self);

    /// Waits until no request is under way there, for as long as `grace`.
    fn idle(&self, grace: Duration) -> BoxFuture<'_, ()>;

    /// How long one attempt to start may take.
    fn startup_timeout(&self) -> Duration;

    /// Whether it has been ready or has failed at least once.
    fn has_settled(&self) -> bool;

    /// A digest of the tools that it has, in any order; none before it has listed them for the first time.
    fn tools_digest(&self) -> Option<Digest>;

    /// How it is doing. How many of its tools are quarantined only the engine knows.
    fn status(&self) -> ProviderStatus;

    /// Why requests cannot be sent right now, and when that may change; none while it is ready.
    fn unavailable_reason(&self) -> Option<String>;

    /// What looks wrong with it although it stops nothing else.
    fn warnings(&self) -> Vec<String>;

    /// What a person should know about one of its tools: that the server is not ready, that the definition looks
    /// suspicious, that results do not match their schema.
    fn remarks(&self, tool: &str) -> Vec<String>;
}

pub type ServerFilter<'a> = &'a (dyn Fn(&dyn Provider) -> bool + Send + Sync);

/// The servers of one runtime, as far as they have something in common: pins, names, subscriptions. The provided methods
/// are those of a group without servers.
///
/// A group knows every server that it made and that still exists. Filters select those that count.
pub trait ServerGroup: Debug + Send + Sync {
    /// Makes a server. Nothing is started yet.
    ///
    /// # Errors
    /// The configuration is not one of this group's kind.
    fn server(self: Arc<Self>, config: &dyn ServerConfig) -> Result<Arc<dyn Server>, String>;

    /// Reads the pinned definitions, which another process may have changed. Blocks. Until it is called, nothing of a
    /// server can be used.
    fn refresh_pins(&self) {}

    fn pins(&self) -> Pins {
        Pins::default()
    }

    /// The differences between pinned and present definitions of one server, or of all that are selected.
    fn pin_diff(&self, _server: Option<&str>, _selected: ServerFilter<'_>) -> Vec<PinDiff> {
        Vec::new()
    }

    /// Pins what the selected servers have now. Blocks. Returns what was accepted.
    ///
    /// # Errors
    /// Nothing is pinned: the file cannot be written, or the differences are not those that were seen.
    fn accept_pins(&self, _choice: &PinChoice, _selected: ServerFilter<'_>) -> Result<Vec<PinDiff>, String> {
        Ok(Vec::new())
    }

    /// What looks wrong with what the servers share.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Builds the catalog of resources, templates and prompts of the selected servers and puts it in force; it is work, so
    /// this is not for an async worker. `prefixes` are the name prefixes of all providers, which no other server may
    /// imitate. With `keep_owners`, names and URIs that are shown unchanged stay with the servers that had them before.
    /// Returns the servers whose part of a list has changed.
    fn update_catalog(
        &self,
        _selected: ServerFilter<'_>,
        _prefixes: &[NamePrefixes<'_>],
        _keep_owners: bool,
    ) -> Vec<(Arc<str>, ListKind)> {
        Vec::new()
    }

    /// The items of a kind that the selected servers have, as one JSON array, in the order of the servers' ids.
    fn catalog(&self, _kind: ListKind, _selected: ServerFilter<'_>) -> String {
        "[]".to_owned()
    }

    /// What the selected servers offer besides tools.
    fn features(&self, _selected: ServerFilter<'_>) -> Features {
        Features::default()
    }

    /// Sends a request that is no tool call to the server that it is for. Returns the result as clients see it, the
    /// text of an object.
    fn request<'a>(
        &'a self,
        request: ForwardRequest,
        _scope: &'a dyn RequestScope,
    ) -> BoxFuture<'a, Result<String, ErrorObject>> {
        let message = format!("there are no servers here to send {} to", request.method.as_str());
        Box::pin(std::future::ready(Err(ErrorObject::new(code::INVALID_PARAMS, message))))
    }

    /// Drops the subscriptions and the log level of a session that is over. Returns the work of notifying the servers, if
    /// there is any.
    fn end_session(&self, _session: SessionId) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

pub trait RequestScope: Send + Sync {
    fn session(&self) -> SessionId;

    fn caller(&self) -> &Caller;

    /// Whether the caller can see this server. What it cannot see does not exist for it.
    fn can_see(&self, server: &dyn Provider) -> bool;

    /// Returns the time limit of this server when it is used up. Time in which the client is asked something does not
    /// count.
    fn timed_out<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Duration>;
}

/// Receives the events of servers. Never blocks. The provided methods ignore them.
pub trait Observer: Debug + Send + Sync {
    fn ready(&self, _server: &Arc<str>, _era: &'static str, _tools: usize) {}

    /// A server is down; it is tried again.
    fn down(&self, _server: &Arc<str>, _reason: String) {}

    /// A message went to a server (`_sent`) or came from it; secrets are masked.
    fn frame(&self, _server: &Arc<str>, _sent: bool, _text: String) {}

    /// Something changed that connected clients may be notified of.
    fn changed(&self, _change: Change) {}
}

/// For servers that are never started.
impl Observer for () {}

/// Opens the group of servers of a runtime. A plan is started any number of times, each time with its own group.
pub trait ServerFactory: Debug + Send + Sync {
    fn open(&self, observer: Arc<dyn Observer>) -> Arc<dyn ServerGroup>;
}

/// For plans without servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServers;

impl ServerFactory for NoServers {
    fn open(&self, _observer: Arc<dyn Observer>) -> Arc<dyn ServerGroup> {
        Arc::new(Self)
    }
}

impl ServerGroup for NoServers {
    fn server(self: Arc<Self>, config: &dyn ServerConfig) -> Result<Arc<dyn Server>, String> {
        Err(format!("internal error: server {} has no factory in its plan; it is not started", config.id()))
    }
}
