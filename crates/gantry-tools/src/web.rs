//! The web tools: fetch a page, search the web.
//!
//! What an agent asks for passes four gates: the address is read as browsers read it and judged in that form, every
//! address that its name leads to is checked where the connection is made, each redirect passes the same two, and no
//! proxy stands in between. A URL on the allow-list is fetched; for any other one a person is asked.
//!
//! **Invariant:** what an agent is told about a host that it cannot reach is the same whether nothing answers there or
//! Gantry does not go there. Only the log knows which.

mod answer;
mod fault;
mod fetch;
mod follow;
mod gate;
mod markdown;
mod pattern;
mod search;
mod spec;

pub use pattern::UrlPattern;
pub use search::SearchApi;

use crate::own::{Part, missing};
use fetch::Fetch;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::ToolSpec;
use gantry_core::{ErrorCode, Fault, Permit, Refusal, ResolvedCall, ToolError};
use gantry_egress::address_guard::IpNet;
use gantry_egress::{HttpClient, HttpError, LazyClient};
use gantry_provider::BoxFuture;
use gantry_provider::CallContext;
use gate::Gate;
use search::Search;

/// What the web tools may reach.
#[derive(Debug, Clone, Default)]
pub struct WebOptions {
    /// What may be fetched without asking.
    pub allow: Vec<UrlPattern>,
    /// Private addresses that are open to both tools.
    pub private: Vec<IpNet>,
    /// The service behind `web_search`; without one there is no such tool.
    pub search: Option<SearchApi>,
}

/// The web tools.
#[derive(Debug)]
pub struct Web {
    tools: Vec<ToolSpec>,
    client: LazyClient,
    gate: Gate,
    search: Option<Search>,
}

impl Web {
    /// The tools; `web_search` only with a search service.
    ///
    /// # Errors
    /// The address of the search service is none, or its key cannot be sent.
    pub fn new(options: WebOptions) -> Result<Self, HttpError> {
        let WebOptions { allow, private, search } = options;
        let mut tools = vec![spec::web_fetch()];
        tools.extend(search.is_some().then(spec::web_search));
        Ok(Self {
            tools,
            client: LazyClient::new(private.clone()),
            gate: Gate::new(allow, private),
            search: search.map(Search::new).transpose()?,
        })
    }

    fn look(&self, tool: &str, arguments: &str) -> Result<OwnVerdict, Refusal> {
        match tool {
            spec::FETCH => Ok(Fetch::parse(arguments, &self.gate)?.verdict(&self.gate)),
            spec::SEARCH => Ok(OwnVerdict::default()),
            _ => Err(missing(tool).into()),
        }
    }

    async fn client(&self) -> Result<&HttpClient, Fault> {
        self.client.get().await.map_err(|error| {
            Fault::without_effect(ToolError::new(ErrorCode::InternalError, error.to_string()))
        })
    }

    async fn run(&self, permit: &Permit) -> Result<String, Fault> {
        let tool = permit.tool().spec.name.as_str();
        let result = match (tool, &self.search) {
            (spec::FETCH, _) => follow::run(self.client().await?, &self.gate, permit).await?,
            (spec::SEARCH, Some(search)) => search.run(self.client().await?, permit).await?,
            _ => return Err(Fault::without_effect(missing(tool))),
        };
        Ok(result.to_string())
    }
}

impl Part for Web {
    fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    fn inspect<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        Box::pin(std::future::ready(self.look(&call.tool().spec.name, call.arguments())))
    }

    fn execute<'a>(&'a self, _: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(self.run(permit))
    }

    fn instructions(&self) -> Option<&str> {
        Some(spec::INSTRUCTIONS)
    }
}

#[cfg(test)]
mod tests;
