//! What a call asks for, read from its arguments once.

use super::fault;
use crate::own;
use crate::workspace::within::Way;
use gantry_core::Fault;
use ignore::overrides::{Override, OverrideBuilder};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// What is looked for, in bytes.
pub(super) const QUERY_BYTES: usize = 4096;
/// Matches in one answer, at most.
pub(super) const MOST: usize = 1000;
/// Matches in one answer unless the call says otherwise.
pub(super) const USUAL: usize = 100;
/// The same for ranked search, where what comes late matters little.
pub(super) const USUAL_RANKED: usize = 20;
/// Lines around a match, at most.
pub(super) const CONTEXT: usize = 10;
/// Lines around a ranked match unless the call says otherwise.
pub(super) const CONTEXT_RANKED: usize = 2;
/// Globs in one call.
pub(super) const GLOBS: usize = 50;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    #[default]
    Ranked,
    Literal,
    Regex,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    query: String,
    #[serde(default)]
    mode: Mode,
    path: Option<String>,
    #[serde(default)]
    glob: GlobArgument,
    case_sensitive: Option<bool>,
    max_results: Option<usize>,
    context: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum GlobArgument {
    One(String),
    Many(Vec<String>),
}

impl Default for GlobArgument {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

/// A call.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) text: String,
    pub(super) mode: Mode,
    pub(super) way: Way,
    globs: Override,
    /// Whether upper and lower case differ; if nothing is said, they do once the query has an upper-case letter.
    pub(super) case: Option<bool>,
    pub(super) most: usize,
    pub(super) context: usize,
}

impl Query {
    pub(super) fn parse(arguments: &str) -> Result<Self, Fault> {
        let given: Arguments = own::arguments(arguments).map_err(Fault::without_effect)?;
        let (most, context) = match given.mode {
            Mode::Ranked => (USUAL_RANKED, CONTEXT_RANKED),
            Mode::Literal | Mode::Regex => (USUAL, 0),
        };
        if given.query.trim().is_empty() {
            return Err(fault::invalid("query is empty; say what to look for"));
        }
        if given.query.len() > QUERY_BYTES {
            let n_bytes = given.query.len();
            return Err(fault::invalid(format!(
                "query has {n_bytes} bytes and at most {QUERY_BYTES} are taken"
            )));
        }
        Ok(Self {
            mode: given.mode,
            way: Way::parse(given.path.as_deref().unwrap_or("."))?,
            globs: globs(given.glob)?,
            case: given.case_sensitive,
            most: given.max_results.unwrap_or(most).clamp(1, MOST),
            context: given.context.unwrap_or(context).min(CONTEXT),
            text: given.query,
        })
    }

    /// Whether a file at this path, relative to the workspace root, is one of those that are asked for.
    pub(super) fn takes(&self, path: &[u8]) -> bool {
        !self.globs.matched(Path::new(OsStr::from_bytes(path)), false).is_ignore()
    }
}

fn globs(given: GlobArgument) -> Result<Override, Fault> {
    let given = match given {
        GlobArgument::One(glob) => vec![glob],
        GlobArgument::Many(globs) => globs,
    };
    if given.len() > GLOBS {
        let n_globs = given.len();
        return Err(fault::invalid(format!("glob has {n_globs} entries and at most {GLOBS} are taken")));
    }
    let mut builder = OverrideBuilder::new("");
    for glob in &given {
        if let Err(error) = builder.add(glob) {
            return Err(fault::invalid(format!("{glob:?} is not a glob: {error}")));
        }
    }
    builder.build().map_err(|error| fault::invalid(format!("the globs cannot be used: {error}")))
}
