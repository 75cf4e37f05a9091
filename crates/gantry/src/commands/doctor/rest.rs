//! The checks of `gantry doctor` on REST services: which are switched off and why, and what each API's document gives.

use super::{Check, error, ok, warning, with_project};
use crate::commands::openapi::read_api;
use crate::config::{Loaded, Project, RestTool};
use crate::wiring;
use gantry_rest::openapi::Scheme;
use gantry_rest::{ApiOptions, ImportedApi, fits};
use gantry_upstream::options::DisabledReason;

const TOOL: &str = "rest tool";
const API: &str = "openapi";

/// The warnings of the configuration, without those about services that the checks below report.
pub(super) fn other_warnings(loaded: &Loaded) -> impl Iterator<Item = &String> {
    let reasons: Vec<&str> = loaded.config.all().flat_map(|(_, project)| reasons(project)).collect();
    loaded.warnings.iter().filter(move |text| !reasons.iter().any(|reason| text.ends_with(reason)))
}

/// Why services of a project are switched off although the configuration wants them.
fn reasons(project: &Project) -> impl Iterator<Item = &str> {
    let tools = project.rest.tools.values().map(|tool| &tool.off);
    let apis = project.rest.apis.values().map(|api| &api.off);
    tools.chain(apis).filter_map(|off| match off {
        Some(DisabledReason::Unusable(reason)) => Some(reason.as_str()),
        Some(DisabledReason::Disabled) | None => None,
    })
}

/// The checks of a project. The documents are read now; a running Gantry may have read older ones.
pub(super) async fn check(name: &str, project: &Project) -> Vec<Check> {
    let mut checks = tools(name, project);
    for (id, api) in &project.rest.apis {
        match &api.off {
            Some(off) => checks.push(switched_off(API, name, id, off)),
            None => {
                // Patterns that are none are problems of the configuration, which was read.
                let options = wiring::api_options(id, api, &mut Vec::new());
                let found = read_api(&options, project).await;
                checks.push(api_check(name, &options, found));
            }
        }
    }
    checks
}

fn tools(name: &str, project: &Project) -> Vec<Check> {
    let is_off = |tool: &RestTool| tool.off.is_some();
    let on = project.rest.tools.values().filter(|tool| !is_off(tool)).count();
    let mut checks = Vec::new();
    if on > 0 {
        checks.push(ok(TOOL, with_project(name, &format!("{on} configured"))));
    }
    for (id, tool) in &project.rest.tools {
        if let Some(off) = &tool.off {
            checks.push(switched_off(TOOL, name, id, off));
        }
    }
    checks
}

fn switched_off(what: &'static str, project: &str, id: &str, off: &DisabledReason) -> Check {
    match off {
        DisabledReason::Disabled => ok(
            what,
            with_project(project, &format!("{id} is switched off by its configuration (enabled: false)")),
        ),
        DisabledReason::Unusable(reason) => {
            error(what, with_project(project, &format!("{id} is switched off: {reason}")))
        }
    }
}

fn api_check(project: &str, options: &ApiOptions, found: Result<ImportedApi, String>) -> Check {
    let id = &options.id;
    let api = match found {
        Ok(api) => api,
        Err(reason) => {
            let found = format!("{id}: the document cannot be used: {reason}");
            return error(API, with_project(project, &found));
        }
    };
    let import = &api.import;
    let mut words = vec![format!("{id}: {} tools of {} operations", import.operations.len(), import.total)];
    if import.filtered > 0 {
        words.push(format!("{} left out by the options", import.filtered));
    }
    let mut is_suspicious = import.operations.is_empty();
    if !import.skipped.is_empty() {
        is_suspicious = true;
        words.push(format!("{} skipped (gantry openapi inspect {id} --skipped)", import.skipped.len()));
    }
    let bare = without_credentials(&api, options);
    if !bare.is_empty() {
        is_suspicious = true;
        words.push(format!("no credentials for {}", bare.join(", ")));
    }
    let words = with_project(project, &words.join("; "));
    if is_suspicious { warning(API, words) } else { ok(API, words) }
}

/// The schemes that operations need and nothing that fits is configured for. An operation that has what one way needs needs no other.
fn without_credentials<'a>(api: &'a ImportedApi, options: &ApiOptions) -> Vec<&'a str> {
    let mut bare: Vec<&str> = Vec::new();
    for operation in &api.import.operations {
        let has = |name: &String| {
            let shown = options.auth.get(name).zip(api.import.schemes.get(name));
            shown.is_some_and(|(credential, scheme)| fits(scheme, credential))
        };
        let is_open = operation.security.is_empty()
            || operation.security.iter().any(|need| need.0.iter().all(|(name, _)| has(name)));
        if is_open {
            continue;
        }
        let names = operation.security.iter().flat_map(|need| &need.0).map(|(name, _)| name);
        for name in names.filter(|name| !has(name)) {
            let is_usable = !matches!(api.import.schemes.get(name), Some(Scheme::Unsupported { .. }));
            if is_usable && !bare.contains(&name.as_str()) {
                bare.push(name);
            }
        }
    }
    bare
}
