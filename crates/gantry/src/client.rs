//! HTTP API client of the commands. Uses the server that runs on the data folder, otherwise an in-process router.
//!
//! Both give the same answers, so that each command is written once.

use crate::Extra;
use crate::cli::GlobalOptions;
use crate::config::{self, Config, Env, Loaded, Source};
use crate::data_dir::DataDir;
use crate::exit::UsageError;
use crate::{startup, term};
use anyhow::Context as _;
use gantry_egress::LocalServer;
use gantry_server::App;
use gantry_server::model::{Failure, List, Server};
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use url::form_urlencoded::byte_serialize;

/// How long the calls of an in-process client may go on when its command has ended.
pub(crate) const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// The header that tells the server which program sends a decision.
const VIA: &str = "gantry-via";

/// Characters of an unreadable answer that its error quotes.
const QUOTED: usize = 100;

/// What every command gets: the configuration, the data folder and the global options.
pub(crate) struct CommandContext {
    pub(crate) source: Source,
    pub(crate) loaded: Loaded,
    pub(crate) data_dir: DataDir,
    pub(crate) extra: Extra,
    /// `--json`: print JSON instead of text.
    pub(crate) json: bool,
}

impl CommandContext {
    /// Reads the configuration and opens the data folder.
    pub(crate) fn new(options: &GlobalOptions, extra: Extra) -> anyhow::Result<Self> {
        let source = source(options)?;
        let loaded = Config::load_accepted(&source, &Env::Process)
            .or_else(|error| load_or_use_running_server(&source, error))?;
        log_warnings(&loaded);
        let data_dir = DataDir::open(&loaded.data)?;
        Ok(Self { source, loaded, data_dir, extra, json: options.json })
    }

    /// The client of the server that runs on this data folder, with the key of the folder.
    pub(crate) fn running_server(&self) -> anyhow::Result<Option<ApiClient>> {
        running_server(&self.data_dir, self.json)
    }

    /// The client of the running server, for commands that need one; `instead` says what to do where none runs.
    pub(crate) fn require_server(&self, instead: &str) -> anyhow::Result<ApiClient> {
        let missing = || UsageError(format!("no Gantry runs on this data folder; {instead}"));
        Ok(self.running_server()?.ok_or_else(missing)?)
    }

    /// Opens a client, runs the work with it and closes it.
    pub(crate) async fn with_client<T>(
        self,
        scope: Scope<'_>,
        work: impl AsyncFnOnce(&ApiClient) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let client = self.connect(scope).await?;
        let done = work(&client).await;
        client.close(SHUTDOWN_GRACE_PERIOD).await;
        done
    }

    /// Opens the client of the running server, else of an in-process router that starts what the scope needs.
    pub(crate) async fn connect(mut self, scope: Scope<'_>) -> anyhow::Result<ApiClient> {
        if let Some(client) = self.running_server()? {
            return Ok(client);
        }
        self.loaded.config.disable_external_providers(|project| match scope {
            Scope::All => false,
            Scope::Project(needed) => project != needed,
            Scope::LedgerOnly => true,
        });
        let started = startup::start(self.source, self.loaded, self.extra).await?;
        let parse = startup::server_parser(&started.configuration);
        let connection = Connection::InProcess(App::new(started.projects, parse, CancellationToken::new()));
        Ok(ApiClient { connection, json: self.json })
    }
}

/// The client of the server that runs on a data folder, with the key of the folder.
pub(crate) fn running_server(data_dir: &DataDir, json: bool) -> anyhow::Result<Option<ApiClient>> {
    let Some(info) = data_dir.running_server() else { return Ok(None) };
    let (key, _) = data_dir.admin_key()?;
    let connection = Connection::Remote(LocalServer::new(info.address, Some(key)));
    Ok(Some(ApiClient { connection, json }))
}

/// What the options say about where the configuration is.
pub(crate) fn source(options: &GlobalOptions) -> anyhow::Result<Source> {
    let folder = std::env::current_dir().context("the working folder is gone; change to another one")?;
    Ok(Source { folder, config: options.config.clone(), data: options.data.clone() })
}

/// The configuration on the disk, for commands to which one that a running server still uses is no help.
pub(crate) fn load(source: &Source) -> anyhow::Result<Loaded> {
    let loaded = Config::load(source, &Env::Process)?;
    log_warnings(&loaded);
    Ok(loaded)
}

pub(crate) fn log_warnings(loaded: &Loaded) {
    loaded.warnings.iter().for_each(|warning| tracing::warn!(target: "gantry::config", "{warning}"));
}

/// What an in-process client starts. A running server has started everything.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// The MCP servers and APIs of every project.
    All,
    /// Those of one project.
    Project(&'a str),
    /// None, for commands that only read or write the ledger.
    LedgerOnly,
}

impl<'a> Scope<'a> {
    /// One project if a name is given, else all of them.
    pub(crate) fn of(project: Option<&'a str>) -> Self {
        project.map_or(Self::All, Self::Project)
    }
}

/// A broken configuration does not stop a command that a running server can carry out: the server goes on with the
/// configuration that it read before.
fn load_or_use_running_server(source: &Source, error: config::Error) -> Result<Loaded, config::Error> {
    let data = Config::data(source, &Env::Process).filter(|data| data.is_dir());
    let is_served =
        |data: &PathBuf| DataDir::open(data).is_ok_and(|data_dir| data_dir.running_server().is_some());
    let Some(data) = data.filter(is_served) else { return Err(error) };
    term::eprint(&format!("{error}\nThe running Gantry still uses the configuration that it read before."));
    Config::defaults(source, data, &Env::Process)
}

/// A client of the HTTP API.
pub(crate) struct ApiClient {
    connection: Connection,
    /// `--json`: print JSON instead of text.
    pub(crate) json: bool,
}

enum Connection {
    /// The running server.
    Remote(LocalServer),
    /// A router in this process.
    InProcess(App),
}

impl ApiClient {
    /// Reads one resource.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, query: Query<'_>) -> anyhow::Result<T> {
        let path = format!("{path}{}", query_string(query));
        self.send(Method::GET, &path, String::new()).await?.into_result()
    }

    /// Reads a list up to the server's page limit.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: Query<'_>,
    ) -> anyhow::Result<Vec<T>> {
        Ok(self.get::<List<T>>(path, query).await?.items)
    }

    /// The MCP servers and APIs of a project, or of all.
    pub(crate) async fn servers(&self, project: Option<&str>) -> anyhow::Result<Vec<Server>> {
        self.list("/api/v1/servers", &[("project", project)]).await
    }

    /// Sends a request with a body.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        self.send(Method::POST, path, serde_json::to_string(body)?).await?.into_result()
    }

    /// Asks for an action that takes no body: a restart, or with `DELETE` a removal.
    pub(crate) async fn act<T: DeserializeOwned>(&self, method: Method, path: &str) -> anyhow::Result<T> {
        self.send(method, path, String::new()).await?.into_result()
    }

    /// Sends a request and returns the answer with its status, for commands to which some errors are results.
    pub(crate) async fn send(&self, method: Method, path: &str, body: String) -> anyhow::Result<ApiResponse> {
        let (status, bytes) = match &self.connection {
            Connection::Remote(server) => {
                let request = http::Request::builder().method(method).uri(path).header(VIA, "cli");
                let request = request.header(CONTENT_TYPE, "application/json");
                let (status, _, bytes) = server.send(request, body.into()).await?;
                (status, bytes)
            }
            Connection::InProcess(app) => app.local(method, path, body.into()).await?,
        };
        let text = String::from_utf8(bytes.into()).context("the answer is not UTF-8")?;
        Ok(ApiResponse { status, text })
    }

    /// The running server, which goes on when the command has ended; `None` if there is none.
    pub(crate) fn remote(&self) -> Option<&LocalServer> {
        match &self.connection {
            Connection::Remote(server) => Some(server),
            Connection::InProcess(_) => None,
        }
    }

    /// Whether a running server answers, and not this process.
    pub(crate) fn is_remote(&self) -> bool {
        self.remote().is_some()
    }

    /// Waits until the MCP servers that this process starts are ready or have failed. Those of a running server are
    /// not waited for: the server reports their present state.
    pub(crate) async fn wait_until_ready(&self) {
        if let Connection::InProcess(app) = &self.connection {
            app.projects().settled().await;
        }
    }

    /// Closes what this process opened; its calls may go on for a while before they are canceled.
    pub(crate) async fn close(self, grace: Duration) {
        if let Connection::InProcess(app) = self.connection {
            app.projects().shutdown(grace).await;
        }
    }
}

/// An answer of the API.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) status: StatusCode,
    /// The body, JSON text.
    pub(crate) text: String,
}

impl ApiResponse {
    /// The body as this type, without a check of the status.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_str(&self.text).with_context(|| {
            let beginning = term::sanitize(&self.text.chars().take(QUOTED).collect::<String>());
            format!("unexpected answer (status {}); it begins: {beginning}", self.status)
        })
    }

    /// The body of a success, or the error.
    pub(crate) fn into_result<T: DeserializeOwned>(self) -> anyhow::Result<T> {
        if self.status.is_success() { self.parse() } else { Err(self.into_error()) }
    }

    /// The error; a client error (4xx) becomes a [`UsageError`].
    pub(crate) fn into_error(self) -> anyhow::Error {
        match self.error_message() {
            Ok(message) if self.status.is_client_error() => UsageError(message).into(),
            Ok(message) => anyhow::Error::msg(message),
            Err(error) => error,
        }
    }

    /// The message of an error.
    pub(crate) fn error_message(&self) -> anyhow::Result<String> {
        let failure: Failure = self.parse()?;
        Ok(failure.error.message)
    }
}

/// The parameters of a query; those without a value are left out.
pub(crate) type Query<'a> = &'a [(&'a str, Option<&'a str>)];

/// The query as the end of an address.
pub(crate) fn query_string(query: Query<'_>) -> String {
    let given = query.iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded((*value)?))));
    let given = given.collect::<Vec<_>>().join("&");
    if given.is_empty() { given } else { format!("?{given}") }
}

/// Percent-encodes a value for a query or a segment of a path.
pub(crate) fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}
