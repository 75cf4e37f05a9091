//! `git_push`: sends one commit to one branch of one remote, and nothing else.
//!
//! The credential is with the proxy, outside of the jail; but every program that talks to the proxy uses it. So git talks to it alone,
//! in a run of its own that reads the workspace and starts no program of the repository. The hook before pushing runs
//! first, without a network.

mod answer;

use super::GitContext;
use super::arguments::word;
use super::remote;
use super::script::{Answer, HOOKS, WORKING, script, short_id, unreadable, writing_script};
use crate::command::runner::CommandSpec;
use crate::text::{counted, display_text};
use crate::tool::prelude::*;
use gantry_core::digest::Digest;
use gantry_egress::Url;
use gantry_provider::options::Secret;
use gantry_sandbox::jail::PROXY;
use std::collections::BTreeMap;
use std::time::Duration;

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
struct Plan {
    branch: String,
    commit: String,
    remote: String,
    /// The address of the remote, which may have a secret in it.
    url: Url,
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

    /// Where the repository keeps what it knows of the branch there.
    fn tracking(&self) -> String {
        format!("refs/remotes/{}/{}", self.remote, self.branch)
    }

    /// What an approval rests on. The address is not in it as it is, for it may have a secret.
    fn precondition(&self) -> String {
        let old = self.old.as_deref().unwrap_or("-");
        let to = Digest::of_parts(&[self.remote.as_bytes(), self.url.as_str().as_bytes()]);
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
    const APPROVAL: ApprovalRule = ApprovalRule::Depends;
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_secs(600));
    type Args = Args;
    type Output = Output;

    async fn preflight(&self, args: Args) -> Result<Preflight> {
        let plan = self.plan(&args).await?;
        Ok(Preflight { ask: Some(question(&plan)), precondition: Some(plan.precondition().into()) })
    }

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output> {
        let path = &call.args.path;
        let judged = call.judged()?;
        let plan = self.plan(&call.args).await?;
        if plan.precondition() != judged {
            return Err(failure::outdated(
                "the branch or the remote has changed since the push was approved, and nothing was pushed; call again",
            ));
        }
        self.0.run(path, hook_script(&plan)).await?;
        let ran = self.0.run_to_end(path, push_script(&plan, &self.0.options.credentials)).await?;
        let mut output = answer::read(&ran, &plan)?;
        let track = writing_script(&[include_str!("sh/track.sh")]).args([plan.tracking(), plan.commit]);
        if let Err(fault) = self.0.run(path, track).await {
            let why = fault.error.message;
            output.warning = Some(format!("pushed, but the repository could not note it: {why}"));
        }
        Ok(output)
    }
}

impl GitPush {
    /// What the repository says now. Changes nothing and uses no network.
    async fn plan(&self, args: &Args) -> Result<Plan> {
        let words = [word("branch", args.branch.as_ref())?, word("remote", args.remote.as_ref())?];
        let script = script(&[include_str!("sh/outgoing.sh")], &[]).args(words);
        let stdout = self.0.run(&args.path, script).await?;
        let mut answer = Answer::of(&stdout)?;
        let (branch, commit, remote) = (answer.text()?, answer.text()?, answer.text()?);
        let url = remote::parse_address(&answer.text()?)?;
        let old = Some(answer.text()?).filter(|old| !old.is_empty());
        let mut number = || answer.text()?.parse::<u64>().map_err(|_no_number| unreadable());
        let (count, lost) = (number()?, number()?);
        if lost > 0 && args.force.is_none() {
            return Err(failure::failed(format!(
                "branch {} of the remote has {} that the local one has not; let a person fetch and merge first, or use \
                 force: \"with-lease\" to replace what is there",
                display_text(&branch),
                counted(lost, "commit")
            )));
        }
        let subjects = answer.map(|line| display_text(&String::from_utf8_lossy(line))).collect();
        Ok(Plan { branch, commit, remote, url, old, count, lost, subjects, force: args.force })
    }
}

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
    let source = match plan.old {
        Some(_) => plan.tracking(),
        None => format!("refs/remotes/{}/*", plan.remote),
    };
    let list = if plan.subjects.is_empty() {
        String::new()
    } else {
        format!(": {}{more}", plan.subjects.join("; "))
    };
    format!(
        "{what} at {} (remote {}) to {}{force}, with {} that it does not have according to {}, which tools can \
         change{list}",
        remote::display(&plan.url),
        display_text(&plan.remote),
        short_id(&plan.commit),
        counted(plan.count, "commit"),
        display_text(&source),
    )
}

/// Runs the repository's own check. It sees no secret and has no network.
fn hook_script(plan: &Plan) -> CommandSpec {
    let old = plan.old.clone().unwrap_or_default();
    let words = [plan.reference(), plan.commit.clone(), old, plan.remote.clone(), remote::display(&plan.url)];
    writing_script(&[HOOKS, include_str!("sh/hook.sh")]).args(words)
}

/// Sends the commit. The server may have got it wherever this ends.
fn push_script(plan: &Plan, credentials: &BTreeMap<String, Secret>) -> CommandSpec {
    let (url, access) = remote::route(&plan.url, credentials);
    // A name that cannot be known before, so that no setting of the repository can lead it elsewhere.
    let name = format!("gantry-{}://remote", uuid::Uuid::new_v4().simple());
    let proxy = format!("http://{PROXY}");
    let settings = [
        (&*format!("url.{url}.insteadOf"), &*name),
        (&format!("url.{url}.pushInsteadOf"), &name),
        // A setting of the repository for this very address would win over one for all of them.
        (&format!("http.{url}.followRedirects"), "false"),
        (&format!("http.{url}.proxy"), &proxy),
        ("http.followRedirects", "false"),
        ("http.proxy", &proxy),
        ("core.hooksPath", "/dev/null"),
        ("core.abbrev", "no"),
        ("push.pushOption", ""),
    ];
    let reference = plan.reference();
    let lease = plan.force.map(|Force::WithLease| {
        format!("--force-with-lease={reference}:{}", plan.old.as_deref().unwrap_or_default())
    });
    let script = script(&[include_str!("sh/push.sh")], &settings)
        // Every address is the proxy's to judge.
        .env([("NO_PROXY", ""), ("no_proxy", "")])
        .args([format!("{}:{reference}", plan.commit), name])
        .args(lease);
    CommandSpec { network: Some(access), wall: WORKING, ..script }
}
