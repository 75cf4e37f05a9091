//! Who sends a request, and what they may do.
//!
//! On loopback the agent role is open to everyone on the machine; deciding and administering take the key of the data
//! folder. On any other address everything takes the key. A key that is wrong is refused even where none is needed.

use axum::extract::FromRequestParts;
use gantry_core::{Caller, Role};
use http::request::Parts;
use http::{HeaderMap, header};
use std::sync::{Arc, LazyLock};
use subtle::ConstantTimeEq as _;

use crate::error::ApiError;

/// Somebody who was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name under which their calls are recorded.
    pub principal: Arc<str>,
    /// What they may do.
    pub role: Role,
}

impl Identity {
    /// The person who can read the data folder.
    #[must_use]
    pub fn person() -> Self {
        Self { principal: "person".into(), role: Role::Admin }
    }

    /// Anybody on this machine.
    #[must_use]
    pub fn local() -> Self {
        static LOCAL: LazyLock<Arc<str>> = LazyLock::new(|| "local".into());
        Self { principal: Arc::clone(&LOCAL), role: Role::Agent }
    }

    /// The same sender at a door for models: no more than the agent role, and not in a person's name.
    #[must_use]
    pub fn into_model(self) -> Self {
        static MODEL: LazyLock<Arc<str>> = LazyLock::new(|| "mcp".into());
        if self.role == Role::Agent {
            self
        } else {
            Self { principal: Arc::clone(&MODEL), role: Role::Agent }
        }
    }

    /// Acting as an agent of a project.
    #[must_use]
    pub fn caller(&self, project: &Arc<str>, agent: Option<&str>) -> Caller {
        Caller {
            principal: Arc::clone(&self.principal),
            role: self.role,
            agent: agent.map(Into::into),
            project: Arc::clone(project),
        }
    }

    /// Whose calls they may see: everybody's, or their own.
    #[must_use]
    pub fn sees(&self) -> Option<Arc<str>> {
        (self.role != Role::Admin).then(|| Arc::clone(&self.principal))
    }
}

/// The key of the data folder, and whether there is a role without it.
#[derive(Clone)]
pub struct Keys {
    admin: Arc<str>,
    open_to_machine: bool,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("open_to_machine", &self.open_to_machine).finish_non_exhaustive()
    }
}

impl Keys {
    /// The data folder's key; `loopback` opens the agent role to the machine.
    #[must_use]
    pub fn new(admin: Arc<str>, loopback: bool) -> Self {
        Self { admin, open_to_machine: loopback }
    }

    /// Who sends these headers.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Result<Identity, ApiError> {
        let Some(sent) = headers.get(header::AUTHORIZATION) else {
            return if self.open_to_machine {
                Ok(Identity::local())
            } else {
                Err(ApiError::unauthorised("a key is needed here: send Authorization: Bearer <key>"))
            };
        };
        let key = sent
            .to_str()
            .ok()
            .and_then(|text| text.strip_prefix("Bearer "))
            .map(str::trim)
            .unwrap_or_default();
        if bool::from(key.as_bytes().ct_eq(self.admin.as_bytes())) {
            return Ok(Identity::person());
        }
        Err(ApiError::unauthorised(
            "this key is not known; leave it out on loopback, or use the one in the data folder",
        ))
    }
}

/// Handlers take the identity from here. The listener puts it there after the gates; so does the command line.
impl<S: Sync> FromRequestParts<S> for Identity {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let found = parts.extensions.get::<Self>().cloned();
        found.ok_or_else(|| ApiError::unauthorised("the request did not pass the gates"))
    }
}
