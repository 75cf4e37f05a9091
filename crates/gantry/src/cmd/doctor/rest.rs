//! What `gantry doctor` says of REST services: which are switched off and why, and what becomes of each API's document.

use super::{Check, bad, good, odd, of};
use crate::cmd::openapi::{Look, look, shown, unusable};
use crate::config::{Project, RestTool};
use gantry_rest::openapi::Scheme;
use gantry_rest::{ApiOptions, fits};
use gantry_upstream::options::DisabledReason;

const TOOL: &str = "rest tool";
const API: &str = "openapi";

/// Why services of a project are switched off although somebody wants them, in the words of the configuration's warnings.
pub(super) fn reasons(project: &Project) -> impl Iterator<Item = &str> {
    let tools = project.rest_tools.values().map(|tool| &tool.off);
    let apis = project.apis.values().map(|api| &api.off);
    tools.chain(apis).filter_map(|off| match off {
        Some(DisabledReason::Unusable(reason)) => Some(reason.as_str()),
        Some(DisabledReason::Disabled) | None => None,
    })
}

/// The checks of a project. Documents are read here and now, whatever a running Gantry has read.
pub(super) async fn examine(name: &str, project: &Project) -> Vec<Check> {
    let mut checks = tools(name, project);
    for (id, api) in &project.apis {
        match &api.off {
            Some(off) => checks.push(switched_off(API, name, id, off)),
            None => {
                if let Some(options) = &api.options {
                    let found = look(options, project).await;
                    checks.push(api_check(name, options, found));
                }
            }
        }
    }
    checks
}

fn tools(name: &str, project: &Project) -> Vec<Check> {
    let is_off = |tool: &RestTool| tool.off.is_some();
    let on = project.rest_tools.values().filter(|tool| !is_off(tool)).count();
    let mut checks = Vec::new();
    if on > 0 {
        checks.push(good(TOOL, of(name, &format!("{on} configured"))));
    }
    for (id, tool) in &project.rest_tools {
        if let Some(off) = &tool.off {
            checks.push(switched_off(TOOL, name, id, off));
        }
    }
    checks
}

fn switched_off(what: &'static str, project: &str, id: &str, off: &DisabledReason) -> Check {
    match off {
        DisabledReason::Disabled => {
            good(what, of(project, &format!("{id} is switched off by its configuration (enabled: false)")))
        }
        DisabledReason::Unusable(reason) => {
            bad(what, of(project, &format!("{id} is switched off: {reason}")))
        }
    }
}

fn api_check(project: &str, options: &ApiOptions, found: Result<Look, String>) -> Check {
    let (id, place) = (&options.id, shown(&options.spec));
    let look = match found {
        Ok(look) => look,
        Err(reason) => return bad(API, of(project, &format!("{id}: {}", unusable(&place, &reason)))),
    };
    let import = &look.import;
    let mut words = vec![format!("{id}: {} tools of {} operations", import.operations.len(), import.total)];
    if import.filtered > 0 {
        words.push(format!("{} left out by choice", import.filtered));
    }
    let mut is_odd = import.operations.is_empty();
    if !import.skipped.is_empty() {
        is_odd = true;
        words.push(format!("{} skipped (gantry openapi inspect {id} --skipped)", import.skipped.len()));
    }
    let bare = without_credentials(&look, options);
    if !bare.is_empty() {
        is_odd = true;
        words.push(format!("no credentials for {}", bare.join(", ")));
    }
    let words = of(project, &words.join("; "));
    if is_odd { odd(API, words) } else { good(API, words) }
}

/// The schemes that operations need and nothing that fits is configured for. An operation that has what one way needs needs no other.
fn without_credentials<'a>(look: &'a Look, options: &ApiOptions) -> Vec<&'a str> {
    let mut bare: Vec<&str> = Vec::new();
    for operation in &look.import.operations {
        let has = |name: &String| {
            let shown = options.auth.get(name).zip(look.import.schemes.get(name));
            shown.is_some_and(|(credential, scheme)| fits(scheme, credential))
        };
        let is_open = operation.security.is_empty()
            || operation.security.iter().any(|need| need.0.iter().all(|(name, _)| has(name)));
        if is_open {
            continue;
        }
        let names = operation.security.iter().flat_map(|need| &need.0).map(|(name, _)| name);
        for name in names.filter(|name| !has(name)) {
            let is_usable = !matches!(look.import.schemes.get(name), Some(Scheme::Unsupported(_)));
            if is_usable && !bare.contains(&name.as_str()) {
                bare.push(name);
            }
        }
    }
    bare
}
