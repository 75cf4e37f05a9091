//! What a request asks of the handler, the same in both eras as far as they share methods.

use super::{
    caller::Wishes,
    convert::TASKS,
    handler::{Features, Inquiry, ToolCall},
    params::Params,
    running::Topic,
};
use crate::{
    ErrorObject, Version,
    client::ListKind,
    envelope::Id,
    error::code,
    exchange::{ForwardMethod, LogLevel},
    raw,
};

/// A request that was understood.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: Id<'static>,
    pub(super) version: Version,
    pub(super) task: Task,
    pub(super) wishes: Wishes,
}

/// What a request asks of the handler.
#[derive(Debug)]
pub(super) enum Task {
    List(ListKind, Version),
    Call(ToolCall),
    Ask(Inquiry, Option<Note>),
}

/// What a session remembers when the handler has agreed to it.
#[derive(Debug)]
pub(super) enum Note {
    Level(LogLevel),
    Watch(String),
    Unwatch(String),
}

impl Task {
    pub(super) fn topic(&self) -> Topic {
        match self {
            Self::List(kind, _) => Topic::List(*kind),
            Self::Call(_) => Topic::Call,
            Self::Ask(inquiry, _) => Topic::Other(inquiry.method),
        }
    }

    /// Whether a client of 2026-07-28 may be asked something while it is done.
    pub(super) fn may_park(&self) -> bool {
        matches!(
            self.topic(),
            Topic::Call | Topic::Other(ForwardMethod::ReadResource | ForwardMethod::GetPrompt)
        )
    }
}

/// Decides what a request asks of the handler.
///
/// # Errors
/// There is no such method here, or its params do not fit.
pub(super) fn task(
    method: &str,
    params: &Params<'_>,
    version: Version,
    features: impl FnOnce() -> Features,
) -> Result<Task, ErrorObject> {
    match method {
        "tools/list" => return params.first_page().map(|()| Task::List(ListKind::Tools, version)),
        "tools/call" => return params.call(version).map(Task::Call),
        _ => {}
    }
    let features = features();
    let modern = version.is_modern();
    let list = |kind| params.first_page().map(|()| Task::List(kind, version));
    let ask = |method| params.inquiry(method, version).map(|inquiry| Task::Ask(inquiry, None));
    match method {
        "resources/list" if features.resources => list(ListKind::Resources),
        "resources/templates/list" if features.resources => list(ListKind::Templates),
        "resources/read" if features.resources => ask(ForwardMethod::ReadResource),
        "prompts/list" if features.prompts => list(ListKind::Prompts),
        "prompts/get" if features.prompts => ask(ForwardMethod::GetPrompt),
        "completion/complete" if features.completions => ask(ForwardMethod::Complete),
        "tasks/get" | "tasks/update" | "tasks/cancel" if modern && has_tasks(&features) => {
            params.declared_here().has_extension(TASKS).then_some(()).ok_or_else(tasks_undeclared)?;
            ask(match method {
                "tasks/get" => ForwardMethod::TaskGet,
                "tasks/update" => ForwardMethod::TaskUpdate,
                _ => ForwardMethod::TaskCancel,
            })
        }
        _ if !modern => remembered(method, params, version, &features),
        _ => Err(crate::error::method_not_found(method)),
    }
}

/// The requests that change what a legacy session remembers.
fn remembered(
    method: &str,
    params: &Params<'_>,
    version: Version,
    features: &Features,
) -> Result<Task, ErrorObject> {
    let ask = |method| params.inquiry(method, version);
    let (inquiry, note) = match method {
        "resources/subscribe" if features.resources => {
            (ask(ForwardMethod::Subscribe)?, Note::Watch(params.watched()?))
        }
        "resources/unsubscribe" if features.resources => {
            (ask(ForwardMethod::Unsubscribe)?, Note::Unwatch(params.watched()?))
        }
        "logging/setLevel" if features.logging => {
            let inquiry = ask(ForwardMethod::SetLevel)?;
            (inquiry, Note::Level(params.level().unwrap_or(LogLevel::Info)))
        }
        _ => return Err(crate::error::method_not_found(method)),
    };
    Ok(Task::Ask(inquiry, Some(note)))
}

fn has_tasks(features: &Features) -> bool {
    features.extensions.as_deref().is_some_and(|extensions| raw::member(extensions, TASKS).is_some())
}

fn tasks_undeclared() -> ErrorObject {
    let message = "this needs a client that declares the extension for tasks in its capabilities";
    ErrorObject::new(code::MISSING_CAPABILITY, message)
        .with_data(format!("{{\"requiredCapabilities\":{{\"extensions\":{{\"{TASKS}\":{{}}}}}}}}"))
}
