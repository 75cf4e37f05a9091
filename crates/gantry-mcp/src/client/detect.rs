//! Reaching a server and finding out which era it speaks.
//!
//! Where a server is a process or a socket, the question itself can spoil it: some end when they are asked in the words
//! of the other era, some fall silent, some bind themselves to the first era they hear. So two are started at once,
//! each is asked in one era, and the one that fits stays. Over HTTP every request stands alone, and one is asked after
//! the other.

use super::{
    dispatcher::Dispatcher,
    event_link,
    hello::{self, Verdict},
    http::{HttpLink, Site},
    limits::DISCOVER_GRACE,
    link::Link,
    pipes,
    types::{About, Failure, Protocol, Target, Transport},
    websocket,
};
use std::pin::pin;
use tokio::time::{Instant, timeout};

/// A server that has answered.
#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) link: Link,
    pub(super) about: About,
}

/// An era that is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

impl Era {
    fn other(self) -> Self {
        match self {
            Self::Legacy => Self::Modern,
            Self::Modern => Self::Legacy,
        }
    }
}

/// Reaches the server.
pub(super) async fn reach(target: &Target, known: Protocol) -> Result<Greeted, Failure> {
    match &target.transport {
        Transport::Http { url, headers } => over_http(target, known, Site::new(url, headers)?).await,
        Transport::Sse { url, headers } => Ok(over_events(target, Site::new(url, headers)?).await?),
        Transport::Stdio(_) | Transport::WebSocket { .. } | Transport::Tcp { .. } => {
            over_duplex(target, known).await
        }
    }
}

async fn over_duplex(target: &Target, known: Protocol) -> Result<Greeted, Failure> {
    let deadline = Instant::now() + target.startup_timeout;
    let era = match (target.protocol, known) {
        (Protocol::Legacy, _) => return Ok(greet(target, Era::Legacy).await?),
        (Protocol::Modern, _) => return Ok(greet(target, Era::Modern).await?),
        (Protocol::Auto, Protocol::Auto) => return both(target, deadline).await,
        (Protocol::Auto, Protocol::Legacy) => Era::Legacy,
        (Protocol::Auto, Protocol::Modern) => Era::Modern,
    };
    let mut greeting = pin!(greet(target, era));
    match timeout(target.startup_timeout / 2, &mut greeting).await {
        Ok(Ok(greeted)) => return Ok(greeted),
        Ok(Err(down @ Verdict::Down(_))) => return Err(down.into()),
        Ok(Err(Verdict::OtherEra(_))) => return both(target, deadline).await,
        Err(_) => {}
    }
    // A server that was replaced by one of the other era may stay silent, so a second one is asked in that era. This one
    // may just be slow: it goes on, because a new one would have only half the time.
    race(greeting, greet(target, era.other()), deadline).await.map_err(|verdicts| match verdicts {
        (Verdict::OtherEra(_), other) => other.into(),
        (down @ Verdict::Down(_), _) => down.into(),
    })
}

/// Starts the server and greets it in one era.
async fn greet(target: &Target, era: Era) -> Result<Greeted, Verdict> {
    let link = dial(target).await.map_err(Verdict::Down)?;
    let about = match era {
        Era::Modern => hello::discover(&link).await?,
        Era::Legacy => hello::initialize(&link).await?,
    };
    Ok(Greeted { link, about })
}

async fn dial(target: &Target) -> Result<Link, Failure> {
    let dispatcher = Dispatcher::new(target);
    let wires = match &target.transport {
        Transport::Stdio(dialer) => dialer.dial().await,
        Transport::Tcp { address } => pipes::tcp(address).await,
        Transport::WebSocket { url, headers } => {
            return Ok(Link::Duplex(websocket::open(&dispatcher, url, headers).await?));
        }
        Transport::Http { .. } | Transport::Sse { .. } => Err("this transport is not a stream".into()),
    };
    Ok(Link::Duplex(pipes::open(&dispatcher, wires.map_err(Failure::Unavailable)?)))
}

/// Starts two of the server, greets one in each era, and keeps the one that fits; the newer one if both do.
async fn both(target: &Target, deadline: Instant) -> Result<Greeted, Failure> {
    let (modern, legacy) = (greet(target, Era::Modern), greet(target, Era::Legacy));
    let (refusal, fault) = match race(modern, legacy, deadline).await {
        Ok(greeted) => return Ok(greeted),
        Err(verdicts) => verdicts,
    };
    match (refusal, fault) {
        // The two may have been in each other's way, over a port or a file.
        (_, Verdict::Down(Failure::Lost(_))) => Ok(greet(target, Era::Legacy).await?),
        (refusal, Verdict::OtherEra(_)) => Err(refusal.into()),
        (_, fault @ Verdict::Down(_)) => Err(fault.into()),
    }
}

/// Both greetings at once; the first is better if both succeed. Fails with both verdicts, in the same order.
async fn race(
    first: impl Future<Output = Result<Greeted, Verdict>>,
    second: impl Future<Output = Result<Greeted, Verdict>>,
    deadline: Instant,
) -> Result<Greeted, (Verdict, Verdict)> {
    let started = Instant::now();
    let (mut first, mut second) = (pin!(first), pin!(second));
    let mut refusal = None;
    let fallback = loop {
        tokio::select! {
            biased;
            outcome = &mut first, if refusal.is_none() => match outcome {
                Ok(greeted) => return Ok(greeted),
                Err(verdict) => refusal = Some(verdict),
            },
            outcome = &mut second => break outcome,
        }
    };
    match (refusal, fallback) {
        (Some(refusal), fallback) => fallback.map_err(|fault| (refusal, fault)),
        // Only the first is left, for as long as there is time.
        (None, Err(fault)) => first.await.map_err(|refusal| (refusal, fault)),
        (None, Ok(fallback)) => {
            // Some of the time has to be left for what follows the greeting.
            let left = deadline.saturating_duration_since(Instant::now());
            let patience = started.elapsed().max(DISCOVER_GRACE).min(left / 2);
            match timeout(patience, first).await {
                Ok(Ok(greeted)) => Ok(greeted),
                Ok(Err(_)) | Err(_) => Ok(fallback),
            }
        }
    }
}

async fn over_http(target: &Target, known: Protocol, site: Site) -> Result<Greeted, Failure> {
    let greet = async |era: Era| {
        let link = Link::Http(HttpLink::new(&Dispatcher::new(target), site.clone(), era == Era::Modern));
        let about = match era {
            Era::Modern => hello::discover(&link).await?,
            Era::Legacy => hello::initialize(&link).await?,
        };
        Ok::<_, Verdict>(Greeted { link, about })
    };
    let order: &[Era] = match (target.protocol, known) {
        (Protocol::Modern, _) => &[Era::Modern],
        (Protocol::Legacy, _) => &[Era::Legacy],
        (Protocol::Auto, Protocol::Legacy) => &[Era::Legacy, Era::Modern],
        (Protocol::Auto, Protocol::Auto | Protocol::Modern) => &[Era::Modern, Era::Legacy],
    };
    let mut refusals = Vec::new();
    for era in order {
        match greet(*era).await {
            Ok(greeted) => return Ok(greeted),
            Err(Verdict::OtherEra(reason)) => refusals.push(reason),
            Err(down @ Verdict::Down(_)) => return Err(down.into()),
        }
    }
    if target.protocol != Protocol::Modern {
        match over_events(target, site.clone()).await {
            Ok(greeted) => return Ok(greeted),
            Err(verdict) => refusals.push(format!("as HTTP+SSE: {}", Failure::from(verdict))),
        }
    }
    let reasons = refusals.join("; ");
    Err(Failure::Unavailable(format!(
        "there is no MCP server that Gantry can talk to at this address: {reasons}"
    )))
}

async fn over_events(target: &Target, site: Site) -> Result<Greeted, Verdict> {
    let link = event_link::open(&Dispatcher::new(target), site)
        .await
        .map_err(|error| Verdict::Down(error.into()))?;
    let link = Link::Duplex(link);
    let about = hello::initialize(&link).await?;
    Ok(Greeted { link, about })
}
