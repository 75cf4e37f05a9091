//! A client of a legacy version after its handshake: its session and its settings.

use super::{
    Server,
    client_requests::ClientRequests,
    connected_client::SessionSettings,
    handler::{Handler, Session},
    in_flight::InFlightRequests,
};
use crate::{ErrorObject, Version, envelope::Params, exchange::Capabilities};
use std::sync::Arc;

/// The state that requests of one legacy client share.
pub(super) struct LegacySession {
    pub(super) session: Arc<dyn Session>,
    pub(super) version: Version,
    pub(super) in_flight: InFlightRequests,
    pub(super) capabilities: Arc<Capabilities>,
    /// Tells this client from all others.
    pub(super) number: u64,
    pub(super) client_requests: ClientRequests,
    pub(super) settings: SessionSettings,
}

impl Server {
    /// Handles `initialize`. A connection that has a session already keeps it.
    pub(super) async fn handshake(
        &self,
        handler: &dyn Handler,
        params: &Params<'_>,
        in_flight: InFlightRequests,
        number: u64,
        session: Option<Arc<dyn Session>>,
    ) -> Result<LegacySession, ErrorObject> {
        let version = params.negotiated_version()?;
        let session = match session {
            Some(session) => session,
            None => handler.open_session().await?,
        };
        Ok(LegacySession {
            session,
            version,
            in_flight,
            capabilities: Arc::new(params.session_capabilities()),
            number,
            client_requests: ClientRequests::default(),
            settings: SessionSettings::new(handler.features().logging),
        })
    }
}
