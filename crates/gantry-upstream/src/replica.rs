//! One replica of a server: the way to it. Its state is in the view of its server.

use crate::options::{ServerSettings, TransportType};
use crate::process::{self, StdioProcess};
use gantry_egress::display_url;
use gantry_mcp::client::Transport;
use gantry_provider::redact::Redactor;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

#[derive(Debug)]
pub(super) struct Replica {
    /// Its address, or its number.
    pub(super) name: String,
    pub(super) transport: Transport,
    /// Its process, if Gantry starts it.
    pub(super) process: Option<Arc<StdioProcess>>,
    /// Tells its task to reconnect.
    pub(super) restart: Notify,
    pub(super) lists_changed: Arc<Notify>,
    /// Set by every message that comes from it.
    pub(super) heard: Arc<AtomicBool>,
}

impl Replica {
    pub(super) fn new(name: String, transport: Transport, process: Option<Arc<StdioProcess>>) -> Self {
        Self {
            name,
            transport,
            process,
            restart: Notify::new(),
            lists_changed: Arc::default(),
            heard: Arc::default(),
        }
    }
}

/// One replica for each address, or for each process.
pub(super) fn replicas(
    settings: &ServerSettings,
    secrets: &Arc<Redactor>,
    tasks: &TaskTracker,
) -> Vec<Replica> {
    let (options, transport) = (&settings.options, settings.options.transport());
    if transport == TransportType::Stdio {
        let replica = |n: usize| {
            let (id, start) = (Arc::clone(&settings.id), (process::spec(options), settings.launch.clone()));
            let process = Arc::new(StdioProcess::new(id, start, Arc::clone(secrets), tasks.clone()));
            Replica::new(n.to_string(), Transport::Stdio(Arc::clone(&process) as _), Some(process))
        };
        return (1..=options.replicas.size()).map(replica).collect();
    }
    let addresses = options.addresses();
    let replica = |(n, address): (usize, &&str)| {
        let (url, name) = ((*address).to_owned(), display_name(&addresses, n));
        let headers =
            options.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
        let transport = match transport {
            TransportType::Sse => Transport::Sse { url, headers },
            TransportType::WebSocket => Transport::WebSocket { url, headers },
            TransportType::Tcp => return Replica::new(url.clone(), Transport::Tcp { address: url }, None),
            TransportType::Stdio | TransportType::Http => Transport::Http { url, headers },
        };
        Replica::new(name, transport, None)
    };
    addresses.iter().enumerate().map(replica).collect()
}

/// The n-th address without credentials; with its number where several look alike.
fn display_name(addresses: &[&str], n: usize) -> String {
    let name = addresses.get(n).map(|address| display_url(address)).unwrap_or_default();
    let alike = addresses.iter().filter(|address| display_url(address) == name).count() > 1;
    if alike { format!("{name} ({})", n + 1) } else { name }
}
