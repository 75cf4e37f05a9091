//! `format_code`: formats code with a project's own formatter.
//!
//! What changed is found out by comparing the files before and after, not by what the formatter says. A check returns
//! the formatter's exit code and output as they are.

mod formatter;
mod snapshot;

use super::ecosystem::Ecosystem;
use super::project_dir::ProjectDir;
use super::{DevContext, output_of};
use crate::command::runner::exit_code;
use crate::tool::prelude::*;
use formatter::Formatter;
use gantry_sandbox::jail::JobOutput;
use snapshot::{BOUNDS, Snapshot};
use std::time::Duration;

const WALL: Duration = Duration::from_mins(2);
const PATHS: usize = 1000;

#[derive(Debug)]
pub(super) struct FormatCode(pub(super) Arc<DevContext>);

/// Formats a file, or the code of a project, in place with its own formatter: rustfmt, prettier, ruff or black, gofmt,
/// shfmt, clang-format. Says which files changed. With check, changes nothing and returns the formatter's own exit code
/// and output. Does not ask a person, although it overwrites files: it changes their form only.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// A file, or the folder of a project, relative to the workspace root. Of Rust, the whole package around a folder is
    /// formatted.
    #[serde(default = "default_path")]
    path: String,
    /// What the project is of, where its folder holds several or says nothing.
    ecosystem: Option<Ecosystem>,
    /// Whether to change nothing. exitCode is not 0 where something would change; older versions of gofmt only say it in
    /// output.
    #[serde(default)]
    check: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// What formatted the code.
    formatter: &'static str,
    /// Files that changed, relative to the workspace root; at most 1,000. Empty when checked.
    changed: Vec<String>,
    /// Files of the same kinds that did not change; absent when checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    unchanged: Option<usize>,
    /// Whether nothing was changed because that was asked for.
    checked: bool,
    /// The exit code of the program; 128 and a signal's number if that ended it.
    exit_code: i32,
    /// The end of what the formatter said, if anything.
    #[serde(skip_serializing_if = "String::is_empty")]
    output: String,
    /// True if there was more than changed or output has; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl Tool for FormatCode {
    const NAME: &'static str = "format_code";
    const TITLE: &'static str = "Format code";
    const HINTS: Annotations = Annotations { idempotent_hint: Some(true), ..CHANGES };
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_mins(10));
    type Args = Args;
    type Output = Output;

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output> {
        let Self(context) = self;
        let Args { path, ecosystem, check } = call.args;
        let choose = move |context: &DevContext, project: ProjectDir| {
            let formatter = Formatter::choose(&project, ecosystem, &context.runner.toolchains, check)?;
            // A check changes nothing that could be compared.
            let before = (!check).then(|| Snapshot::take(&project, &formatter, BOUNDS));
            Ok((project, formatter, before))
        };
        let (project, formatter, before) = context.look(&path, choose).await?;
        let ran = context.run(&formatter.run, &formatter.folder, WALL).await?;
        let read = move |ran: &JobOutput| report(&project, &formatter, before.as_ref(), ran);
        let output = context.result_of(ran, (Self::NAME, WALL), read).await?;
        if !check && output.exit_code != 0 && output.changed.is_empty() {
            return Err(unformatted(output));
        }
        Ok(output)
    }
}

/// The error of a formatter that failed, as for a file with mistakes in it, and is not seen to have changed a file.
fn unformatted(output: Output) -> CallFailure {
    let name = output.formatter;
    // Only where all files were compared is it known how many did not change.
    let fault = if output.unchanged.is_some() {
        failure::failed(format!(
            "{name} could not format the code and changed nothing; the details have what it said"
        ))
    } else {
        failure::effect_unknown(format!(
            "{name} could not format the code; not all files were compared, so it may have changed some; the details have \
             what it said"
        ))
    };
    failure::with_details(fault, output)
}

/// The result: the files that changed, and what the formatter said.
fn report(project: &ProjectDir, formatter: &Formatter, before: Option<&Snapshot>, ran: &JobOutput) -> Output {
    let (output, is_cut) = output_of(ran);
    let mut changed = before.map(|before| before.changed(project)).unwrap_or_default();
    let is_partial = before.is_some_and(|before| before.is_partial);
    let compared = before.filter(|_| !is_partial);
    let unchanged = compared.map(|before| before.digests.len().saturating_sub(changed.len()));
    let truncated = is_cut || is_partial || changed.len() > PATHS;
    changed.truncate(PATHS);
    Output {
        formatter: formatter.name,
        changed,
        unchanged,
        checked: before.is_none(),
        exit_code: exit_code(ran.end),
        output,
        truncated,
    }
}

/// The commands by which something would be formatted, and checked.
#[cfg(test)]
pub(super) fn commands_of(
    project: &ProjectDir,
    chosen: Option<Ecosystem>,
    toolchains: &crate::command::toolchains::Toolchains,
) -> Result<[String; 2]> {
    let command = |check| {
        let formatter = Formatter::choose(project, chosen, toolchains, check)?;
        Ok(formatter.run.command_line().join(" "))
    };
    Ok([command(false)?, command(true)?])
}

#[cfg(test)]
mod tests;
