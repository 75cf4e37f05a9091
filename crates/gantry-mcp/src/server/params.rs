//! The parameters of the methods that this server has, borrowed from a request.

use super::{
    caller::Wishes,
    handler::{ClientInfo, Inquiry, ToolCall},
};
use crate::{
    ErrorObject, Version,
    envelope::{cut, string},
    exchange::{Capabilities, ForwardMethod, LogLevel},
    limits::{CLIENT_INFO_CHARS, TOOL_NAME_BYTES, URI_BYTES},
    raw,
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
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    level: Option<&'a RawValue>,
    #[serde(borrow)]
    task_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "ref")]
    reference: Option<&'a RawValue>,
    #[serde(borrow)]
    argument: Option<&'a RawValue>,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) notifications: Option<&'a RawValue>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
    #[serde(borrow)]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    raw_meta: Option<&'a RawValue>,
    #[serde(skip)]
    pub(super) meta: Meta<'a>,
    /// All of it.
    #[serde(skip)]
    raw: Option<&'a RawValue>,
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
    #[serde(borrow, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<&'a RawValue>,
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
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
        params.raw = Some(raw);
        Ok(params)
    }

    /// The text of all of it.
    pub(super) fn text(&self) -> &'a str {
        self.raw.map_or("{}", RawValue::get)
    }

    /// What a client declares in a handshake.
    pub(super) fn declared(&self) -> Capabilities {
        self.capabilities.map(|declared| Capabilities::new(declared.get())).unwrap_or_default()
    }

    /// What a client declares with a request of 2026-07-28.
    pub(super) fn declared_here(&self) -> Capabilities {
        self.meta.capabilities.map(|declared| Capabilities::new(declared.get())).unwrap_or_default()
    }

    /// What the client wants to hear while this request runs. A token that is neither a text nor a number is none.
    pub(super) fn wishes(&self) -> Wishes {
        let token = self.meta.progress_token.map(RawValue::get);
        let token = token
            .filter(|token| token.starts_with(['"', '-']) || token.starts_with(|c: char| c.is_ascii_digit()));
        let level = self.meta.log_level.and_then(string).and_then(|word| LogLevel::parse(&word));
        Wishes { progress: token.map(str::to_owned), level, responses: None }
    }

    /// The answers to questions that came with a request of 2026-07-28.
    pub(super) fn responses(&self) -> Option<String> {
        self.input_responses.map(|responses| responses.get().to_owned())
    }

    /// What leads back to a request that was asked before.
    pub(super) fn state(&self) -> Result<Option<Cow<'a, str>>, ErrorObject> {
        let Some(state) = self.request_state else { return Ok(None) };
        let state = string(state);
        state
            .map(Some)
            .ok_or_else(|| ErrorObject::invalid_params("requestState must be the text of the last answer"))
    }

    /// What a modern request repeats in the header `Mcp-Name`.
    pub(super) fn named(&self, method: &str) -> Option<Option<Cow<'a, str>>> {
        let value = match method {
            "tools/call" | "prompts/get" => self.name,
            "resources/read" => self.uri,
            "tasks/get" | "tasks/update" | "tasks/cancel" => self.task_id,
            _ => return None,
        };
        Some(value.and_then(string))
    }

    /// A request that is neither a list nor a call.
    pub(super) fn inquiry(&self, method: ForwardMethod, version: Version) -> Result<Inquiry, ErrorObject> {
        let is_string = |value: Option<&'a RawValue>| value.and_then(string).is_some();
        let is_object = |value: Option<&'a RawValue>| value.is_some_and(|value| value.get().starts_with('{'));
        let (fits, needed) = match method {
            ForwardMethod::ReadResource | ForwardMethod::Subscribe | ForwardMethod::Unsubscribe => {
                (is_string(self.uri), "uri, a string")
            }
            ForwardMethod::GetPrompt => (is_string(self.name), "name, a string"),
            ForwardMethod::Complete => {
                (is_object(self.reference) && is_object(self.argument), "ref and argument, two objects")
            }
            ForwardMethod::SetLevel => (
                self.level().is_some(),
                "level, one of debug, info, notice, warning, error, critical, alert, emergency",
            ),
            ForwardMethod::TaskGet | ForwardMethod::TaskUpdate | ForwardMethod::TaskCancel => {
                (is_string(self.task_id), "taskId, a string")
            }
        };
        if !fits {
            return Err(ErrorObject::invalid_params(format!("{} needs {needed}", method.as_str())));
        }
        let modern = version.is_modern();
        let answers = |key: &str| {
            modern && method != ForwardMethod::TaskUpdate && matches!(key, "inputResponses" | "requestState")
        };
        Ok(Inquiry {
            method,
            params: raw::without(self.text(), |key| key == "_meta" || answers(key)),
            meta: self.raw_meta.map(|meta| meta.get().to_owned()),
            version,
        })
    }

    /// The level that `logging/setLevel` names.
    pub(super) fn level(&self) -> Option<LogLevel> {
        self.level.and_then(string).and_then(|word| LogLevel::parse(&word))
    }

    /// The resource that is to be watched.
    pub(super) fn watched(&self) -> Result<String, ErrorObject> {
        let uri = self.uri.and_then(string).unwrap_or_default();
        if uri.len() > URI_BYTES {
            return Err(ErrorObject::invalid_params(format!("a URI has at most {URI_BYTES} bytes")));
        }
        Ok(uri.into_owned())
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

    /// Checks the parameters of a list: there is one page, so no cursor was ever given out.
    pub(super) fn first_page(&self) -> Result<(), ErrorObject> {
        if self.cursor.is_some() {
            return Err(ErrorObject::invalid_params(
                "unknown cursor: everything is on one page; ask for the list without a cursor",
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
