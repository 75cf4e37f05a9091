//! Access: the projects, the agent and the tools that a key is for.

use super::Identity;
use crate::error::ApiError;
use gantry_core::Role;
use gantry_runtime::projects::DEFAULT;
use std::sync::Arc;

impl Identity {
    pub fn can_access_project(&self, project: &str) -> bool {
        self.projects.as_ref().is_none_or(|projects| projects.iter().any(|known| **known == *project))
    }

    /// Whether the key is for a tool of a project, by one of its names.
    pub(crate) fn can_access_tool(&self, project: &str, names: [&str; 2]) -> bool {
        self.can_access_project(project)
            && self.tools.as_ref().is_none_or(|patterns| {
                patterns.iter().any(|pattern| names.iter().any(|name| pattern.matches(name)))
            })
    }

    /// The project of a request: the one that it names, or the only one of the key, or the default one.
    pub(crate) fn project<'a>(&'a self, named: Option<&'a str>) -> Result<&'a str, ApiError> {
        let named = match (named, self.projects.as_deref()) {
            (Some(named), _) => named,
            (None, None) => DEFAULT,
            (None, Some([only])) => only,
            (None, Some(_)) if self.can_access_project(DEFAULT) => DEFAULT,
            (None, Some(several)) => {
                let message =
                    format!("this key is for the projects {}; name one of them", several.join(", "));
                return Err(ApiError::invalid(message));
            }
        };
        self.check_project(named)?;
        Ok(named)
    }

    /// Refuses a project that the key is not for, whether there is one of that name or not.
    pub(crate) fn check_project(&self, named: &str) -> Result<(), ApiError> {
        if self.can_access_project(named) {
            return Ok(());
        }
        let own = self.projects.as_deref().unwrap_or_default().join(", ");
        let shown: String = named.chars().take(64).collect();
        Err(ApiError::forbidden(format!("this key is for {own} and not for the project {shown:?}")))
    }

    /// The agent of a request: the one that it names, or the one of the key.
    pub(crate) fn effective_agent(&self, named: Option<&str>) -> Result<Option<Arc<str>>, ApiError> {
        match (&self.agent, named) {
            (None, named) => Ok(named.map(Into::into)),
            (Some(bound), None) => Ok(Some(Arc::clone(bound))),
            (Some(bound), Some(named)) if **bound == *named => Ok(Some(Arc::clone(bound))),
            (Some(bound), Some(named)) => {
                let shown: String = named.chars().take(64).collect();
                Err(ApiError::forbidden(format!("this key acts as agent {bound} and not as {shown:?}")))
            }
        }
    }

    pub(crate) fn require_admin(&self, what: &str) -> Result<(), ApiError> {
        if self.role == Role::Admin {
            return Ok(());
        }
        Err(ApiError::forbidden(format!(
            "{what} takes the key of the data folder, or another of the role admin"
        )))
    }

    /// Refuses identities that are not administrators of all projects.
    pub(crate) fn require_global_admin(&self, what: &str) -> Result<(), ApiError> {
        self.require_admin(what)?;
        self.require_all_projects(what)
    }

    /// Refuses keys that are for some projects only.
    pub(crate) fn require_all_projects(&self, what: &str) -> Result<(), ApiError> {
        match self.projects.as_deref() {
            None => Ok(()),
            Some(own) => Err(ApiError::forbidden(format!(
                "{what} concerns all projects, and this key is for {} only",
                own.join(", ")
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_to(projects: &[&str], agent: Option<&str>) -> Identity {
        let projects = projects.iter().map(|name| Arc::from(*name)).collect();
        Identity { projects: Some(projects), agent: agent.map(Into::into), ..Identity::local() }
    }

    #[test]
    fn a_key_of_one_project_means_it_and_no_other() {
        let key = kept_to(&["shop"], None);
        assert_eq!(key.project(None).unwrap(), "shop");
        assert_eq!(key.project(Some("shop")).unwrap(), "shop");
        for other in ["default", "shop2", ""] {
            assert!(key.project(Some(other)).is_err(), "{other}");
        }
        assert_eq!(Identity::local().project(None).unwrap(), DEFAULT);
    }

    #[test]
    fn a_key_of_several_projects_means_the_default_one_or_has_to_say() {
        assert_eq!(kept_to(&["shop", "default"], None).project(None).unwrap(), DEFAULT);
        assert!(kept_to(&["shop", "bank"], None).project(None).is_err());
    }

    #[test]
    fn a_key_of_an_agent_is_that_agent_whatever_it_says() {
        let key = kept_to(&["shop"], Some("clerk"));
        assert_eq!(key.effective_agent(None).unwrap().as_deref(), Some("clerk"));
        assert_eq!(key.effective_agent(Some("clerk")).unwrap().as_deref(), Some("clerk"));
        assert!(key.effective_agent(Some("boss")).is_err());
        assert_eq!(Identity::local().effective_agent(Some("boss")).unwrap().as_deref(), Some("boss"));
        assert_eq!(Identity::local().effective_agent(None).unwrap(), None);
    }

    #[test]
    fn one_who_administers_a_project_does_not_administer_all() {
        let person = Identity::owner();
        let limited = Identity { projects: Some(["shop".into()].into()), ..person.clone() };
        assert!(limited.require_admin("x").is_ok() && limited.require_global_admin("x").is_err());
        assert!(person.require_global_admin("x").is_ok() && Identity::local().require_admin("x").is_err());
    }
}
