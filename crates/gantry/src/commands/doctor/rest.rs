//! The checks of `gantry doctor` on REST services that the configuration decides: which are switched off, and why. The
//! API reports the others.

use super::{Check, error, ok, with_project};
use crate::config::{Loaded, Project};
use gantry_upstream::options::DisabledReason;

/// The warnings of the configuration, without those about services that [`check`] reports.
pub(super) fn other_warnings(loaded: &Loaded) -> impl Iterator<Item = &String> {
    let disabled = loaded.config.all().flat_map(|(_, project)| disabled(project));
    let reasons: Vec<String> = disabled
        .filter_map(|(_, _, off)| match off {
            DisabledReason::Unusable(reason) => Some(reason),
            DisabledReason::Disabled => None,
        })
        .collect();
    loaded.warnings.iter().filter(move |text| !reasons.iter().any(|reason| text.ends_with(reason)))
}

/// The checks of a project.
pub(super) fn check(name: &str, project: &Project) -> Vec<Check> {
    let enabled = project.rest_tools.values().filter(|tool| tool.off().is_none()).count();
    let enabled =
        (enabled > 0).then(|| ok("rest tool", with_project(name, &format!("{enabled} configured"))));
    let disabled = disabled(project).map(|(subject, id, off)| match off {
        DisabledReason::Disabled => {
            let found = format!("{id} is switched off by its configuration (enabled: false)");
            ok(subject, with_project(name, &found))
        }
        DisabledReason::Unusable(reason) => {
            error(subject, with_project(name, &format!("{id} is switched off: {reason}")))
        }
    });
    enabled.into_iter().chain(disabled).collect()
}

/// The inline tools and APIs that are switched off.
fn disabled(project: &Project) -> impl Iterator<Item = (&'static str, &str, DisabledReason)> {
    let tools = project.rest_tools.iter().map(|(id, tool)| ("rest tool", &**id, tool.off()));
    let apis = project.apis.iter().map(|(id, api)| ("openapi", &**id, api.off()));
    tools.chain(apis).filter_map(|(subject, id, off)| Some((subject, id, off?)))
}
