//! Runs scripts of the git tools in the jail, and reads what they answer.
//!
//! Scripts are fixed texts; what a call says comes in as arguments. They answer with fields that end in NUL, because names
//! in a repository can have any other byte. A script that knows what is wrong says so in its last field, and by its code of
//! what kind that is.

use super::GitContext;
use crate::command::runner::{CommandSpec, LimitKind};
use crate::failure::{self, Result};
use crate::text::last_lines;
use crate::workspace::path::{RelPath, printable};
use gantry_core::{CallFailure, EffectState, ErrorCode, ToolError};
use gantry_sandbox::jail::{Access, Captured, ExitReason, JobOutput, WORKSPACE};
use std::time::Duration;

/// How long git may look.
const LOOKING: Duration = Duration::from_secs(60);
/// How long it may work where it runs the repository's hooks or talks to a server.
pub(super) const WORKING: Duration = Duration::from_secs(300);
/// Bytes that are kept of what git prints.
const OUTPUT: usize = 4 * 1024 * 1024;

/// What every git has in its environment: nothing of this machine's settings, no person to ask, texts that can be read, and
/// every commit as it is, for tools can write the files by which a repository shows another one in its place.
const ENV: [(&str, &str); 13] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("GIT_EDITOR", "/bin/false"),
    ("GIT_PAGER", "cat"),
    ("GIT_ALLOW_PROTOCOL", "http:https"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("LC_ALL", "C"),
];

/// Settings that win over those of the repository.
const CONFIG: [(&str, &str); 16] = [
    ("safe.directory", "*"),
    ("core.fsmonitor", "false"),
    ("core.quotePath", "false"),
    ("core.splitIndex", "false"),
    ("core.commitGraph", "false"),
    ("advice.graftFileDeprecated", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("i18n.logOutputEncoding", "UTF-8"),
    ("format.pretty", "medium"),
    ("log.date", "default"),
    ("color.ui", "never"),
    ("credential.helper", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
    ("push.gpgSign", "false"),
];

const PRELUDE: &str = include_str!("sh/prelude.sh");
/// What those share that run hooks.
pub(super) const HOOKS: &str = include_str!("sh/hooks.sh");

/// What git says where the code of the failure is another one than usual.
const SIGNS: [(&str, ErrorCode); 3] = [
    ("is outside repository", ErrorCode::InvalidPath),
    ("is beyond a symbolic link", ErrorCode::InvalidPath),
    ("did not match any file", ErrorCode::FileNotFound),
];

/// A script that looks: it cannot change anything. `settings` win over those of the repository.
pub(super) fn script(parts: &[&str], settings: &[(&str, &str)]) -> CommandSpec {
    let text = [&[PRELUDE], parts].concat().join("\n");
    let command = CommandSpec::new("sh", LimitKind::Code, LOOKING).env(ENV).args(["-c", &text, "git"]);
    let mut script = CommandSpec { output: OUTPUT, ..command };
    let settings = [&CONFIG, settings].concat();
    script.env.insert("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string());
    for (n, (key, value)) in settings.into_iter().enumerate() {
        script.env.insert(format!("GIT_CONFIG_KEY_{n}"), key.to_owned());
        script.env.insert(format!("GIT_CONFIG_VALUE_{n}"), value.to_owned());
    }
    script
}

pub(super) fn writing_script(parts: &[&str]) -> CommandSpec {
    CommandSpec { access: Access::Write, wall: WORKING, ..script(parts, &[]) }
}

impl GitContext {
    /// Runs a script in a folder of the workspace to its end, with any code. Only a limit is a failure.
    pub(super) async fn run_to_end(&self, path: &str, mut script: CommandSpec) -> Result<JobOutput> {
        script.folder = RelPath::parse(path)?.plain_names().iter().collect();
        script.env.insert("GANTRY_HIDDEN".to_owned(), self.hidden()?);
        let (wall, effect) = (script.wall, effect_if_ended(&script));
        let ran = self.runner.run(script).await?;
        match self.runner.limit_fault(&ran, "git", wall, LimitKind::Code) {
            Some(fault) => Err(CallFailure { effect, ..fault }),
            None => Ok(ran),
        }
    }

    /// The paths in the jail that are hidden from tools, one in each line.
    fn hidden(&self) -> Result<String> {
        let mut lines = String::new();
        for path in self.runner.hidden().map_err(failure::failed)? {
            let path = path.to_str().filter(|path| !path.contains('\n')).ok_or_else(|| {
                let path = printable(path.as_os_str().as_encoded_bytes());
                failure::failed(format!(
                    "{path} belongs to Gantry, and git cannot leave it out; let a person rename it"
                ))
            })?;
            lines.extend([WORKSPACE, "/", path, "\n"]);
        }
        Ok(lines)
    }

    /// Runs a script that has to succeed.
    pub(super) async fn run(&self, path: &str, script: CommandSpec) -> Result<Captured> {
        let effect = effect_if_ended(&script);
        let ran = self.run_to_end(path, script).await?;
        let ExitReason::Exited(code) = ran.end else {
            let message = "git was ended by a signal; git_status shows how far it got";
            return Err(CallFailure { effect, ..failure::failed(message) });
        };
        if code == 0 { Ok(ran.stdout) } else { Err(script_fault(code, &ran)) }
    }
}

/// What may have happened if a script is ended.
fn effect_if_ended(script: &CommandSpec) -> EffectState {
    let is_looking = script.access == Access::Read && script.network.is_none();
    if is_looking { EffectState::None } else { EffectState::Possible }
}

/// Why a script that ended with this code did not do what it was asked to.
fn script_fault(code: i32, ran: &JobOutput) -> CallFailure {
    let stderr = ran.stderr.text();
    let said = last_lines(&stderr);
    let own_kind: fn(String) -> CallFailure = match code {
        41 => failure::invalid,
        42 => failure::failed,
        43 => failure::outdated,
        44 => failure::effect_unknown,
        45 => failure::denied,
        // It is git's, and with those nothing was changed.
        _ => {
            let sign = SIGNS.iter().find(|(sign, _)| stderr.contains(sign));
            let kind = sign.map_or(ErrorCode::ExecutionError, |(_, kind)| *kind);
            let message = format!("git ended with code {code}: {said}");
            return CallFailure::without_effect(ToolError::new(kind, message));
        }
    };
    let fields = ran.stdout.text();
    let why = fields.trim_end_matches('\0').rsplit('\0').next().unwrap_or_default();
    own_kind(format!("{}\n{said}", last_lines(why)).trim_end().to_owned())
}

/// Git or a script printed something else than it always does.
pub(super) fn unreadable() -> CallFailure {
    failure::failed("git answered something that Gantry does not understand; please report this")
}

#[derive(Debug)]
pub(super) struct Answer<'a> {
    /// What was not read yet.
    pub(super) rest: &'a [u8],
    /// Whether there was more than what is kept.
    pub(super) is_cut: bool,
    /// The folder of the repository's files, relative to the workspace; empty, or with a slash at the end.
    prefix: Vec<u8>,
}

impl<'a> Answer<'a> {
    /// An answer that begins, as all do, with the folder of the repository's files.
    pub(super) fn of(stdout: &'a Captured) -> Result<Self> {
        let mut answer = Self { rest: &stdout.bytes, is_cut: stdout.is_truncated(), prefix: Vec::new() };
        let top = [answer.next().ok_or_else(unreadable)?, b"/"].concat();
        let below = top.strip_prefix(WORKSPACE.as_bytes()).and_then(|below| below.strip_prefix(b"/"));
        let outside = "the files of the repository are not in the workspace (core.worktree); use another one";
        below.ok_or_else(|| failure::failed(outside))?.clone_into(&mut answer.prefix);
        Ok(answer)
    }

    /// The next field as text; what is no UTF-8 is replaced.
    pub(super) fn text(&mut self) -> Result<String> {
        Ok(String::from_utf8_lossy(self.next().ok_or_else(unreadable)?).into_owned())
    }

    /// A name in the repository as a path in the workspace.
    pub(super) fn path(&self, name: &[u8]) -> String {
        printable(&[&self.prefix, name].concat())
    }
}

impl<'a> Iterator for Answer<'a> {
    type Item = &'a [u8];

    /// The next field that has its end.
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == 0)?;
        let (field, rest) = (self.rest.get(..end)?, self.rest.get(end + 1..)?);
        self.rest = rest;
        Some(field)
    }
}

pub(super) fn short_id(hash: &str) -> &str {
    hash.get(..10).unwrap_or(hash)
}

/// A whole answer with these bytes.
#[cfg(test)]
pub(super) fn captured(bytes: &[u8]) -> Captured {
    Captured { bytes: bytes.to_vec(), total: bytes.len() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(code: i32, stdout: &[u8], stderr: &str) -> (String, EffectState, String) {
        let (stdout, stderr) = (captured(stdout), captured(stderr.as_bytes()));
        let ran = JobOutput { stdout, stderr, end: ExitReason::Exited(code), duration: Duration::ZERO };
        let CallFailure { error, effect } = script_fault(code, &ran);
        (error.code.as_str().to_owned(), effect, error.message)
    }

    #[test]
    fn the_code_of_a_script_says_what_kind_its_own_failure_is_of() {
        for (name, code, effect) in [
            ("INVALID=41", "INVALID_ARGUMENTS", EffectState::None),
            ("FAILED=42", "EXECUTION_ERROR", EffectState::None),
            ("OUTDATED=43", "APPROVAL_REQUIRED", EffectState::None),
            ("POSSIBLE=44", "EXECUTION_ERROR", EffectState::Possible),
            ("DENIED=45", "PERMISSION_DENIED", EffectState::None),
        ] {
            assert!(PRELUDE.contains(name), "{name}");
            let number = name.split_once('=').unwrap().1.parse().unwrap();
            let found = fault(number, b"/workspace\0it is a\x1b[0mb\0", "hint: no\nsaid by git\n");
            assert_eq!(found, (code.to_owned(), effect, "it is a\\u{1b}[0mb\nsaid by git".to_owned()));
        }
        assert_eq!(fault(42, b"why\0", "").2, "why");
    }

    #[test]
    fn a_refusal_of_git_is_reported_in_its_words() {
        for (said, code) in [
            ("fatal: pathspec 'x' did not match any files", "FILE_NOT_FOUND"),
            ("fatal: x: '/workspace/x' is outside repository at '/workspace/y'", "INVALID_PATH"),
            ("fatal: bad object HEAD", "EXECUTION_ERROR"),
        ] {
            let expected = (code.to_owned(), EffectState::None, format!("git ended with code 128: {said}"));
            assert_eq!(fault(128, b"/workspace\0", said), expected);
        }
        // A long name leaves no room for the sign in the message.
        let said = format!("fatal: pathspec '{}' did not match any files", "x".repeat(1000));
        assert_eq!(fault(128, b"/workspace\0", &said).0, "FILE_NOT_FOUND");
    }
}
