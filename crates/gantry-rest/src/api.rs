//! An API that an OpenAPI document describes: each of its operations is a tool.
//!
//! A document in files is read when the provider is made ready, which happens at the start and after each change of the
//! configuration; the files of documents are part of that. A document from the web is read once.

pub(crate) mod request;
mod status;

use super::auth;
use super::client::{self, RestClient};
use super::error;
use super::load::{self, Stamps};
use super::options::{ApiOptions, Credential, SpecPlace};
use super::response::{self, RestCall, reading_end};
use super::token::{TokenRequest, Tokens};
use super::{NAMESPACE, api_origin, warn_about_cleartext};
use crate::openapi::{Import, ImportOptions, Operation};
use arc_swap::ArcSwapOption;
use gantry_core::digest::Digest;
use gantry_core::tool::{Origin, ToolSpec};
use gantry_core::{CallFailure, Effect, ErrorCode, Permit, Tool, ToolError};
use gantry_egress::{FollowError, Followed, OutboundRequest};
use gantry_provider::redact::Redactor;
use gantry_provider::{BoxFuture, CallContext, CallResult, Provider, ProviderStatus, task};
use http::StatusCode;
use status::LastRead;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// How long a start waits for a document from the web.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// Seconds before the next attempts to get a document from the web; the last one again and again.
const PAUSES: [u64; 6] = [1, 2, 5, 10, 30, 60];

/// The name of an API leaves at least this many characters for the name of an operation.
const OPERATION_CHARS: usize = 16;

/// Warnings of one document that are logged.
const WARNINGS: usize = 5;

#[derive(Debug)]
pub(super) struct Api {
    shared: Arc<Shared>,
    /// Reads a document from the web until it is there; ends with the provider.
    fetching: OnceLock<AbortOnDropHandle<()>>,
}

/// What the provider and the task that reads its document share.
#[derive(Debug)]
struct Shared {
    origin: Origin,
    options: Arc<ApiOptions>,
    import_options: ImportOptions,
    client: Arc<RestClient>,
    loaded: ArcSwapOption<ImportedApi>,
    last_read: LastRead,
    version: watch::Sender<u64>,
    tokens: Tokens,
    secrets: Redactor,
    warned: AtomicBool,
    /// The digest of its options, and of what it shares with other services.
    set_up: Digest,
}

/// An API's document that was read and imported.
#[derive(Debug)]
pub struct ImportedApi {
    pub import: Import,
    /// In the order of the operations behind them.
    pub tools: Vec<ToolSpec>,
    /// The files that it is made of, as they were when it was read; none if it is from the web.
    files: Stamps,
}

impl ImportedApi {
    /// Reads the document of an API and imports it.
    pub async fn read(
        options: Arc<ApiOptions>,
        import_options: ImportOptions,
        client: &RestClient,
    ) -> Result<Self, String> {
        let (bundle, files) = load::read(&options.spec, options.files.as_deref(), client).await?;
        load::blocking(move || {
            let import = crate::openapi::import(&bundle, &import_options);
            // Freed before memory for the tools is taken.
            drop(bundle);
            let tools = import.operations.iter().map(|operation| options.tool(operation)).collect();
            Self { import, tools, files }
        })
        .await
    }

    /// The operation of a tool, if its definition still has the fingerprint that was judged. Another order of members in
    /// the document keeps the fingerprint.
    pub fn operation(&self, tool: &Tool) -> Option<&Operation> {
        // The names have one prefix, so they are in the order of the operations.
        let at = self.tools.binary_search_by(|spec| spec.name.cmp(&tool.spec.name)).ok()?;
        let (spec, operation) = (self.tools.get(at)?, self.import.operations.get(at)?);
        let is_same =
            *spec == tool.spec || (spec.target == tool.spec.target && spec.fingerprint() == tool.fingerprint);
        is_same.then_some(operation)
    }
}

impl Api {
    /// An API beside the inline tools of these names. Nothing is read yet.
    ///
    /// # Errors
    /// It is not said where its credentials may go, or its name is too long.
    pub(super) fn new(
        options: ApiOptions,
        inline: &BTreeSet<String>,
        client: &Arc<RestClient>,
    ) -> Result<Self, String> {
        check(&options).map_err(|error| format!("openapiSpecs.{}{error}", options.id))?;
        let import_options = options.import_options(inline.iter().map(String::as_str));
        let mut secrets = Redactor::default();
        options.headers.iter().for_each(|(name, value)| secrets.add_header(name, value));
        options.auth.values().for_each(|credential| credential.add_to(&mut secrets));
        let others = format!("{:?}{:?}", import_options.taken, client.private);
        let shared = Shared {
            set_up: Digest::of_parts(&[options.digest().to_string().as_bytes(), others.as_bytes()]),
            origin: api_origin(&options.id),
            options: Arc::new(options),
            import_options,
            client: Arc::clone(client),
            loaded: ArcSwapOption::empty(),
            last_read: LastRead::default(),
            version: watch::Sender::new(0),
            tokens: Tokens::new(client),
            secrets,
            warned: AtomicBool::new(false),
        };
        Ok(Self { shared: Arc::new(shared), fetching: OnceLock::new() })
    }

    async fn run(&self, cx: &CallContext, permit: &Permit) -> CallResult {
        let until = reading_end(cx.limit);
        let loaded = self.shared.loaded.load_full();
        let found = loaded.as_ref().and_then(|loaded| {
            // The call was judged by the listed definition; the document may have changed since.
            Some((loaded, loaded.operation(permit.tool())?))
        });
        let Some((loaded, operation)) = found else {
            let message = format!(
                "{} has changed and has no such tool {} any more; list the tools again",
                self.shared.origin.provider,
                permit.tool().spec.name
            );
            return Err(CallFailure::without_effect(ToolError::new(ErrorCode::ToolNotFound, message)));
        };
        Call { api: &self.shared, import: &loaded.import, operation, cx, permit, until }.run().await
    }

    /// Reads a document from the web, unless it was read. What cannot be had now is tried again in the background.
    async fn fetch(&self) -> Result<(), String> {
        if self.shared.loaded.load().is_some() {
            return Ok(());
        }
        if self.fetching.get().is_some() {
            return Err("its specification has not come yet; it is tried on".to_owned());
        }
        let first = tokio::time::timeout(FIRST_LOOK, self.shared.read()).await.unwrap_or_else(|_elapsed| {
            Err(format!("its specification did not come within {} s; it is tried on", FIRST_LOOK.as_secs()))
        });
        if first.is_err() {
            self.fetching.get_or_init(|| {
                let fetching = Arc::clone(&self.shared).fetch_until_there();
                AbortOnDropHandle::new(task::spawn("OpenAPI document", fetching))
            });
        }
        first
    }
}

impl Shared {
    /// Reads a document from the web again and again, until it is there.
    async fn fetch_until_there(self: Arc<Self>) {
        for pause in PAUSES.into_iter().chain(std::iter::repeat(60)) {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            if self.read().await.is_ok() {
                return;
            }
        }
    }

    /// Reads the document in its files, unless they are as they were. If it cannot be used, the tools of the last one
    /// stay.
    async fn read_files(&self) -> Result<(), String> {
        let known = self.loaded.load_full();
        if let Some(known) = &known
            && load::is_unchanged(known.files.clone()).await
        {
            return Ok(());
        }
        match self.read().await {
            Err(reason) if known.is_some() => {
                let provider = &self.origin.provider;
                tracing::warn!(
                    "{provider} goes on with what it had, as its changed specification cannot be used: {reason}"
                );
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Reads the document once, and notes how that ended.
    async fn read(&self) -> Result<(), String> {
        let outcome = self.read_once().await;
        self.last_read.note(&outcome);
        outcome
    }

    async fn read_once(&self) -> Result<(), String> {
        let (options, import_options) = (Arc::clone(&self.options), self.import_options.clone());
        let loaded = ImportedApi::read(options, import_options, &self.client).await?;
        self.log(&loaded.import);
        self.loaded.store(Some(Arc::new(loaded)));
        self.version.send_modify(|version| *version += 1);
        Ok(())
    }

    /// Logs skipped operations, warnings, and credentials that fit no security scheme.
    fn log(&self, import: &Import) {
        let id = &self.options.id;
        let (tools, skipped) = (import.operations.len(), import.skipped.len());
        if skipped > 0 {
            tracing::warn!(
                "{} has {tools} tools; {skipped} operations were skipped (gantry openapi inspect says why)",
                self.origin.provider
            );
        }
        for warning in import.warnings.iter().take(WARNINGS) {
            tracing::warn!("{}: {warning}", self.origin.provider);
        }
        for (name, credential) in &self.options.auth {
            if !import.schemes.get(name).is_some_and(|scheme| auth::fits(scheme, credential)) {
                let known: Vec<&str> = import.schemes.keys().map(String::as_str).collect();
                tracing::warn!(
                    "openapiSpecs.{id}.auth.{name} fits no security scheme of this name; there are {known:?}"
                );
            }
        }
    }
}

/// Says why an API cannot be set up, in words that continue `openapiSpecs.<id>`.
fn check(options: &ApiOptions) -> Result<(), String> {
    if matches!(options.spec, SpecPlace::Url(_)) {
        let has_secrets = !options.headers.is_empty() || !options.auth.is_empty();
        if has_secrets && options.base_url.is_none() {
            return Err(
                ": its specification comes from the web, so say where the credentials may go: set baseUrl"
                    .to_owned(),
            );
        }
        let is_open = |it: &Credential| matches!(it, Credential::Client { token_url: None, .. });
        if let Some((scheme, _)) = options.auth.iter().find(|(_, it)| is_open(it)) {
            return Err(format!(
                ".auth.{scheme}: the specification comes from the web, so say where the client secret may go: set tokenUrl"
            ));
        }
    }
    if options.name_chars() < OPERATION_CHARS {
        let most = (options.name_chars() + options.id.len()).saturating_sub(OPERATION_CHARS);
        return Err(format!(": its name has more than {most} characters; use a shorter one"));
    }
    for (name, value) in &options.headers {
        let value = client::header_name(name).and_then(|_| client::header_value(name, value));
        value.map_err(|error| format!(": {error}"))?;
    }
    Ok(())
}

struct Call<'a> {
    api: &'a Shared,
    import: &'a Import,
    operation: &'a Operation,
    cx: &'a CallContext,
    permit: &'a Permit,
    /// When reading the answer ends.
    until: Instant,
}

/// A request with its credentials, and what came of sending it.
struct Sent {
    request: OutboundRequest,
    /// The token among the credentials, which can be requested anew.
    token: Option<(TokenRequest, Arc<str>)>,
    secrets: Redactor,
    outcome: Result<Followed, FollowError>,
}

impl Call<'_> {
    async fn run(&self) -> CallResult {
        let prepared = self.operation.prepare(&error::arguments(self.permit)?).map_err(error::invalid)?;
        let bare = request::build(self.operation, prepared, &self.api.options).map_err(error::invalid)?;
        let first = self.send(&bare).await?;
        if !self.is_outdated(&first).await {
            return self.read(first, None).await;
        }
        let unsent = match self.send(&bare).await {
            Ok(second) if second.outcome.as_ref().err().is_none_or(FollowError::was_sent) => {
                return self.read(second, None).await;
            }
            Ok(second) => self.read(second, None).await.err(),
            Err(fault) => Some(fault),
        };
        // The first request was sent, so the answer to it stands.
        let (provider, reason) = (&self.api.origin.provider, unsent.map(|fault| fault.error.message));
        tracing::info!(reason, "{provider}: nothing was sent with a new token");
        let advice = "the token was not taken, and the request could not be sent again with a new one";
        self.read(first, Some(advice.to_owned())).await
    }

    /// Sends a request with the credentials that the operation needs and the configuration has.
    ///
    /// # Errors
    /// Credentials cannot be had or added; nothing was sent.
    async fn send(&self, bare: &OutboundRequest) -> Result<Sent, CallFailure> {
        let Shared { options, tokens, client, .. } = self.api;
        let mut request = bare.clone();
        let schemes = auth::met(self.operation, self.import, options);
        let token = auth::apply(&mut request, schemes, (self.import, options), tokens).await?;
        if !schemes.is_empty() || !options.headers.is_empty() {
            warn_about_cleartext(&self.api.warned, &self.api.origin.provider, &bare.url);
        }
        // Private addresses were allowed for what the configuration names, and not for what a document from the web names.
        let public_only = match &options.spec {
            SpecPlace::Url(document) => options.base_url.is_none() && document.origin() != bare.url.origin(),
            SpecPlace::File(_) => false,
        };
        let secrets = self.api.secrets.with(token.as_ref().map(|(_, token)| &**token));
        let outcome = client.send(request.clone(), public_only).await;
        Ok(Sent { request, token, secrets, outcome })
    }

    /// Reads the answer to a request. The advice is for credentials that are refused; without it, it names those that are
    /// missing.
    async fn read(&self, sent: Sent, advice: Option<String>) -> CallResult {
        let tool = self.permit.tool();
        let call = RestCall {
            request: &sent.request,
            reads: tool.effect == Effect::Read,
            secrets: &sent.secrets,
            advice: advice.or_else(|| auth::advice(self.operation, self.import, &self.api.options)),
            schema: tool.spec.output_schema.as_ref(),
            streaming: None,
            until: self.until,
            client: &*self.cx.client,
        };
        response::read(sent.outcome, &call).await
    }

    /// Whether the service refused the token and the request may be sent again with a new one. A 401 means that nothing was
    /// executed, but only idempotent requests are ever sent twice, and after a redirect only those that read: the answer
    /// that redirected may have executed them already.
    async fn is_outdated(&self, Sent { token, outcome, .. }: &Sent) -> bool {
        let (Some((request, token)), Ok(reached)) = (token, outcome) else { return false };
        let refused = reached.response.status() == StatusCode::UNAUTHORIZED;
        if refused {
            self.api.tokens.forget(request, token).await;
        }
        let reads = self.permit.tool().effect == Effect::Read;
        refused && self.operation.method.is_idempotent() && (reads || !reached.redirected)
    }
}

impl Provider for Api {
    fn origin(&self) -> &Origin {
        &self.shared.origin
    }

    fn shares_namespace(&self) -> bool {
        true
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.shared.loaded.load().as_ref().map(|loaded| loaded.tools.clone()).unwrap_or_default()
    }

    fn config_digest(&self) -> Option<Digest> {
        Some(self.shared.set_up)
    }

    fn subscribe(&self) -> Option<watch::Receiver<u64>> {
        Some(self.shared.version.subscribe())
    }

    fn execute<'a>(&'a self, cx: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, CallResult> {
        Box::pin(self.run(cx, permit))
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), String>> {
        match self.shared.options.spec {
            SpecPlace::File(_) => Box::pin(self.shared.read_files()),
            SpecPlace::Url(_) => Box::pin(self.fetch()),
        }
    }

    fn service_status(&self) -> Option<ProviderStatus> {
        Some(self.status())
    }

    fn instructions(&self) -> Option<String> {
        let title = error::one_line(&self.shared.loaded.load().as_ref()?.import.title, 100);
        let id = &self.shared.options.id;
        let title = if title.is_empty() { id.clone() } else { title };
        Some(format!("The tools {NAMESPACE}__{id}_* are operations of an API: {title}."))
    }
}
