//! What a call asks for, read from its arguments once.

use super::ecosystem::Ecosystem;
use crate::own;
use gantry_core::ToolError;
use serde::Deserialize;

/// One call of one of the tools.
#[derive(Debug)]
pub(super) enum Act {
    Test(Test),
    Format(Format),
    Install(Install),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Test {
    #[serde(default = "here")]
    pub(super) path: String,
    pub(super) ecosystem: Option<Ecosystem>,
    pub(super) filter: Option<String>,
    /// Seconds.
    pub(super) timeout: Option<u32>,
    #[serde(default)]
    pub(super) args: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Format {
    #[serde(default = "here")]
    pub(super) path: String,
    pub(super) ecosystem: Option<Ecosystem>,
    #[serde(default)]
    pub(super) check: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Install {
    #[serde(default = "here")]
    pub(super) path: String,
    #[serde(default)]
    pub(super) packages: Vec<String>,
    pub(super) ecosystem: Option<Ecosystem>,
    #[serde(default)]
    pub(super) dev: bool,
    #[serde(default)]
    pub(super) scripts: bool,
}

fn here() -> String {
    ".".to_owned()
}

impl Act {
    pub(super) fn parse(tool: &str, arguments: &str) -> Result<Self, ToolError> {
        match tool {
            "run_tests" => own::arguments(arguments).map(Self::Test),
            "format_code" => own::arguments(arguments).map(Self::Format),
            "install_package" => own::arguments(arguments).map(Self::Install),
            _ => Err(own::missing(tool)),
        }
    }
}
