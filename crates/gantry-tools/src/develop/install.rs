//! `install_package`: installs packages into a project. Always waits for a person, because it reaches the network and
//! brings code of others.
//!
//! A yes is bound to the command lines, the registry with its hosts, and the manifests, lock files and settings in the
//! project's folder. If one of them is different by the time the call runs, nothing is installed. Only the
//! hosts of the registry can be reached, also where the project names others.

mod names;
mod plan;

pub(super) use plan::{cargo_config, go_env};

use super::act::Install;
use super::ecosystem::Ecosystem;
use super::site::{MANIFEST_BYTES, Print, Site, after_run, off_thread};
use super::{Develop, fault, words};
use crate::command::runner::{CommandRunner, CommandSpec, NetworkAccess, exit_code, millis};
use crate::own;
use gantry_core::policy::OwnVerdict;
use gantry_core::{EffectState, Fault};
use gantry_sandbox::jail::{Access, End, Ran};
use plan::{Plan, Step, host};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long an installation may take, with all its steps.
const WALL: Duration = Duration::from_mins(15);
/// What is read of each output of a step.
const OUTPUT_BYTES: usize = 1024 * 1024;

/// Why and on what the call would have to wait. Changes nothing.
pub(super) async fn inspect(develop: &Develop, install: Install) -> Result<OwnVerdict, Fault> {
    let site = Site::open(&develop.runner, &install.path).await?;
    let registries = develop.registries.clone();
    let look = move || {
        let plan = plan::of(&site, &install, &registries)?;
        Ok(OwnVerdict {
            ask: Some(question(&install, &plan)),
            precondition: Some(plan.precondition(&site)?.into()),
        })
    };
    off_thread(look).await?
}

/// The question: what, from where, and what it may do.
fn question(install: &Install, plan: &Plan) -> String {
    let what = if install.packages.is_empty() {
        "everything that the project declares".to_owned()
    } else {
        install.packages.join(", ")
    };
    let scripts = match (plan.ecosystem, install.scripts) {
        (Ecosystem::Node, true) => ", running the packages' own install scripts",
        (Ecosystem::Node, false) => {
            ", without the packages' install scripts; what the project's own settings name, such as .pnpmfile.cjs or \
             plugins of yarn, still runs in the sandbox"
        }
        (Ecosystem::Python, _) => "; a package without a wheel runs code of its own to be built",
        (Ecosystem::Cargo, _) => {
            "; what the project's own settings name, such as wrappers of the compiler, runs in the sandbox"
        }
        (Ecosystem::Go, _) => "",
    };
    let folder = own::shown(&install.path);
    let (manager, registry) = (plan.manager.name, host(&plan.source));
    let by = plan.environment.map(|name| format!(", by the project's own {name},")).unwrap_or_default();
    let hosts = plan.hosts.join(", ");
    format!(
        "it installs packages of others with {manager}{by} from {registry} into {folder}: {what}{scripts}; while it \
         runs it can reach the network, and there only {hosts}"
    )
}

/// A plan, and the files of its manager before it runs.
#[derive(Debug)]
struct Before {
    plan: Plan,
    files: Vec<(&'static str, Option<Print>)>,
}

pub(super) async fn run(
    develop: &Develop,
    install: Install,
    precondition: Option<&str>,
) -> Result<Value, Fault> {
    let site = Arc::new(Site::open(&develop.runner, &install.path).await?);
    let before = {
        let (site, registries) = (Arc::clone(&site), develop.registries.clone());
        let judged = precondition.map(str::to_owned);
        off_thread(move || look(&site, &install, &registries, judged.as_deref())).await??
    };
    let before = Arc::new(before);
    let plan = &before.plan;
    for step in &plan.steps {
        if !step.program.starts_with('/') && develop.runner.toolchains().program(&step.program).is_none() {
            return Err(fault::no_program(&step.program, plan.manager.toolchain));
        }
    }
    let mut left = WALL;
    let mut last: Option<(Ran, &Step)> = None;
    for step in &plan.steps {
        let ran = one(develop, &site, (plan, step), left).await;
        let ran = ran.map_err(|fault| started(fault, last.is_some()))?;
        left = left.saturating_sub(ran.duration);
        let failed = ran.end != End::Exited(0);
        last = Some((ran, step));
        if failed {
            break;
        }
    }
    let Some((ran, step)) = last else { return Err(fault::failed("there was nothing to run")) };
    let mut result = {
        let before = Arc::clone(&before);
        after_run(move || report(&site, &before)).await?
    };
    let (output, truncated) = words::output(&ran);
    result["command"] = step.command().into();
    result["exitCode"] = exit_code(ran.end).into();
    result["duration"] = millis(WALL.saturating_sub(left)).into();
    result["output"] = output.into();
    if truncated {
        result["truncated"] = true.into();
    }
    conclude(develop, &ran, (plan, step), result)
}

/// The plan, if everything is as it was when a person was asked.
fn look(
    site: &Site,
    install: &Install,
    registries: &super::Registries,
    precondition: Option<&str>,
) -> Result<Before, Fault> {
    let plan = plan::of(site, install, registries)?;
    if precondition != Some(plan.precondition(site)?.as_str()) {
        return Err(fault::outdated(
            "what the project declares, or where its packages come from, changed after the call was judged; nothing \
             was installed. Call again to have it judged as it is now",
        ));
    }
    let files = plan.files(site)?;
    Ok(Before { plan, files })
}

async fn one(
    develop: &Develop,
    site: &Site,
    (plan, step): (&Plan, &Step),
    wall: Duration,
) -> Result<Ran, Fault> {
    let reach = || NetworkAccess { hosts: Some(plan.hosts.clone()), ..NetworkAccess::default() };
    let task = CommandSpec {
        env: step.env.clone(),
        folder: site.folder.clone(),
        access: Access::Write,
        network: step.network.then(reach),
        packages: true,
        output: OUTPUT_BYTES,
        ..CommandSpec::new(step.program.clone(), develop.runner.options().builds, wall).args(&step.args)
    };
    develop.runner.run(task).await
}

/// A fault after earlier steps have changed something.
fn started(fault: Fault, changed: bool) -> Fault {
    if changed { Fault { effect: EffectState::Done, ..fault } } else { fault }
}

/// Which of the manager's files are different now. What cannot be read any more has changed too.
fn report(site: &Site, Before { plan, files }: &Before) -> Value {
    let is_changed = |(name, before): &&(&'static str, Option<Print>)| {
        site.print(&site.folder.join(name), MANIFEST_BYTES).ok().as_ref() != Some(before)
    };
    let changed = files.iter().filter(is_changed);
    let changed: Vec<String> =
        changed.map(|(name, _)| site.folder.join(name).display().to_string()).collect();
    json!({
        "ecosystem": plan.ecosystem.name(),
        "command": [],
        "changed": changed,
        "sandbox": CommandRunner::level(),
    })
}

/// The result, or the error with what is known, if the last step did not succeed.
fn conclude(
    develop: &Develop,
    ran: &Ran,
    (plan, step): (&Plan, &Step),
    result: Value,
) -> Result<Value, Fault> {
    if ran.end == End::Exited(0) {
        return Ok(result);
    }
    let limits = (WALL, develop.runner.options().builds);
    if let Some(fault) = fault::limit(ran, "install_package", limits, result.clone()) {
        return Err(fault);
    }
    let Fault { error, .. } = fault::failed(format!(
        "`{}` failed with code {}; the details have what it said and what it changed; {}",
        step.command().join(" "),
        exit_code(ran.end),
        plan.advice(step),
    ));
    Err(Fault { error: error.with_details(result), effect: EffectState::Done })
}

/// The programs that an installation would run, with their arguments.
#[cfg(test)]
pub(super) fn plan_of(
    site: &Site,
    install: &Install,
    registries: &super::Registries,
) -> Result<Vec<(String, Vec<String>)>, Fault> {
    let plan = plan::of(site, install, registries)?;
    Ok(plan.steps.into_iter().map(|step| (step.program, step.args)).collect())
}
