//! The HTTP API, MCP and the pages as one router.

mod agents;
mod approvals;
pub(crate) mod calls;
mod events;
mod grants;
mod health;
mod keys;
mod lock;
mod long_poll;
pub(crate) mod query;
pub(crate) mod routes;
mod runs;
mod servers;
mod short_id;
mod tools;

use crate::error::ApiError;
use crate::{App, mcp, page};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::routing::{any, get, post};
use bytes::Bytes;
use http::{Method, StatusCode};
use std::time::Duration;

pub(crate) const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(15);

pub fn router(app: App) -> Router {
    let mut router = Router::new();
    for operation in routes::operations() {
        router = router.route(operation.path, operation.handler);
    }
    router
        .route("/mcp/{project}", any(mcp::http::serve))
        .route("/mcp/{project}/agents/{agent}", any(mcp::http::serve))
        .route("/sse", get(mcp::http::open_sse))
        .route("/messages", post(mcp::http::receive_message))
        .route("/ws", any(mcp::http::open_socket))
        .route("/ws/{project}", any(mcp::http::open_socket))
        .route("/ws/{project}/agents/{agent}", any(mcp::http::open_socket))
        .route("/", get(health::page))
        .route("/approvals", get(async || page::respond()))
        .route("/approvals/{id}", get(async || page::respond()))
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
    /// Answers one request without a socket, as the owner of the data folder: the caller can read it.
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
        let Ok(response) = hyper::service::Service::call(&service, request).await;
        let status = response.status();
        // The answer was made in this process, within its limits.
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
        Ok((status, bytes))
    }
}
