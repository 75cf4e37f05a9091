//! One stream of notifications of the newer era.

use crate::{
    client::{
        core::Core,
        limits::{ACKNOWLEDGE, STREAM_WAS_WELL},
        link::Trouble,
    },
    exchange::{
        BoxFuture, Capabilities, ClientChannel, ClientRequest, ClientRequestError, ClientResponse, LogLevel,
        ServerNotification,
    },
};
use std::sync::Arc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// One `subscriptions/listen`. Dropping it withdraws the request.
pub(super) struct Stream {
    request: BoxFuture<'static, Result<String, Trouble>>,
    listener: Arc<Listener>,
    opened: Instant,
}

impl Stream {
    pub(super) fn open(core: &Arc<Core>, params: String) -> Self {
        let listener = Arc::new(Listener::default());
        let audience = Arc::clone(&listener) as Arc<dyn ClientChannel>;
        let core = Arc::clone(core);
        let request = Box::pin(async move { core.listen(&params, audience).await });
        Self { request, listener, opened: Instant::now() }
    }

    /// Whether it lived so long that the next one need not wait.
    pub(super) fn was_well(&self) -> bool {
        self.opened.elapsed() >= STREAM_WAS_WELL
    }

    /// Waits until the server has said what it grants. Gives the outcome if that comes first.
    pub(super) async fn acknowledged(&mut self) -> Option<Result<String, Trouble>> {
        tokio::select! {
            () = self.listener.acknowledged.cancelled() => None,
            // Some servers only confirm with the first notification.
            () = sleep(ACKNOWLEDGE) => None,
            outcome = &mut self.request => Some(outcome),
        }
    }

    /// Waits for the end. It must not be called again after that.
    pub(super) async fn end(&mut self) -> Result<String, Trouble> {
        (&mut self.request).await
    }
}

/// Hears that a subscription is granted.
#[derive(Debug, Default)]
struct Listener {
    capabilities: Capabilities,
    acknowledged: CancellationToken,
}

impl ClientChannel for Listener {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn session(&self) -> u64 {
        0
    }

    fn wants_progress(&self) -> bool {
        false
    }

    fn log_level(&self) -> Option<LogLevel> {
        None
    }

    fn notify(&self, notice: ServerNotification) {
        if let ServerNotification::Other { method, .. } = notice
            && &*method == "notifications/subscriptions/acknowledged"
        {
            self.acknowledged.cancel();
        }
    }

    fn ask(
        &self,
        _questions: Vec<ClientRequest>,
    ) -> BoxFuture<'_, Result<Vec<ClientResponse>, ClientRequestError>> {
        Box::pin(std::future::ready(Err(ClientRequestError::Gone)))
    }
}
