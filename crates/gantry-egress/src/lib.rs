//! Outbound HTTP: the only crate of Gantry that opens HTTP connections.
//!
//! | module | for |
//! |---|---|
//! | [`HttpClient`] | requests to servers: no cookies, no redirects, bounded answers |
//! | [`follow`] | requests that follow redirects, by a rule of the caller |
//! | [`MediaType`] | what a body is, and the body as text |
//! | [`SseParser`] | server-sent events |
//! | [`address_guard`] | which IP addresses a guarded client connects to |
//! | [`host_pattern`] | host names in rules |
//! | [`proxy`] | the HTTP proxy through which sandboxed jobs reach the network |
//! | [`LocalServer`] | the Gantry server on this machine, for the command line |

pub mod address_guard;
mod client;
mod follow;
pub mod host_pattern;
mod local;
mod media;
pub mod proxy;
mod sse;
mod tls;

pub use client::{HOP_BY_HOP, HttpClient, HttpError, HttpResponse, display_url};
pub use follow::{FollowError, Followed, OutboundRequest, REDIRECTS, Redirect, follow};
pub use local::{LocalServer, SocketReader, SocketWriter};
pub use media::{BodyKind, MediaType};
pub use sse::{EventTooLong, SseEvent, SseParser};

/// A URL as browsers parse it: every spelling of an IP address becomes that address.
pub use reqwest::Url;
