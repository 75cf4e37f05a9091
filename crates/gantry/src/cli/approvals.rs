//! The arguments of `gantry approvals` and `gantry keys`.

use super::OfProject;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsAction {
    /// List the calls that wait, as without a command
    List(ListApprovals),
    /// Show all about one request: its exact arguments, why it is asked, what was decided
    Show(OneApproval),
    /// Say yes: the call runs, once
    #[command(
        long_about = "Say yes: the call runs, once, exactly as it was asked or with the arguments that you give instead. Where no Gantry runs, the call runs in this process, which waits until it has ended.",
        after_help = "Examples:\n  gantry approvals approve 3f9c21\n  gantry approvals approve 3f9c21 --session\n  gantry approvals approve 3f9c21 --args '{\"path\": \"copy.txt\"}' --reason \"not the original\""
    )]
    Approve(Approve),
    /// Say no: the call does not run, and its caller is told why
    #[command(after_help = "Examples:\n  gantry approvals deny 3f9c21 --reason \"that file is in use\"")]
    Deny(Deny),
    /// Withdraw a call that waits for a person or for its time
    Cancel(OneApproval),
    /// Follow what is asked and decided; on a terminal, decide each request
    #[command(
        long_about = "Follow what is asked and decided: what waits now, then every new request and what becomes of it. On a terminal you are asked about each one. Ctrl-C ends it."
    )]
    Watch(WatchApprovals),
    /// List the grants: who may call which tool without being asked about
    Grants(Grants),
    /// Take a grant back; calls are asked about again at once
    Revoke(RevokeGrant),
}

#[derive(Debug, Args)]
pub(crate) struct ListApprovals {
    /// Only in this state: waiting, scheduled, approved, running, done, failed, denied, expired, canceled, unknown
    #[arg(long, conflicts_with = "all")]
    pub(crate) state: Option<String>,
    /// Also those that are over
    #[arg(long, short)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) of: OfProject,
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OneApproval {
    /// The request: its id, or at least 6 of the digits that it ends with
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are the options that a person types")]
pub(crate) struct Approve {
    /// The request: its id, or at least 6 of the digits that it ends with
    pub(crate) id: String,
    /// For this call only, as without an option
    #[arg(long, group = "for_how_long")]
    pub(crate) once: bool,
    /// Also for later calls of this tool by this caller until their session ends
    #[arg(long, group = "for_how_long")]
    pub(crate) session: bool,
    /// Also for later calls of this tool by this caller until you revoke it or the tool changes
    #[arg(long, group = "for_how_long")]
    pub(crate) always: bool,
    /// For how long the yes holds, by name
    #[arg(long, value_enum, group = "for_how_long")]
    pub(crate) scope: Option<GrantScope>,
    /// Run it with these arguments instead, as JSON; @FILE reads them from a file, - from standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Why, for the caller and the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Wait until the call has ended, also where the running Gantry runs it
    #[arg(long, conflicts_with = "no_wait")]
    pub(crate) wait: bool,
    /// Do not wait until the call has ended
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Approve {
    /// For how long the yes holds.
    pub(crate) fn holds(&self) -> GrantScope {
        match self.scope {
            Some(scope) => scope,
            None if self.session => GrantScope::Session,
            None if self.always => GrantScope::Always,
            None => GrantScope::Once,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GrantScope {
    /// For this call
    Once,
    /// For calls of this tool until the session ends
    Session,
    /// For calls of this tool until it is revoked
    Always,
}

impl GrantScope {
    /// The word of the API.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Deny {
    /// The request: its id, or at least 6 of the digits that it ends with
    pub(crate) id: String,
    /// Why, for the caller and the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchApprovals {
    #[command(flatten)]
    pub(crate) of: OfProject,
    /// Print each change as a line of JSON, and ask nothing
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Grants {
    /// Also those that were revoked
    #[arg(long, short)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) of: OfProject,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeGrant {
    /// The grant: its id, or at least 6 of the digits that it ends with
    #[arg(value_name = "GRANT_ID")]
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysAction {
    /// Make a key. It is shown once; Gantry keeps only a digest of it
    #[command(
        after_help = "Examples:\n  gantry keys create --role agent --name ci --project other --expires 30d\n  gantry keys create --role approver --name ann --tools \"db__*\"\n  KEY=$(gantry keys create --role agent --agent researcher)"
    )]
    Create(CreateKey),
    /// List the keys, as without a command; the keys themselves are not kept
    List(ListKeys),
    /// Revoke a key; it opens nothing any more from then on
    Revoke {
        /// The key's id or name
        #[arg(value_name = "ID|NAME")]
        key: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateKey {
    /// What its holder may do
    #[arg(long, value_enum)]
    pub(crate) role: Role,
    /// What its holder is called in the record, and where rules name who may approve
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Only in this project; repeatable [default: all]
    #[arg(long, value_name = "PROJECT")]
    pub(crate) project: Vec<String>,
    /// Its holder always acts as this agent
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Its holder decides only about these tools; repeatable [default: all]
    #[arg(long, value_name = "GLOB")]
    pub(crate) tools: Vec<String>,
    /// For how long it holds: 12h, 30d [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) expires: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A span of time as the API reads it.
fn span(typed: &str) -> Result<String, &'static str> {
    let count = typed.strip_suffix(['s', 'm', 'h', 'd']).and_then(|count| count.parse::<u32>().ok());
    match count {
        Some(1..) => Ok(typed.to_owned()),
        Some(0) | None => Err("write a span such as 90m, 12h or 30d"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// May list and call tools, and see its own calls
    Agent,
    /// May also decide about calls that wait
    Approver,
    /// May also see everything and change the configuration
    Admin,
}

impl Role {
    /// The word of the API.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Approver => "approver",
            Self::Admin => "admin",
        }
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct ListKeys {
    /// Also those that were revoked or have expired
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
