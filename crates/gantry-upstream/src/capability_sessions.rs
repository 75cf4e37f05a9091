//! Sessions for clients that can do less than Gantry declares.
//!
//! A legacy server learns once per session what its client can do, and may offer or ask less then. So over HTTP, where a
//! session costs next to nothing, each set of capabilities gets its own session. A process or a socket is shared by all
//! clients, with everything declared.
//!
//! Such a session may list other tools than the first one. It is used only for tools that it defines as they were judged.

use crate::listing::Listing;
use crate::replica::Replica;
use crate::server::{Picked, UpstreamServer};
use futures_util::FutureExt as _;
use gantry_core::Tool;
use gantry_mcp::client::{self, Connection, Declared, Event, Failure, Protocol, Target, Transport};
use gantry_provider::client::ClientChannel;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OnceCell, mpsc};
use tokio::time::timeout;

/// A session that is opened when a call first needs it.
type Cell = Arc<OnceCell<Session>>;

/// One session besides the first.
#[derive(Debug)]
struct Session {
    connection: Arc<Connection>,
    seen: Mutex<Seen>,
}

/// What a session listed, and what the first one had listed by then.
#[derive(Debug, Default)]
struct Seen {
    beside: Option<Arc<Listing>>,
    own: Arc<OnceCell<Listing>>,
}

impl Session {
    /// Whether it has a tool as it was judged. It lists its tools again whenever the first session did: a change there may
    /// be a change here.
    async fn defines(&self, tool: &Tool, beside: Option<Arc<Listing>>) -> Result<bool, Failure> {
        let own = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let is_same = match (&seen.beside, &beside) {
                (Some(then), Some(now)) => Arc::ptr_eq(then, now),
                (None, _) | (_, None) => false,
            };
            if !is_same {
                *seen = Seen { beside, own: Arc::default() };
            }
            Arc::clone(&seen.own)
        };
        // The connection learns from the list, too: which tools have to be run as tasks.
        let listing = own.get_or_try_init(|| Listing::fetch_tools(&self.connection)).await?;
        Ok(listing.defines(tool))
    }
}

/// The sessions of a replica besides its first, by what they declare; at most one per set of capabilities.
#[derive(Debug, Default)]
pub(super) struct CapabilitySessions(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Where notifications of the server go.
    events: Option<mpsc::Sender<Event>>,
    cells: HashMap<Declared, Cell>,
}

impl CapabilitySessions {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The replica has a new first connection, whose events go here.
    pub(super) fn begin(&self, events: mpsc::Sender<Event>) {
        *self.inner() = Inner { events: Some(events), cells: HashMap::new() };
    }

    /// The first connection is gone, and the others with it.
    pub(super) fn end(&self) {
        *self.inner() = Inner::default();
    }

    /// The connections that are open.
    fn all(&self) -> Vec<Arc<Connection>> {
        self.inner()
            .cells
            .values()
            .filter_map(|cell| cell.get().map(|session| Arc::clone(&session.connection)))
            .collect()
    }

    /// The cell of a session; a session that has ended is replaced by a new cell.
    fn cell(&self, declared: Declared) -> Option<(Cell, mpsc::Sender<Event>)> {
        let mut inner = self.inner();
        let events = inner.events.clone()?;
        let ended = |cell: &Cell| {
            cell.get().is_some_and(|session| session.connection.closed().now_or_never().is_some())
        };
        if inner.cells.get(&declared).is_some_and(ended) {
            inner.cells.remove(&declared);
        }
        Some((Arc::clone(inner.cells.entry(declared).or_default()), events))
    }
}

impl UpstreamServer {
    /// The connection for a call of this client at a replica: its first, or one that declares no more than the client can
    /// do, if that one has the tool as it was judged.
    pub(super) async fn connection_for(
        &self,
        at: &Picked,
        tool: &Tool,
        client: &dyn ClientChannel,
    ) -> Arc<Connection> {
        let first = || Arc::clone(&at.connection);
        let Some(replica) = self.replicas.get(at.replica) else { return first() };
        let by_session =
            matches!(replica.transport, Transport::Http { .. }) && !at.connection.about().version.is_modern();
        let wanted = if by_session {
            client_capabilities(client, self.settings.declared)
        } else {
            self.settings.declared
        };
        if wanted == self.settings.declared {
            return first();
        }
        let Some((cell, events)) = replica.capability_sessions.cell(wanted) else { return first() };
        let second = async {
            let session =
                cell.get_or_try_init(|| self.open_capability_session(replica, wanted, events)).await?;
            let fits = session.defines(tool, replica.listing()).await?;
            Ok(fits.then(|| Arc::clone(&session.connection)))
        };
        let limit = self.settings.startup_timeout;
        let second =
            timeout(limit, second).await.unwrap_or_else(|_| Err(Failure::Lost("no answer in time".into())));
        match second {
            Ok(Some(connection)) => connection,
            Ok(None) => {
                let (id, tool) = (&self.settings.id, &tool.name);
                tracing::debug!(
                    "{id}: {tool} is another for clients that can do less; the first session is used"
                );
                first()
            }
            Err(failure) => {
                tracing::debug!("{}: no second session, so the first is used: {failure}", self.settings.id);
                first()
            }
        }
    }

    /// Every connection that is ready, including those for clients that can do less.
    pub(crate) fn all_connections(&self) -> Vec<Arc<Connection>> {
        let others = self.replicas.iter().flat_map(|replica| replica.capability_sessions.all());
        self.connections().into_iter().chain(others).collect()
    }

    async fn open_capability_session(
        &self,
        replica: &Replica,
        declared: Declared,
        events: mpsc::Sender<Event>,
    ) -> Result<Session, Failure> {
        let target = Target {
            name: Arc::clone(&self.settings.id),
            transport: replica.transport.clone(),
            protocol: Protocol::Legacy,
            declared,
            startup_timeout: self.settings.startup_timeout,
            trace: Some(self.frame_tap(replica)),
            events,
        };
        let connection = client::connect(&target, Protocol::Legacy).await?;
        if let Some(level) = self.context.subscriptions.level()
            && let Err(failure) = connection.set_log_level(level).await
        {
            tracing::debug!("{}: it does not take a log level: {failure}", self.settings.id);
        }
        Ok(Session { connection: Arc::new(connection), seen: Mutex::default() })
    }
}

/// What a client can be asked, as far as Gantry declares it.
fn client_capabilities(client: &dyn ClientChannel, declared: Declared) -> Declared {
    let can = |method, params| client.capabilities().can(method, params);
    let elicitation = || can("elicitation/create", "{}") || can("elicitation/create", r#"{"mode":"url"}"#);
    Declared {
        elicitation: declared.elicitation && elicitation(),
        sampling: declared.sampling && can("sampling/createMessage", "{}"),
        roots: declared.roots && can("roots/list", "{}"),
    }
}
