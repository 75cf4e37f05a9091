//! Gantry's own tools in a project.

use crate::config::Project;
use gantry_core::options::ToolKey;
use gantry_provider::Provider;
use gantry_runtime::options::ProviderOptions;
use gantry_tools::builtin::{BuiltinProvider, NAMESPACE};
use gantry_tools::command::runner::CommandRunner;
use gantry_tools::command::{MAX_TIMEOUT, code_tools, shell_tools};
use gantry_tools::dev::dev_tools;
use gantry_tools::files::{FsTools, catalogue_tools, file_tools};
use gantry_tools::git::git_tools;
use gantry_tools::options::{BuiltinPolicy, FilePolicy};
use gantry_tools::search::search_tools;
use gantry_tools::toolbox::ToolBox;
use gantry_tools::web::web_tools;
use gantry_tools::workspace::ProtectedPaths;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How much longer a call may take than what it waits for. The tool itself ends what runs too long and says what came
/// of it; the limit of the call is the last resort.
const GRACE_PERIOD: Duration = Duration::from_secs(10);
/// The folder for packages that earlier versions had there. Jobs without an approval wrote to it, so nothing is installed
/// from it.
const OLD_PACKAGES: &str = "packages";
/// Files of the index that `search_code` had there in earlier versions.
const OLD_INDEX: [&str; 3] = ["search.db", "search.db-wal", "search.db-shm"];

pub(in crate::startup) struct OwnTools {
    /// Those of the workspace, and those of the catalogue.
    pub(in crate::startup) providers: Vec<Arc<dyn Provider>>,
    /// The tools of the workspace that have a time limit of their own, and the longest that one can be.
    time_limits: Vec<(&'static str, Duration)>,
}

/// Opens the workspace; starts nothing.
pub(in crate::startup) fn own_tools(
    project: &Project,
    protected: &ProtectedPaths,
) -> anyhow::Result<OwnTools> {
    let workspace = &project.workspace;
    // The first one says best what is wrong with a workspace.
    let files = file_tools(workspace, protected.clone())?;
    let runner = Arc::new(CommandRunner::open(
        workspace.clone(),
        protected.clone(),
        project.places.data.clone(),
        project.web.allow_private.clone(),
        project.code.clone(),
    ));
    let mut providers: Vec<Arc<dyn Provider>> = Vec::new();
    let mut time_limits = Vec::new();
    if project.tools.workspace.options.enabled {
        let workspace = BuiltinProvider::workspace(families(files, project, protected, &runner)?);
        time_limits.extend(workspace.time_limits());
        providers.push(Arc::new(workspace));
    }
    for (id, builtin) in project.builtin.iter().filter(|(_, builtin)| builtin.options.enabled) {
        let files =
            |tools, policy: &FilePolicy| catalogue_tools(id, workspace, protected.clone(), tools, policy);
        let family = match &builtin.policy {
            BuiltinPolicy::FsRead(policy) => files(FsTools::Read, policy)?,
            BuiltinPolicy::FsWrite(policy) => files(FsTools::Write, policy)?,
            BuiltinPolicy::ShellExec(policy) => shell_tools(Arc::clone(&runner), policy.clone()),
        };
        providers.push(Arc::new(BuiltinProvider::entry(id, family)));
    }
    Ok(OwnTools { providers, time_limits })
}

/// The families of tools under the id of the workspace.
fn families(
    files: ToolBox,
    project: &Project,
    protected: &ProtectedPaths,
    runner: &Arc<CommandRunner>,
) -> anyhow::Result<Vec<ToolBox>> {
    for name in OLD_INDEX {
        // It only takes space, so that a file which stays is no reason to fail.
        std::fs::remove_file(project.places.data.join(name)).ok();
    }
    std::fs::remove_dir_all(project.places.data.join(OLD_PACKAGES)).ok();
    Ok(vec![
        files,
        search_tools(&project.workspace, protected.clone(), project.search.clone())?,
        code_tools(Arc::clone(runner)),
        dev_tools(Arc::clone(runner))?,
        git_tools(Arc::clone(runner), project.git.clone()),
        web_tools(project.web.clone())?,
    ])
}

impl OwnTools {
    /// Lets calls take as long as what they may ask for, unless the configuration says otherwise.
    pub(super) fn apply_default_timeouts(
        &self,
        project: &Project,
        providers: &mut HashMap<Arc<str>, ProviderOptions>,
    ) {
        if let Some(own) = providers.get_mut(NAMESPACE).filter(|own| own.timeout.some().is_none()) {
            for (tool, longest) in &self.time_limits {
                let Ok(tool) = tool.parse::<ToolKey>() else { continue };
                let of_tool = own.tools_timeout.entry(tool).or_default();
                if of_tool.some().is_none() {
                    *of_tool = (*longest + GRACE_PERIOD).into();
                }
            }
        }
        for (id, builtin) in &project.builtin {
            let Some(options) = providers.get_mut(&**id) else { continue };
            if matches!(builtin.policy, BuiltinPolicy::ShellExec(_)) {
                let longest = options.timeout.some().unwrap_or(Duration::from_secs(MAX_TIMEOUT));
                options.timeout = (longest + GRACE_PERIOD).into();
            }
        }
    }
}
