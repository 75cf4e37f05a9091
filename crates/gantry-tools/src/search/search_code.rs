//! `search_code`: finds lines and files in the workspace, by text, by regular expression, or ranked by words.

use super::embed::Reranker;
use super::matches::Match;
use super::{grep, ranked};
use crate::options::SearchOptions;
use crate::tool::prelude::*;
use crate::tool::run_blocking;
use crate::workspace::path::RelPath;
use crate::workspace::root::WorkspaceRoot;
use gantry_core::EffectState;
use ignore::overrides::{Override, OverrideBuilder};
use std::path::Path;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Searches that run at the same time; each uses all cores.
const SEARCHES: usize = 4;
const QUERY_BYTES: usize = 4096;
const MAX_MATCHES: usize = 1000;
const MAX_CONTEXT: usize = 10;
const GLOBS: usize = 50;
/// Bytes of text in one result; what comes after them is left out.
const RESULT_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub(super) struct SearchCode {
    root: Arc<WorkspaceRoot>,
    reranker: Option<Reranker>,
    slots: Arc<Semaphore>,
}

/// Searches the files of the workspace. mode ranked (the default) takes words or identifiers and gives the best files for
/// them, with the best line of each: use it to find where something is done. mode literal finds every line with a text,
/// mode regex every line that fits a regular expression: use them to find all places. Files that .gitignore or .ignore
/// leave out, hidden files and binary files are not searched; symbolic links are not followed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Args {
    /// What to look for: words or identifiers (ranked), a text within one line (literal), or a regular expression that is
    /// matched line by line (regex).
    #[schemars(length(min = 1, max = QUERY_BYTES))]
    query: String,
    /// How to search.
    #[serde(default)]
    mode: Mode,
    /// A directory or file to search in, relative to the workspace root; everything unless given.
    path: Option<String>,
    /// Only files whose path fits one of these globs: "*.rs" at any depth, "src/**/*.ts" from the workspace root; "!*.lock"
    /// leaves files out.
    glob: Option<Globs>,
    /// Whether upper and lower case differ, in literal and regex. Unless given, they do if the query has an upper-case
    /// letter.
    case_sensitive: Option<bool>,
    /// How many matches to return, at most; 100, or 20 for ranked, unless given.
    #[schemars(range(min = 1, max = MAX_MATCHES))]
    max_results: Option<usize>,
    /// Lines to show before and after each match; 0, or 2 for ranked, unless given.
    #[schemars(range(max = MAX_CONTEXT))]
    context: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    #[default]
    Ranked,
    Literal,
    Regex,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Globs {
    One(String),
    Many(#[schemars(length(max = GLOBS))] Vec<String>),
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// How it was searched.
    pub(super) mode: Mode,
    /// What was found: by path and line, or the best first for ranked.
    pub(super) matches: Vec<Match>,
    /// True if there is more than what is listed; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) truncated: bool,
    /// How many files were searched; absent if the search could end early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) files_searched: Option<usize>,
    /// Files and directories that could not be searched; absent if none.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) skipped: usize,
    /// What limits the answer; absent if nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Tool for SearchCode {
    const NAME: &'static str = "search_code";
    const TITLE: &'static str = "Search code";
    const HINTS: Annotations = READS;
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_mins(2));
    type Args = Args;
    type Output = Output;

    /// Dropping the future stops the search at the next file.
    async fn run(&self, call: PermittedCall<Args>) -> Result<Output> {
        let stop = call.cancel().clone();
        let query = Arc::new(Query::parse(call.args)?);
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let slot = slot.map_err(|closed| failure::failed(format!("the search is over: {closed}")))?;
        let (root, searched) = (Arc::clone(&self.root), Arc::clone(&query));
        let search = move || {
            // The slot goes with the thread that searches, because its caller may stop waiting for it.
            let _slot = slot;
            let output = match searched.mode {
                Mode::Ranked => ranked::run(&root.reader()?, &searched, &stop),
                Mode::Literal | Mode::Regex => grep::run(&root.reader()?, &searched, &stop),
            };
            if stop.is_cancelled() { Err(failure::canceled()) } else { output }
        };
        let mut output = run_blocking(EffectState::None, search).await??;
        if let (Mode::Ranked, Some(reranker)) = (query.mode, &self.reranker) {
            reranker.rerank(&query.text, &mut output).await;
        }
        Ok(output.bounded(query.most))
    }
}

impl SearchCode {
    pub(super) fn new(root: WorkspaceRoot, options: SearchOptions) -> Self {
        let reranker = options.embeddings.map(Reranker::new);
        Self { root: Arc::new(root), reranker, slots: Arc::new(Semaphore::new(SEARCHES)) }
    }
}

#[derive(Debug)]
pub(super) struct Query {
    pub(super) text: String,
    pub(super) mode: Mode,
    pub(super) path: RelPath,
    globs: Override,
    /// Whether upper and lower case differ; unless given, they do once the query has an upper-case letter.
    pub(super) case_sensitive: Option<bool>,
    /// Matches in the result, at most.
    pub(super) most: usize,
    pub(super) context: usize,
}

impl Query {
    fn parse(args: Args) -> Result<Self> {
        let (most, context) = match args.mode {
            // What comes late in a ranking matters little.
            Mode::Ranked => (20, 2),
            Mode::Literal | Mode::Regex => (100, 0),
        };
        if args.query.trim().is_empty() {
            return Err(failure::invalid("query is empty; say what to look for"));
        }
        if args.query.len() > QUERY_BYTES {
            let n_bytes = args.query.len();
            return Err(failure::invalid(format!(
                "query has {n_bytes} bytes and at most {QUERY_BYTES} are taken"
            )));
        }
        Ok(Self {
            mode: args.mode,
            path: RelPath::parse(args.path.as_deref().unwrap_or("."))?,
            globs: read_globs(args.glob)?,
            case_sensitive: args.case_sensitive,
            most: args.max_results.unwrap_or(most).clamp(1, MAX_MATCHES),
            context: args.context.unwrap_or(context).min(MAX_CONTEXT),
            text: args.query,
        })
    }

    /// Whether a file at this path, relative to the workspace root, is one of those that are asked for.
    pub(super) fn takes(&self, path: &Path) -> bool {
        !self.globs.matched(path, false).is_ignore()
    }
}

fn read_globs(given: Option<Globs>) -> Result<Override> {
    let given = match given {
        None => Vec::new(),
        Some(Globs::One(glob)) => vec![glob],
        Some(Globs::Many(globs)) => globs,
    };
    if given.len() > GLOBS {
        let n_globs = given.len();
        return Err(failure::invalid(format!("glob has {n_globs} entries and at most {GLOBS} are taken")));
    }
    let mut builder = OverrideBuilder::new("");
    for glob in &given {
        if let Err(error) = builder.add(glob) {
            return Err(failure::invalid(format!("{glob:?} is not a glob: {error}")));
        }
    }
    builder.build().map_err(|error| failure::invalid(format!("the globs cannot be used: {error}")))
}

impl Output {
    pub(super) fn new(mode: Mode, matches: Vec<Match>) -> Self {
        Self { mode, matches, truncated: false, files_searched: None, skipped: 0, note: None }
    }

    /// Leaves out what is beyond so many matches or the size limit, and says so.
    fn bounded(mut self, most: usize) -> Self {
        let mut bytes = 0;
        let fits = |found: &Match| {
            bytes += found.size();
            bytes <= RESULT_BYTES
        };
        let fitting = self.matches.iter().take(most).map(fits).take_while(|fits| *fits).count();
        self.truncated |= self.matches.len() > fitting;
        self.matches.truncate(fitting);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_a_limit() {
        let one = Match { text: "x".repeat(RESULT_BYTES / 2), ..Match::default() };
        let output = Output::new(Mode::Literal, vec![one.clone(), one.clone(), one]);
        let output = output.bounded(10);
        assert!(output.truncated && output.matches.len() == 2);
        let output = output.bounded(1);
        assert!(output.truncated && output.matches.len() == 1);
    }
}
