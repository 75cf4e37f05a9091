//! What a call asks for, read from its arguments once, and the precondition that its permit carries.

use super::place::Root;
use super::{fault, list, read, remove, rename, write};
use crate::own;
use gantry_core::policy::OwnVerdict;
use gantry_core::{ErrorCode, Fault, Permit, ToolError};
use serde::Deserialize;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// One call of one of the tools.
#[derive(Debug)]
pub(super) enum Act {
    List(List),
    Read(Read),
    Write(Write),
    Delete(Delete),
    Move(Move),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct List {
    pub(super) path: String,
    #[serde(default)]
    pub(super) recursive: bool,
    #[serde(default)]
    pub(super) include_hidden: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    pub(super) path: String,
    #[serde(default)]
    pub(super) encoding: Encoding,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Write {
    pub(super) path: String,
    pub(super) content: String,
    #[serde(default)]
    pub(super) encoding: Encoding,
    #[serde(default)]
    pub(super) create_dirs: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    pub(super) path: String,
    #[serde(default)]
    pub(super) recursive: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Move {
    pub(super) from: String,
    pub(super) to: String,
    #[serde(default)]
    pub(super) overwrite: bool,
}

/// How a file's bytes stand in JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Encoding {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "base64")]
    Base64,
}

impl Act {
    pub(super) fn parse(tool: &str, arguments: &str) -> Result<Self, ToolError> {
        match tool {
            "list_directory" => own::arguments(arguments).map(Self::List),
            "read_file" => own::arguments(arguments).map(Self::Read),
            "write_file" => own::arguments(arguments).map(Self::Write),
            "delete_file" => own::arguments(arguments).map(Self::Delete),
            "move_file" => own::arguments(arguments).map(Self::Move),
            _ => Err(own::missing(tool)),
        }
    }

    /// What the tool's own rule comes to. Changes nothing.
    pub(super) fn inspect(&self, root: &Root) -> Result<OwnVerdict, Fault> {
        match self {
            Self::List(_) | Self::Read(_) => Ok(OwnVerdict::default()),
            Self::Write(write) => write::inspect(root, write),
            Self::Delete(delete) => remove::inspect(root, delete),
            Self::Move(moving) => rename::inspect(root, moving),
        }
    }
}

/// A permitted call. There is no other way to one than a permit.
#[derive(Debug)]
pub(super) struct Job {
    act: Act,
    precondition: Option<Precondition>,
}

impl Job {
    pub(super) fn of(permit: &Permit) -> Result<Self, ToolError> {
        Ok(Self {
            act: Act::parse(&permit.tool().spec.name, permit.arguments())?,
            precondition: permit.precondition().map(Precondition::parse).transpose()?,
        })
    }

    pub(super) fn changes(&self) -> bool {
        !matches!(self.act, Act::List(_) | Act::Read(_))
    }

    /// Does it, and gives the result as JSON.
    pub(super) fn run(&self, root: &Root, stop: &CancellationToken) -> Result<String, Fault> {
        if stop.is_cancelled() {
            return Err(fault::canceled());
        }
        let result = match &self.act {
            Act::List(list) => list::run(root, list, stop)?,
            Act::Read(read) => read::run(root, read)?,
            Act::Write(write) => write::run(root, write, self.precondition.as_ref())?,
            Act::Delete(delete) => remove::run(root, delete, self.precondition.as_ref(), stop)?,
            Act::Move(moving) => rename::run(root, moving, self.precondition.as_ref())?,
        };
        Ok(result.to_string())
    }
}

/// What was at the target when the call was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Precondition {
    Absent,
    /// Something with this fingerprint.
    Unchanged(String),
}

impl Precondition {
    const ABSENT: &str = "absent";
    const UNCHANGED: &str = "unchanged:";

    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        match text.strip_prefix(Self::UNCHANGED) {
            Some(fingerprint) => Ok(Self::Unchanged(fingerprint.to_owned())),
            None if text == Self::ABSENT => Ok(Self::Absent),
            None => Err(ToolError::new(
                ErrorCode::InternalError,
                format!("the precondition {text:?} is not known; call again"),
            )),
        }
    }

    pub(super) fn to_text(&self) -> Arc<str> {
        match self {
            Self::Absent => Self::ABSENT.into(),
            Self::Unchanged(fingerprint) => format!("{}{fingerprint}", Self::UNCHANGED).into(),
        }
    }
}
