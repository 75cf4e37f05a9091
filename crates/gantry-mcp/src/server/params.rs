//! The parameters of the methods that this server has, borrowed from a request.

use super::handler::{ClientInfo, ToolCall};
use crate::{
    ErrorObject, Version,
    envelope::{cut, string},
    limits::{CLIENT_INFO_CHARS, TOOL_NAME_BYTES},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, sync::Arc};

/// All members that any of the methods reads. A member that is `null` counts as absent, as some clients write it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    cursor: Option<&'a RawValue>,
    #[serde(borrow)]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow)]
    client_info: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) request_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    raw_meta: Option<&'a RawValue>,
    #[serde(skip)]
    pub(super) meta: Meta<'a>,
}

/// The members of `_meta` that carry the protocol of 2026-07-28.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(super) version: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(super) capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    client_info: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    /// Cuts the parameters into pieces.
    pub(super) fn read(params: Option<&'a RawValue>) -> Result<Self, ErrorObject> {
        let Some(raw) = params else { return Ok(Self::default()) };
        let mut params: Self =
            object(raw).ok_or_else(|| ErrorObject::invalid_params("params must be an object"))?;
        if let Some(meta) = params.raw_meta {
            params.meta =
                object(meta).ok_or_else(|| ErrorObject::invalid_params("_meta must be an object"))?;
        }
        Ok(params)
    }

    /// The version that `initialize` asks for.
    pub(super) fn asked_version(&self) -> Result<Cow<'a, str>, ErrorObject> {
        self.protocol_version
            .and_then(string)
            .ok_or_else(|| ErrorObject::invalid_params("initialize needs protocolVersion, a string"))
    }

    /// The program the client says it is.
    pub(super) fn client(&self) -> Option<ClientInfo<'a>> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow)]
            name: Option<&'a RawValue>,
            #[serde(borrow)]
            version: Option<&'a RawValue>,
        }
        let wire: Wire<'a> = object(self.meta.client_info.or(self.client_info)?)?;
        let name = shown(wire.name?)?;
        Some(ClientInfo { name, version: wire.version.and_then(shown).unwrap_or_default() })
    }

    /// The name of the tool, if there is one.
    pub(super) fn tool_name(&self) -> Option<Cow<'a, str>> {
        self.name.and_then(string)
    }

    /// Checks the parameters of `tools/list`: there is one page, so no cursor was ever given out.
    pub(super) fn first_page(&self) -> Result<(), ErrorObject> {
        if self.cursor.is_some() {
            return Err(ErrorObject::invalid_params(
                "unknown cursor: all tools are on one page; call tools/list without a cursor",
            ));
        }
        Ok(())
    }

    /// The parameters of `tools/call`.
    pub(super) fn call(&self, version: Version) -> Result<ToolCall, ErrorObject> {
        let name = self.tool_name().ok_or_else(|| {
            ErrorObject::invalid_params("tools/call needs name, the name of a tool as a string")
        })?;
        if name.len() > TOOL_NAME_BYTES {
            let message = format!("unknown tool: a name has at most {TOOL_NAME_BYTES} bytes; see tools/list");
            return Err(ErrorObject::invalid_params(message));
        }
        if self.arguments.is_some_and(|arguments| !arguments.get().starts_with('{')) {
            return Err(ErrorObject::invalid_params(
                "arguments must be an object; leave it out if there are none",
            ));
        }
        Ok(ToolCall {
            name: name.into_owned(),
            arguments: self.arguments.map(|arguments| Arc::from(arguments.get())),
            meta: self.raw_meta.map(ToOwned::to_owned),
            version,
        })
    }
}

/// Reads an object. Serde would take an array for one, so the kind is checked by hand.
fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok())?
}

/// A string of the client that is only for display, cut to a length that can be shown.
fn shown(raw: &RawValue) -> Option<Cow<'_, str>> {
    Some(match string(raw)? {
        Cow::Borrowed(text) => Cow::Borrowed(cut(text, CLIENT_INFO_CHARS)),
        Cow::Owned(text) => Cow::Owned(cut(&text, CLIENT_INFO_CHARS).to_owned()),
    })
}
