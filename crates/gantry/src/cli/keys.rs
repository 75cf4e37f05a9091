//! The arguments of `gantry keys`.

use super::choice;
use clap::{Args, Subcommand};
use gantry_core::Role;

pub(super) const ROLES: [(&str, &str); 3] = [
    ("agent", "May list and call tools, and see its own calls"),
    ("approver", "May also decide about the calls of others"),
    ("admin", "May also see everything and administer Gantry"),
];

#[derive(Debug, Subcommand)]
pub(crate) enum KeysAction {
    #[command(hide = true)]
    List(ListKeys),
    /// Create a key. It is shown once; Gantry stores only its digest
    #[command(
        after_help = "Examples:\n  gantry keys create --role agent --name ci --project other --expires 30d\n  gantry keys create --role approver --name ann --tools \"db__*\"\n  KEY=$(gantry keys create --role agent --agent researcher)"
    )]
    Create(CreateKey),
    /// Revoke a key at once
    Revoke {
        /// The id or the name of the key
        #[arg(value_name = "ID|NAME")]
        key: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateKey {
    /// What the key allows
    #[arg(long, value_parser = choice::<Role>(&ROLES))]
    pub(crate) role: Role,
    /// Name in the record, and in rules that name approvers
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Only in this project; repeatable [default: all]
    #[arg(long, value_name = "PROJECT")]
    pub(crate) project: Vec<String>,
    /// Clients with this key always act as this agent
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only approvals of these tools; repeatable [default: all]
    #[arg(long, value_name = "GLOB")]
    pub(crate) tools: Vec<String>,
    /// Lifetime: 12h, 30d [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) expires: Option<String>,
}

/// A span of time as the API reads it.
fn span(typed: &str) -> Result<String, &'static str> {
    let count = typed.strip_suffix(['s', 'm', 'h', 'd']).and_then(|count| count.parse::<u32>().ok());
    match count {
        Some(1..) => Ok(typed.to_owned()),
        Some(0) | None => Err("write a span such as 90m, 12h or 30d"),
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct ListKeys {
    /// Also list revoked and expired keys
    #[arg(long, short)]
    pub(crate) all: bool,
}
