//! Which era a request belongs to, and whether this server takes it.

use super::options::{Era, Options};
use super::server::State;
use super::wire::{CAPABILITIES_KEY, Failure, INVALID_PARAMS, Params, UNSUPPORTED_VERSION, VERSION_KEY};
use super::{LEGACY, MODERN};
use serde_json::{Value, json};

/// The versions that a handshake can lead to.
const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY];

/// What one request is spoken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestEra {
    Legacy,
    Modern,
}

/// Whether a request is one of the modern era's, as far as it tells itself.
pub(super) fn is_modern(method: &str, params: &Params) -> bool {
    params.meta.contains_key(VERSION_KEY) || matches!(method, "server/discover" | "subscriptions/listen")
}

/// Admits a request or says why not; a handshake is remembered.
pub(super) fn admit(
    options: &Options,
    state: &mut State,
    method: &str,
    params: &Params,
) -> Result<RequestEra, Failure> {
    let modern = is_modern(method, params);
    match options.era() {
        Era::Modern | Era::Dual if modern => {
            state.latched |= options.faults.latch;
            check_modern(params).map(|()| RequestEra::Modern)
        }
        Era::Modern if method == "initialize" => Err(unsupported(&params.protocol_version)),
        Era::Modern => Err(Failure::new(INVALID_PARAMS, format!("`_meta` lacks {VERSION_KEY}"))),
        Era::Dual if method == "initialize" && state.latched => {
            let refused = unsupported(&params.protocol_version);
            Err(Failure { message: format!("connection is serving the {MODERN} protocol"), ..refused })
        }
        Era::Dual | Era::Legacy => admit_legacy(options, state, method, params),
    }
}

fn admit_legacy(
    options: &Options,
    state: &mut State,
    method: &str,
    params: &Params,
) -> Result<RequestEra, Failure> {
    match method {
        "initialize" => {
            state.version = Some(negotiate(options, &params.protocol_version));
            state.capabilities = params.capabilities.clone();
        }
        // Discovery is for the method table to refuse: it is unknown in this era, not early.
        "ping" | "server/discover" => {}
        _ if state.version.is_none() => {
            return Err(Failure::new(-32600, format!("{method} came before initialize")));
        }
        _ => {}
    }
    Ok(RequestEra::Legacy)
}

fn negotiate(options: &Options, asked: &str) -> String {
    match &options.revision {
        Some(only) => only.clone(),
        None => LEGACY_VERSIONS.into_iter().find(|version| *version == asked).unwrap_or(LEGACY).to_owned(),
    }
}

fn check_modern(params: &Params) -> Result<(), Failure> {
    let Value::String(version) = params.meta(VERSION_KEY) else {
        return Err(Failure::new(INVALID_PARAMS, format!("`_meta` lacks {VERSION_KEY}")));
    };
    if version != MODERN {
        return Err(unsupported(&version));
    }
    if !params.meta(CAPABILITIES_KEY).is_object() {
        return Err(Failure::new(INVALID_PARAMS, format!("`_meta` lacks {CAPABILITIES_KEY}")));
    }
    Ok(())
}

fn unsupported(version: &str) -> Failure {
    Failure::new(UNSUPPORTED_VERSION, format!("version {version} is not spoken here"))
        .with(json!({ "supported": [MODERN], "requested": version }))
}
