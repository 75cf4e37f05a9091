//! `git_push`: sends one commit to one branch of one remote, and nothing else.
//!
//! The credential is with the proxy, outside of the jail; but every program that talks to the proxy uses it. So git talks to it alone,
//! in a run of its own that reads the workspace and starts no program of the repository. The hook before pushing runs
//! first, without a network.

mod answer;

use self::answer::Sent;
use super::arguments::{branch as branch_name, word};
use super::remote::{Address, tracking_ref};
use super::script::{GitScript, HOOKS, NulFields, Repository, short_id};
use super::{GitContext, fault};
use crate::text::{counted, display_text};
use crate::tool::prelude::*;
use gantry_core::digest::Digest;
use gantry_provider::options::Secret;
use gantry_sandbox::jail::PROXY;
use std::collections::BTreeMap;
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
        let to = Digest::of_parts(&[self.remote.as_bytes(), self.address.text.as_bytes()]);
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

    async fn preflight(&self, args: Args) -> Result<Preflight, Fault> {
        let plan = read_plan(&Repository::at(&self.0.runner, &args.path)?, &args).await?;
        Ok(Preflight { ask: Some(question(&plan)), precondition: Some(plan.precondition().into()) })
    }

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output, Fault> {
        let repository = Repository::at(&self.0.runner, &call.args.path)?;
        let judged = call.judged()?;
        let plan = read_plan(&repository, &call.args).await?;
        if plan.precondition() != judged {
            return Err(failure::outdated(
                "the branch or the remote has changed since the push was approved, and nothing was pushed; call again",
            ));
        }
        run_pre_push_hook(&repository, &plan).await?;
        let ran = repository.run(push_script(&plan, &self.0.options.credentials)).await?;
        let sent = Sent::read(&ran, &plan)?;
        let tracked = record_push(&repository, &plan).await;
        Ok(Output {
            url: plan.address.display(),
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
async fn read_plan(repository: &Repository<'_>, args: &Args) -> Result<Plan, Fault> {
    let branch = args.branch.as_deref().map(branch_name).transpose()?.unwrap_or_default();
    let remote = args.remote.as_deref().map(|remote| word("remote", remote)).transpose()?;
    let words = [branch, remote.unwrap_or_default()];
    let script = GitScript::read_only(GitPush::NAME, &[include_str!("sh/where.sh")]).args(words);
    let ran = repository.run_checked(script, "looking at what would be pushed").await?;
    let mut fields = NulFields(&ran.stdout.bytes);
    fields.required("where the repository is")?;
    let (branch, commit) = (fields.text("the branch")?, fields.text("the commit")?);
    let (remote, url) = (fields.text("the remote")?, fields.text("the address")?);
    if !fields.required("a helper")?.is_empty() {
        return Err(failure::denied(format!(
            "the remote {} is reached by a program (remote.{0}.vcs), which is not run; use an https remote",
            display_text(&remote)
        )));
    }
    let address = Address::parse(&url)?;
    let specs: Vec<String> = fields.map(|spec| String::from_utf8_lossy(spec).into_owned()).collect();
    let tracking = tracking_ref(&specs, &format!("refs/heads/{branch}"));
    let script = GitScript::read_only(GitPush::NAME, &[include_str!("sh/outgoing.sh")]);
    let script = script.args([&commit, tracking.as_deref().unwrap_or_default(), &remote]);
    let ran = repository.run_checked(script, "looking at what would be pushed").await?;
    let mut fields = NulFields(&ran.stdout.bytes);
    let old = Some(fields.text("the old commit")?).filter(|old| !old.is_empty());
    let mut number = || {
        let text = fields.text("a number of commits")?;
        text.parse::<u64>().map_err(|_no_number| fault::unreadable("a number of commits"))
    };
    let (count, lost) = (number()?, number()?);
    if lost > 0 && args.force.is_none() {
        return Err(failure::failed(format!(
            "branch {} of the remote has {} that the local one has not; let a person fetch and merge first, or use force: \
             \"with-lease\" to replace what is there",
            display_text(&branch),
            counted(lost, "commit")
        )));
    }
    let subjects = fields.map(|line| display_text(&String::from_utf8_lossy(line))).collect();
    Ok(Plan { branch, commit, remote, address, tracking, old, count, lost, subjects, force: args.force })
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
        plan.address.display(),
        display_text(&plan.remote),
        short_id(&plan.commit),
        counted(plan.count, "commit"),
        display_text(&plan.source()),
    )
}

/// Runs the repository's own check. It sees no secret and has no network.
async fn run_pre_push_hook(repository: &Repository<'_>, plan: &Plan) -> Result<(), Fault> {
    let old = plan.old.clone().unwrap_or_default();
    let words = [plan.reference(), plan.commit.clone(), old, plan.remote.clone(), plan.address.display()];
    let script = GitScript::writing(GitPush::NAME, &[HOOKS, include_str!("sh/hook.sh")]).args(words);
    repository.run_checked(script, "running the pre-push hook").await.map(drop)
}

fn push_script(plan: &Plan, credentials: &BTreeMap<String, Secret>) -> GitScript {
    let (url, access) = plan.address.route(credentials);
    let mut script = GitScript::with_network(GitPush::NAME, &[include_str!("sh/push.sh")], access);
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
    script.config.extend(settings.map(|(key, value)| (key.to_owned(), value.to_owned())));
    // Every address is the proxy's to judge.
    script.command = script.command.env([("NO_PROXY", ""), ("no_proxy", "")]);
    let reference = plan.reference();
    let lease = plan.force.map(|Force::WithLease| {
        format!("--force-with-lease={reference}:{}", plan.old.as_deref().unwrap_or_default())
    });
    script.args([format!("{}:{reference}", plan.commit), name]).args(lease)
}

/// Notes what the branch there is now.
async fn record_push(repository: &Repository<'_>, plan: &Plan) -> Result<(), Fault> {
    let Some(tracking) = &plan.tracking else { return Ok(()) };
    let script =
        GitScript::writing(GitPush::NAME, &[include_str!("sh/track.sh")]).args([tracking, &plan.commit]);
    repository.run_checked(script, "noting the push").await.map(drop)
}
