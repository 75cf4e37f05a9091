//! A repository of the workspace, as far as a script in the jail can reach it.
//!
//! Scripts are fixed texts; what a call says comes in as arguments. They answer with fields that end in NUL, because names
//! in a repository can have any other byte. Where a script knows what is wrong, it ends with a code of [`fault`] that says so.

use super::fault;
use crate::command::runner::{CommandRunner, CommandSpec, LimitKind, NetworkAccess};
use crate::failure;
use crate::text::display_text;
use crate::workspace::path::{RelPath, printable};
use gantry_core::{EffectState, Fault};
use gantry_sandbox::jail::{Access, End, Ran, WORKSPACE};
use std::path::PathBuf;
use std::time::Duration;

/// How long git may look.
const LOOKING: Duration = Duration::from_secs(60);
/// How long it may work where it runs the repository's hooks or talks to a server.
const WORKING: Duration = Duration::from_secs(300);
/// Bytes that are kept of what git prints.
const OUTPUT: usize = 4 * 1024 * 1024;

/// What every git has in its environment: nothing of this machine's settings, no person to ask, texts that can be read, and
/// every commit as it is, for tools can write the files by which a repository shows another one in its place.
const ENV: [(&str, &str); 14] = [
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
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("LC_ALL", "C"),
];

/// Settings that win over those of the repository.
const CONFIG: [(&str, &str); 17] = [
    ("safe.directory", "*"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.quotePath", "false"),
    ("core.splitIndex", "false"),
    ("core.commitGraph", "false"),
    ("advice.graftFileDeprecated", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("i18n.logOutputEncoding", "UTF-8"),
    ("color.ui", "never"),
    ("format.pretty", "medium"),
    ("log.date", "default"),
    ("credential.helper", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
    ("push.gpgSign", "false"),
];

/// What scripts share.
const PRELUDE: &str = include_str!("sh/prelude.sh");
/// What those share that run hooks.
pub(super) const HOOKS: &str = include_str!("sh/hooks.sh");

/// A script to run.
#[derive(Debug)]
pub(super) struct GitScript {
    /// The tool that it is for.
    tool: &'static str,
    pub(super) command: CommandSpec,
    /// Settings that win over those of the repository.
    pub(super) config: Vec<(String, String)>,
}

impl GitScript {
    /// A script that looks: it cannot change anything.
    pub(super) fn read_only(tool: &'static str, parts: &[&str]) -> Self {
        let text = [&[PRELUDE], parts].concat().join("\n");
        let command = CommandSpec::new("sh", LimitKind::Code, LOOKING).env(ENV).args(["-c", &text, "git"]);
        let config = CONFIG.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Self { tool, command: CommandSpec { output: OUTPUT, ..command }, config: config.into() }
    }

    /// A script that changes the workspace.
    pub(super) fn writing(tool: &'static str, parts: &[&str]) -> Self {
        let script = Self::read_only(tool, parts);
        Self { command: CommandSpec { access: Access::Write, wall: WORKING, ..script.command }, ..script }
    }

    /// A script that talks to a server, which may have got what was sent wherever it ends.
    pub(super) fn with_network(tool: &'static str, parts: &[&str], access: NetworkAccess) -> Self {
        let script = Self::read_only(tool, parts);
        Self { command: CommandSpec { network: Some(access), wall: WORKING, ..script.command }, ..script }
    }

    /// The same with these arguments.
    pub(super) fn args<T: Into<String>>(self, args: impl IntoIterator<Item = T>) -> Self {
        Self { command: self.command.args(args), ..self }
    }

    /// What may have happened if it is ended.
    fn effect(&self) -> EffectState {
        let is_looking = self.command.access == Access::Read && self.command.network.is_none();
        if is_looking { EffectState::None } else { EffectState::Possible }
    }

    /// The arguments of the script itself.
    #[cfg(test)]
    pub(super) fn words(&self) -> Vec<&str> {
        self.command.args[3..].iter().map(String::as_str).collect()
    }
}

/// A repository, by a folder in it.
#[derive(Debug)]
pub(super) struct Repository<'a> {
    runner: &'a CommandRunner,
    /// Relative to the workspace.
    folder: PathBuf,
    /// The folder as messages have it.
    shown: String,
}

impl<'a> Repository<'a> {
    /// The repository that a folder of the workspace is in.
    pub(super) fn at(runner: &'a CommandRunner, path: &str) -> Result<Self, Fault> {
        let folder: PathBuf = RelPath::parse(path)?.plain_names().iter().collect();
        let is_root = folder.as_os_str().is_empty();
        let shown = if is_root { "the workspace".to_owned() } else { display_text(path) };
        Ok(Self { runner, folder, shown })
    }

    /// Runs a script to its end, with any code. Only a limit is a failure.
    pub(super) async fn run(&self, script: GitScript) -> Result<Ran, Fault> {
        let (effect, GitScript { tool, mut command, config }) = (script.effect(), script);
        command.folder.clone_from(&self.folder);
        command.env.insert("GIT_CONFIG_COUNT".to_owned(), config.len().to_string());
        for (n, (key, value)) in config.into_iter().enumerate() {
            command
                .env
                .extend([(format!("GIT_CONFIG_KEY_{n}"), key), (format!("GIT_CONFIG_VALUE_{n}"), value)]);
        }
        if command.access == Access::Read {
            command.env.insert("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned());
        }
        let wall = command.wall;
        let ran = self.runner.run(command).await?;
        match self.runner.limit_fault(&ran, tool, wall, LimitKind::Code) {
            Some(fault) => Err(Fault { effect, ..fault }),
            None => Ok(ran),
        }
    }

    /// Runs a script that has to succeed; `doing` says in a message what failed.
    pub(super) async fn run_checked(&self, script: GitScript, doing: &str) -> Result<Ran, Fault> {
        let (effect, folder) = (script.effect(), &self.shown);
        let ran = self.run(script).await?;
        match ran.end {
            End::Exited(0) => Ok(ran),
            End::Exited(code) => Err(fault::of_script(code, &ran.stderr.text(), doing, folder)),
            End::Signalled(_) | End::WallLimit | End::CpuLimit | End::MemoryLimit | End::WriteLimit => {
                let message =
                    format!("git was ended while {doing} in {folder}; git_status shows how far it got");
                Err(Fault { effect, ..failure::failed(message) })
            }
        }
    }
}

/// The folder of a repository's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RepoRoot {
    /// Relative to the workspace; empty, or with a slash at the end.
    prefix: Vec<u8>,
}

impl RepoRoot {
    /// From the path that git gives in the jail.
    pub(super) fn parse(path: &[u8]) -> Result<Self, Fault> {
        let outside = || {
            failure::failed(
                "the files of the repository are not in the workspace (core.worktree); use another one",
            )
        };
        let below = path.strip_prefix(WORKSPACE.as_bytes()).ok_or_else(outside)?;
        match below.strip_prefix(b"/") {
            Some(folder) => Ok(Self { prefix: [folder, b"/"].concat() }),
            None if below.is_empty() => Ok(Self { prefix: Vec::new() }),
            None => Err(outside()),
        }
    }

    /// A name in the repository as a path in the workspace.
    pub(super) fn path(&self, name: &[u8]) -> String {
        printable(&[&self.prefix, name].concat())
    }
}

/// What a script answered, field by field: what was not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct NulFields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for NulFields<'a> {
    type Item = &'a [u8];

    /// The next field that has its end.
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (field, rest) = (self.0.get(..end)?, self.0.get(end + 1..)?);
        self.0 = rest;
        Some(field)
    }
}

impl<'a> NulFields<'a> {
    /// The next field, which must be there.
    pub(super) fn required(&mut self, what: &str) -> Result<&'a [u8], Fault> {
        self.next().ok_or_else(|| fault::unreadable(what))
    }

    /// The next field as text; what is no UTF-8 is replaced.
    pub(super) fn text(&mut self, what: &str) -> Result<String, Fault> {
        Ok(String::from_utf8_lossy(self.required(what)?).into_owned())
    }

    /// Where the files of the repository are, which most scripts say first.
    pub(super) fn repo_root(&mut self) -> Result<RepoRoot, Fault> {
        RepoRoot::parse(self.required("where the repository is")?)
    }
}

/// The beginning of a commit's id.
pub(super) fn short_id(hash: &str) -> &str {
    hash.get(..10).unwrap_or(hash)
}
