//! A server in this process, on a port of its own, for as long as a test needs it.

use axum::Router;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// Serves until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct TestServer {
    /// Where it listens, in the clear.
    pub address: SocketAddr,
    runtime: Option<Runtime>,
}

impl TestServer {
    pub fn spawn(router: Router) -> Self {
        Self::listen(|listener| async move { drop(axum::serve(listener, router).await) })
    }

    /// A server that accepts its connections itself.
    pub fn listen<F: Future<Output = ()> + Send + 'static>(serve: impl FnOnce(TcpListener) -> F) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("its address");
        runtime.spawn(serve(listener));
        Self { address, runtime: Some(runtime) }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
