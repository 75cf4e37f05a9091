//! A repository of the workspace, as far as a script in the jail can reach it.
//!
//! Scripts are fixed texts; what a call says comes in as arguments. They answer with fields that end in NUL, because names
//! in a repository can have any other byte. Where a script knows what is wrong, it ends with a code that says so.

use super::fault;
use crate::command::runner::{CommandRunner, CommandSpec, NetworkAccess};
use crate::failure;
use crate::text::display_text;
use crate::workspace::within::{Way, shown_path};
use gantry_core::{EffectState, Fault};
use gantry_sandbox::jail::{Access, End, Ran, WORKSPACE};
use std::collections::BTreeMap;
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

/// The codes by which scripts say what they know to be wrong. All others are git's own.
pub(super) mod code {
    /// A revision is not known.
    pub(in super::super) const NO_REVISION: i32 = 41;
    /// Files are in conflict.
    pub(in super::super) const CONFLICT: i32 = 42;
    /// Something is not as it was when the call was judged.
    pub(in super::super) const OUTDATED: i32 = 43;
    /// A hook said no to the commit, or git did; the branch is where it was.
    pub(in super::super) const NOT_COMMITTED: i32 = 44;
    /// A hook changed what was to be committed, which was not; the branch is where it was.
    pub(in super::super) const CHANGED: i32 = 45;
    /// The branch was moved by another process while the commit was made, which it was not.
    pub(in super::super) const MOVED: i32 = 46;
    /// There is no current branch.
    pub(in super::super) const DETACHED: i32 = 47;
    /// There is no such branch.
    pub(in super::super) const NO_BRANCH: i32 = 48;
    /// There is no such remote.
    pub(in super::super) const NO_REMOTE: i32 = 49;
    /// The hook before pushing said no.
    pub(in super::super) const HOOK: i32 = 50;
    /// What is said to be merged is no list of commits.
    pub(in super::super) const NO_MERGE: i32 = 51;
}

/// A script to run.
#[derive(Debug)]
pub(super) struct GitScript {
    /// The tool that it is for.
    tool: &'static str,
    text: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) config: Vec<(String, String)>,
    /// Files to read at `/run/gantry`.
    pub(super) files: Vec<(String, Vec<u8>)>,
    pub(super) access: Access,
    pub(super) network: Option<NetworkAccess>,
    wall: Duration,
    /// What has happened if a limit ends it.
    effect: EffectState,
}

impl GitScript {
    /// A script that looks: it cannot change anything.
    pub(super) fn read_only(tool: &'static str, parts: &[&str]) -> Self {
        Self {
            tool,
            text: [&[PRELUDE], parts].concat().join("\n"),
            args: Vec::new(),
            env: vec![("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned())],
            config: Vec::new(),
            files: Vec::new(),
            access: Access::Read,
            network: None,
            wall: LOOKING,
            effect: EffectState::None,
        }
    }

    /// A script that changes the workspace.
    pub(super) fn writing(tool: &'static str, parts: &[&str]) -> Self {
        Self { access: Access::Write, env: Vec::new(), ..Self::read_only(tool, parts) }.slowly()
    }

    /// A script that talks to a server, which may have got what was sent wherever it ends.
    pub(super) fn with_network(tool: &'static str, parts: &[&str], access: NetworkAccess) -> Self {
        Self { network: Some(access), ..Self::read_only(tool, parts) }.slowly()
    }

    fn slowly(self) -> Self {
        Self { wall: WORKING, effect: EffectState::Possible, ..self }
    }

    /// The same with these arguments.
    pub(super) fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let own = CONFIG.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let config: Vec<_> = own.iter().chain(&self.config).collect();
        let mut env: BTreeMap<String, String> =
            ENV.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        env.insert("GIT_CONFIG_COUNT".to_owned(), config.len().to_string());
        for (n, (key, value)) in config.into_iter().enumerate() {
            env.insert(format!("GIT_CONFIG_KEY_{n}"), key.clone());
            env.insert(format!("GIT_CONFIG_VALUE_{n}"), value.clone());
        }
        env.extend(self.env.iter().cloned());
        env
    }
}

/// A repository, by a folder in it.
#[derive(Debug)]
pub(super) struct Repository<'a> {
    runner: &'a CommandRunner,
    /// Relative to the workspace.
    folder: PathBuf,
    /// The folder as messages have it.
    pub(super) shown: String,
}

impl<'a> Repository<'a> {
    /// The repository that a folder of the workspace is in.
    pub(super) fn at(runner: &'a CommandRunner, path: &str) -> Result<Self, Fault> {
        let names = Way::parse(path)?.names;
        let shown = if names.is_empty() { "the workspace".to_owned() } else { display_text(path) };
        Ok(Self { runner, folder: names.iter().collect(), shown })
    }

    /// Runs a script to its end, with any code. Only a limit is a failure here.
    pub(super) async fn run(&self, script: GitScript) -> Result<Ran, Fault> {
        let quota = self.runner.options().code;
        let (tool, wall, effect) = (script.tool, script.wall, script.effect);
        let mut command = CommandSpec::new("sh", quota, wall);
        command.env = script.environment();
        command = command.args(["-c", &script.text, "git"]).args(script.args);
        command.folder.clone_from(&self.folder);
        command.files = script.files;
        command.access = script.access;
        command.network = script.network;
        command.output = OUTPUT;
        let ran = self.runner.run(command).await?;
        match fault::of_limit(&ran, tool, (wall, quota), effect) {
            Some(fault) => Err(fault),
            None => Ok(ran),
        }
    }

    /// Runs a script that has to succeed.
    pub(super) async fn ask(&self, script: GitScript, doing: &str) -> Result<Ran, Fault> {
        let ran = self.run(script).await?;
        if ran.end == End::Exited(0) { Ok(ran) } else { Err(fault::of_git(&ran, doing, &self.shown)) }
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
    pub(super) fn of(path: &[u8]) -> Result<Self, Fault> {
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
        shown_path(&[&self.prefix, name].concat())
    }
}

/// What a script answered, field by field.
#[derive(Debug, Clone, Copy)]
pub(super) struct NulFields<'a>(&'a [u8]);

impl<'a> NulFields<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next field that has its end.
    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (field, rest) = (self.0.get(..end)?, self.0.get(end + 1..)?);
        self.0 = rest;
        Some(field)
    }

    /// The next field, which must be there.
    pub(super) fn must(&mut self, what: &str) -> Result<&'a [u8], Fault> {
        self.next().ok_or_else(|| fault::unreadable(what))
    }

    /// The next field as text; what is no UTF-8 is replaced.
    pub(super) fn text(&mut self, what: &str) -> Result<String, Fault> {
        Ok(String::from_utf8_lossy(self.must(what)?).into_owned())
    }

    /// What was not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }
}

/// The beginning of a commit's id.
pub(super) fn short_id(hash: &str) -> &str {
    hash.get(..SHORT).unwrap_or(hash)
}

const SHORT: usize = 10;
