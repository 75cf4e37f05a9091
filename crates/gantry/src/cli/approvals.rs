//! The arguments of `gantry approvals`.

use super::{ProjectFilter, choice};
use clap::{Args, Subcommand};
use gantry_runtime::ledger::Scope as GrantScope;

const SCOPES: [(&str, &str); 3] = [
    ("once", "For this call"),
    ("session", "Also for calls of this tool until the session ends"),
    ("always", "Also for calls of this tool until the grant is revoked"),
];

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsAction {
    #[command(hide = true)]
    List(ListApprovals),
    /// Show one request: its exact arguments, why it needs an approval, what was decided
    Show(OneApproval),
    /// Approve a call: it runs once
    #[command(
        long_about = "Approve a call: it runs once, exactly as it was requested or with the arguments that you give instead. Without a running server, the call runs in this process, which waits until it has ended.",
        after_help = "Examples:\n  gantry approvals approve 3f9c21\n  gantry approvals approve 3f9c21 --session\n  gantry approvals approve 3f9c21 --args '{\"path\": \"copy.txt\"}' --reason \"not the original\""
    )]
    Approve(Approve),
    /// Deny a call: it does not run, and its caller gets the reason
    #[command(after_help = "Examples:\n  gantry approvals deny 3f9c21 --reason \"that file is in use\"")]
    Deny(Deny),
    /// Withdraw a call that waits for an approval or for its scheduled time
    Cancel(OneApproval),
    /// Print new requests and decisions; on a terminal, ask you about each request
    #[command(
        long_about = "Print what waits now, then each new request and each change of one. On a terminal, ask you about each request. With --json, each change is one line. Ctrl-C ends it."
    )]
    Watch(ProjectFilter),
    /// List the grants: approvals of further calls of a tool
    Grants(Grants),
    /// Revoke a grant: such calls need an approval again at once
    Revoke(RevokeGrant),
}

#[derive(Debug, Args)]
pub(crate) struct ListApprovals {
    /// List only this state: waiting, scheduled, approved, running, done, failed, denied, expired, canceled, unknown
    #[arg(long, conflicts_with = "all")]
    pub(crate) state: Option<String>,
    /// Also list calls that were decided or have ended
    #[arg(long, short)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) project: ProjectFilter,
    /// List at most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
}

#[derive(Debug, Args)]
pub(crate) struct OneApproval {
    /// The id of the request, or at least its last 6 digits
    pub(crate) id: String,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent options of the command line")]
pub(crate) struct Approve {
    /// The id of the request, or at least its last 6 digits
    pub(crate) id: String,
    /// Only for this call; the default
    #[arg(long, group = "duration")]
    pub(crate) once: bool,
    /// Also for later calls of this tool by this caller until its session ends
    #[arg(long, group = "duration")]
    pub(crate) session: bool,
    /// Also for later calls of this tool by this caller until the grant is revoked or the tool changes
    #[arg(long, group = "duration")]
    pub(crate) always: bool,
    /// The scope by its name, instead of --once, --session or --always
    #[arg(long, group = "duration", value_parser = choice::<GrantScope>(&SCOPES))]
    scope: Option<GrantScope>,
    /// Run it with these arguments instead, as JSON; @FILE reads them from a file, - from standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// The reason, for the caller and the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Wait until the call has ended, also if the running server executes it
    #[arg(long, conflicts_with = "no_wait")]
    pub(crate) wait: bool,
    /// Do not wait until the call has ended
    #[arg(long)]
    pub(crate) no_wait: bool,
}

impl Approve {
    /// What the approval is for besides this call.
    pub(crate) fn scope(&self) -> GrantScope {
        match self.scope {
            Some(scope) => scope,
            None if self.session => GrantScope::Session,
            None if self.always => GrantScope::Always,
            None => GrantScope::Once,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Deny {
    /// The id of the request, or at least its last 6 digits
    pub(crate) id: String,
    /// The reason, for the caller and the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Grants {
    /// Also list revoked grants
    #[arg(long, short)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) project: ProjectFilter,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeGrant {
    /// The id of the grant, or at least its last 6 digits
    #[arg(value_name = "GRANT_ID")]
    pub(crate) id: String,
}
