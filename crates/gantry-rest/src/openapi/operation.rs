//! An operation of an API as a tool.

use crate::openapi::import::security::SecurityRequirement;
use crate::openapi::request::Template;
use gantry_core::digest::Digest;
use gantry_core::schema::SchemaText;
use gantry_core::tool::{Effect, Target};
use std::fmt;
use url::Url;

/// The methods that a document can have operations for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Method {
    #[default]
    Get,
    Put,
    Post,
    Delete,
    Options,
    Head,
    Patch,
    Trace,
}

impl Method {
    /// All of them, in the order of the specification.
    pub const ALL: [Self; 8] =
        [Self::Get, Self::Put, Self::Post, Self::Delete, Self::Options, Self::Head, Self::Patch, Self::Trace];

    /// As documents and configurations write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Post => "post",
            Self::Delete => "delete",
            Self::Options => "options",
            Self::Head => "head",
            Self::Patch => "patch",
            Self::Trace => "trace",
        }
    }

    /// The method of that word, in any case.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(word))
    }

    /// Its effect, by the rules of HTTP.
    #[must_use]
    pub fn effect(self) -> Effect {
        match self {
            Self::Get | Self::Head | Self::Options | Self::Trace => Effect::Read,
            Self::Put | Self::Post | Self::Patch => Effect::Write,
            Self::Delete => Effect::Destructive,
        }
    }

    /// Whether sending it twice has the same effect as sending it once.
    #[must_use]
    pub fn is_idempotent(self) -> bool {
        match self {
            Self::Get | Self::Head | Self::Options | Self::Trace | Self::Put | Self::Delete => true,
            Self::Post | Self::Patch => false,
        }
    }
}

impl<'de> serde::Deserialize<'de> for Method {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        use serde::de::{Error as _, Unexpected};
        let word = String::deserialize(input)?;
        let expected = &"get, put, post, delete, options, head, patch or trace";
        Self::parse(&word).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&word), expected))
    }
}

/// In capitals, as HTTP has it.
impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str().to_ascii_uppercase())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// The tool's name, without that of the specification.
    pub name: String,
    pub method: Method,
    /// The path as the document has it, with its templates.
    pub path: String,
    pub id: Option<String>,
    pub tags: Vec<String>,
    /// The summary.
    pub title: Option<String>,
    /// For a model.
    pub description: String,
    pub deprecated: bool,
    /// JSON Schema 2020-12; an object without further properties.
    pub input_schema: SchemaText,
    /// The schema of successes, where the document describes them.
    pub output_schema: Option<SchemaText>,
    pub effect: Effect,
    /// Its server, without a `/` at the end of the path.
    pub server: Url,
    /// The credentials that it needs: any one of these. Empty means none.
    pub security: Vec<SecurityRequirement>,
    pub(crate) template: Template,
}

impl Operation {
    /// The address of its calls, and the rules by which arguments become a request. An approval is void when they change.
    #[must_use]
    pub fn target(&self) -> Target {
        let Self { method, path, server, security, template, .. } = self;
        let address = server.as_str().trim_end_matches('/');
        let decides = format!("{method} {address}{path} {security:?} {template:?}");
        Target { shown: format!("{method} {address}{path}").into(), digest: Digest::of(decides.as_bytes()) }
    }
}
