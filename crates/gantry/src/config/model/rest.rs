//! REST services in a configuration.

use super::{Located, PerPattern, ToolSource};
use crate::config::error::Location;
use crate::config::stamp::Stamp;
use gantry_core::tool::Effect;
use gantry_egress::Url;
use gantry_rest::openapi::Method;
use gantry_rest::{Credential, Inline, SpecPlace};
use gantry_upstream::options::DisabledReason;
use std::collections::BTreeMap;
use std::time::Duration;

/// The REST services of a project.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rest {
    /// Tools that are one request, by name.
    pub tools: BTreeMap<String, RestTool>,
    /// APIs that a document describes, by id.
    pub apis: BTreeMap<String, Api>,
}

impl Rest {
    /// Switches all of it off, for work that needs none of it.
    pub(crate) fn switch_off(&mut self) {
        self.tools.values_mut().for_each(|tool| tool.off = Some(DisabledReason::Disabled));
        self.apis.values_mut().for_each(|api| api.off = Some(DisabledReason::Disabled));
    }
}

/// A tool that is one request.
#[derive(Debug, Clone, PartialEq)]
pub struct RestTool {
    pub inline: Inline,
    pub queue: Option<String>,
    /// How long a success is cached; `None` is not at all.
    pub cache: Option<Duration>,
    /// `None` is as long as its stream may take, or [`super::Defaults::tool_timeout`].
    pub request_timeout: Option<Duration>,
    /// Why it is not offered, if it is not.
    pub off: Option<DisabledReason>,
    pub at: Location,
}

/// An API that a document describes. Its headers and credentials are secrets, so it shows little of itself.
#[derive(Clone, PartialEq)]
pub struct Api {
    pub spec: SpecPlace,
    /// The files that the document is made of, as they are now: another content is another configuration.
    pub documents: Stamp,
    pub base_url: Option<Url>,
    pub variables: BTreeMap<String, String>,
    pub headers: Vec<(String, String)>,
    /// By the name of the security scheme.
    pub credentials: BTreeMap<String, Credential>,
    /// Empty is all.
    pub methods: Vec<Method>,
    /// Empty is all.
    pub tags: Vec<String>,
    /// `None` is all, an empty list none.
    pub include: Option<Vec<Located<String>>>,
    pub exclude: Vec<Located<String>>,
    pub effects: PerPattern<Effect>,
    /// How its tools are offered and run.
    pub source: ToolSource,
    /// Why it is not offered, if it is not.
    pub off: Option<DisabledReason>,
    pub at: Location,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("off", &self.off).field("at", &self.at).finish_non_exhaustive()
    }
}
