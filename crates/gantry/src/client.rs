//! HTTP API client of the commands. Uses the server that runs on the data folder, otherwise an in-process router.
//!
//! Both give the same answers, so that each command is written once.

use crate::Extra;
use crate::cli::Cli;
use crate::config::{Config, Loaded, MAIN_PROJECT, ProcessEnv, Source};
use crate::data_dir::DataDir;
use crate::exit::UsageError;
use crate::{term, wiring};
use anyhow::Context as _;
use bytes::Bytes;
use gantry_egress::LocalServer;
use gantry_server::App;
use http::{Method, StatusCode};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long calls may take to end when a command is done.
const GRACE: Duration = Duration::from_secs(5);

/// The header that says by which door a person decides.
const VIA: &str = "gantry-via";

/// What a command needs to know first.
pub(crate) struct CommandContext {
    pub(crate) source: Source,
    pub(crate) loaded: Loaded,
    pub(crate) data_dir: DataDir,
    pub(crate) extra: Extra,
}

impl CommandContext {
    /// Reads the configuration and opens the data folder.
    pub(crate) fn new(cli: &Cli, extra: Extra) -> anyhow::Result<Self> {
        let folder = std::env::current_dir().context("the working folder is gone; change to another one")?;
        let source = Source { folder, config: cli.config.clone(), data: cli.data.clone() };
        let loaded =
            Config::load(&source, &ProcessEnv).or_else(|error| load_or_use_running_server(&source, error))?;
        for warning in &loaded.warnings {
            tracing::warn!(target: "gantry::config", "{warning}");
        }
        let data_dir = DataDir::open(&loaded.data)?;
        Ok(Self { source, loaded, data_dir, extra })
    }

    /// The server that runs on this data folder, with the key of the folder.
    pub(crate) fn running_server(&self) -> anyhow::Result<Option<LocalServer>> {
        let Some(info) = self.data_dir.running_server() else { return Ok(None) };
        let (key, _) = self.data_dir.admin_key()?;
        Ok(Some(LocalServer::new(info.address, Some(key))))
    }

    /// The client of the server that runs on this data folder, for what only a running server can do; `instead` says
    /// what else there is to do without one.
    pub(crate) fn require_server(&self, instead: &str) -> anyhow::Result<ApiClient> {
        let missing = || UsageError(format!("no Gantry runs on this data folder; {instead}"));
        Ok(ApiClient::Remote(self.running_server()?.ok_or_else(missing)?))
    }

    /// Opens the API client: of the running server, else of an in-process router that starts what the scope needs.
    pub(crate) async fn connect(mut self, scope: Scope<'_>) -> anyhow::Result<ApiClient> {
        if let Some(server) = self.running_server()? {
            return Ok(ApiClient::Remote(server));
        }
        let config = &mut self.loaded.config;
        let is_needed = |name: &str| match scope {
            Scope::All => true,
            Scope::Project(project) => name == project,
            Scope::LedgerOnly => false,
        };
        config
            .projects
            .iter_mut()
            .filter(|(name, _)| !is_needed(name))
            .for_each(|(_, other)| other.stay_home());
        if !is_needed(MAIN_PROJECT) {
            config.main.stay_home();
        }
        let started = wiring::start(self.source, self.loaded, self.extra).await?;
        let parse = wiring::server_parser(&started.configuration);
        Ok(ApiClient::InProcess(App::new(started.projects, parse, CancellationToken::new())))
    }
}

/// What an in-process client starts; a running server has everything anyway.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// The servers and APIs of every project.
    All,
    /// Those of one project.
    Project(&'a str),
    /// None: the command only reads or writes the ledger.
    LedgerOnly,
}

/// A Gantry that runs goes by the configuration of before, and can do things whatever is on the disk now.
fn load_or_use_running_server(
    source: &Source,
    error: crate::config::Error,
) -> Result<Loaded, crate::config::Error> {
    let data = Config::data(source, &ProcessEnv).filter(|data| data.is_dir());
    let runs = |data: &PathBuf| DataDir::open(data).is_ok_and(|data_dir| data_dir.running_server().is_some());
    let Some(data) = data.filter(runs) else { return Err(error) };
    term::eprint(&format!("{error}\nThe Gantry that runs here goes by the configuration of before."));
    Config::defaults(source, data, &ProcessEnv)
}

/// Where things get done.
pub(crate) enum ApiClient {
    /// By the running server.
    Remote(LocalServer),
    /// In this process.
    InProcess(App),
}

/// What the API answered.
pub(crate) struct ApiResponse {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
    /// The body as it came, for those who print it unchanged.
    pub(crate) text: String,
}

impl ApiClient {
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<ApiResponse> {
        self.request(Method::GET, path, Bytes::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: String) -> anyhow::Result<ApiResponse> {
        self.request(Method::POST, path, body.into()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<ApiResponse> {
        self.request(Method::DELETE, path, Bytes::new()).await
    }

    /// The text of an answer that may be too large to be made a value.
    pub(crate) async fn get_text(&self, path: &str) -> anyhow::Result<String> {
        let (status, text) = self.exchange(Method::GET, path, Bytes::new()).await?;
        if !status.is_success() {
            ApiResponse::new(status, text)?.into_result()?;
            anyhow::bail!("the request failed");
        }
        Ok(text)
    }

    async fn request(&self, method: Method, path: &str, body: Bytes) -> anyhow::Result<ApiResponse> {
        let (status, text) = self.exchange(method, path, body).await?;
        ApiResponse::new(status, text)
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<(StatusCode, String)> {
        let (status, bytes) = match self {
            Self::Remote(server) => {
                let request = http::Request::builder().method(method).uri(path).header(VIA, "cli");
                let (status, _, bytes) = server.send(request, body).await?;
                (status, bytes)
            }
            Self::InProcess(app) => app.local(method, path, body).await?,
        };
        let text = String::from_utf8(bytes.into()).context("the answer is not UTF-8")?;
        Ok((status, text))
    }

    /// Whether a server that goes on running does things.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// Waits until the MCP servers that this process starts were ready or have failed. A server that runs on the data
    /// folder is not waited for: it says how its servers are doing now.
    pub(crate) async fn wait_until_ready(&self) {
        if let Self::InProcess(app) = self {
            app.projects().settled().await;
        }
    }

    /// Closes what this process opened.
    pub(crate) async fn close(self) {
        self.close_within(GRACE).await;
    }

    /// The same, but cancels what this process still does.
    pub(crate) async fn stop(self) {
        self.close_within(Duration::ZERO).await;
    }

    async fn close_within(self, grace: Duration) {
        if let Self::InProcess(app) = self {
            app.projects().shutdown(grace).await;
        }
    }
}

impl ApiResponse {
    fn new(status: StatusCode, text: String) -> anyhow::Result<Self> {
        let body = serde_json::from_str(&text)
            .with_context(|| format!("the answer is not JSON (status {status})"))?;
        Ok(Self { status, body, text })
    }

    /// The body, or the error that the API answered with, in words.
    pub(crate) fn into_result(self) -> anyhow::Result<Value> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let error = self.body.get("error");
        let message = error
            .and_then(|e| e.get("message"))
            .and_then(Value::as_str)
            .unwrap_or("the request failed")
            .to_owned();
        if self.status.is_client_error() {
            return Err(UsageError(message).into());
        }
        anyhow::bail!(message)
    }
}

/// A query string from the parts that were given.
pub(crate) fn query(parts: &[(&str, Option<&str>)]) -> String {
    let given = parts.iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded((*value)?))));
    let query = given.collect::<Vec<_>>().join("&");
    if query.is_empty() { query } else { format!("?{query}") }
}

/// Percent-encodes everything that is not plain in a query or a part of a path.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes()
        .map(|b| match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(b).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}
