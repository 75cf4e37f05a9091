//! The git tools: look at a repository of the workspace, commit to it, push it.
//!
//! A repository can name programs that git runs: hooks, filters, helpers, monitors. So git itself runs in the jail, every
//! time, and what only looks gets the workspace read-only and no network.
//!
//! **Invariant:** what a person said yes to is what happens. A commit is bound to the commit below it and to the exact
//! tree, a push to the exact commit, branch and address. Whatever changed in between needs a new yes.

mod act;
mod changes;
mod commit;
mod diff;
mod fault;
mod log;
mod push;
mod remote;
mod repository;
mod spec;
mod status;
mod words;

use crate::own::Part;
use crate::workshop::Workshop;
use act::Act;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::ToolSpec;
use gantry_core::{Fault, Permit, Refusal, ResolvedCall};
use gantry_provider::BoxFuture;
use gantry_provider::CallContext;
use remote::Credentials;
use repository::Repository;
use serde_json::Value;
use std::sync::Arc;

/// What the git tools are set up with.
#[derive(Clone, Default)]
pub struct GitOptions {
    /// What servers want to see, by their origin such as `https://example.com`: `user:password`, or a token.
    pub credentials: Vec<(String, String)>,
    /// The name and the address of who commits, if the repository does not say.
    pub author: Option<(String, String)>,
}

impl std::fmt::Debug for GitOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let origins: Vec<&String> = self.credentials.iter().map(|(origin, _secret)| origin).collect();
        f.debug_struct("GitOptions").field("credentials", &origins).field("author", &self.author).finish()
    }
}

/// The git tools of one workspace.
#[derive(Debug)]
pub struct Git {
    tools: Vec<ToolSpec>,
    workshop: Arc<Workshop>,
    credentials: Credentials,
    author: Option<(String, String)>,
}

impl Git {
    /// The tools for repositories in the workspace of a workshop.
    #[must_use]
    pub fn new(workshop: Arc<Workshop>, options: GitOptions) -> Self {
        Self {
            tools: spec::tools(),
            workshop,
            credentials: Credentials::new(options.credentials),
            author: options.author,
        }
    }

    fn repository(&self, path: &str) -> Result<Repository<'_>, Fault> {
        Repository::at(&self.workshop, path)
    }

    /// Says what would be committed or pushed. Changes nothing.
    async fn look(&self, tool: &str, arguments: &str) -> Result<OwnVerdict, Fault> {
        match Act::parse(tool, arguments)? {
            Act::Status(_) | Act::Diff(_) | Act::Log(_) => Ok(OwnVerdict::default()),
            Act::Commit(args) => {
                let repository = self.repository(&args.path)?;
                commit::inspect(&repository, &args, self.author.as_ref()).await
            }
            Act::Push(args) => push::inspect(&self.repository(&args.path)?, &args).await,
        }
    }

    async fn run(&self, permit: &Permit) -> Result<Value, Fault> {
        let judged = permit.precondition();
        match Act::parse(&permit.tool().spec.name, permit.arguments())? {
            Act::Status(args) => status::run(&self.repository(&args.path)?).await,
            Act::Diff(args) => diff::run(&self.repository(&args.path)?, &args).await,
            Act::Log(args) => log::run(&self.repository(&args.path)?, &args).await,
            Act::Commit(args) => {
                commit::run(&self.repository(&args.path)?, &args, self.author.as_ref(), judged).await
            }
            Act::Push(args) => {
                push::run(&self.repository(&args.path)?, &args, &self.credentials, judged).await
            }
        }
    }
}

impl Part for Git {
    fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    fn objection(&self) -> Option<String> {
        Workshop::unavailable_reason()
    }

    fn inspect<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        Box::pin(async {
            let looked = self.look(&call.tool().spec.name, call.arguments()).await;
            looked.map_err(|fault| Refusal::from(fault.error))
        })
    }

    fn execute<'a>(&'a self, _: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async { self.run(permit).await.map(|value| value.to_string()) })
    }

    fn instructions(&self) -> Option<&str> {
        Some(spec::INSTRUCTIONS)
    }
}

#[cfg(test)]
mod tests;
