//! The desk: where commands get things done. The server that runs on the same data folder does them, else this process.
//!
//! Either way it is the same API with the same answers, so a command is written once.

use crate::Extra;
use crate::cli::Cli;
use crate::config::{Config, Loaded, MAIN_PROJECT, ProcessEnv, Source};
use crate::exit::Usage;
use crate::folder::Folder;
use crate::{output, startup};
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
pub(crate) struct Setup {
    pub(crate) source: Source,
    pub(crate) loaded: Loaded,
    pub(crate) folder: Folder,
    pub(crate) extra: Extra,
}

impl Setup {
    /// Reads the configuration and opens the data folder.
    pub(crate) fn new(cli: &Cli, extra: Extra) -> anyhow::Result<Self> {
        let folder = std::env::current_dir().context("the working folder is gone; change to another one")?;
        let source = Source { folder, config: cli.config.clone(), data: cli.data.clone() };
        let loaded = Config::load(&source, &ProcessEnv).or_else(|error| behind_a_server(&source, error))?;
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        let folder = Folder::open(&loaded.data)?;
        Ok(Self { source, loaded, folder, extra })
    }

    /// The server that runs on this data folder, with the key of the folder.
    pub(crate) fn server(&self) -> anyhow::Result<Option<LocalServer>> {
        let Some(note) = self.folder.server() else { return Ok(None) };
        let (key, _) = self.folder.key()?;
        Ok(Some(LocalServer::new(note.address, Some(key))))
    }

    /// The desk of the server that runs on this data folder, for what only a running server can do; `instead` says
    /// what else there is to do without one.
    pub(crate) fn running(&self, instead: &str) -> anyhow::Result<Desk> {
        let missing = || Usage(format!("no Gantry runs on this data folder; {instead}"));
        Ok(Desk::Server(self.server()?.ok_or_else(missing)?))
    }

    /// Opens the desk.
    pub(crate) async fn desk(self) -> anyhow::Result<Desk> {
        if let Some(server) = self.server()? {
            return Ok(Desk::Server(server));
        }
        let started = startup::start(self.source, self.loaded, self.extra).await?;
        let parse = startup::server_parser(&started.configuration);
        Ok(Desk::Here(App::new(started.projects, parse, CancellationToken::new())))
    }

    /// Opens the desk for work in one project. This process starts no MCP server of another one for that and
    /// reads no API's document.
    pub(crate) async fn desk_in(mut self, project: Option<&str>) -> anyhow::Result<Desk> {
        let project = project.unwrap_or(MAIN_PROJECT);
        let others = self.loaded.config.all_mut().filter(|(name, _)| *name != project);
        others.for_each(|(_, other)| other.disable_external_providers());
        self.desk().await
    }

    /// Opens the desk for what is on record. No MCP server is started for that, and no API's document is read.
    pub(crate) async fn records(mut self) -> anyhow::Result<Desk> {
        self.loaded.config.all_mut().for_each(|(_, project)| project.disable_external_providers());
        self.desk().await
    }
}

/// A Gantry that runs goes by the configuration of before, and can do things whatever is on the disk now.
fn behind_a_server(source: &Source, error: crate::config::Error) -> Result<Loaded, crate::config::Error> {
    let data = Config::data(source, &ProcessEnv).filter(|data| data.is_dir());
    let runs = |data: &PathBuf| Folder::open(data).is_ok_and(|folder| folder.server().is_some());
    let Some(data) = data.filter(runs) else { return Err(error) };
    output::talk(&format!("{error}\nThe Gantry that runs here goes by the configuration of before."));
    Config::defaults(source, data, &ProcessEnv)
}

/// Where things get done.
pub(crate) enum Desk {
    /// By the running server.
    Server(LocalServer),
    /// In this process.
    Here(App),
}

/// What the API answered.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
    /// The body as it came, for those who print it unchanged.
    pub(crate) text: String,
}

impl Desk {
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.request(Method::GET, path, Bytes::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: String) -> anyhow::Result<Answer> {
        self.request(Method::POST, path, body.into()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<Answer> {
        self.request(Method::DELETE, path, Bytes::new()).await
    }

    /// The text of an answer that may be too large to be made a value.
    pub(crate) async fn get_text(&self, path: &str) -> anyhow::Result<String> {
        let (status, text) = self.exchange(Method::GET, path, Bytes::new()).await?;
        if !status.is_success() {
            Answer::new(status, text)?.expect_ok()?;
            anyhow::bail!("the request failed");
        }
        Ok(text)
    }

    async fn request(&self, method: Method, path: &str, body: Bytes) -> anyhow::Result<Answer> {
        let (status, text) = self.exchange(method, path, body).await?;
        Answer::new(status, text)
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<(StatusCode, String)> {
        let (status, bytes) = match self {
            Self::Server(server) => {
                let request = http::Request::builder().method(method).uri(path).header(VIA, "cli");
                let (status, _, bytes) = server.send(request, body).await?;
                (status, bytes)
            }
            Self::Here(app) => app.local(method, path, body).await?,
        };
        let text = String::from_utf8(bytes.into()).context("the answer is not UTF-8")?;
        Ok((status, text))
    }

    /// Whether a server that goes on running does things.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// Waits until the MCP servers that this process starts were ready or have failed. A server that runs on the data
    /// folder is not waited for: it says how its servers are doing now.
    pub(crate) async fn settled(&self) {
        if let Self::Here(app) = self {
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
        if let Self::Here(app) = self {
            app.projects().shutdown(grace).await;
        }
    }
}

impl Answer {
    fn new(status: StatusCode, text: String) -> anyhow::Result<Self> {
        let body = serde_json::from_str(&text)
            .with_context(|| format!("the answer is not JSON (status {status})"))?;
        Ok(Self { status, body, text })
    }

    /// The body, or the error that the API answered with, in words.
    pub(crate) fn expect_ok(self) -> anyhow::Result<Value> {
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
            return Err(Usage(message).into());
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
