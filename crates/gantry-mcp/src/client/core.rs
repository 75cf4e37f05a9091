//! What a connection is made of, and one request through it in the words of its era.

use super::{
    detect::Greeted,
    dispatcher::Dispatcher,
    hello,
    link::{Call, Link, Trouble},
    listen::{Subscriptions, Wish},
    meta, renewal,
    tools::{self, ToolBook},
    types::{About, Failure, ListKind},
};
use crate::{
    error::code,
    exchange::{ClientChannel, LogLevel, NoClient},
};
use http::HeaderMap;
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// See the module.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) link: Link,
    pub(super) about: About,
    pub(super) tools: ToolBook,
    pub(super) subscriptions: Subscriptions,
    /// What the server was told to log.
    pub(super) level: Mutex<Option<LogLevel>>,
    /// Held by whoever shakes hands anew.
    pub(super) renewal: Semaphore,
    /// For work that goes on when whoever asked for it goes away.
    pub(super) this: Weak<Self>,
    /// Fires when the connection is dropped or closed.
    pub(super) stop: CancellationToken,
}

/// A request before it is put into the words of an era.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) method: &'a str,
    /// Without `_meta`.
    pub(super) params: &'a str,
    /// The `_meta` of the client.
    pub(super) meta: Option<&'a str>,
    pub(super) token: Option<u64>,
    /// The client behind it; `None` for Gantry's own requests.
    pub(super) audience: Option<&'a Arc<dyn ClientChannel>>,
    pub(super) cancel: &'a CancellationToken,
}

impl Core {
    /// Takes a server that has answered into use. What is received is for [`super::listen::run`].
    pub(super) async fn start(
        greeted: Greeted,
        stop: CancellationToken,
    ) -> Result<(Arc<Self>, mpsc::Receiver<Wish>), Failure> {
        let Greeted { link, about } = greeted;
        if !about.version.is_modern() {
            renewal::settle(&link, &about).await?;
        }
        let (subscriptions, wishes) = Subscriptions::new();
        let core = Arc::new_cyclic(|this| Self {
            link,
            about,
            tools: ToolBook::default(),
            subscriptions,
            level: Mutex::default(),
            renewal: Semaphore::new(1),
            this: Weak::clone(this),
            stop,
        });
        Ok((core, wishes))
    }

    pub(super) fn modern(&self) -> bool {
        self.about.version.is_modern()
    }

    pub(super) fn dispatcher(&self) -> &Arc<Dispatcher> {
        self.link.dispatcher()
    }

    /// A request of Gantry's own.
    pub(super) async fn own(&self, method: &str, params: &str) -> Result<String, Failure> {
        let cancel = CancellationToken::new();
        self.ask(Ask { method, params, meta: None, token: None, audience: None, cancel: &cancel }).await
    }

    /// The same without another try.
    pub(super) async fn own_once(&self, method: &str, params: &str) -> Result<String, Trouble> {
        let cancel = CancellationToken::new();
        self.ask_once(Ask { method, params, meta: None, token: None, audience: None, cancel: &cancel }).await
    }

    /// Sends a request and waits for its result. What was certainly not run because of a misunderstanding that can
    /// be cleared up is sent once more.
    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<String, Failure> {
        let trouble = match self.ask_once(ask).await {
            Ok(result) => return Ok(result),
            Err(trouble) => trouble,
        };
        match trouble {
            Trouble::Status(refusal) if refusal.lost_session(ask.audience.is_none()) => tokio::select! {
                biased;
                () = ask.cancel.cancelled() => return Err(Failure::Canceled),
                renewed = self.renew(refusal) => renewed?,
            },
            trouble @ (Trouble::Status(_) | Trouble::Failure(_)) => {
                let failure = Failure::from(trouble);
                if !self.can_clear_up(&failure, ask).await {
                    return Err(failure);
                }
            }
        }
        Ok(self.ask_once(ask).await?)
    }

    /// Opens a stream of notifications and waits for its end.
    pub(super) async fn listen(
        &self,
        params: &str,
        audience: Arc<dyn ClientChannel>,
    ) -> Result<String, Trouble> {
        let method = "subscriptions/listen";
        let cancel = &CancellationToken::new();
        let params = meta::modern(params, None, None, self.dispatcher().target.declared, None);
        let headers = tools::headers(method, &params, None);
        self.link.call(&Call { method, params: &params, headers, audience, own: true, cancel }).await
    }

    async fn can_clear_up(&self, failure: &Failure, ask: Ask<'_>) -> bool {
        let Failure::Answered(error) = failure else { return false };
        match error.code {
            // The schemas that the headers were made from are no longer those of the server.
            code::HEADER_MISMATCH if ask.method == "tools/call" => {
                Box::pin(self.list(ListKind::Tools)).await.is_ok()
            }
            code::UNSUPPORTED_VERSION => self.modern() && hello::speaks_modern(error),
            _ => false,
        }
    }

    async fn ask_once(&self, ask: Ask<'_>) -> Result<String, Trouble> {
        let declared = self.dispatcher().target.declared;
        let audience = ask.audience.map(|audience| &**audience);
        let (params, headers) = if self.modern() {
            let headers = match &self.link {
                Link::Http(_) => tools::headers(ask.method, ask.params, self.needs(ask).as_deref()),
                Link::Duplex(_) => HeaderMap::new(),
            };
            (meta::modern(ask.params, ask.meta, ask.token, declared, audience), headers)
        } else {
            (meta::legacy(ask.params, ask.meta, ask.token), HeaderMap::new())
        };
        let call = Call {
            method: ask.method,
            params: &params,
            headers,
            audience: ask
                .audience
                .map_or_else(|| Arc::new(NoClient::default()) as Arc<dyn ClientChannel>, Arc::clone),
            own: ask.audience.is_none(),
            cancel: ask.cancel,
        };
        self.link.call(&call).await
    }

    pub(super) fn needs(&self, ask: Ask<'_>) -> Option<Arc<tools::ToolNeeds>> {
        if ask.method == "tools/call" { self.tools.needs(ask.params) } else { None }
    }
}
