//! `git_push`: sends one commit to one branch of one remote, and nothing else.
//!
//! The credential is with the proxy, outside of the jail; but every program that talks to the proxy uses it. So git talks to it alone,
//! in a run of its own that reads the workspace and starts no program of the repository. The hook before pushing runs
//! first, without a network.

mod answer;

use self::answer::Sent;
use super::arguments::{branch as branch_name, default_path, word};
use super::remote::{Address, Credentials, tracking};
use super::script::{GitScript, HOOKS, NulFields, Repository, code, short_id};
use super::{GitContext, fault};
use crate::command::runner::{NetworkAccess, exit_code};
use crate::failure;
use crate::text::{counted, display_text, last_lines};
use crate::tool::{CHANGES, Tool};
use crate::toolbox::PermittedCall;
use gantry_core::Fault;
use gantry_core::digest::Digest;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::{Annotations, OwnRule};
use gantry_sandbox::jail::{End, PROXY, Ran};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The tool.
#[derive(Debug)]
pub(super) struct GitPush(pub(super) Arc<GitContext>);

/// Pushes one branch of a git repository to the branch of the same name of a remote, over https or http. Always waits
/// for a person's approval, and pushes exactly the commit that was approved. Credentials come from Gantry's configuration
/// (git.credentials).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// A folder in the repository, relative to the workspace root; "." is the root itself.
    #[serde(default = "default_path")]
    path: String,
    /// The name of a remote of the repository; by default the branch's own, else origin.
    remote: Option<String>,
    /// The branch; the one that is checked out by default.
    branch: Option<String>,
    /// Replaces what is there, if that is what was last seen there.
    force: Option<Force>,
}

/// How a push may replace what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
enum Force {
    // Only if that is still what was last seen there.
    #[serde(rename = "with-lease")]
    WithLease,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The name of the remote.
    remote: String,
    /// Its address, without secrets.
    url: String,
    /// The branch there, in full.
    #[serde(rename = "ref")]
    reference: String,
    /// The commit that it was at; absent for a new branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// The commit that it is at now.
    to: String,
    /// Whether the branch is new there.
    created: bool,
    /// Whether commits that were there have been replaced.
    forced: bool,
    /// What the server said; may be empty.
    output: String,
    /// What did not go as it should after the push, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// What would go where.
#[derive(Debug)]
struct Plan {
    branch: String,
    commit: String,
    remote: String,
    address: Address,
    /// Where the repository keeps what it knows of the branch there.
    tracking: Option<String>,
    /// What the branch there was when it was last seen.
    old: Option<String>,
    /// Commits that would go, and those that would be lost there.
    count: u64,
    lost: u64,
    /// The newest of those that would go.
    subjects: Vec<String>,
    force: Option<Force>,
}

impl Plan {
    fn reference(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// The references by which it is told what is there.
    fn source(&self) -> String {
        match (&self.tracking, &self.old) {
            (Some(tracking), Some(_)) => tracking.clone(),
            _ => format!("refs/remotes/{}/*", self.remote),
        }
    }

    /// What an approval rests on. The address is not in it as it is, for it may have a secret.
    fn precondition(&self) -> String {
        let old = self.old.as_deref().unwrap_or("-");
        let to = Digest::of_parts(&[self.remote.as_bytes(), self.address.text().as_bytes()]);
        format!("push {} {} {old} {to}", self.commit, self.reference())
    }
}

impl Tool for GitPush {
    const NAME: &'static str = "git_push";
    const TITLE: &'static str = "Git push";
    const HINTS: Annotations = Annotations {
        destructive_hint: Some(true),
        open_world_hint: Some(true),
        idempotent_hint: Some(true),
        ..CHANGES
    };
    const APPROVAL: OwnRule = OwnRule::Depends;
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_secs(600));
    type Args = Args;
    type Output = Output;

    async fn preflight(&self, args: Args) -> Result<OwnVerdict, Fault> {
        let plan = plan(&self.0.repository(&args.path)?, &args).await?;
        Ok(OwnVerdict { ask: Some(question(&plan)), precondition: Some(plan.precondition().into()) })
    }

    async fn run(&self, call: PermittedCall<'_, Args>) -> Result<Output, Fault> {
        let repository = self.0.repository(&call.args.path)?;
        let judged = call.precondition().ok_or_else(failure::missing_precondition)?;
        let plan = plan(&repository, &call.args).await?;
        if plan.precondition() != judged {
            return Err(failure::outdated(
                "the branch or the remote has changed since the push was approved, and nothing was pushed; call again",
            ));
        }
        ask_hook(&repository, &plan).await?;
        let ran = repository.run(script(&plan, &self.0.credentials)).await?;
        let sent = Sent::read(&ran, &plan)?;
        let tracked = track(&repository, &plan).await;
        Ok(Output {
            url: plan.address.shown(),
            reference: plan.reference(),
            from: sent.from,
            remote: plan.remote,
            to: plan.commit,
            created: sent.is_new,
            forced: sent.is_forced,
            output: sent.said.join("\n"),
            warning: tracked.err().map(|fault| {
                format!("pushed, but the repository could not note it: {}", fault.error.message)
            }),
        })
    }
}

/// What the repository says now. Changes nothing and uses no network.
async fn plan(repository: &Repository<'_>, args: &Args) -> Result<Plan, Fault> {
    let branch = args.branch.as_deref().map(branch_name).transpose()?.unwrap_or_default();
    let remote = args.remote.as_deref().map(|remote| word("remote", remote)).transpose()?;
    let words = [branch, remote.unwrap_or_default()];
    let ran = repository
        .run(GitScript::read_only(GitPush::NAME, &[include_str!("sh/where.sh")]).args(words))
        .await?;
    let mut fields = NulFields::of(&ran.stdout.bytes);
    fields
        .must("where the repository is")
        .map_err(|_none| fault::of_git(&ran, "looking", &repository.shown))?;
    if ran.end != End::Exited(0) {
        return Err(push_plan_error(&ran, &mut fields, args, repository));
    }
    let (branch, commit) = (fields.text("the branch")?, fields.text("the commit")?);
    let (remote, url) = (fields.text("the remote")?, fields.text("the address")?);
    if !fields.must("a helper")?.is_empty() {
        return Err(failure::denied(format!(
            "the remote {} is reached by a program (remote.{0}.vcs), which is not run; use an https remote",
            display_text(&remote)
        )));
    }
    let address = Address::parse(&url)?;
    let specs: Vec<String> =
        std::iter::from_fn(|| fields.next()).map(|spec| String::from_utf8_lossy(spec).into_owned()).collect();
    let tracking = tracking(&specs, &format!("refs/heads/{branch}"));
    let (count, lost, old, subjects) = outgoing(repository, &commit, tracking.as_deref(), &remote).await?;
    if lost > 0 && args.force.is_none() {
        return Err(diverged(&branch, lost));
    }
    Ok(Plan { branch, commit, remote, address, tracking, old, count, lost, subjects, force: args.force })
}

type Outgoing = (u64, u64, Option<String>, Vec<String>);

/// How many commits would go and how many would be lost, what was there, and the newest that would go.
async fn outgoing(
    repository: &Repository<'_>,
    commit: &str,
    tracking: Option<&str>,
    remote: &str,
) -> Result<Outgoing, Fault> {
    let script = GitScript::read_only(GitPush::NAME, &[include_str!("sh/outgoing.sh")]);
    let script = script.args([commit, tracking.unwrap_or_default(), remote]);
    let ran = repository.ask(script, "looking at what would be pushed").await?;
    let mut fields = NulFields::of(&ran.stdout.bytes);
    let old = fields.text("the old commit")?;
    let mut number = || {
        let text = fields.text("a number of commits")?;
        text.parse::<u64>().map_err(|_no_number| fault::unreadable("a number of commits"))
    };
    let (count, lost) = (number()?, number()?);
    let subjects =
        std::iter::from_fn(|| fields.next()).map(|line| display_text(&String::from_utf8_lossy(line)));
    Ok((count, lost, (!old.is_empty()).then_some(old), subjects.collect()))
}

/// What a person is asked.
fn question(plan: &Plan) -> String {
    let branch = display_text(&plan.branch);
    let what = match &plan.old {
        None => format!("branch {branch} would be made, or moved if it is there already"),
        Some(_) if plan.lost > 0 => {
            format!("branch {branch} would be replaced and lose {}", counted(plan.lost, "commit"))
        }
        Some(_) => format!("branch {branch} would be moved"),
    };
    let force = if plan.force.is_some() { ", by force if need be (with lease)" } else { "" };
    let more = plan.count.saturating_sub(plan.subjects.len() as u64);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let list = if plan.subjects.is_empty() {
        String::new()
    } else {
        format!(": {}{more}", plan.subjects.join("; "))
    };
    format!(
        "{what} at {} (remote {}) to {}{force}, with {} that it does not have according to {}, which tools can \
         change{list}",
        plan.address.shown(),
        display_text(&plan.remote),
        short_id(&plan.commit),
        counted(plan.count, "commit"),
        display_text(&plan.source()),
    )
}

/// Runs the repository's own check. It sees no secret and has no network.
async fn ask_hook(repository: &Repository<'_>, plan: &Plan) -> Result<(), Fault> {
    let old = plan.old.clone().unwrap_or_default();
    let words = [plan.reference(), plan.commit.clone(), old, plan.remote.clone(), plan.address.shown()];
    let ran = repository
        .run(GitScript::writing(GitPush::NAME, &[HOOKS, include_str!("sh/hook.sh")]).args(words))
        .await?;
    let said = last_lines(&ran.stderr.text());
    match exit_code(ran.end) {
        0 => Ok(()),
        code::HOOK => Err(failure::effect_unknown(format!(
            "nothing was pushed: the repository's pre-push hook refused it (it runs without a network): {said}"
        ))),
        _ => Err(failure::effect_unknown(format!(
            "nothing was pushed: the pre-push hook could not be run: {said}"
        ))),
    }
}

fn script(plan: &Plan, credentials: &Credentials) -> GitScript {
    let route = plan.address.route(credentials);
    let credentials = route.credential.into_iter().collect();
    let access = NetworkAccess { hosts: Some(vec![route.host]), credentials };
    let mut script = GitScript::with_network(GitPush::NAME, &[include_str!("sh/push.sh")], access);
    // A name that cannot be known before, so that no setting of the repository can lead it elsewhere.
    let name = format!("gantry-{}://remote", uuid::Uuid::new_v4().simple());
    for key in ["insteadOf", "pushInsteadOf"] {
        script.config.push((format!("url.{}.{key}", route.url), name.clone()));
    }
    // A setting of the repository for this very address would win over one for all of them.
    for (key, value) in [("followRedirects", "false"), ("proxy", &format!("http://{PROXY}"))] {
        script.config.push((format!("http.{}.{key}", route.url), value.to_owned()));
    }
    let settings = [
        ("core.hooksPath", "/dev/null"),
        ("core.abbrev", "no"),
        ("push.pushOption", ""),
        ("http.followRedirects", "false"),
        ("http.proxy", &format!("http://{PROXY}")),
    ];
    script.config.extend(settings.map(|(key, value)| (key.to_owned(), value.to_owned())));
    // Every address is the proxy's to judge.
    script.env.extend(["NO_PROXY", "no_proxy"].map(|variable| (variable.to_owned(), String::new())));
    let reference = plan.reference();
    let lease = plan.force.map(|Force::WithLease| {
        format!("--force-with-lease={reference}:{}", plan.old.as_deref().unwrap_or_default())
    });
    script.args([format!("{}:{reference}", plan.commit), name]).args(lease)
}

/// Notes what the branch there is now.
async fn track(repository: &Repository<'_>, plan: &Plan) -> Result<(), Fault> {
    let Some(tracking) = &plan.tracking else { return Ok(()) };
    let script =
        GitScript::writing(GitPush::NAME, &[include_str!("sh/track.sh")]).args([tracking, &plan.commit]);
    repository.ask(script, "noting the push").await.map(drop)
}

/// Why it is not known what would go where.
fn push_plan_error(ran: &Ran, fields: &mut NulFields<'_>, args: &Args, repository: &Repository<'_>) -> Fault {
    match exit_code(ran.end) {
        code::DETACHED => failure::failed("no branch is checked out; name the branch to push with branch"),
        code::NO_BRANCH => match &args.branch {
            Some(branch) => {
                failure::failed(format!("there is no branch {} with a commit", display_text(branch)))
            }
            None => failure::failed("the current branch has no commit yet; commit something first"),
        },
        code::NO_REMOTE => {
            let mut next = || fields.text("a word").unwrap_or_default();
            let (_branch, _commit, remote) = (next(), next(), next());
            failure::failed(format!(
                "there is no remote {}; name one that the repository has, or let a person add one with `git remote add`",
                display_text(&remote)
            ))
        }
        _ => fault::of_git(ran, "looking at what would be pushed", &repository.shown),
    }
}

/// What is there would be lost, and the call does not ask for that.
fn diverged(branch: &str, lost: u64) -> Fault {
    failure::failed(format!(
        "branch {} of the remote has {} that the local one has not; let a person fetch and merge first, or use force: \
         \"with-lease\" to replace what is there",
        display_text(branch),
        counted(lost, "commit")
    ))
}
