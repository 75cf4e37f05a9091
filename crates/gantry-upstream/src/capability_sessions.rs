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
use arc_swap::ArcSwapOption;
use gantry_core::Tool;
use gantry_mcp::client::{self, Change, Connection, OfferedCapabilities, Protocol, Transport, UpstreamError};
use gantry_provider::client::ClientChannel;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OnceCell, mpsc};
use tokio::time::timeout;

/// The sessions with a replica besides its first, by what they declare. They end with the first.
#[derive(Debug)]
pub(super) struct CapabilitySessions {
    changes: mpsc::Sender<Change>,
    /// Each is opened when a call first needs it. Limit: the sets of capabilities.
    sessions: Mutex<HashMap<OfferedCapabilities, Arc<OnceCell<Session>>>>,
}

#[derive(Debug)]
struct Session {
    connection: Arc<Connection>,
    /// What it listed, and what the first one had listed by then.
    listed: ArcSwapOption<(Listing, Arc<Listing>)>,
}

impl CapabilitySessions {
    /// No session yet; the changes of later ones go to `changes`.
    pub(super) fn new(changes: mpsc::Sender<Change>) -> Self {
        Self { changes, sessions: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<OfferedCapabilities, Arc<OnceCell<Session>>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        let sessions = self.sessions();
        sessions.values().filter_map(|cell| Some(Arc::clone(&cell.get()?.connection))).collect()
    }

    /// The place of a session; one that has ended makes room for another.
    fn cell(&self, declared: OfferedCapabilities) -> Arc<OnceCell<Session>> {
        let has_ended =
            |cell: &Arc<OnceCell<Session>>| cell.get().is_some_and(|session| session.connection.has_ended());
        let mut sessions = self.sessions();
        sessions.retain(|_, cell| !has_ended(cell));
        Arc::clone(sessions.entry(declared).or_default())
    }
}

impl Session {
    /// Whether it has a tool as it was judged. It lists its tools again whenever the first session did: a change there may
    /// be a change here.
    async fn defines(&self, tool: &Tool, beside: Arc<Listing>) -> Result<bool, UpstreamError> {
        let listed = self.listed.load_full();
        if let Some((own, _)) = listed.as_deref().filter(|(_, known)| Arc::ptr_eq(known, &beside)) {
            return Ok(own.defines(tool));
        }
        // The connection learns from the list, too: which tools have to be run as tasks.
        let own = Listing::fetch_tools(&self.connection).await?;
        let is_defined = own.defines(tool);
        self.listed.store(Some(Arc::new((own, beside))));
        Ok(is_defined)
    }
}

impl UpstreamServer {
    /// The connection for a call of this client at a replica: its first, or one that declares no more than the client can
    /// do, if that one has the tool as it was judged.
    ///
    /// # Errors
    /// The replica has changed the tool while a session was opened.
    pub(super) async fn connection_for(
        &self,
        at: &Picked,
        tool: &Tool,
        client: &dyn ClientChannel,
    ) -> Result<Arc<Connection>, UpstreamError> {
        let first = || Arc::clone(&at.ready.connection);
        let Some(replica) = self.replicas.get(at.replica) else { return Ok(first()) };
        let is_by_session = matches!(replica.transport, Transport::Http { .. })
            && !at.ready.connection.info().version.is_modern();
        let declared = self.settings.options.declared();
        let wanted = if is_by_session { client_capabilities(client, declared) } else { declared };
        if wanted == declared {
            return Ok(first());
        }
        let second = self.capability_session(at, replica, wanted, tool);
        let second = timeout(self.settings.options.startup_timeout.get(), second).await;
        if self.listing_of(at.replica).is_some_and(|listing| !listing.defines(tool)) {
            return Err(UpstreamError::NotSent(format!("it has changed what {} is", tool.name)));
        }
        let why = match second {
            Ok(Ok(Some(connection))) => return Ok(connection),
            Ok(Ok(None)) => format!("{} is another for clients that can do less", tool.name),
            Ok(Err(error)) => format!("no second session: {error}"),
            Err(_) => "no second session: no answer in time".to_owned(),
        };
        tracing::debug!("{}: {why}; the first session is used", self.id());
        Ok(first())
    }

    fn listing_of(&self, replica: usize) -> Option<Arc<Listing>> {
        self.view.load().replicas.get(replica)?.listing.clone()
    }

    /// The session that declares this, which is opened if need be; `None` if it has the tool otherwise than it was judged.
    async fn capability_session(
        &self,
        at: &Picked,
        replica: &Replica,
        declared: OfferedCapabilities,
        tool: &Tool,
    ) -> Result<Option<Arc<Connection>>, UpstreamError> {
        let sessions = &at.ready.sessions;
        let open = || async {
            let target = self.target(replica, Protocol::Legacy, declared, sessions.changes.clone());
            let connection = Arc::new(client::connect(&target, &mut Protocol::Legacy).await?);
            self.push_log_level(Some(&connection)).await;
            Ok::<_, UpstreamError>(Session { connection, listed: ArcSwapOption::empty() })
        };
        let cell = sessions.cell(declared);
        let session = cell.get_or_try_init(open).await?;
        let Some(beside) = self.listing_of(at.replica) else { return Ok(None) };
        Ok(session.defines(tool, beside).await?.then(|| Arc::clone(&session.connection)))
    }
}

/// What a client can be asked, as far as Gantry declares it.
fn client_capabilities(client: &dyn ClientChannel, declared: OfferedCapabilities) -> OfferedCapabilities {
    let can = |method, params| client.capabilities().can(method, params);
    let elicitation = || can("elicitation/create", "{}") || can("elicitation/create", r#"{"mode":"url"}"#);
    OfferedCapabilities {
        elicitation: declared.elicitation && elicitation(),
        sampling: declared.sampling && can("sampling/createMessage", "{}"),
        roots: declared.roots && can("roots/list", "{}"),
    }
}
