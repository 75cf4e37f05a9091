//! The params of each method, checked and converted from the spans of a message.

use super::connection::SettingChange;
use super::request::Operation;
use super::request_channel::RequestOptions;
use crate::envelope::Params;
use crate::exchange::{Capabilities, ForwardMethod, LogLevel};
use crate::limits::{TOOL_NAME_BYTES, URI_BYTES};
use crate::{ErrorObject, Version, raw};
use gantry_core::{CallRequest, Priority};
use std::borrow::Cow;
use std::sync::Arc;

impl<'a> Params<'a> {
    pub(super) fn object_text(&self) -> &'a str {
        self.text.unwrap_or("{}")
    }

    /// The capabilities that a client declares with a request of 2026-07-28.
    pub(super) fn request_capabilities(&self) -> Capabilities {
        self.meta("io.modelcontextprotocol/clientCapabilities").map(Capabilities::new).unwrap_or_default()
    }

    /// A progress token that is neither a text nor a number is ignored.
    pub(super) fn options(&self) -> RequestOptions {
        let is_token =
            |token: &&str| token.starts_with(['"', '-']) || token.starts_with(|c: char| c.is_ascii_digit());
        RequestOptions {
            progress_token: self.meta("progressToken").filter(is_token).map(str::to_owned),
            level: level(self.meta("io.modelcontextprotocol/logLevel")),
            responses: None,
        }
    }

    /// The `requestState` of the response that asked the client for input.
    pub(super) fn state(&self) -> Result<Option<Cow<'a, str>>, ErrorObject> {
        let wrong = || ErrorObject::invalid_params("requestState must be the text of the last answer");
        self.get("requestState").map(|state| raw::string(state).ok_or_else(wrong)).transpose()
    }

    /// The value that a modern request repeats in the header `Mcp-Name`; `None` if its method has none.
    pub(super) fn header_name(&self, method: &str) -> Option<Option<Cow<'a, str>>> {
        let key = match method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return None,
        };
        Some(self.string(key))
    }

    pub(super) fn forward(
        &self,
        method: ForwardMethod,
        version: Version,
        change: Option<SettingChange>,
    ) -> Result<Operation, ErrorObject> {
        let is_string = |key: &str| self.string(key).is_some();
        let is_object = |key: &str| self.get(key).is_some_and(|value| value.starts_with('{'));
        let (fits, needed) = match method {
            ForwardMethod::ReadResource | ForwardMethod::Subscribe | ForwardMethod::Unsubscribe => {
                (is_string("uri"), "uri, a string")
            }
            ForwardMethod::GetPrompt => (is_string("name"), "name, a string"),
            ForwardMethod::Complete => {
                (is_object("ref") && is_object("argument"), "ref and argument, two objects")
            }
            ForwardMethod::SetLevel => (
                self.level().is_some(),
                "level, one of debug, info, notice, warning, error, critical, alert, emergency",
            ),
            ForwardMethod::TaskGet | ForwardMethod::TaskUpdate | ForwardMethod::TaskCancel => {
                (is_string("taskId"), "taskId, a string")
            }
        };
        if !fits {
            return Err(ErrorObject::invalid_params(format!("{} needs {needed}", method.as_str())));
        }
        let modern = version.is_modern();
        let is_input = |key: &str| {
            modern && method != ForwardMethod::TaskUpdate && matches!(key, "inputResponses" | "requestState")
        };
        Ok(Operation::Forward {
            method,
            params: raw::without(self.object_text(), |key| key == "_meta" || is_input(key)),
            meta: self.get("_meta").map(str::to_owned),
            change,
        })
    }

    pub(super) fn level(&self) -> Option<LogLevel> {
        level(self.get("level"))
    }

    /// The resource of `resources/subscribe` and `resources/unsubscribe`.
    pub(super) fn subscribed_uri(&self) -> Result<String, ErrorObject> {
        let uri = self.string("uri").unwrap_or_default();
        if uri.len() > URI_BYTES {
            return Err(ErrorObject::invalid_params(format!("a URI has at most {URI_BYTES} bytes")));
        }
        Ok(uri.into_owned())
    }

    pub(super) fn negotiated_version(&self) -> Result<Version, ErrorObject> {
        let requested = self.string("protocolVersion");
        requested
            .map(|requested| Version::negotiate(&requested))
            .ok_or_else(|| ErrorObject::invalid_params("initialize needs protocolVersion, a string"))
    }

    /// Refuses any cursor: a list has one page, so the server never gave one out.
    pub(super) fn check_no_cursor(&self) -> Result<(), ErrorObject> {
        if self.get("cursor").is_some() {
            return Err(ErrorObject::invalid_params(
                "unknown cursor: everything is on one page; ask for the list without a cursor",
            ));
        }
        Ok(())
    }

    pub(super) fn call(&self) -> Result<CallRequest, ErrorObject> {
        let tool = self.string("name").ok_or_else(|| {
            ErrorObject::invalid_params("tools/call needs name, the name of a tool as a string")
        })?;
        if tool.len() > TOOL_NAME_BYTES {
            let message = format!("unknown tool: a name has at most {TOOL_NAME_BYTES} bytes; see tools/list");
            return Err(ErrorObject::invalid_params(message));
        }
        let arguments = self.get("arguments");
        if arguments.is_some_and(|arguments| !arguments.starts_with('{')) {
            return Err(ErrorObject::invalid_params(
                "arguments must be an object; leave it out if there are none",
            ));
        }
        Ok(CallRequest {
            tool: tool.into_owned(),
            arguments: arguments.map(Arc::from),
            priority: self.priority()?,
            idempotency_key: self.idempotency_key()?,
            ..CallRequest::default()
        })
    }

    fn priority(&self) -> Result<Priority, ErrorObject> {
        let Some(text) = self.meta("gantry/priority") else { return Ok(Priority::default()) };
        serde_json::from_str(text).map_err(|error| unreadable_meta(&error.to_string()))
    }

    fn idempotency_key(&self) -> Result<Option<String>, ErrorObject> {
        let Some(text) = self.meta("gantry/idempotencyKey") else { return Ok(None) };
        let key =
            raw::string(text).ok_or_else(|| unreadable_meta("gantry/idempotencyKey must be a string"))?;
        Ok(Some(key.into_owned()))
    }
}

fn level(text: Option<&str>) -> Option<LogLevel> {
    LogLevel::parse(&raw::string(text?)?)
}

fn unreadable_meta(why: &str) -> ErrorObject {
    ErrorObject::invalid_params(format!("_meta cannot be read: {why}"))
}
