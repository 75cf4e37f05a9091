//! Authentication: who sends a request, and what the sender may do.
//!
//! On loopback the agent role is open to everyone on the machine; deciding and administering take a key. On any other
//! address everything takes one. There is the key of the data folder, which is its person's, and there are keys of the
//! store, each with a role and perhaps with limits. A key that is wrong is refused even where none is needed.

mod access;
mod key_cache;
mod token;

pub(crate) use gantry_runtime::clock::latest_us as now_us;
pub(crate) use key_cache::ApiKeyCache;
pub(crate) use token::mint;

use crate::error::ApiError;
use gantry_core::id::KeyId;
use gantry_core::pattern::Pattern;
use gantry_core::{Caller, Role};
use gantry_runtime::approvals::Decider;
use http::{HeaderMap, header};
use std::sync::{Arc, LazyLock};
use subtle::ConstantTimeEq as _;
use token::Token;

/// The principals that are no key's.
pub(crate) const RESERVED: [&str; 3] = ["person", "local", "mcp"];

/// The outcome of authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name of the key, `person` for the key of the data folder, `local` without a key.
    pub principal: Arc<str>,
    pub role: Role,
    /// The projects that the key is for; `None` means all.
    pub projects: Option<Arc<[Arc<str>]>>,
    /// The only agent that the key may act as.
    pub agent: Option<Arc<str>>,
    /// The tools that it may approve; `None` means all.
    pub tools: Option<Arc<[Pattern]>>,
    /// Whether it is the key of the data folder.
    pub owner: bool,
    /// The key, if it is one of the store.
    pub key: Option<KeyId>,
}

impl Identity {
    fn unlimited(principal: &str, role: Role) -> Self {
        Self {
            principal: principal.into(),
            role,
            projects: None,
            agent: None,
            tools: None,
            owner: false,
            key: None,
        }
    }

    pub fn owner() -> Self {
        Self { owner: true, ..Self::unlimited("person", Role::Admin) }
    }

    /// A sender on this machine without a key.
    pub fn local() -> Self {
        static LOCAL: LazyLock<Identity> = LazyLock::new(|| Identity::unlimited("local", Role::Agent));
        LOCAL.clone()
    }

    /// The caller of a request to the HTTP API.
    pub fn caller(&self, project: &Arc<str>, agent: Option<Arc<str>>) -> Caller {
        Caller {
            principal: Arc::clone(&self.principal),
            role: self.role,
            agent,
            parent_agents: Arc::default(),
            project: Arc::clone(project),
        }
    }

    /// The caller of a model at an MCP endpoint: always the agent role. The owner's model is `mcp`; the model of a key has
    /// the key's name.
    pub fn model_caller(&self, project: &Arc<str>, agent: Option<Arc<str>>) -> Caller {
        static MODEL: LazyLock<Arc<str>> = LazyLock::new(|| "mcp".into());
        let caller = self.caller(project, agent);
        let principal = if self.owner { Arc::clone(&MODEL) } else { caller.principal };
        Caller { principal, role: Role::Agent, ..caller }
    }

    /// The only principal whose calls it may see; `None` means all.
    pub fn visible_principal(&self) -> Option<Arc<str>> {
        (self.role != Role::Admin).then(|| Arc::clone(&self.principal))
    }

    /// The approver that this identity is; `None` below the approver role. At an MCP endpoint that is the person behind the
    /// model. The model of a key calls under the key's name, and no name approves its own calls; the owner's model calls as
    /// `mcp`, so the owner can approve what it does.
    pub fn approver(&self, via: &str) -> Option<Decider> {
        (self.role >= Role::Approver).then(|| Decider {
            name: Arc::clone(&self.principal),
            role: self.role,
            owner: self.owner,
            projects: self.projects.clone(),
            tools: self.tools.clone(),
            via: via.into(),
        })
    }
}

/// What authenticates a sender: the key of the data folder, a key of the store or, on loopback, being on the machine.
pub(crate) struct Keys {
    pub(crate) admin: Arc<str>,
    /// Whether the agent role takes no key, because only this machine can reach the server.
    pub(crate) open_to_machine: bool,
    pub(crate) ring: Arc<ApiKeyCache>,
}

impl Keys {
    pub(crate) async fn identify(&self, headers: &HeaderMap) -> Result<Identity, ApiError> {
        let Some(sent) = headers.get(header::AUTHORIZATION) else {
            return if self.open_to_machine {
                Ok(Identity::local())
            } else {
                Err(ApiError::unauthorised("a key is needed here: send Authorization: Bearer <key>"))
            };
        };
        let Some(key) = sent.to_str().ok().and_then(bearer) else {
            return Err(ApiError::unauthorised(
                "this header holds no key: send Authorization: Bearer <key>, or leave it out on loopback",
            ));
        };
        if bool::from(key.as_bytes().ct_eq(self.admin.as_bytes())) {
            return Ok(Identity::owner());
        }
        match Token::parse(key) {
            Some(token) => self.ring.find(&token).await,
            None => Err(ApiError::unauthorised(
                "this key is not known; leave it out on loopback, or use the one in the data folder",
            )),
        }
    }
}

/// The key in the value of an authorization header, whose scheme is the same in every case of its letters.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, role: Role) -> Identity {
        Identity { key: Some(KeyId::generate()), ..Identity::unlimited(name, role) }
    }

    #[test]
    fn a_model_is_an_agent_and_the_person_behind_it_decides() {
        let project = Arc::from("default");
        let owner = Identity::owner();
        let caller = owner.model_caller(&project, Some("reader".into()));
        assert_eq!((&*caller.principal, caller.role, caller.agent_name()), ("mcp", Role::Agent, "reader"));
        let decider = owner.approver("elicitation").unwrap();
        assert_eq!((&*decider.name, decider.role, decider.owner), ("person", Role::Admin, true));

        let approver = key("anna", Role::Approver);
        let caller = approver.model_caller(&project, None);
        assert_eq!((&*caller.principal, caller.role), ("anna", Role::Agent));
        let decider = approver.approver("elicitation").unwrap();
        assert_eq!((&*decider.name, decider.role, decider.owner), ("anna", Role::Approver, false));
    }

    #[test]
    fn a_key_is_read_by_its_scheme_in_any_case() {
        for value in ["Bearer gk_a", "bearer gk_a", "BEARER  gk_a "] {
            assert_eq!(bearer(value), Some("gk_a"), "{value}");
        }
        for value in ["Basic Z2s6YQ==", "gk_a", "Bearer", "Bearergk_a", ""] {
            assert_eq!(bearer(value), None, "{value}");
        }
    }

    #[test]
    fn an_agent_decides_nothing() {
        for agent in [Identity::local(), key("bot", Role::Agent)] {
            assert!(agent.approver("http").is_none());
        }
    }
}
