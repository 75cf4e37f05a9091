//! An API that an OpenAPI document describes: each of its operations is a tool.

mod request;

use super::answer::{self, Purpose};
use super::client::{Request, RestClient};
use super::document_watch::Watchers;
use super::fault::{self, ErrorContext};
use super::options::{ApiOptions, Credential, SpecPlace};
use super::security::{self, Badge};
use super::token::Tokens;
use super::{NAMESPACE, provider_id};
use arc_swap::ArcSwapOption;
use gantry_core::digest::Digest;
use gantry_core::names::Style;
use gantry_core::tool::{Origin, ToolSpec};
use gantry_core::{Effect, ErrorCode, Fault, Permit, Tool, ToolError, ToolKind};
use gantry_egress::Followed;
use gantry_egress::address_guard::is_loopback;
use gantry_openapi::{Choice, Import, Operation};
use gantry_provider::CallContext;
use gantry_provider::client::ClientChannel;
use gantry_provider::redact::Redactor;
use gantry_provider::{BoxFuture, Provider, RawOutput};
use http::StatusCode;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long a start waits for a document from the web.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// Characters that an operation has at least.
const OPERATION_CHARS: usize = 16;

/// Warnings of one document that are logged.
const WARNINGS: usize = 5;

/// An API.
#[derive(Debug)]
pub(super) struct Api {
    shared: Arc<Shared>,
    watchers: Arc<Watchers>,
    stop: CancellationToken,
    /// Ends what runs in the background when the provider is gone.
    _gone: DropGuard,
}

/// What the provider and its keeper share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) origin: Origin,
    pub(super) options: Arc<ApiOptions>,
    pub(super) choice: Choice,
    pub(super) client: Arc<RestClient>,
    loaded: ArcSwapOption<Loaded>,
    version: watch::Sender<u64>,
    /// What came of the last attempt to read the document; nothing before the first.
    attempt: watch::Sender<Option<Result<(), String>>>,
    tokens: Tokens,
    secrets: Redactor,
    warned: AtomicBool,
    /// What it was set up with.
    set_up: Digest,
}

/// What is known of an API.
#[derive(Debug)]
pub(super) struct Loaded {
    import: Import,
    tools: Vec<ToolSpec>,
    /// Their fingerprints, computed on demand.
    fingerprints: Vec<OnceLock<Digest>>,
    /// Which operation a tool is.
    index: HashMap<String, usize>,
}

impl Loaded {
    pub(super) fn new(import: Import, options: &ApiOptions) -> Self {
        let tools: Vec<ToolSpec> =
            import.operations.iter().map(|operation| options.tool(operation)).collect();
        let index = tools.iter().enumerate().map(|(n, tool)| (tool.name.clone(), n)).collect();
        let fingerprints = tools.iter().map(|_| OnceLock::new()).collect();
        Self { import, tools, fingerprints, index }
    }

    /// The operation of a tool, if its definition is still the one that was judged. A document that only spells it
    /// otherwise defines the same tool.
    fn operation(&self, tool: &Tool) -> Option<&Operation> {
        let n = *self.index.get(&tool.spec.name)?;
        let spec = self.tools.get(n)?;
        let fingerprint = *self.fingerprints.get(n)?.get_or_init(|| spec.fingerprint());
        let is_same = fingerprint == tool.fingerprint && spec.target == tool.spec.target;
        self.import.operations.get(n).filter(|_| is_same)
    }
}

impl Api {
    /// An API beside the tools of these names that are spelled out. Nothing is read yet.
    ///
    /// # Errors
    /// It is not said where its credentials may go, or its name is too long.
    pub(super) fn new(
        options: ApiOptions,
        inline: &BTreeSet<String>,
        (client, watchers): (&Arc<RestClient>, &Arc<Watchers>),
    ) -> Result<Self, String> {
        let id = &options.id;
        let from_web = matches!(options.spec, SpecPlace::Url(_));
        let has_secrets = !options.headers.is_empty() || !options.credentials.is_empty();
        if from_web && has_secrets && options.base_url.is_none() {
            return Err(format!(
                "openapiSpecs.{id}: its specification comes from the web, so say where the credentials may go: set baseUrl"
            ));
        }
        let unsaid = options
            .credentials
            .iter()
            .find(|(_, it)| matches!(it, Credential::Client { token_url: None, .. }));
        if let Some((scheme, _)) = unsaid.filter(|_| from_web) {
            return Err(format!(
                "openapiSpecs.{id}.auth.{scheme}: the specification comes from the web, so say where the client secret may \
                 go: set tokenUrl"
            ));
        }
        if options.name_chars() < OPERATION_CHARS {
            let most = (options.name_chars() + id.len()).saturating_sub(OPERATION_CHARS);
            return Err(format!(
                "openapiSpecs.{id}: its name has more than {most} characters; use a shorter one"
            ));
        }
        request::check(&options).map_err(|error| format!("openapiSpecs.{id}: {error}"))?;
        let choice = options.choice(inline.iter().map(String::as_str));
        let mut secrets = Redactor::default();
        options.headers.iter().for_each(|(name, value)| secrets.add_header(name, value));
        options.credentials.values().for_each(|credential| credential.add_to(&mut secrets));
        let origin =
            Origin { provider: provider_id(id).into(), namespace: NAMESPACE.into(), kind: ToolKind::Rest };
        let others = format!("{:?}{:?}", choice.taken, client.private);
        let shared = Shared {
            set_up: Digest::of_parts(&[options.digest().to_string().as_bytes(), others.as_bytes()]),
            origin,
            options: Arc::new(options),
            choice,
            client: Arc::clone(client),
            loaded: ArcSwapOption::empty(),
            version: watch::Sender::new(0),
            attempt: watch::Sender::new(None),
            tokens: Tokens::new(client),
            secrets,
            warned: AtomicBool::new(false),
        };
        let stop = CancellationToken::new();
        let shared = Arc::new(shared);
        watchers.add(&shared, &stop);
        Ok(Self { shared, watchers: Arc::clone(watchers), _gone: stop.clone().drop_guard(), stop })
    }

    /// Runs the call that the permit is for. It is over when the limit is reached.
    pub(super) async fn run(
        &self,
        audience: &dyn ClientChannel,
        permit: &Permit,
        limit: Option<Duration>,
    ) -> Result<RawOutput, Fault> {
        let purpose = Purpose::of(permit.tool(), None).within(limit);
        self.shared.run(audience, permit, purpose).await
    }

    /// Tells a test when everything is gone.
    #[cfg(test)]
    pub(super) fn weak(&self) -> std::sync::Weak<Shared> {
        Arc::downgrade(&self.shared)
    }

    /// Tells a test of each attempt to read the document.
    #[cfg(test)]
    pub(super) fn attempts(&self) -> watch::Receiver<Option<Result<(), String>>> {
        self.shared.attempt.subscribe()
    }

    async fn get_ready(&self) -> Result<(), String> {
        let began = self.watchers.start();
        let mut attempt = self.shared.attempt.subscribe();
        let first = async {
            match attempt.wait_for(Option::is_some).await {
                Ok(attempt) => attempt.clone().unwrap_or(Ok(())),
                Err(_) => Err("it is closed".to_owned()),
            }
        };
        match &self.shared.options.spec {
            SpecPlace::File(_) => first.await,
            SpecPlace::Url(_) => {
                tokio::time::timeout_at(began + FIRST_LOOK, first).await.unwrap_or_else(|_elapsed| {
                    Err(format!(
                        "its specification did not come within {} s; it is tried on",
                        FIRST_LOOK.as_secs()
                    ))
                })
            }
        }
    }
}

impl Shared {
    /// Says what came of an attempt to read the document.
    pub(super) fn tried(&self, attempt: Result<(), String>) {
        self.attempt.send_replace(Some(attempt));
    }

    /// Shows what was read, if it is anything new: another order is, as definitions are shown by their text.
    pub(super) fn put(&self, loaded: Loaded) {
        let before = self.loaded.load();
        if before.as_ref().is_some_and(|before| before.import == loaded.import) {
            return;
        }
        self.tell(&loaded.import);
        self.loaded.store(Some(Arc::new(loaded)));
        self.version.send_modify(|version| *version += 1);
    }

    /// Logs what became of the document.
    fn tell(&self, import: &Import) {
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
        for (name, credential) in &self.options.credentials {
            match import.schemes.get(name) {
                None => {
                    let known: Vec<&str> = import.schemes.keys().map(String::as_str).collect();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    tracing::warn!(
                        "openapiSpecs.{id}.auth.{name}: there is no such security scheme; there is {known}"
                    );
                }
                Some(scheme) if !security::fits(scheme, credential) => {
                    tracing::warn!(
                        "openapiSpecs.{id}.auth.{name}: this is not what the security scheme asks for"
                    );
                }
                Some(_) => {}
            }
        }
    }

    async fn run(
        &self,
        audience: &dyn ClientChannel,
        permit: &Permit,
        purpose: Purpose<'_>,
    ) -> Result<RawOutput, Fault> {
        let loaded = self.loaded.load_full();
        let found = loaded.as_ref().and_then(|loaded| {
            // What was judged is what was listed; the document may have changed since.
            Some((loaded, loaded.operation(permit.tool())?))
        });
        let Some((loaded, operation)) = found else {
            let message = format!(
                "{} has changed and has no such tool {} any more; list the tools again",
                self.origin.provider,
                permit.tool().spec.name
            );
            return Err(Fault::without_effect(ToolError::new(ErrorCode::ToolNotFound, message)));
        };
        let call = Call { shared: self, import: &loaded.import, operation };
        call.run(audience, permit, purpose).await
    }
}

/// A call of an operation.
struct Call<'a> {
    shared: &'a Shared,
    import: &'a Import,
    operation: &'a Operation,
}

impl Call<'_> {
    async fn run(
        &self,
        audience: &dyn ClientChannel,
        permit: &Permit,
        purpose: Purpose<'_>,
    ) -> Result<RawOutput, Fault> {
        let arguments = serde_json::from_str(permit.arguments())
            .map_err(|error| fault::invalid(format!("the arguments are no object: {error}")))?;
        let prepared = self.operation.prepare(&arguments).map_err(fault::invalid)?;
        let bare = request::build(self.operation, prepared, &self.shared.options).map_err(fault::invalid)?;
        let reads = permit.tool().effect == Effect::Read;
        let badge = self.badge().await?;
        let request = self.signed(&bare, &badge)?;
        let secrets = self.secrets(&badge);
        let mut context = self.context(&request, &secrets, reads);
        let reached =
            self.shared.client.send(&request).await.map_err(|missed| context.unanswered(&missed))?;
        if self.is_outdated(&reached, &badge, reads).await {
            match self.send_again(&bare, reads, audience, purpose).await {
                Ok(ended) => return ended,
                // A request was sent, so this is no call that never got out: what was answered to it stands.
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
        answer::read(reached, &context, audience, purpose).await
    }

    /// Sends a request once more, with a new token, and reads what is answered.
    ///
    /// # Errors
    /// It did not get out.
    async fn send_again(
        &self,
        bare: &Request,
        reads: bool,
        audience: &dyn ClientChannel,
        purpose: Purpose<'_>,
    ) -> Result<Result<RawOutput, Fault>, Fault> {
        let badge = self.badge().await?;
        let request = self.signed(bare, &badge)?;
        let secrets = self.secrets(&badge);
        let context = self.context(&request, &secrets, reads);
        match self.shared.client.send(&request).await {
            Ok(reached) => Ok(answer::read(reached, &context, audience, purpose).await),
            Err(missed) if missed.was_sent() => Ok(Err(context.unanswered(&missed))),
            Err(missed) => Err(context.unanswered(&missed)),
        }
    }

    fn context<'a>(&self, request: &'a Request, secrets: &'a Redactor, reads: bool) -> ErrorContext<'a> {
        ErrorContext {
            method: self.operation.method,
            url: &request.url,
            reads,
            secrets,
            advice: self.advice(),
        }
    }

    fn secrets(&self, badge: &Badge) -> Redactor {
        self.shared.secrets.with(badge.token.as_ref().map(|(_, token)| &**token))
    }

    async fn badge(&self) -> Result<Badge, Fault> {
        let Shared { options, tokens, .. } = self.shared;
        match security::chosen(self.operation, self.import, options) {
            Some(need) => security::badge(need, self.import, options, tokens).await,
            None => Ok(Badge::default()),
        }
    }

    /// Whether the token was not taken, and another one is worth a try. Who is not known has not had anything done, but
    /// only what may be done twice is ever sent twice. What was answered with a redirect may have been done already.
    async fn is_outdated(&self, reached: &Followed, badge: &Badge, reads: bool) -> bool {
        let Some((wanted, token)) = &badge.token else { return false };
        let refused = reached.response.status() == StatusCode::UNAUTHORIZED;
        if refused {
            self.shared.tokens.forget(wanted, token).await;
        }
        refused && self.operation.method.is_idempotent() && (reads || !reached.redirected)
    }

    fn signed(&self, bare: &Request, badge: &Badge) -> Result<Request, Fault> {
        let shared = self.shared;
        let has_secrets = !badge.shown.is_empty() || !shared.options.headers.is_empty();
        let cleartext = bare.url.scheme() == "http" && !is_loopback(&bare.url);
        if has_secrets && cleartext && !shared.warned.swap(true, Ordering::AcqRel) {
            let host = bare.url.host_str().unwrap_or_default();
            tracing::warn!("{} sends credentials to {host} without encryption", shared.origin.provider);
        }
        let unsendable = |error: String| {
            let message = format!("openapiSpecs.{}: {error}", shared.options.id);
            Fault::without_effect(ToolError::new(ErrorCode::UpstreamUnavailable, message))
        };
        request::signed(bare.clone(), badge).map_err(unsendable)
    }

    /// What to set, should the API not know who asks.
    fn advice(&self) -> Option<String> {
        let options = &self.shared.options;
        let missing = security::missing(self.operation, self.import, options);
        let keys: Vec<String> =
            missing.iter().map(|name| format!("openapiSpecs.{}.auth.{name}", options.id)).collect();
        (!keys.is_empty()).then(|| format!("set {}", keys.join(" or ")))
    }
}

impl Provider for Api {
    fn origin(&self) -> &Origin {
        &self.shared.origin
    }

    fn style(&self) -> Style {
        Style::Prefixed
    }

    fn shares_namespace(&self) -> bool {
        true
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.shared.loaded.load().as_ref().map(|loaded| loaded.tools.clone()).unwrap_or_default()
    }

    fn has_tool(&self, name: &str) -> bool {
        self.shared.loaded.load().as_ref().is_some_and(|loaded| loaded.index.contains_key(name))
    }

    fn set_up(&self) -> Option<Digest> {
        Some(self.shared.set_up)
    }

    fn changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.shared.version.subscribe())
    }

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, Fault>> {
        Box::pin(self.run(&*cx.client, permit, Some(cx.limit)))
    }

    fn warm_up(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.get_ready())
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

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.stop.cancel() })
    }
}
