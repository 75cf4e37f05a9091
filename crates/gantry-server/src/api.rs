//! The HTTP API: one table of routes, which is also what the OpenAPI document is checked against.

mod agents;
mod approvals;
mod audit;
mod calls;
mod config;
mod events;
mod grants;
mod health;
mod keys;
mod lock;
mod long_poll;
mod policy;
mod projects;
pub(crate) mod query;
mod runs;
mod servers;
mod short_id;
mod tools;

use crate::error::ApiError;
use crate::{App, mcp, openapi, page};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::routing::{MethodRouter, any, delete, get, post};
use bytes::Bytes;
use http::{Method, StatusCode};
use std::time::Duration;

/// Bytes of a request's body.
pub(crate) const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// How long a client may take to send a body.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// Every route of the documented API, as `(path, methods)`.
pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/api/v1/tools", get(tools::list)),
        ("/api/v1/calls", post(calls::create).get(calls::list)),
        ("/api/v1/calls/{id}", get(calls::show).delete(calls::cancel)),
        ("/api/v1/calls/{id}/cancel", post(calls::cancel)),
        ("/api/v1/approvals", get(approvals::list)),
        ("/api/v1/approvals/{id}", get(approvals::show)),
        ("/api/v1/approvals/{id}/decision", post(approvals::decide)),
        ("/api/v1/approvals/{id}/cancel", post(approvals::cancel)),
        ("/api/v1/grants", get(grants::list)),
        ("/api/v1/grants/{id}", delete(grants::revoke)),
        ("/api/v1/keys", get(keys::list).post(keys::create)),
        ("/api/v1/keys/{id}", delete(keys::revoke)),
        ("/api/v1/events", get(events::stream)),
        ("/api/v1/runs", get(runs::list)),
        ("/api/v1/runs/{id}", get(runs::show)),
        ("/api/v1/runs/{id}/cancel", post(runs::cancel)),
        ("/api/v1/servers", get(servers::list).post(servers::add)),
        ("/api/v1/servers/{id}", get(servers::show).delete(servers::remove)),
        ("/api/v1/servers/{id}/restart", post(servers::restart)),
        ("/api/v1/agents", get(agents::list)),
        ("/api/v1/agents/{name}", get(agents::show)),
        ("/api/v1/agents/{name}/activate", post(agents::activate)),
        ("/api/v1/agents/{name}/deactivate", post(agents::deactivate)),
        ("/api/v1/projects", get(projects::list)),
        ("/api/v1/config", get(config::show)),
        ("/api/v1/config/reload", post(config::reload)),
        ("/api/v1/lock", get(lock::diff).post(lock::accept)),
        ("/api/v1/queues", get(health::queues)),
        ("/api/v1/audit", get(calls::list)),
        ("/api/v1/audit/verify", get(audit::verify)),
        ("/api/v1/explain", get(tools::explain)),
        ("/api/v1/policy/test", post(policy::test)),
        ("/api/openapi.json", get(openapi::serve)),
        ("/metrics", get(health::metrics)),
        ("/healthz", get(health::live)),
        ("/readyz", get(health::ready)),
    ]
}

/// The whole site.
pub fn router(app: App) -> Router {
    let mut router = Router::new();
    for (path, methods) in routes() {
        router = router.route(path, methods);
    }
    router
        .route("/mcp/{project}", any(mcp::http::serve_project))
        .route("/mcp/{project}/agents/{agent}", any(mcp::http::serve_agent))
        .route("/sse", get(mcp::http::open_sse))
        .route("/messages", post(mcp::http::take_message))
        .route("/ws", any(mcp::http::open_socket))
        .route("/ws/{project}", any(mcp::http::open_project_socket))
        .route("/ws/{project}/agents/{agent}", any(mcp::http::open_agent_socket))
        .route("/", get(health::page))
        .route("/approvals", get(page::show))
        .route("/approvals/{id}", get(page::show))
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        .with_state(app)
}

async fn unknown(request: Request) -> ApiError {
    ApiError::not_found(format!("there is nothing at {}; see /api/openapi.json", request.uri().path()))
}

async fn not_allowed(request: Request) -> ApiError {
    let message =
        format!("{} does not take {}; see /api/openapi.json", request.uri().path(), request.method());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, gantry_core::ErrorCode::InvalidArguments, message)
}

/// For the command line: the same routes, in this process.
impl App {
    /// Answers one request without a socket. Whoever calls this can read the data folder, so they are its person.
    ///
    /// # Errors
    /// The path is not one.
    pub async fn local(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), http::Error> {
        let request = http::Request::builder().method(method).uri(path).header(approvals::VIA, "cli");
        let mut request = request.body(Body::from(body))?;
        request.extensions_mut().insert(crate::Identity::owner());
        let service = hyper_util::service::TowerToHyperService::new(router(self.clone()));
        let response = match hyper::service::Service::call(&service, request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status();
        // The answer was made in this process, within its limits.
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
        Ok((status, bytes))
    }
}
