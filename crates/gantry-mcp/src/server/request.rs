//! The operation that a request asks for; the methods that both eras share are read alike.

use super::connection::SettingChange;
use super::handler::{Features, Handler};
use super::request_channel::RequestOptions;
use crate::client::ListKind;
use crate::envelope::{Id, Params};
use crate::error::{code, method_not_found};
use crate::exchange::{ForwardMethod, LogLevel};
use crate::{ErrorObject, Version, raw};
use gantry_core::CallRequest;
use gantry_provider::client::TASKS_EXTENSION;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct ParsedRequest {
    pub(super) id: Id<'static>,
    pub(super) operation: Operation,
    pub(super) options: RequestOptions,
}

#[derive(Debug)]
pub(super) enum Operation {
    List(ListKind),
    /// A tool call and its `_meta`, the text of an object.
    Call(Box<CallRequest>, Option<Arc<str>>),
    Forward {
        method: ForwardMethod,
        /// The params without `_meta` and without `inputResponses` and `requestState`, the text of an object.
        params: String,
        /// The text of an object.
        meta: Option<String>,
        /// Made when the request has succeeded.
        change: Option<SettingChange>,
    },
}

/// The kind of the result, which decides how the response is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultKind {
    List(ListKind),
    Call,
    Forward(ForwardMethod),
}

impl Operation {
    pub(super) fn result_kind(&self) -> ResultKind {
        match self {
            Self::List(kind) => ResultKind::List(*kind),
            Self::Call(..) => ResultKind::Call,
            Self::Forward { method, .. } => ResultKind::Forward(*method),
        }
    }

    /// Whether the response may ask a client of 2026-07-28 for input.
    pub(super) fn may_ask_for_input(&self) -> bool {
        use ForwardMethod::{GetPrompt, ReadResource};
        matches!(self.result_kind(), ResultKind::Call | ResultKind::Forward(ReadResource | GetPrompt))
    }

    pub(super) fn read(
        method: &str,
        params: &Params<'_>,
        version: Version,
        handler: &dyn Handler,
    ) -> Result<Self, ErrorObject> {
        let list = |kind| params.check_no_cursor().map(|()| Self::List(kind));
        match method {
            "tools/list" => return list(ListKind::Tools),
            "tools/call" => {
                return Ok(Self::Call(Box::new(params.call()?), params.get("_meta").map(Arc::from)));
            }
            _ => {}
        }
        let (features, modern) = (handler.features(), version.is_modern());
        let forward = |method| params.forward(method, version, None);
        let extension = |name| raw::member(features.extensions.as_deref()?, name);
        match method {
            "resources/list" if features.resources => list(ListKind::Resources),
            "resources/templates/list" if features.resources => list(ListKind::Templates),
            "resources/read" if features.resources => forward(ForwardMethod::ReadResource),
            "prompts/list" if features.prompts => list(ListKind::Prompts),
            "prompts/get" if features.prompts => forward(ForwardMethod::GetPrompt),
            "completion/complete" if features.completions => forward(ForwardMethod::Complete),
            "tasks/get" | "tasks/update" | "tasks/cancel"
                if modern && extension(TASKS_EXTENSION).is_some() =>
            {
                if !params.request_capabilities().has_extension(TASKS_EXTENSION) {
                    return Err(tasks_undeclared());
                }
                forward(match method {
                    "tasks/get" => ForwardMethod::TaskGet,
                    "tasks/update" => ForwardMethod::TaskUpdate,
                    _ => ForwardMethod::TaskCancel,
                })
            }
            _ if !modern => Self::read_setting(method, params, version, &features),
            _ => Err(method_not_found(method)),
        }
    }

    /// The requests that change the settings of a legacy session.
    fn read_setting(
        method: &str,
        params: &Params<'_>,
        version: Version,
        features: &Features,
    ) -> Result<Self, ErrorObject> {
        let (method, change) = match method {
            "resources/subscribe" if features.resources => {
                (ForwardMethod::Subscribe, SettingChange::Watch(params.subscribed_uri()?))
            }
            "resources/unsubscribe" if features.resources => {
                (ForwardMethod::Unsubscribe, SettingChange::Unwatch(params.subscribed_uri()?))
            }
            "logging/setLevel" if features.logging => {
                (ForwardMethod::SetLevel, SettingChange::Level(params.level().unwrap_or(LogLevel::Info)))
            }
            _ => return Err(method_not_found(method)),
        };
        params.forward(method, version, Some(change))
    }
}

fn tasks_undeclared() -> ErrorObject {
    let message = "this needs a client that declares the extension for tasks in its capabilities";
    ErrorObject::new(code::MISSING_CAPABILITY, message)
        .with_data(format!("{{\"requiredCapabilities\":{{\"extensions\":{{\"{TASKS_EXTENSION}\":{{}}}}}}}}"))
}
