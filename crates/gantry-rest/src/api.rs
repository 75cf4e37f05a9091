//! An API that an OpenAPI document describes: each of its operations is a tool.
//!
//! A document in files is read when the provider is made ready, which happens at the start and after each change of the
//! configuration; the files of documents are part of that. A document from the web is read once.

pub(crate) mod request;

use super::auth::{self, AppliedAuth};
use super::client::{self, Request, RestClient};
use super::error::{self, ErrorContext};
use super::load::{self, Stamps};
use super::options::{ApiOptions, Credential, SpecPlace};
use super::response::{self, ReadOptions};
use super::token::Tokens;
use super::{NAMESPACE, provider_id, warn_about_cleartext};
use arc_swap::ArcSwapOption;
use gantry_core::digest::Digest;
use gantry_core::tool::{Origin, ToolSpec};
use gantry_core::{Effect, ErrorCode, Fault, Permit, Tool, ToolError, ToolKind};
use gantry_egress::Followed;
use gantry_openapi::{Choice, Import, Operation};
use gantry_provider::client::ClientChannel;
use gantry_provider::redact::Redactor;
use gantry_provider::{BoxFuture, CallContext, Provider, RawOutput, task};
use http::StatusCode;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio_util::task::AbortOnDropHandle;

/// How long a start waits for a document from the web.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// Seconds before the next attempts to get a document from the web; the last one again and again.
const PAUSES: [u64; 6] = [1, 2, 5, 10, 30, 60];

/// The name of an API leaves at least this many characters for the name of an operation.
const OPERATION_CHARS: usize = 16;

/// Warnings of one document that are logged.
const WARNINGS: usize = 5;

/// An API.
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
    choice: Choice,
    client: Arc<RestClient>,
    loaded: ArcSwapOption<Loaded>,
    version: watch::Sender<u64>,
    tokens: Tokens,
    secrets: Redactor,
    warned: AtomicBool,
    /// The digest of its options, and of what it shares with other services.
    set_up: Digest,
}

/// A document that was read.
#[derive(Debug)]
struct Loaded {
    import: Import,
    /// In the order of the operations behind them.
    tools: Vec<ToolSpec>,
    /// The files that it is made of, as they were when it was read; none if it is from the web.
    files: Stamps,
}

impl Loaded {
    fn new(import: Import, options: &ApiOptions, files: Stamps) -> Self {
        let tools = import.operations.iter().map(|operation| options.tool(operation)).collect();
        Self { import, tools, files }
    }

    /// The operation of a tool, if its definition still has the fingerprint that was judged. Another order of members in
    /// the document keeps the fingerprint.
    fn operation(&self, tool: &Tool) -> Option<&Operation> {
        let mut pairs = self.tools.iter().zip(&self.import.operations);
        let (spec, operation) = pairs.find(|(spec, _)| spec.name == tool.spec.name)?;
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
        let choice = options.choice(inline.iter().map(String::as_str));
        let mut secrets = Redactor::default();
        options.headers.iter().for_each(|(name, value)| secrets.add_header(name, value));
        options.auth.values().for_each(|credential| credential.add_to(&mut secrets));
        let provider = provider_id(&options.id).into();
        let others = format!("{:?}{:?}", choice.taken, client.private);
        let shared = Shared {
            set_up: Digest::of_parts(&[options.digest().to_string().as_bytes(), others.as_bytes()]),
            origin: Origin { provider, namespace: NAMESPACE.into(), kind: ToolKind::Rest },
            options: Arc::new(options),
            choice,
            client: Arc::clone(client),
            loaded: ArcSwapOption::empty(),
            version: watch::Sender::new(0),
            tokens: Tokens::new(client),
            secrets,
            warned: AtomicBool::new(false),
        };
        Ok(Self { shared: Arc::new(shared), fetching: OnceLock::new() })
    }

    async fn run(&self, cx: &CallContext, permit: &Permit) -> Result<RawOutput, Fault> {
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
            return Err(Fault::without_effect(ToolError::new(ErrorCode::ToolNotFound, message)));
        };
        let reads = permit.tool().effect == Effect::Read;
        let call = Call { shared: &self.shared, import: &loaded.import, operation, reads };
        call.run(&*cx.client, permit, ReadOptions::new(permit.tool(), None, cx.limit)).await
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
    options.headers.iter().try_for_each(|(name, value)| {
        client::header_name(name)
            .and_then(|_| client::header_value(name, value))
            .map_err(|error| format!(": {error}"))?;
        Ok(())
    })
}

impl Shared {
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

    async fn fetch_until_there(self: Arc<Self>) {
        for pause in PAUSES.into_iter().chain(std::iter::repeat(60)) {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            if self.read().await.is_ok() {
                return;
            }
        }
    }

    /// Reads the document once.
    async fn read(&self) -> Result<(), String> {
        let (bundle, files) = load::read(&self.options.spec, &self.client).await?;
        let (choice, options) = (self.choice.clone(), Arc::clone(&self.options));
        let importing = spawn_blocking(move || {
            let import = gantry_openapi::import(&bundle, &choice);
            // Freed before memory for the tools is taken.
            drop(bundle);
            Loaded::new(import, &options, files)
        });
        let loaded = importing.await.map_err(|crash| format!("it could not be read: {crash}"))?;
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
            let problem = match import.schemes.get(name) {
                None => {
                    let known: Vec<&str> = import.schemes.keys().map(String::as_str).collect();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    format!("there is no such security scheme; there is {known}")
                }
                Some(scheme) if auth::fits(scheme, credential) => continue,
                Some(_) => "this is not what the security scheme asks for".to_owned(),
            };
            tracing::warn!("openapiSpecs.{id}.auth.{name}: {problem}");
        }
    }
}

/// A call of an operation.
struct Call<'a> {
    shared: &'a Shared,
    import: &'a Import,
    operation: &'a Operation,
    /// The tool changes nothing.
    reads: bool,
}

/// A request with its credentials.
struct Signed {
    request: Request,
    auth: AppliedAuth,
    secrets: Redactor,
}

impl Call<'_> {
    async fn run(
        &self,
        client: &dyn ClientChannel,
        permit: &Permit,
        read: ReadOptions<'_>,
    ) -> Result<RawOutput, Fault> {
        let prepared = self.operation.prepare(&error::arguments(permit)?).map_err(error::invalid)?;
        let bare = request::build(self.operation, prepared, &self.shared.options).map_err(error::invalid)?;
        let signed = self.sign(&bare).await?;
        let mut context = self.context(&signed);
        let sent = self.shared.client.send(&signed.request).await;
        let reached = sent.map_err(|error| context.unanswered(&error))?;
        if self.is_outdated(&reached, &signed.auth).await {
            match self.send_again(&bare, client, read).await {
                Ok(ended) => return ended,
                // The first request was sent, so the answer to it stands.
                Err(unsent) => {
                    let provider = &self.shared.origin.provider;
                    tracing::info!("{provider}: nothing was sent with a new token: {}", unsent.error.message);
                    context.advice = Some(
                        "the token was not taken, and the request could not be sent again with a new one"
                            .to_owned(),
                    );
                }
            }
        }
        response::read(reached, &context, client, read).await
    }

    /// Sends a request once more, with a new token, and reads the answer.
    ///
    /// # Errors
    /// It was not sent.
    async fn send_again(
        &self,
        bare: &Request,
        client: &dyn ClientChannel,
        read: ReadOptions<'_>,
    ) -> Result<Result<RawOutput, Fault>, Fault> {
        let signed = self.sign(bare).await?;
        let context = self.context(&signed);
        match self.shared.client.send(&signed.request).await {
            Ok(reached) => Ok(response::read(reached, &context, client, read).await),
            Err(error) if error.was_sent() => Ok(Err(context.unanswered(&error))),
            Err(error) => Err(context.unanswered(&error)),
        }
    }

    /// Adds the credentials that the operation needs and the configuration has.
    async fn sign(&self, bare: &Request) -> Result<Signed, Fault> {
        let Shared { options, tokens, warned, origin, .. } = self.shared;
        let mut request = bare.clone();
        let auth = auth::apply(&mut request, (self.operation, self.import), options, tokens).await?;
        if auth.is_applied || !options.headers.is_empty() {
            warn_about_cleartext(warned, &origin.provider, &bare.url);
        }
        let secrets = self.shared.secrets.with(auth.token.as_ref().map(|(_, token)| &**token));
        Ok(Signed { request, auth, secrets })
    }

    fn context<'a>(&self, signed: &'a Signed) -> ErrorContext<'a> {
        let missing = auth::missing(self.operation, self.import, &self.shared.options);
        let id = &self.shared.options.id;
        let keys: Vec<String> = missing.iter().map(|name| format!("openapiSpecs.{id}.auth.{name}")).collect();
        ErrorContext {
            method: self.operation.method,
            url: &signed.request.url,
            reads: self.reads,
            secrets: &signed.secrets,
            advice: (!keys.is_empty()).then(|| format!("set {}", keys.join(" or "))),
        }
    }

    /// Whether the service refused the token and the request may be sent again with a new one. A 401 means that nothing was
    /// executed, but only idempotent requests are ever sent twice, and after a redirect only those that read: the answer
    /// that redirected may have executed them already.
    async fn is_outdated(&self, reached: &Followed, auth: &AppliedAuth) -> bool {
        let Some((request, token)) = &auth.token else { return false };
        let refused = reached.response.status() == StatusCode::UNAUTHORIZED;
        if refused {
            self.shared.tokens.forget(request, token).await;
        }
        refused && self.operation.method.is_idempotent() && (self.reads || !reached.redirected)
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

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, Fault>> {
        Box::pin(self.run(cx, permit))
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), String>> {
        match self.shared.options.spec {
            SpecPlace::File(_) => Box::pin(self.shared.read_files()),
            SpecPlace::Url(_) => Box::pin(self.fetch()),
        }
    }

    fn instructions(&self) -> Option<String> {
        let loaded = self.shared.loaded.load();
        let loaded = loaded.as_ref()?;
        let title: String = loaded.import.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title: String = title.chars().filter(|c| !gantry_core::raw::misleads(*c)).take(100).collect();
        let id = &self.shared.options.id;
        let title = if title.is_empty() { id.clone() } else { title };
        Some(format!("The tools {NAMESPACE}__{id}_* are operations of an API: {title}."))
    }
}
