//! A session that the server forgot is replaced: hands are shaken anew, and the new session is told what the old one was.

use super::{
    core::Core,
    dispatcher::lock,
    hello,
    link::{Link, Refusal, Trouble},
    types::{About, Failure},
};
use crate::raw;
use http::StatusCode;
use std::sync::{Arc, atomic::Ordering};
use tokio::time::timeout;

impl Core {
    /// Replaces the session that the refused request named, unless somebody else did so already, and waits for that.
    ///
    /// Cancel-safety: the work goes on without its caller. A server that was told half a handshake, or nothing of what
    /// is watched, would stay so.
    pub(super) async fn renew(&self, refusal: Refusal) -> Result<(), Failure> {
        let (Some(core), Some(lost)) = (self.this.upgrade(), refusal.session) else {
            return Err(Failure::Unavailable(self.dispatcher().why_ended()));
        };
        // Who does not know a session has nothing to delete. Who only refuses it may keep it.
        let lives = refusal.status != StatusCode::NOT_FOUND;
        let renewing = tokio::spawn(async move { core.replace(&lost, lives).await });
        renewing.await.unwrap_or_else(|error| Err(Failure::Unavailable(error.to_string())))
    }

    async fn replace(self: Arc<Self>, lost: &str, lives: bool) -> Result<(), Failure> {
        let Link::Http(http) = &self.link else { return Ok(()) };
        // Limit: whoever has the turn gives it back in time.
        let turn = self.renewal.acquire().await;
        if !http.is_session(lost) {
            return Ok(());
        }
        http.close_background();
        let limit = self.dispatcher().target.startup_timeout;
        let handshake = async {
            let about = hello::initialize(&self.link).await?;
            settle(&self.link, &about).await
        };
        let renewed = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(Failure::Unavailable(self.dispatcher().why_ended())),
            renewed = timeout(limit, handshake) => renewed.unwrap_or_else(|_| {
                Err(Failure::Unavailable(format!("no answer within {} ms", limit.as_millis())))
            }),
        };
        if let Err(failure) = renewed {
            let reason = format!("the server forgot the session and gave no other: {failure}");
            self.dispatcher().end(&*reason);
            return Err(Failure::Unavailable(reason));
        }
        drop(turn);
        if lives && !http.is_session(lost) {
            http.forget_session(lost);
        }
        self.dispatcher().look_anew();
        let core = Arc::clone(&self);
        tokio::spawn(async move {
            tokio::select! {
                () = core.stop.cancelled() => {}
                restored = timeout(limit, core.restore()) => if restored.is_err() {
                    let server = &core.dispatcher().target.name;
                    tracing::warn!(%server, "the new session does not take what the old one was told");
                }
            }
        });
        Ok(())
    }

    /// Tells a new session what the old one was told. Stops when that one is lost, too: whoever replaces it tells the
    /// next.
    async fn restore(&self) {
        let server = &self.dispatcher().target.name;
        let uris = lock(&self.subscriptions.uris).clone();
        for uri in uris {
            let params = raw::object([("uri", &*raw::quoted(&uri))]);
            let Err(trouble) = self.own_once("resources/subscribe", &params).await else { continue };
            if is_lost(&trouble) {
                return;
            }
            lock(&self.subscriptions.uris).remove(&uri);
            tracing::warn!(%server, uri, failure = %Failure::from(trouble), "a resource is no longer watched");
        }
        let Some(level) = *lock(&self.level) else { return };
        let params = raw::object([("level", &*raw::quoted(level.as_str()))]);
        if let Err(trouble) = self.own_once("logging/setLevel", &params).await
            && !is_lost(&trouble)
        {
            let failure = Failure::from(trouble);
            tracing::warn!(%server, %failure, "the log level is that of the server again");
        }
    }
}

fn is_lost(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Status(refusal) if refusal.lost_session(true))
}

/// Tells a server of the older era that it can start, and hears what it says without being asked.
pub(super) async fn settle(link: &Link, about: &About) -> Result<(), Failure> {
    link.dispatcher().may_ask.store(true, Ordering::Relaxed);
    if let Link::Http(http) = link {
        http.agree(about.version);
    }
    hello::initialized(link).await?;
    if let Link::Http(http) = link {
        http.open_background();
    }
    Ok(())
}
